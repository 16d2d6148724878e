//===- Softmax.cpp - The online softmax of a strip of rows ----------------===//

#include "Softmax/Softmax.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Softmax::Rows Softmax::start(TileBuilder &b, int64_t rows) const {
  return {b.fill(b.f32(-kInfinity), b.rowType(rows)),
          b.fill(b.f32(0), b.rowType(rows, /*partial=*/true))};
}

Scalar Softmax::reference(TileBuilder &b, Scalar max) const {
  return b.select(max == b.f32(-kInfinity), b.f32(0), max);
}

/// Whether a row's scores are centred, by its shift.
static Scalar isFar(TileBuilder &b, Scalar shift) {
  return b.f32(kNearBits) < b.abs(shift);
}

Value Softmax::alpha(TileBuilder &b, Value before, Value after) const {
  return b.map({before, after}, after.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.exp2(-scale.bits(b, reference(b, x[1])) +
                               scale.bits(b, x[0]));
               });
}

Value Softmax::farAlpha(TileBuilder &b, Value before, Value after) const {
  auto largest = [&](Scalar score) { return b.min(score, b.f32(kLargest)); };
  // What the exponent of a score itself is.
  auto remainder = [&](Scalar score) {
    Scalar shift = -scale.bits(b, score);
    return b.select(isFar(b, shift), b.f32(0),
                    b.fma(score, scale.factor, shift));
  };
  return b.map({before, after}, after.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 Scalar from = largest(x[0]);
                 Scalar to = largest(reference(b, x[1]));
                 Scalar difference = b.product(from - to, scale.factor);
                 return b.exp2(difference + (remainder(to) - remainder(from)));
               });
}

Softmax::Step Softmax::step(TileBuilder &b, Rows rows, Value scores,
                            Whole wholeMax) const {
  Value max = b.rowMax(scores, rows.max);
  if (wholeMax)
    max = wholeMax(max);
  Value shift = b.map(max, max.getType(),
                      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                        return -scale.bits(b, reference(b, x[0]));
                      });
  Value distances = b.map(max, max.getType(),
                          [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                            return b.abs(scale.bits(b, reference(b, x[0])));
                          });
  ValueRange scored = b.choose(
      anyBeyond(b, distances, kNearBits),
      [&]() -> SmallVector<Value> {
        Value centres =
            b.map({max, shift}, max.getType(),
                  [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                    return b.select(isFar(b, x[1]),
                                    b.min(reference(b, x[0]), b.f32(kLargest)),
                                    b.f32(0));
                  });
        Value shifts = b.map(shift, shift.getType(),
                             [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                               return b.select(isFar(b, x[0]), b.f32(0), x[0]);
                             });
        return {scale.centre(b, scores, centres), shifts,
                farAlpha(b, rows.max, max)};
      },
      [&]() -> SmallVector<Value> {
        return {scores, shift, alpha(b, rows.max, max)};
      });
  Value weights = scale.weights(b, scored[0], scored[1]);
  Value alpha = scored[2];
  return {
      {max, b.rowSum(weights, scaleRows(b, rows.sum, alpha))}, weights, alpha};
}

Softmax::End Softmax::finish(TileBuilder &b, Rows rows, bool hasLow,
                             Whole wholeSum) const {
  Value sum =
      RowCombineOp::create(b, rows.max.getType(), /*max=*/false, rows.sum);
  if (wholeSum)
    sum = wholeSum(sum);
  Value inverse = inverseOf(b, sum);
  auto plain = [&](ArrayRef<Scalar> x) {
    Scalar log = b.log2(x[0]), ln2 = b.f32(1 / kLog2E);
    Scalar reference = this->reference(b, x[1]);
    Scalar shift = -scale.bits(b, reference);
    Scalar largest = b.min(reference, b.f32(kLargest));
    Scalar far = scale.natural(b, largest) + log * ln2;
    Scalar value = b.select(isFar(b, shift), far, (log - shift) * ln2);
    return b.select(x[0] == b.f32(0), b.f32(-kInfinity), value);
  };
  // Near weights stand at the rounded shift, far ones at the score.
  auto binary = [&](ArrayRef<Scalar> x) -> TwoWords {
    Scalar log = b.log2(x[0]), reference = this->reference(b, x[1]);
    Scalar bits = scale.bits(b, reference);
    Scalar lost = scale.lostBits(b, reference);
    return {bits, b.select(isFar(b, bits), log + lost, log)};
  };
  return {inverse, scale.logSumExp(b, {sum, rows.max}, hasLow, plain, binary)};
}

Value attn::scaleRows(TileBuilder &b, Value fragment, Value factors) {
  return b.map(
      {fragment, factors}, fragment.getType(),
      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value { return x[0] * x[1]; });
}

Value attn::scaleRows(TileBuilder &b, Value fragment, Scalar factor) {
  int64_t rows = cast<FragType>(fragment.getType()).getRows();
  return scaleRows(b, fragment, b.fill(factor, b.rowType(rows)));
}

Value attn::average(TileBuilder &b, Value sums, Value inverse, Type element) {
  Value scaled = scaleRows(b, sums, inverse);
  if (!element.isF16())
    return scaled;
  constexpr double largest = 65504;
  auto type = cast<FragType>(scaled.getType());
  Value sizes =
      b.map(scaled, type, [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
        return b.abs(x[0]);
      });
  Value limits = b.fill(b.f32(largest), b.rowType(type.getRows()));
  Scalar exceeds = b.wrap(AnyAboveOp::create(b, b.getI1Type(), sizes, limits));
  return b.choose(
      exceeds,
      [&]() -> SmallVector<Value> {
        return {b.map(scaled, type,
                      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                        Scalar bounded =
                            b.max(b.min(x[0], b.f32(largest)), b.f32(-largest));
                        Scalar isFinite = b.abs(x[0]) < b.f32(kInfinity);
                        return b.select(isFinite, bounded, x[0]);
                      })};
      },
      [&]() -> SmallVector<Value> { return {scaled}; })[0];
}
