//===- GroupSoftmax.h - The softmax of rows that blocks share ---*- C++ -*-===//
//
// The blocks of a group see the same rows and each its own keys.  Every block
// keeps its own running maximum of a row, rounded up to a whole number of
// powers of two, and its own sum l of weights 2^(c s - m); so it works out its
// weights without asking the others.  Either m >= c s, or m moves only when a
// weight would exceed 2^8 (`move`).
//
// Who reads the weights of several blocks has a reference M of his own for what
// he sums up, likewise a whole number, and multiplies the weights of a block by
// 2^(m - M): a power of two, hence exact in 16 bits.  M moves, to m, only if m
// exceeds it by so much that products could leave the range; that is a branch
// in which the sums so far are scaled, taken about once per tile.
//
// A row that has seen nothing has m = M = kNothing, and one that has is above.
//
// Far rows.  Beyond 2^24 whole numbers are not all there: m comes no closer to
// c s than half an ulp, and a weight relative to it alone has no bound.  So a
// block whose m is beyond 2^23 takes its weights relative to its largest score,
// as in ScoreScale.h, and brings them to m, where that score stands at the f32
// next to c s.  What overflows there goes on above 2^125 by its bits
// (`position`), so that scores that differ stay apart.
//
// Example (c = 1, two blocks): scores 0.5, 2 and 40, 41.  m = 2 and 41, weights
// 2^-1.5, 1 and 2^-1, 1.  A reader starts with M = 2; 41 exceeds it by more
// than 30, so M = 41 and his sums, 2^-1.5 + 1 for l, become 2^-39 times as
// much.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_COLUMNSPLIT_GROUPSOFTMAX_H
#define ATTN_LIB_KERNELS_COLUMNSPLIT_GROUPSOFTMAX_H

#include "Softmax/ScoreScale.h"

namespace attn {

class GroupSoftmax {
public:
  /// `scale` is the kernel's run-time argument, `sign` what is known of it when
  /// the kernel is built; weights are exchanged as `type`.
  GroupSoftmax(TileBuilder &builder, Scalar scale, double sign, DataType type);

  /// Maximum (whole) and sum (partial) of some rows, in powers of two.
  struct Rows {
    mlir::Value max, sum;
  };
  /// Rows that have seen nothing.
  Rows start(TileBuilder &builder, int64_t rows) const;

  /// The maximum of a row that has seen nothing, in block_rows of kept weights
  /// too: finite, so that no weight becomes NaN, and below that of every score.
  static constexpr double kNothing = -kLargest;

  /// Makes larger mean heavier.
  mlir::Value orient(TileBuilder &builder, mlir::Value scores) const {
    return scale.orient(builder, scores);
  }

  /// The exponents of weights: c scores + shift.
  struct Exponents {
    mlir::Value scores, shift;
  };
  /// Writers: the rows before the block's own next keys, at a maximum that is
  /// theirs too, and the exponents of their weights.
  struct Raised {
    Rows rows;
    Exponents exponents;
  };
  Raised raise(TileBuilder &builder, Rows rows, mlir::Value scores) const;
  /// The same for `use`, which is written twice: for near rows and, in a branch
  /// of its own, for far ones.  Where scores fill the registers they must not
  /// come out of a branch: ptxas then moves them about through memory.
  using Use =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(const Raised &)>;
  llvm::SmallVector<mlir::Value> raise(TileBuilder &builder, Rows rows,
                                       mlir::Value scores, Use use) const;
  /// Weights of these keys, or of `some` of their scores, an accumulator; adds
  /// them to the sum.
  mlir::Value weigh(TileBuilder &builder, Rows &rows,
                    const Exponents &exponents, mlir::Value some = {}) const;

  /// Readers: a reference for rows that stood at `max`, to add weights of rows
  /// that stand at `other` at most.
  struct Join {
    mlir::Value max, output;
  };
  Join join(TileBuilder &builder, mlir::Value max, mlir::Value output,
            mlir::Value other) const;
  /// What moves where they ask for it: the reference, and sums in parts.
  struct JoinOfParts {
    mlir::Value max;
    llvm::SmallVector<mlir::Value> outputs;
  };
  JoinOfParts moveTo(TileBuilder &builder, mlir::Value max,
                     mlir::ValueRange outputs, mlir::Value other) const;
  /// The powers of two that weights are to be multiplied by.
  mlir::Value exponents(TileBuilder &builder, mlir::Value from,
                        mlir::Value to) const;
  /// The same, 0 where both are infinite: of weights that are there already.
  static mlir::Value difference(TileBuilder &builder, mlir::Value from,
                                mlir::Value to);
  /// 2^x of such exponents, to scale f32 sums with.
  static mlir::Value powers(TileBuilder &builder, mlir::Value exponents);
  mlir::Value higher(TileBuilder &builder, mlir::Value one,
                     mlir::Value other) const;
  /// Both, for the next keys of a block that writes and reads, if these or
  /// those of others ask for it: rows move only if some weight would exceed
  /// 2^8, so hardly ever.
  struct Move {
    Rows own;
    Join joined;
    Exponents exponents;
  };
  Move move(TileBuilder &builder, Rows own, mlir::Value max, mlir::Value output,
            mlir::Value scores, mlir::Value others) const;
  /// Whether rows that stand at `other` ask for it.
  Scalar asks(TileBuilder &builder, mlir::Value other, mlir::Value max) const;

  /// Readers: the sum of other rows as well.
  Rows add(TileBuilder &builder, Rows rows, Rows other) const;

  /// Ends the rows: 1 / l, or 0 for a row that saw nothing, and
  /// LSE = ln(2) (M + log2(l)), or -inf.
  struct End {
    mlir::Value inverse;
    LogSumExp lse;
  };
  End finish(TileBuilder &builder, Rows rows, bool hasLow) const {
    return end(builder, whole(builder, rows), hasLow);
  }
  /// Rows whose sums are whole, and what such end with.
  Rows whole(TileBuilder &builder, Rows rows) const;
  /// With `more`, sums are those of weights 2^more times as large.
  End end(TileBuilder &builder, Rows rows, bool hasLow,
          mlir::Value more = {}) const;

private:
  /// The bits of a score that stands at 2^125, or before it by less than a
  /// power of two: quotients are differences of bits, nearly.
  Scalar firstByBits(TileBuilder &builder) const;
  /// c s as an f32 that is finite unless the score is -inf.
  Scalar position(TileBuilder &builder, Scalar score) const;
  /// The natural logarithm of what stands there.
  Scalar naturalOf(TileBuilder &builder, Scalar position) const;
  ScoreScale scale;
  Scalar scoresPerBit;
  double reach; ///< exponents beyond this move a reader's reference
};

} // namespace attn

#endif
