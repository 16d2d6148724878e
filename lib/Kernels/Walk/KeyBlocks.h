//===- KeyBlocks.h - Which key blocks a query tile visits -------*- C++ -*-===//
//
// The keys that a tile of queries sees are one run of blocks: some at its left
// edge that the mask cuts, then blocks that are fully open, then some at its
// right edge that the mask or the end of the keys cuts.  Open blocks need no
// mask code, so a kernel walks them first, in a loop of their own, and the cut
// ones after; the order of blocks does not matter to an online softmax.
//
// Example: causal, 128 queries from row 256 on, blocks of 64 keys: visited are
// blocks 0 to 5, open are 0 to 3, steps 0..3 are open and 4..5 cut.
//
// Of lists the full blocks come first, and then the partial ones.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_KEYBLOCKS_H
#define ATTN_LIB_KERNELS_WALK_KEYBLOCKS_H

#include "Walk/BlockLists.h"
#include "Walk/Mask.h"

#include <optional>

namespace attn {

class KeyBlocks {
public:
  /// For the queries `firstRow .. lastRow`, in blocks of `size` keys.
  KeyBlocks(TileBuilder &builder, const KeyBand &band, Scalar firstRow,
            Scalar lastRow, int64_t size);
  /// For a tile whose blocks are listed.
  KeyBlocks(TileBuilder &builder, const KeyBand &band, const TileLists &lists,
            const Tile &tile, int64_t size);

  /// Steps of the walk, and how many of them, the first ones, are open.
  Scalar steps, openSteps;
  /// The key block of a step.
  Scalar block(TileBuilder &builder, Scalar step) const;
  /// Sets to -inf the scores that a cut step hides, and an open one, where
  /// blocks are listed, behind the end of the keys.  `scores` has the queries
  /// from `row` on and the keys of `block`, or those from a key in it on.
  mlir::Value hide(TileBuilder &builder, mlir::Value scores, Scalar row,
                   Scalar block, Scalar inBlock = Scalar()) const;
  mlir::Value hideOpen(TileBuilder &builder, mlir::Value scores,
                       Scalar block) const;

  //===--------------------------------------------------------------------===//
  // Of a run
  //===--------------------------------------------------------------------===//

  /// The first block.
  Scalar begin;
  /// Whether every query sees all keys of a block.
  Scalar isOpen(TileBuilder &builder, Scalar block) const;

private:
  int64_t size;
  KeyBand band;
  Scalar openBegin, openEnd;
  std::optional<ListWalk> lists;
  bool mayEndInFull = false; ///< of lists
};

} // namespace attn

#endif
