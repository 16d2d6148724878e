//===- Rounds.h - Launches that alternate -----------------------*- C++ -*-===//
///
/// Launches may alternate in *rounds*: all from `first` on run for some key
/// heads of all batch entries and a strip of rows of an axis, and then for the
/// next, so that what one spills for another takes the room of one round.
/// Strips are the inner loop, in order.  Scores wait from launch to launch in
/// arrays
///
///   [heads, query heads that share one times blocks, rows, columns]
///
/// of whole tiles, which all rounds use.  Of strips of keys a row has all
/// columns, and there is one block; of strips of queries those of a block of
/// keys.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_ROUNDS_H
#define ATTN_SCHEDULE_ROUNDS_H

#include <cstddef>
#include <cstdint>

namespace attn {

enum class Axis { Query, Key, HeadDim, HeadDimV };

struct Rounds {
  int64_t heads = 0, strip = 0; ///< 0: they do not, each does all of it
  Axis axis = Axis::Key;        ///< whose rows are cut into strips
  size_t first = 1;             ///< those before it do not take turns
  /// Rows of a tile of queries and of a block of keys, in which scores wait.
  int64_t queryTile = 1, keyBlock = 1;

  explicit operator bool() const { return heads > 0; }
  bool cutsQueries() const { return heads > 0 && axis == Axis::Query; }
};

/// Blocks of a query head, and rows and columns of a block.
template <typename Number> struct RoundArrays {
  Number blocks, rows, columns;
};

} // namespace attn

#endif // ATTN_SCHEDULE_ROUNDS_H
