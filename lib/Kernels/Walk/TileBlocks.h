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
#include "Walk/TileQueue.h"

namespace attn {

/// Rows and warps of a warpgroup.
inline constexpr int64_t kGroupRows = 64, kWarpsPerGroup = 4;

/// Steps of a warpgroup that follow each other, and whether their blocks have
/// something to hide.
struct Stretch {
  KeyWalk walk;
  bool isCut;
};

/// What a warpgroup does with the steps of a tile, last block first: passes
/// over `above`, multiplies its own, passes over `below`.
class GroupWalk {
public:
  Scalar above, below;

  Scalar isLast(Scalar block) const { return block == own.begin; }
  /// Whether the first step is the last one too.
  Scalar isSingle() const { return own.end - 1 == own.begin; }
  /// The steps behind the first one, stretch by stretch.
  void forEachStretch(TileBuilder &builder,
                      llvm::function_ref<void(const Stretch &)> walk) const;
  /// Sets to -inf what scores of the first step have beyond the mask or the end
  /// of the keys, and of any step that is cut; `scores` has the queries from
  /// `row` on, of the tile or of all.
  mlir::Value hideFirst(TileBuilder &builder, mlir::Value scores,
                        const Tile &tile, Scalar row) const;
  mlir::Value hide(TileBuilder &builder, mlir::Value scores, Scalar row,
                   Scalar block) const;

private:
  friend class TileBlocks;
  GroupWalk(const KeyBand &band, int64_t key, const Run &tile, const Run &own,
            const Run &open)
      : above(tile.end - own.end), below(own.begin - tile.begin), band(band),
        key(key), own(own), open(open) {}

  KeyBand band;
  int64_t key;
  Run own, open; ///< of which those need no mask
};

class TileBlocks {
public:
  /// For tiles of `query` rows out of `queries`, and blocks of `key` keys.
  TileBlocks(const KeyBand &band, Scalar queries, int64_t query, int64_t key)
      : band(band), queries(queries), query(query), key(key) {}

  /// The blocks that a tile loads, as it walks them.
  KeyWalk walkOf(TileBuilder &builder, const Tile &tile,
                 bool goesUp = false) const {
    return KeyWalk(ofTile(builder, tile.row), goesUp);
  }
  /// Those that the tile from a row on sees: none, if it has no rows or they
  /// see nothing.
  Run seenByTile(TileBuilder &builder, Scalar row) const;
  /// The steps of the warpgroup that begins `groupRow` rows into the tile.
  GroupWalk ofGroup(TileBuilder &builder, const Tile &tile,
                    Scalar groupRow) const;
  /// Of the `steps` of a tile, those before the ones that some warpgroup passes
  /// over: it asks for the next tile before it does so.
  Scalar stepsBeforeNext(TileBuilder &builder, const Tile &tile,
                         Scalar steps) const;
  /// Whether there may be others behind them.
  bool passesOverLast() const { return band.hasFirst; }

private:
  Run of(TileBuilder &builder, const KeyBand::Keys &seen) const;
  Run ofTile(TileBuilder &builder, Scalar row) const;

  KeyBand band;
  Scalar queries;
  int64_t query, key;
};

} // namespace attn

#endif
