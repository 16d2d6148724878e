//===- Mask.h - Which key blocks a query tile visits ------------*- C++ -*-===//
//
// Both ends of what a query sees rise with the query (`Visible`, Problem.h), so
// the keys that a tile of queries sees are one run of blocks: some at its left
// edge that the mask cuts, then blocks that are fully open, then some at its
// right edge that the mask or the end of the keys cuts.  Open blocks need no
// mask code, so a kernel walks them first, in a loop of their own, and the cut
// ones after; the order of blocks does not matter to an online softmax.
//
// Example: causal, 128 queries from row 256 on, blocks of 64 keys: visited are
// blocks 0 to 5, open are 0 to 3, steps 0..3 are open and 4..5 cut.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_MASK_H
#define ATTN_LIB_KERNELS_WALK_MASK_H

#include "Build/TileBuilder.h"

namespace attn {

/// The mask of a kernel: which keys a query sees.  It is `Visible` with numbers
/// that are known at run time.
///
/// Where the rows are keys, `seeing` is the same mask from their side, as
/// `Visible::transposed` is.  Read then "query" for key and "key" for query
/// below.
class KeyBand {
public:
  KeyBand(TileBuilder &builder, const Arguments &arguments, const Mask &mask);
  static KeyBand seeing(TileBuilder &builder, const Arguments &arguments,
                        const Mask &mask);

  /// The keys `someFirst .. someEnd - 1` are all that some query out of
  /// `firstRow .. lastRow` sees (or none: then the end is not behind the first
  /// and may be negative); `allFirst .. allEnd - 1` are seen by every one.
  struct Keys {
    Scalar someFirst, someEnd, allFirst, allEnd;
  };
  Keys seenBy(TileBuilder &builder, Scalar firstRow, Scalar lastRow) const;
  /// Whether every one of these rows sees so many keys from `key` on, and
  /// there are as many rows, if that is asked.
  Scalar isOpen(const Keys &seen, Scalar key, int64_t count,
                Scalar areWhole = {}) const;

  /// Sets the scores that the mask or the end of the keys hides to -inf.
  /// `scores` has the queries from `row` on and the keys from `key` on; those
  /// from `endOfRows` on, if given, see nothing.
  mlir::Value hide(TileBuilder &builder, mlir::Value scores, Scalar row,
                   Scalar key, Scalar endOfRows = Scalar()) const;
  /// The same of a warp's rows, if there is something to hide.
  mlir::Value hideCut(TileBuilder &builder, mlir::Value scores, Scalar row,
                      Scalar key) const;
  /// Likewise sets their gradients to 0.
  mlir::Value clear(TileBuilder &builder, mlir::Value gradient, Scalar row,
                    Scalar key, Scalar endOfRows = Scalar()) const;

  const Mask mask; ///< from the side of the queries
  const bool hasFirst, hasLast;
  const Scalar keys;

private:
  KeyBand(const Mask &mask, bool hasFirst, bool hasLast, Scalar keys)
      : mask(mask), hasFirst(hasFirst), hasLast(hasLast), keys(keys) {}

  /// The columns that rows see, `firsts .. lasts`, from a fragment's corner.
  struct Columns {
    mlir::Value firsts, lasts;
  };
  Columns columnsOf(TileBuilder &builder, int64_t rows, Scalar row, Scalar key,
                    Scalar endOfRows) const;
  mlir::Value keep(TileBuilder &builder, mlir::Value fragment,
                   const Columns &seen, double hidden) const;

  /// The last key that a row sees, before the end of all.
  Scalar lastSeen(TileBuilder &builder, Scalar row) const;
  /// The first.
  Scalar firstSeen(TileBuilder &builder, Scalar row) const;

  Scalar first, last;
  /// Keys that every row sees, and rows that see every key, if there are such.
  Scalar openKeys, openRows;
};

class KeyBlocks {
public:
  /// For the queries `firstRow .. lastRow`, in blocks of `size` keys.
  KeyBlocks(TileBuilder &builder, const KeyBand &band, Scalar firstRow,
            Scalar lastRow, int64_t size);

  /// Steps of the walk, and how many of them, the first ones, are open.
  Scalar steps, openSteps;
  /// The first block.
  Scalar begin;
  /// Whether every query sees all keys of a block.
  Scalar isOpen(TileBuilder &builder, Scalar block) const;
  /// The key block of a step.
  Scalar block(TileBuilder &builder, Scalar step) const;
  /// Sets the scores that the mask or the end of the keys hides to -inf.
  /// `scores` has the queries from `row` on and the keys of `block`, or those
  /// from a key in it on.
  mlir::Value hide(TileBuilder &builder, mlir::Value scores, Scalar row,
                   Scalar block, Scalar inBlock = Scalar()) const;

private:
  int64_t size;
  KeyBand band;
  Scalar openBegin, openEnd;
};

/// Declares the arguments that tell a kernel of its problem: extents, what a
/// mask needs, the scale.
void declareProblem(Arguments &arguments, TileBuilder &builder,
                    const Mask &mask);

} // namespace attn

#endif
