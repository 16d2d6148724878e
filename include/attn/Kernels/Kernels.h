//===- Kernels.h - From a plan to the kernel it names -----------*- C++ -*-===//
//
// A kernel builder writes the `tile.kernel` of one schedule for one family of
// tensor-core instructions.  It decides nothing: tile sizes come with the
// request.  What it promises is that the kernel moves exactly the bytes that
// the schedule's folds predict; passes check that on the IR.
//
// Builders are found by name, `<schedule>_<family>`, which is also the name of
// the file in lib/Kernels and of the function.
//
// **Arguments.**  A kernel says in the attribute `tile.role` of each argument
// what it wants passed (a `Role` by name), and who launches it reads that: new
// schedules need no second list.  Extents, strides and the mask are run-time
// arguments, so one kernel serves every batch and row count.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_KERNELS_KERNELS_H
#define ATTN_KERNELS_KERNELS_H

#include "attn/Schedule/Problem.h"
#include "attn/Schedule/Tiles.h"
#include "attn/Tile/Tile.h"

#include "mlir/IR/Builders.h"

#include <string>

namespace attn {

/// What is asked of a builder.
struct KernelRequest {
  std::string name; ///< symbol of the kernel
  Problem problem;  ///< type, head dimensions, mask kind, lse; extents are not
                    ///< read, the kernel takes them as arguments
  Tiles tiles;      ///< of the schedule, `check`ed by its plan
  int64_t minBlocksPerSm = 1; ///< from the plan's footprint
  double scale = 1; ///< of the scores; only its sign matters to the code
  /// Bytes that divide every row's address, per operand: 2 to 16.
  struct {
    int64_t q = kMaxAlignment, k = kMaxAlignment, v = kMaxAlignment,
            o = kMaxAlignment;
  } align;
};

/// Name of the argument attribute that holds a role.
inline constexpr llvm::StringLiteral kRoleAttr = "tile.role";

/// Roles of kernel arguments: `<operand>` is q, k, v, o or lse.
///   `<operand>`                       !tile.ptr, aligned base of the memref
///   `<operand>_offset`                i64, elements from it to element 0
///   `<operand>_stride_<batch|head|row>` i64, elements
///   `queries`, `keys`                 i32, rows of Q and of K
///   `group`                           i32, query heads that share a key head
///   `band_first`, `band_last`         i32, see Problem.h
///   `scale`                           f32, scale of the scores
std::string offsetRole(llvm::StringRef operand);
std::string strideRole(llvm::StringRef operand, llvm::StringRef axis);

/// The value of an integer role for a problem; strides and offsets, which the
/// problem does not tell, and pointers are 0.
int64_t roleValue(llvm::StringRef role, const Problem &problem);

/// What a kernel was built for, as its attribute `problem` and back.
mlir::DictionaryAttr problemAttr(mlir::MLIRContext *context,
                                 const Problem &problem);
std::optional<Problem> problemFromAttr(mlir::DictionaryAttr attribute);

/// Name of that attribute of a kernel.
inline constexpr llvm::StringLiteral kProblemAttr = "problem";

using KernelBuilder = tile::KernelOp (*)(mlir::OpBuilder &, mlir::Location,
                                         const KernelRequest &);

/// The builder of that name, or null.
KernelBuilder findKernelBuilder(llvm::StringRef name);

} // namespace attn

#endif
