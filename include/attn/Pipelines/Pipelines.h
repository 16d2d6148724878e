//===- Pipelines.h - From attn to tile, NVVM and binary ---------*- C++ -*-===//
//
// The arrow, as three pipelines of which each is a prefix of the next:
//
//   attn-to-tile     machine, schedule, buffers, kernels, checks
//   attn-to-nvvm     + code of one lane
//   attn-to-binary   + PTX or cubin
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_PIPELINES_H
#define ATTN_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace attn {

/// Where the arrays of attention lie.  `open` leaves it to who runs the tiles,
/// and is the GPU in pipelines that make code of the host.
enum class ArrayMemory { open, device, host };

/// Options of the first two pipelines, and of every one that holds them.
struct LoweringOptions : mlir::PassPipelineOptions<LoweringOptions> {
  PassOptions::Option<std::string> machine{
      *this, "machine",
      llvm::cl::desc("GPU to compile for; without it the one that the module "
                     "names, else h100_sxm"),
      llvm::cl::init("")};
  PassOptions::Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("schedule to use instead of the best: "
                     "\"flash, query = 128, key = 64, ...\""),
      llvm::cl::init("")};
  PassOptions::Option<bool> explain{
      *this, "explain",
      llvm::cl::desc("say in remarks what was chosen and why"),
      llvm::cl::init(false)};
  PassOptions::Option<ArrayMemory> memory{
      *this, "memory",
      llvm::cl::desc("where arrays lie, those of tensors too; device for "
                     "pipelines that make code of the host"),
      llvm::cl::init(ArrayMemory::open),
      llvm::cl::values(
          clEnumValN(ArrayMemory::open, "open", "nobody allocates or copies"),
          clEnumValN(ArrayMemory::device, "device",
                     "on the GPU, arguments and results of functions too"),
          clEnumValN(ArrayMemory::host, "host",
                     "on the host, copied for each op and back"))};
};

/// What attn-to-binary makes of a kernel.
enum class BinaryFormat { isa, bin };

/// Options of attn-to-binary.
struct BinaryOptions : LoweringOptions {
  PassOptions::Option<BinaryFormat> format{
      *this, "format", llvm::cl::desc("what a kernel becomes"),
      llvm::cl::init(BinaryFormat::bin),
      llvm::cl::values(
          clEnumValN(BinaryFormat::isa, "isa", "PTX"),
          clEnumValN(BinaryFormat::bin, "bin", "cubin, needs ptxas"))};
};

void buildAttnToTilePipeline(mlir::OpPassManager &pm,
                             const LoweringOptions &options);
void buildAttnToNVVMPipeline(mlir::OpPassManager &pm,
                             const LoweringOptions &options);
void buildAttnToBinaryPipeline(mlir::OpPassManager &pm,
                               const BinaryOptions &options);

/// What each adds to the one before, for who wants to stop in between.
void buildTileToNVVMPipeline(mlir::OpPassManager &pm);
void buildNVVMToBinaryPipeline(mlir::OpPassManager &pm, BinaryFormat format);

/// Makes the pipelines known to command lines by their names.
void registerPipelines();

} // namespace attn

#endif
