//===- Merge.h - Parts of an attention made whole, as numbers ---*- C++ -*-===//
///
/// Attention over disjoint sets of keys gives parts (O_i, LSE_i), of which that
/// over all keys is
///
///   LSE = log sum_i exp(LSE_i),   O = sum_i w_i O_i,   w_i = exp(LSE_i - LSE)
///
/// and of one part the gradients are
///
///   dO_i   = w_i dO
///   dLSE_i = w_i (dLSE + <dO, O_i - O>)
///
/// Nothing is multiplied but rows by numbers, and every array is moved once, so
/// there is no schedule to choose and the bytes have a closed form.  Two parts
/// in bf16 of 100 rows of 64 columns, into bf16 with its LSE: each array of
/// rows has 12800 bytes and each LSE 400, so 3 * 13200 = 39600.
///
/// A kernel takes so many parts; more are merged group by group.
///
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_MERGE_H
#define ATTN_SCHEDULE_MERGE_H

#include "attn/Schedule/Problem.h"

#include <vector>

namespace attn {

struct Merge {
  Direction direction = Direction::forward;
  int64_t batch = 1, heads = 1, queries = 0, headDim = 0;
  /// Of O, and of its gradient.
  DataType dtype = DataType::bf16;
  /// Of each O_i; backward there is one, whose gradient has that type too.
  std::vector<DataType> parts;
  /// Forward: LSE is a result.
  bool lse = true;
  /// Backward: a gradient of LSE comes in.
  bool dlse = false;
};

/// Parts that one kernel takes: its arguments are five for each array, and have
/// 4 KB of constant memory.
inline constexpr int64_t kMostParts = 16;

/// Rows of a block.
inline constexpr int64_t kMergeRows = 64;

/// A sentence when it is illegal, nothing when it is fine.
std::optional<std::string> check(const Merge &merge);

/// The attention whose sizes have the same limits.
Problem limitsOf(const Merge &merge);

/// Between L2 and the multiprocessors; shared memory takes no part.
int64_t bytesOf(const Merge &merge);

/// Blocks of the grid.
int64_t blocksOf(const Merge &merge);

} // namespace attn

#endif // ATTN_SCHEDULE_MERGE_H
