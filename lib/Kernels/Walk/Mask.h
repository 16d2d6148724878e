//===- Mask.h - Which keys a query sees -------------------------*- C++ -*-===//
//
// Both ends of what a query sees rise with the query (`Visible`, Problem.h), so
// the keys that some or all of a few queries see are one run each.
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

  /// The same of so many keys, and what only their end hides.
  KeyBand until(Scalar keys) const;
  /// The same where so many of the keys are used: they end there, and what
  /// counts from the bottom-right corner counts from the last of them.
  KeyBand ofUsed(Scalar used) const;
  /// The same of a sequence, of one that counts from its diagonal on.
  KeyBand ofSequence(TileBuilder &builder, Scalar queries, Scalar keys) const;
  KeyBand withoutMask() const;
  /// The same if a condition holds, and else without its mask.
  KeyBand where(TileBuilder &builder, Scalar condition) const;

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
  /// Only what is behind the end of the keys, if anything.
  mlir::Value hideEnd(TileBuilder &builder, mlir::Value scores,
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

/// Declares the arguments that tell a kernel of its problem: extents, what a
/// mask needs, the scale.
void declareProblem(Arguments &arguments, TileBuilder &builder,
                    const Mask &mask);

} // namespace attn

#endif
