//===- Compile.h - From a module to a program -------------------*- C++ -*-===//
//
// A program is what it takes to run a module: the module at tile level, whose
// host functions say what to launch and whose kernels the interpreter can run,
// and the same kernels compiled for the machine.
//
//   OwningOpRef<ModuleOp> source = parseSourceString<ModuleOp>(text, &context);
//   FailureOr<Program> program = compile(*source, {"h100_sxm", ""});
//   program->module        func.func @f ... tile.launch @attn::@flash ...
//   program->kernels[0]    {"attn::flash", 128 threads, 168 registers, ...}
//   program->binaries[0]   {"sm_90a", <PTX>, <cubin>, "ptxas 13.0.88"}
//
// Kernels that the open KernelCache holds are taken from there.
//
// Errors are diagnostics at the ops of the source.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CAPI_COMPILE_H
#define ATTN_CAPI_COMPILE_H

#include "attn/Schedule/Problem.h"
#include "attn/Tile/Tile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/Support/JSON.h"

#include <optional>
#include <string>
#include <vector>

namespace attn {

struct CompileOptions {
  /// Name of a machine, which must exist; empty for the module's own, or
  /// h100_sxm.
  std::string machine;
  /// Overrules the choice, "flash, query = 128, key = 64"; empty to derive it.
  std::string schedule;
  /// Stop at tile level: enough for the interpreter.
  bool withBinary = true;
};

/// A kernel of a program.
struct KernelInfo {
  /// See qualifiedName.
  std::string name;
  /// What was chosen, "flash, query = 128, key = 64", and for which machine.
  std::string schedule, machine;
  int64_t threads = 0;
  /// Dynamic shared memory of a block.
  int64_t smemBytes = 0;
  /// Blocks of a cluster, and whether all blocks must run at once.
  int64_t cluster = 1;
  bool isCooperative = false;
  /// What the cost model predicts, for the sizes that the kernel was planned
  /// for: those of the op, with assumptions where they are dynamic.
  Problem plannedFor;
  double predictedSeconds = 0;
  std::string boundBy;

  /// Position of its binary in the program; what follows is the cubin's, and
  /// nothing where there is none.
  size_t binary = 0;
  std::optional<int64_t> registersPerThread;
  /// Above zero: registers are spilled or an array lies outside of them.
  std::optional<int64_t> stackBytesPerThread;
};

/// Kernels compiled together: a gpu.module.
struct Binary {
  /// What it was compiled for, "sm_90a".
  std::string chip;
  std::string ptx;
  /// Empty where there is no assembler; then the driver takes the PTX.
  std::string cubin;
  /// "ptxas 13.0.88", or empty.
  std::string assembler;

  /// What the driver is given.
  llvm::StringRef image() const { return cubin.empty() ? ptx : cubin; }
};

struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<KernelInfo> kernels;
  std::vector<Binary> binaries;
};

/// How many kernel modules this process has compiled, not found in a cache.
int64_t compiledCount();

/// Compiles a copy of the module.
mlir::FailureOr<Program> compile(mlir::ModuleOp source,
                                 const CompileOptions &options);

/// A kernel by the names of its gpu.module and itself: "attn::flash".
std::string qualifiedName(tile::KernelOp kernel);

/// The facts about a kernel as a JSON object.
void writeJson(llvm::json::OStream &json, const KernelInfo &kernel);

} // namespace attn

#endif
