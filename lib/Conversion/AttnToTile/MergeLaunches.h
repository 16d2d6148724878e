//===- MergeLaunches.h - Merges as launches of their kernels ----*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_MERGELAUNCHES_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_MERGELAUNCHES_H

#include "KernelModule.h"

#include "attn/IR/Attn.h"
#include "attn/Kernels/Merge.h"

namespace attn {

/// Builds the kernels of merges, one for those that differ only in sizes and
/// strides.
class MergeConverter {
public:
  MergeConverter(mlir::ModuleOp module, MachineAttr machine,
                 KernelModule &kernels)
      : module(module), machine(machine), kernels(kernels) {}

  llvm::LogicalResult convert(MergeOpInterface op);

private:
  /// An array and the alignment of its rows.
  struct Array {
    ArgumentRole role;
    mlir::Value value;
    std::optional<int64_t> promised = std::nullopt;
  };
  /// Launches a kernel on arrays that are no more than one takes.
  llvm::LogicalResult launch(mlir::ImplicitLocOpBuilder &b, const Merge &merge,
                             llvm::ArrayRef<Array> arrays);
  /// Parts that are so many that a kernel takes them, and the same when merged.
  mlir::FailureOr<llvm::SmallVector<Array>>
  gathered(mlir::ImplicitLocOpBuilder &b, Merge &merge,
           llvm::ArrayRef<Array> parts);
  mlir::FailureOr<tile::KernelOp> findOrBuild(mlir::ImplicitLocOpBuilder &b,
                                              const MergeRequest &request);

  mlir::ModuleOp module;
  MachineAttr machine;
  KernelModule &kernels;
  std::vector<std::pair<MergeRequest, tile::KernelOp>> built;
};

} // namespace attn

#endif
