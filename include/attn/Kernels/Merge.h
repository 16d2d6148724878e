//===- Merge.h - The kernels of attn.merge and its gradient -----*- C++ -*-===//
//
// A block has 64 rows of a head, 16 for each of four warps.  A warp loads the
// LSEs of its rows, makes weights of them, and goes through the columns, 64 at
// a time: a merge adds up what it loads of every part, a gradient has one part.
// Nothing passes through shared memory, and no instruction is of one family of
// machines.
//
// Weights are exp2((LSE_i - M) log2(e)) over their sum, M the largest LSE_i, or
// 0 where that is -inf.  What a part with LSE_i = -inf holds is loaded and not
// looked at.
//
// Roles of arguments (Roles.h) are those of the op's arrays, `o_0`, `lse_0`,
// .., and the sizes `queries` and `heads`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_KERNELS_MERGE_H
#define ATTN_KERNELS_MERGE_H

#include "attn/Kernels/Kernels.h"
#include "attn/Schedule/Merge.h"

namespace attn {

/// What is asked of the builder.
struct MergeRequest {
  std::string name; ///< symbol of the kernel
  Merge merge;      ///< of extents only the columns are read
  /// As in a KernelRequest.
  std::map<std::string, int64_t> alignments;
};

tile::KernelOp buildMerge(mlir::OpBuilder &builder, mlir::Location loc,
                          const MergeRequest &request);

/// The role of the array of a part.
inline ArgumentRole partRole(Role array, size_t part) {
  return {array, Facet::itself, int(part)};
}

/// A name that says what a kernel computes, `merge_2_bf16_128_lse`.
std::string mergeName(const Merge &merge);

/// Name of the attribute that says what a kernel merges, and the attribute.
inline constexpr llvm::StringLiteral kMergeAttr = "merge";
mlir::DictionaryAttr mergeAttr(mlir::MLIRContext *context, const Merge &merge);
/// Nothing if it is no legal merge.
std::optional<Merge> mergeFromAttr(mlir::DictionaryAttr attribute);

} // namespace attn

#endif
