//===- TileBlocks.h - Which key blocks a tile and its parts see -*- C++ -*-===//
//
// A tile of queries loads the key blocks that some of its rows see, one at
// least (then every warpgroup has a first block, and there is always one to
// wait for). A warpgroup of 64 rows multiplies those that some of its own rows
// see, one at least, and passes over the others.
//
// Example: causal, tiles of 192 rows, blocks of 128 keys.  The tile from row
// 192 on loads blocks 0 to 2; its warpgroups (rows 192, 256, 320) multiply 0 to
// 1, 0 to 2 and 0 to 2, so the first passes over one block above its own.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_TILEBLOCKS_H
#define ATTN_LIB_KERNELS_WALK_TILEBLOCKS_H

#include "Walk/KeyWalk.h"
#include "Walk/Mask.h"

namespace attn {

/// Rows and warps of a warpgroup.
inline constexpr int64_t kGroupRows = 64, kWarpsPerGroup = 4;

/// What a warpgroup does with the blocks of a tile, last block first: passes
/// over `above`, multiplies those of `own`, passes over `below`.  Of its own
/// blocks those in `open` need no mask.
struct Share {
  Run own, open;
  Scalar above, below;
};

class TileBlocks {
public:
  /// For tiles of `query` rows out of `queries`, and blocks of `key` keys.
  TileBlocks(const KeyBand &band, Scalar queries, int64_t query, int64_t key)
      : band(band), queries(queries), query(query), key(key) {}

  /// Blocks that the tile from a row on loads.
  Run ofTile(TileBuilder &builder, Scalar row) const;
  /// The same, as it walks them.
  KeyWalk walkOf(TileBuilder &builder, Scalar row, bool goesUp = false) const {
    return KeyWalk(ofTile(builder, row), goesUp);
  }
  /// Those that the tile sees: none, if it has no rows or they see nothing.
  Run seenByTile(TileBuilder &builder, Scalar row) const;
  /// The share of the warpgroup that begins `groupRow` rows into the tile.
  Share ofGroup(TileBuilder &builder, Scalar tileRow, Scalar groupRow) const;
  /// Of the `steps` of the tile from a row on, those before the ones that some
  /// warpgroup passes over: it asks for the next tile before it does so.
  Scalar stepsBeforeNext(TileBuilder &builder, Scalar row, Scalar steps) const;

private:
  Run of(TileBuilder &builder, const KeyBand::Keys &seen) const;

  KeyBand band;
  Scalar queries;
  int64_t query, key;
};

/// Whether blocks besides a warpgroup's first can be cut at the end of the keys
/// it sees.  With the diagonal at multiples of its rows they cannot.
inline bool cutsMoreThanOne(const Mask &mask, int64_t key) {
  return mask.hidesBehind() && !(mask.endsAtCorners() && key % kGroupRows == 0);
}

} // namespace attn

#endif
