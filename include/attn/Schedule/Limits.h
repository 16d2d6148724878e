//===- Limits.h - The sizes that are counted exactly ------------*- C++ -*-===//
///
/// Kernels number rows and tiles in 32 bits, CUDA the blocks of a grid in 31,
/// and the planner counts bytes in 63.  So sizes have limits, and so have some
/// of their products.  All stand in one table:
///
///   batch, heads, rows, head dimensions   each by itself
///   batch x heads x queries x keys x d    products, for counts of bytes
///   batch x heads x queries / 16          tiles, of 16 rows at least, which
///   batch x kv heads x keys / 16          a grid or a counter numbers
///   heads / kv heads x queries            rows that stream past a key
///
/// `check` holds a problem against them, which the verifier of the ops, the C
/// interface and the command lines ask; what a type leaves open, the code that
/// the host runs asserts (convert-attn-to-tile), with the same sentences.
///
/// That rows stay below 2^30 keeps sums of a row and a side of the mask in 31
/// bits: `band` bounds sides by the numbers of rows.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_LIMITS_H
#define ATTN_SCHEDULE_LIMITS_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Problem.h"

#include <string>
#include <vector>

namespace attn {

/// What limits speak of.  `group` are the query heads of a key head.
enum class Size {
  batch,
  heads,
  kvHeads,
  group,
  queries,
  keys,
  headDim,
  headDimV
};

int64_t valueOf(Size size, const Problem &problem);

/// A size as it counts in a product: in units, rounded up, and `least` at
/// least.
struct Factor {
  Size size;
  int64_t least = 1, unit = 1;

  int64_t of(const Problem &problem) const;
};

/// A size, or a product of several, is from `least` to `most`.
struct Limit {
  std::string what; ///< as sentences name it
  std::vector<Factor> factors;
  int64_t least, most;

  bool isProduct() const { return factors.size() > 1; }
  /// `expects queries between 0 and 1073741823`.
  std::string sentence() const;
};

const std::vector<Limit> &limits();

/// Rows of the smallest tile.
inline constexpr int64_t kLeastTileRows = 16;
/// Tiles of all heads: so many, and as many draws again, fit 31 bits.
inline constexpr int64_t kMostTiles = int64_t(1) << 30;

/// Whether there is nothing to compute, or no key to see.
bool isEmpty(const Problem &problem);
/// The problem with a batch entry, a query and a key at least, which is what is
/// planned: the kernel is the same, and what is empty takes no longer.
Problem atLeastOne(Problem problem);

/// The machine with memory for any sizes: for those that are not known yet,
/// what launches take of memory is checked when they are.
Machine withAnyMemory(Machine machine);

} // namespace attn

#endif // ATTN_SCHEDULE_LIMITS_H
