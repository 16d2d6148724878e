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
// Where a tile has rows of several heads, they are of the same queries, and all
// warpgroups walk all blocks, but those that a close tile has no rows for
// (RowsOfHeads.h), which multiply the last block that comes.
//
// Of lists all warpgroups walk all blocks, the partial ones first; and of a
// part of the keys (KeyParts.h) all of its blocks, or if it has none the first
// of all, with every score hidden.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_TILEBLOCKS_H
#define ATTN_LIB_KERNELS_WALK_TILEBLOCKS_H

#include "Walk/KeyParts.h"
#include "Walk/KeyWalk.h"
#include "Walk/Mask.h"
#include "Walk/RowLocator.h"
#include "Walk/RowsOfHeads.h"
#include "Walk/TileQueue.h"

namespace attn {

/// Rows and warps of a warpgroup.
inline constexpr int64_t kGroupRows = 64, kWarpsPerGroup = 4;

/// Steps of a warpgroup that follow each other, and whether the mask hides
/// something in their blocks.
struct Stretch {
  KeyWalk walk;
  bool isCut;
};

/// A step of a stretch.  The block is known from its beginning on, but of an
/// open one of lists, which seldom asks for it.
struct StretchStep {
  const Stretch &stretch;
  Scalar number;
  Scalar block = {};
};

/// What a warpgroup does with the steps of a tile, last block first: passes
/// over `above`, multiplies its own, passes over `below`.
class GroupWalk {
public:
  Scalar above, below;

  StretchStep at(const Stretch &stretch, Scalar step) const;
  /// Whether a step is the last one, and whether the first is.
  Scalar isLast(TileBuilder &builder, const StretchStep &step) const;
  Scalar isSingle(TileBuilder &builder) const;
  /// The steps behind the first one, stretch by stretch.
  void forEachStretch(TileBuilder &builder,
                      llvm::function_ref<void(const Stretch &)> walk) const;
  /// The first key of the block of a step, and that of the first step; whether
  /// blocks are listed, and whether the first of those is partial.
  Scalar keyOf(const StretchStep &step) const;
  Scalar firstKey(TileBuilder &builder) const;
  bool isListed() const { return lists.has_value(); }
  Scalar beginsPartial(TileBuilder &builder) const {
    return builder.i32(0) < lists->partial.steps;
  }
  /// Sets to -inf what the first step hides of its scores, and what a step
  /// behind it does; `scores` has the queries from `row` on, of the tile or of
  /// all.
  mlir::Value hideFirst(TileBuilder &builder, mlir::Value scores,
                        const Tile &tile, Scalar row) const;
  mlir::Value hide(TileBuilder &builder, mlir::Value scores, Scalar row,
                   const StretchStep &step) const;

private:
  friend class TileBlocks;
  /// Both lists of a tile, of blocks of so many keys.
  struct Lists {
    BlockList partial, full;
    int64_t keysOfFull; ///< as `TileLists` has it
  };
  GroupWalk(const KeyBand &band, int64_t key, const Run &tile, const Run &own,
            const Run &open)
      : above(tile.end - own.end), below(own.begin - tile.begin), band(band),
        key(key), own(own), open(open) {}
  /// Of blocks that all warpgroups walk, or the first of them; `open` of them
  /// are the own rows'.
  GroupWalk(TileBuilder &builder, const KeyBand &band, int64_t key,
            const Run &all, const Run &own, const Run &open, bool isShared)
      : above(mlir::Value(own.end) == mlir::Value(all.end) ? builder.i32(0)
                                                           : all.end - own.end),
        below(builder.i32(0)), band(band), key(key), own(own), open(open),
        isShared(isShared) {}
  GroupWalk(TileBuilder &builder, const KeyBand &band, int64_t key,
            const Lists &lists)
      : above(builder.i32(0)), below(above), band(band), key(key),
        lists(lists) {}

  void forEachOfLists(TileBuilder &builder,
                      llvm::function_ref<void(const Stretch &)> walk) const;
  mlir::Value hideFirstOfLists(TileBuilder &builder, mlir::Value scores,
                               Scalar row) const;

  KeyBand band;
  int64_t key;
  Run own, open; ///< of which those need no mask
  /// Whether the blocks are those of rows of other warpgroups, too.
  bool isShared = false;
  std::optional<Lists> lists;
};

class TileBlocks {
public:
  /// For tiles of `query` rows out of `queries`, and blocks of `key` keys; of
  /// those that are listed, in memory or as runs, if there are lists.  All
  /// warpgroups may have the same rows, each of heads of its own.
  TileBlocks(const KeyBand &band, Scalar queries, int64_t query, int64_t key,
             const TileLists *lists = nullptr,
             const KeyParts &parts = KeyParts(1),
             const RowLocator *locator = nullptr,
             const RowsOfHeads *heads = nullptr)
      : band(band), queries(queries), query(query), key(key), lists(lists),
        parts(parts), locator(locator), heads(heads) {}

  /// The same where rows are keys, past which queries stream.
  TileBlocks ofKeys() const {
    TileBlocks other = *this;
    other.ownsKeys = true;
    return other;
  }

  /// A tile, as the others hear of it from who has drawn it.
  Tile drawn(const Tile &tile) const {
    if (locator)
      return locator->located(tile);
    return lists ? lists->counted(tile) : tile;
  }
  /// The blocks that a tile loads, as it walks them.
  KeyWalk walkOf(TileBuilder &builder, const Tile &tile,
                 bool goesUp = false) const;
  /// What queries of a tile see of its part of the keys, if they are in parts:
  /// the walk has a block that is not the part's where it has none.
  KeyBand bandOfPart(TileBuilder &builder, const Tile &tile) const;
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
  bool passesOverLast() const {
    return band.hasFirst && !lists && !parts.areSeveral() && !heads;
  }

private:
  /// Those of the sequence that a tile is of.
  TileBlocks ofSequence(TileBuilder &builder, const Tile &tile) const;
  bool isOfOther(const Tile &tile) const {
    return tile.isOfSequence() && !isSequence;
  }

  /// The blocks of a tile's part, and whether it has some; if not, the first.
  std::pair<Run, Scalar> ofPart(TileBuilder &builder, const Tile &tile) const;
  GroupWalk ofGroupInPart(TileBuilder &builder, const Tile &tile,
                          Scalar groupRow) const;
  /// The walk of blocks that are those of other warpgroups too, of the queries
  /// from a row of a tile on.
  GroupWalk ofShared(TileBuilder &builder, const Tile &tile,
                     const KeyBand &band, const Run &all,
                     Scalar groupRow) const;
  /// Of the blocks that all walk, those of a warpgroup that may have no rows.
  Run ofBusy(TileBuilder &builder, const Tile &tile, const Run &all,
             Scalar groupRow) const;

  /// What queries of a tile see.
  KeyBand bandOf(const Tile &tile) const {
    return mlir::Value(tile.usedKeys) ? band.ofUsed(tile.usedKeys) : band;
  }
  Run of(TileBuilder &builder, const KeyBand &band,
         const KeyBand::Keys &seen) const;
  Run ofTile(TileBuilder &builder, const Tile &tile) const;

  KeyBand band;
  Scalar queries;
  int64_t query, key;
  const TileLists *lists;
  KeyParts parts;
  const RowLocator *locator;
  const RowsOfHeads *heads; ///< of a tile; null: of one head
  bool isSequence = false;  ///< or of all of them
  bool ownsKeys = false;
};

} // namespace attn

#endif
