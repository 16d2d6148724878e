//===- Ranks.h - The order of sequences by length ---------------*- C++ -*-===//
//
// What `tile.rank` leaves in its table, for who executes it without a GPU.
//
// Example: lengths 3, 9, 3 with 1, 3 and 2 slots.  Ascending the first slots
// are 0 of sequence 0, 1 of sequence 2, and 3 of sequence 1.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_RANKS_H
#define ATTN_TILE_RANKS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace attn::tile {

class RankOp;

/// An entry of the table, in its order in memory.
struct Rank {
  int32_t firstSlot, sequence;
};

/// A sequence before it is ranked.
struct UnrankedSequence {
  int64_t slots, length;
};

std::vector<Rank> rankSequences(llvm::ArrayRef<UnrankedSequence> sequences,
                                bool descending);

/// Scalars of a `tile.rank`.
struct RankScalars {
  int64_t at, stride, lengthsAt, lengthsStride, count;
};
/// An element of the offsets, or of the lengths, if it is known.
using ReadRanked =
    llvm::function_ref<std::optional<int64_t>(bool isLength, int64_t element)>;
/// The table that the op leaves, none if there are more sequences than entries;
/// nothing if an element is not known.
std::optional<std::vector<Rank>> runRank(RankOp op, const RankScalars &scalars,
                                         ReadRanked read);

} // namespace attn::tile

#endif
