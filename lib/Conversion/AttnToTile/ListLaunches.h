//===- ListLaunches.h - Lists of blocks as launches of kernels --*- C++ -*-===//
//
// attn.block_lists becomes the launches of two kernels (Listing.h), with the
// words of classes between them in memory of the launches;
// attn.transpose_blocks becomes one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_LISTLAUNCHES_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_LISTLAUNCHES_H

#include "KernelModule.h"

#include "attn/IR/Attn.h"
#include "attn/Kernels/Listing.h"

namespace attn {

class ListConverter {
public:
  ListConverter(mlir::ModuleOp module, MachineAttr machine,
                KernelModule &kernels)
      : module(module), machine(machine), kernels(kernels) {}

  llvm::LogicalResult convert(BlockListsOp op);
  llvm::LogicalResult convert(TransposeBlocksOp op);

private:
  llvm::LogicalResult check(mlir::Operation *op, bool isOnTensors);
  /// Of so many warps for each head.
  llvm::LogicalResult launch(mlir::ImplicitLocOpBuilder &b,
                             const ListingRequest &request,
                             const ArgumentValues &values, mlir::Value warps);
  mlir::FailureOr<tile::KernelOp> findOrBuild(mlir::ImplicitLocOpBuilder &b,
                                              const ListingRequest &request);

  mlir::ModuleOp module;
  MachineAttr machine;
  KernelModule &kernels;
  /// With a region of the kernel's own, as that of an op goes with it.
  struct Built {
    ListingRequest request;
    std::unique_ptr<mlir::Region> sees;
    tile::KernelOp kernel;
  };
  std::vector<Built> built;
};

} // namespace attn

#endif
