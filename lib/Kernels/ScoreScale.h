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
