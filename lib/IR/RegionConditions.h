//===- RegionConditions.h - Regions of `sees` as inequalities ---*- C++ -*-===//
//
// Where comparisons of a region are of affine functions of the positions, what
// it shows is a union of pieces, each a conjunction of inequalities: the
// disjunctive form of its ops on truth values.  What is not affine, as reads
// and remainders, leaves a piece that is larger than what the region shows.
//
// Example: (j <= i and i - j < 128) or j < 4 has the pieces
//
//   j - i <= 0, i - j - 127 <= 0        and       j - 3 <= 0
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_IR_REGIONCONDITIONS_H
#define ATTN_LIB_IR_REGIONCONDITIONS_H

#include "attn/IR/Clauses.h"

#include <array>
#include <vector>

namespace attn {

/// Places of the positions (kPositions).
enum Position { batch, head, query, key, queries, keys };

/// Multiples of the positions, and a constant.
struct Sum {
  std::array<int64_t, kPositionCount> factors = {};
  int64_t constant = 0;

  /// The largest value at positions that a problem may have.
  __int128 most() const;
};
/// The largest of all rows that there are, whose sizes are left open: with
/// `query` at most `queries - 1`.
Sum atLastRows(const Sum &sum);

/// Pairs for which every sum is 0 or less.  A piece is whole if the region
/// shows all of them, and else some.
struct Piece {
  std::vector<Sum> sums;
  bool isWhole = true;
};

/// A union that has every pair that the region shows.
std::vector<Piece> piecesOf(mlir::Region &sees);

} // namespace attn

#endif
