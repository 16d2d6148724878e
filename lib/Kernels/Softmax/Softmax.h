//===- Softmax.h - The online softmax of a strip of rows --------*- C++ -*-===//
//
// Rows see their keys block by block.  With c = scale * log2(e), a row keeps
// the largest score so far, m, and l = sum of 2^(c s - c m); when a block
// raises m, what was summed so far shrinks by alpha = 2^(c m_old - c m_new).
//
// A row that has seen only hidden or -inf scores has m = -inf; it is shifted by
// 0 instead, so that its weights are 2^-inf = 0 and not NaN.  This also makes
// a score of -inf beside finite ones exact.  A NaN score passes m by and
// reaches l and the output through its weight.  A score of +inf counts as the
// largest f32.  Rows whose maximum is far are centred (ScoreScale.h).
//
// Example (c = 1): scores 1, 3 then 5: m = 3, l = 2^-2 + 1; then m = 5,
// alpha = 2^-2, l = alpha (2^-2 + 1) + 1.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_SOFTMAX_SOFTMAX_H
#define ATTN_LIB_KERNELS_SOFTMAX_SOFTMAX_H

#include "Softmax/ScoreScale.h"

namespace attn {

class Softmax {
public:
  /// `scale` is the kernel's run-time argument, `sign` what is known of it when
  /// the kernel is built.
  Softmax(TileBuilder &builder, Scalar scale, double sign)
      : scale(builder, scale, sign) {}

  /// Running maximum and (partial) sum of some rows.
  struct Rows {
    mlir::Value max, sum;
  };
  Rows start(TileBuilder &builder, int64_t rows) const;

  /// Makes larger mean heavier.
  mlir::Value orient(TileBuilder &builder, mlir::Value scores) const {
    return scale.orient(builder, scores);
  }

  /// What makes a statistic of some of a row's keys one of all of them, where
  /// several warps have parts of the same rows; null where none do.
  using Whole = llvm::function_ref<mlir::Value(mlir::Value)>;

  /// One block of scores.
  struct Step {
    Rows rows;
    mlir::Value weights; ///< 2^(c s - c m), an accumulator
    mlir::Value alpha;   ///< a row: factor for what was summed so far
  };
  Step step(TileBuilder &builder, Rows rows, mlir::Value scores,
            Whole wholeMax = nullptr) const;

  /// Ends the rows: 1 / l, or 0 for a row that saw nothing, and
  /// LSE = ln(2) (c m + log2(l)), or -inf.
  struct End {
    mlir::Value inverse;
    LogSumExp lse;
  };
  End finish(TileBuilder &builder, Rows rows, bool hasLow,
             Whole wholeSum = nullptr) const;

private:
  /// What weights are relative to: m, or 0 for a row whose maximum is -inf.
  Scalar reference(TileBuilder &builder, Scalar max) const;
  /// 2^(c m_old - c m_new), as the weights of both are rounded: exactly 1 where
  /// m stays.
  mlir::Value alpha(TileBuilder &builder, mlir::Value before,
                    mlir::Value after) const;
  /// The same where one of them may be far.
  mlir::Value farAlpha(TileBuilder &builder, mlir::Value before,
                       mlir::Value after) const;

  ScoreScale scale;
};

/// Every element times the value of its row, or times a number.
mlir::Value scaleRows(TileBuilder &builder, mlir::Value fragment,
                      mlir::Value factors);
mlir::Value scaleRows(TileBuilder &builder, mlir::Value fragment,
                      Scalar factor);

/// Sums of weighted rows over the sums of the weights, as what `element` holds.
/// Weights that were rounded to f16 sum up to as much as 2^-11 more than those
/// that they are divided by, so that an average of the largest numbers of f16
/// overflows: what is finite stays so.
mlir::Value average(TileBuilder &builder, mlir::Value sums, mlir::Value inverse,
                    mlir::Type element);

} // namespace attn

#endif
