//===- ScoreScale.cpp - What the scale of the scores does -----------------===//

#include "Softmax/ScoreScale.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

ScoreScale::ScoreScale(TileBuilder &b, Scalar scale, double sign) {
  constexpr double least = std::numeric_limits<float>::min();
  size = scale;
  if (!(sign > 0)) {
    size = b.max(scale, -scale);
    direction = b.select(scale < b.f32(0), b.f32(-1), b.f32(0));
  }
  Scalar c = b.product(size, b.f32(kLog2E));
  factor = b.max(b.min(c, b.f32(kLargest)), b.f32(least));
}

/// Where the scale is too near the ends of f32 for a quotient in two words,
/// `otherwise`, which leaves out what c was rounded by.
TwoWords ScoreScale::ratio(TileBuilder &b, Scalar x, Scalar y,
                           double otherwise) const {
  Scalar isOrdinary = (b.f32(0x1p-96) < factor) & (factor < b.f32(0x1p96));
  TwoWords ratio = quotient(b, x, y), constant = twoWords(b, otherwise);
  return {b.select(isOrdinary, ratio.high, constant.high),
          b.select(isOrdinary, ratio.low, constant.low)};
}

TwoWords ScoreScale::naturalOfBit(TileBuilder &b) const {
  return ratio(b, size, factor, 1 / kLog2E);
}

TwoWords ScoreScale::bitsOfNatural(TileBuilder &b) const {
  return ratio(b, factor, size, kLog2E);
}

LogSumExp
ScoreScale::logSumExp(TileBuilder &b, ValueRange rows, bool hasLow,
                      function_ref<Scalar(ArrayRef<Scalar>)> plain,
                      function_ref<TwoWords(ArrayRef<Scalar>)> bits) const {
  TwoWords natural;
  if (hasLow)
    natural = naturalOfBit(b);
  return attn::logSumExp(b, rows, hasLow, natural, plain, bits);
}

Value ScoreScale::orient(TileBuilder &b, Value scores) const {
  if (!Value(direction))
    return scores;
  return b.map(scores, scores.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return x[0] * direction;
               });
}

Value ScoreScale::centre(TileBuilder &b, Value scores, Value centres) const {
  // A minimum would drop what is not a number.
  return b.map({scores, centres}, scores.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 Scalar largest = b.f32(kLargest);
                 return b.select(largest < x[0], largest, x[0]) - x[1];
               });
}

Value ScoreScale::weights(TileBuilder &b, Value scores, Value shift) const {
  return b.map({scores, shift}, scores.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.exp2(b.fma(x[0], factor, x[1]));
               });
}

Scalar attn::anyBeyond(TileBuilder &b, Value distances, double limit) {
  Value limits = b.fill(b.f32(limit), distances.getType());
  return b.wrap(AnyAboveOp::create(b, b.getI1Type(), distances, limits));
}

Value attn::inverseOf(TileBuilder &b, Value sum) {
  return b.map(sum, sum.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.select(x[0] == b.f32(0), b.f32(0), b.f32(1) / x[0]);
               });
}
