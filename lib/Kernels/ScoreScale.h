//===- ScoreScale.h - What the scale of the scores does ---------*- C++ -*-===//
//
// Weights are powers of two: 2^(c s - ..) with c = scale * log2(e).  As long as
// c is positive the largest score is the heaviest and c enters with the power;
// else the scores are scaled first, and c is 1 from then on.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_SCORESCALE_H
#define ATTN_LIB_KERNELS_SCORESCALE_H

#include "TileBuilder.h"

#include <cmath>

namespace attn {

inline const double kLog2E = std::log2(std::exp(1.0));

/// The reference of a row that has seen nothing: below every score, and finite,
/// so that no weight becomes NaN.
inline constexpr double kNothingSeen = -0x1p100;
/// log2 of the largest weight of a row that seldom moves its reference.
inline constexpr double kMostBits = 8;

class ScoreScale {
public:
  /// `scale` is the kernel's run-time argument, `sign` what is known of it when
  /// the kernel is built.
  ScoreScale(TileBuilder &builder, Scalar scale, double sign);

  /// Makes larger mean heavier.
  mlir::Value orient(TileBuilder &builder, mlir::Value scores) const;

  Scalar factor; ///< c, or 1 when the scores are scaled first
  const bool scalesFirst;

private:
  Scalar prescale; ///< c, only when the scores are scaled first
};

/// 1 / l for every row, or 0 for a row that saw nothing.
mlir::Value inverseOf(TileBuilder &builder, mlir::Value sum);

} // namespace attn

#endif
