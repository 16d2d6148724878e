//===- ScoreScale.h - What the scale of the scores does ---------*- C++ -*-===//
//
// Weights are powers of two: 2^(c s - ..) with c = |scale| * log2(e).  Where
// the scale is negative scores are turned first, and where it is 0 they become
// 0, so that the largest is the heaviest.
//
// c is a normal f32.  A product that is less is taken for the least one, so
// that c times the -inf of a hidden score is -inf, and one that overflows for
// the largest.
//
// Far scores.  Let r be the score that a row's weights are relative to.  Then
// 2^fma(s, c, -round(c r)) is one operation for each score, but what the
// product was rounded by is in the exponent of every weight: half an ulp of c
// r, without bound.  Up to |c r| = kNearBits that is 2^-12, which no type of 16
// bits tells from 0, and it is the same for the whole row.  Beyond it scores
// are *centred* first: 2^fma(s - r, c, 0), where s = r has weight 1 whatever c
// is.  That is a branch of the warp, which ordinary scores do not take.
//
// LSE in two words.  c is rounded too, and in c r that shows as the rounding of
// the product does.  So where an LSE has two words its bits are not taken times
// ln(2), but times |scale| / c, and back times c / |scale|.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_SOFTMAX_SCORESCALE_H
#define ATTN_LIB_KERNELS_SOFTMAX_SCORESCALE_H

#include "Softmax/LogSumExp.h"

#include <cmath>
#include <limits>

namespace attn {

inline const double kLog2E = std::log2(std::exp(1.0));

/// log2 of the largest weight of a row that seldom moves its reference.
inline constexpr double kMostBits = 8;
/// Exponents up to which scores are not centred.
inline constexpr double kNearBits = 0x1p13;
/// The largest f32, which a score that overflowed is taken for.
inline constexpr double kLargest = std::numeric_limits<float>::max();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

class ScoreScale {
public:
  /// `scale` is the kernel's run-time argument, `sign` what is known of it when
  /// the kernel is built.
  ScoreScale(TileBuilder &builder, Scalar scale, double sign);

  /// Makes larger mean heavier.
  mlir::Value orient(TileBuilder &builder, mlir::Value scores) const;

  /// c s, rounded by itself wherever it stands.
  Scalar bits(TileBuilder &builder, Scalar score) const {
    return builder.product(score, factor);
  }
  /// And what that is rounded by.
  Scalar lostBits(TileBuilder &builder, Scalar score) const {
    return builder.fma(score, factor, -bits(builder, score));
  }
  /// The natural logarithm that a score stands for, where c s may overflow.
  Scalar natural(TileBuilder &builder, Scalar score) const {
    return score * builder.product(factor, builder.f32(1 / kLog2E));
  }
  /// The natural logarithms of one bit, and bits of a natural logarithm of 1.
  TwoWords naturalOfBit(TileBuilder &builder) const;
  TwoWords bitsOfNatural(TileBuilder &builder) const;
  /// Log-sum-exps as LogSumExp.h has them.
  LogSumExp logSumExp(
      TileBuilder &builder, mlir::ValueRange rows, bool hasLow,
      llvm::function_ref<Scalar(llvm::ArrayRef<Scalar> numbers)> plain,
      llvm::function_ref<TwoWords(llvm::ArrayRef<Scalar> numbers)> bits) const;
  /// Scores less the centres of their rows; what overflowed is the largest f32.
  mlir::Value centre(TileBuilder &builder, mlir::Value scores,
                     mlir::Value centres) const;
  /// The exponents of weights: c s + shift.
  mlir::Value weights(TileBuilder &builder, mlir::Value scores,
                      mlir::Value shift) const;

  Scalar factor; ///< c

private:
  TwoWords ratio(TileBuilder &builder, Scalar a, Scalar b,
                 double otherwise) const;

  Scalar size;      ///< |scale|
  Scalar direction; ///< -1 or 0, unless the scale is positive
};

/// Whether some row is further away than that, for a warp.
Scalar anyBeyond(TileBuilder &builder, mlir::Value distances, double limit);

/// 1 / l for every row, or 0 for a row that saw nothing.
mlir::Value inverseOf(TileBuilder &builder, mlir::Value sum);

} // namespace attn

#endif
