//===- ScoreScale.cpp - What the scale of the scores does -----------------===//

#include "ScoreScale.h"

using namespace mlir;
using namespace attn;

ScoreScale::ScoreScale(TileBuilder &b, Scalar scale, double sign)
    : scalesFirst(!(sign > 0)) {
  Scalar c = scale * b.f32(kLog2E);
  factor = scalesFirst ? b.f32(1) : c;
  if (scalesFirst)
    prescale = c;
}

Value ScoreScale::orient(TileBuilder &b, Value scores) const {
  if (!scalesFirst)
    return scores;
  return b.map(scores, scores.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return x[0] * prescale;
               });
}

Value attn::inverseOf(TileBuilder &b, Value sum) {
  return b.map(sum, sum.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.select(x[0] == b.f32(0), b.f32(0), b.f32(1) / x[0]);
               });
}
