//===- RowsOfHeads.h - Where a tile has rows of several heads ---*- C++ -*-===//
//
// A tile with rows of several heads (Schedule/SharedTiles.h) has as many of
// each, head below head.  Where a sequence has few queries left, most of these
// are behind its end, and yet every warpgroup has a few that are not.  So a
// tile of at most `kCloseRows` queries is *close*: its heads have that many
// rows each, and warpgroups behind them have none and pass over the keys.
//
// Example: 4 heads in a tile of 128 rows.  Rows 0, 32, 64 and 96 would be those
// of a decoding step; in a close tile rows 0, 16, 32 and 48 are, of the first
// warpgroup.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_ROWSOFHEADS_H
#define ATTN_LIB_KERNELS_WALK_ROWSOFHEADS_H

#include "Walk/TileQueue.h"

#include <cstdint>

namespace attn {

class RowsOfHeads {
public:
  /// For tiles of so many rows.
  RowsOfHeads(int64_t heads, int64_t tileRows);

  int64_t heads, rows; ///< of each in a tile that is not close
  bool areSeveral() const { return heads > 1; }
  /// Whether some tiles are close: those have no rows from `closeEnd` on.
  bool mayBeClose() const { return closeEnd < rows * heads; }
  int64_t closeEnd;
  /// Rows that follow each other in a head however a tile lies, of at most so
  /// many.
  int64_t boxRows(int64_t most) const;

  /// Whether a tile is, of sequences with so many queries.
  Scalar isClose(TileBuilder &builder, const Tile &tile, Scalar queries) const;
  /// The head of a row of the tile and of the rows behind it, and the first of
  /// these queries, both counted from the tile's.  Of rows that are no head's
  /// the queries are behind those of a close tile.
  struct Place {
    Scalar head, query;
  };
  Place of(TileBuilder &builder, const Tile &tile, Scalar queries,
           Scalar row) const;
};

} // namespace attn

#endif
