//===- GradientScores.cpp - P and dS from scores, for gradients -----------===//

#include "Gradients/GradientScores.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Shift attn::shiftOf(TileBuilder &b, const LogSumExp &lse, const TwoWords &bits,
                    Scalar firstRow, Scalar endOfRows) {
  Type type = lse.high.getType();
  auto unlessBehind = [&](Scalar row, Scalar shift, double none) {
    if (!Value(endOfRows))
      return shift;
    return b.select(firstRow + row < endOfRows, shift, b.f32(none));
  };
  if (!lse.low) {
    Value shift = b.map(
        lse.high, type, [&](Scalar row, Scalar, ArrayRef<Scalar> v) -> Value {
          Scalar none = b.f32(-kInfinity);
          Scalar shift = b.select(v[0] == none, none, v[0] * b.f32(-kLog2E));
          return unlessBehind(row, shift, -kInfinity);
        });
    return {shift, nullptr};
  }
  Value high = b.map(
      lse.high, type, [&](Scalar row, Scalar, ArrayRef<Scalar> v) -> Value {
        Scalar none = b.f32(-kInfinity);
        Scalar shift =
            b.select(v[0] == none, none, -b.product(v[0], bits.high));
        return unlessBehind(row, shift, -kInfinity);
      });
  Value low = b.map({lse.high, lse.low}, type,
                    [&](Scalar row, Scalar, ArrayRef<Scalar> v) -> Value {
                      Scalar low = -times(b, {v[0], v[1]}, bits).low;
                      return unlessBehind(row, finiteOrZero(b, low), 0);
                    });
  return {high, [low] { return low; }};
}

Value attn::deltaOf(TileBuilder &b, Value products, Value dlse, Scalar row) {
  if (!dlse)
    return products;
  Value more = LoadRowOp::create(b, products.getType(), dlse, row);
  return b.map(
      {products, more}, products.getType(),
      [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value { return v[0] - v[1]; });
}

Value attn::deltaOf(TileBuilder &b, Value output, Value gradient, Value dlse,
                    Scalar row, int64_t rows) {
  Value products = RowDotOp::create(b, b.rowType(rows), output, gradient, row);
  return deltaOf(b, products, dlse, row);
}

/// The value, or what `other` gives unless the condition holds.
static Value unless(TileBuilder &b, Scalar condition, Value value,
                    function_ref<Value()> other) {
  return b.choose(
      condition, [&]() -> SmallVector<Value> { return {value}; },
      [&]() -> SmallVector<Value> { return {other()}; })[0];
}

/// Whether some |x| is beyond a limit; one answer for a warp.
static Scalar anyIsBeyond(TileBuilder &b, Value values, double limit) {
  Value sizes = b.map(
      values, values.getType(),
      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value { return b.abs(x[0]); });
  auto frag = dyn_cast<FragType>(values.getType());
  Type rows = frag ? b.rowType(frag.getRows()) : values.getType();
  Value limits = b.fill(b.f32(limit), rows);
  return b.wrap(AnyAboveOp::create(b, b.getI1Type(), sizes, limits));
}

/// 2^x of exponents, and of the low words of a shift if there are any.
static Value powersOf(TileBuilder &b, const Shift &shift, ValueRange inputs,
                      function_ref<Scalar(ArrayRef<Scalar>)> exponent) {
  Type type = inputs[0].getType();
  if (!shift.low)
    return b.map(inputs, type,
                 [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                   return b.exp2(exponent(v));
                 });
  Value exponents =
      b.map(inputs, type, [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
        return exponent(v);
      });
  Value low = shift.low();
  auto sum = [&]() -> SmallVector<Value> {
    return {b.map({exponents, low}, type,
                  [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                    return v[0] + v[1];
                  })};
  };
  auto same = [&]() -> SmallVector<Value> { return {exponents}; };
  exponents =
      shift.enough == 0
          ? sum()[0]
          : b.choose(anyIsBeyond(b, shift.high, shift.enough), sum, same)[0];
  return b.map(exponents, type,
               [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                 return b.exp2(v[0]);
               });
}

Value attn::weightsOf(TileBuilder &b, const ScoreScale &scale, Value scores,
                      const Shift &shift) {
  return powersOf(b, shift, {scores, shift.high}, [&](ArrayRef<Scalar> v) {
    return b.fma(v[0], scale.factor, v[1]);
  });
}

Value attn::hiddenUnless(TileBuilder &b, Scalar isOpen, Value scores,
                         function_ref<Value(Value)> hide) {
  return unless(b, isOpen, scores, [&] { return hide(scores); });
}

Value attn::weightsOf(TileBuilder &b, const ScoreScale &scale, Value scores,
                      const Shift &shift, Scalar isOpen,
                      function_ref<Value(Value scores)> hide) {
  scores = hiddenUnless(b, isOpen, scale.orient(b, scores), hide);
  return weightsOf(b, scale, scores, shift);
}

Value attn::factorOfKept(TileBuilder &b, Value max, const Shift &shift) {
  return powersOf(b, shift, {max, shift.high},
                  [&](ArrayRef<Scalar> v) { return v[0] + v[1]; });
}

Value attn::gradientOf(TileBuilder &b, Value weights, Value gradient,
                       Value delta) {
  return b.map({weights, gradient, delta}, weights.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                 return v[0] * (v[1] - v[2]);
               });
}

Value attn::gradientOf(TileBuilder &b, Value weights, Value gradient,
                       Value delta, Scalar isOpen) {
  Value product = gradientOf(b, weights, gradient, delta);
  return unless(b, isOpen, product,
                [&] { return withoutHidden(b, weights, product); });
}

Value attn::steepened(TileBuilder &b, Value weights, Value slopes) {
  if (!slopes)
    return weights;
  return b.map({weights, slopes}, weights.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                 Scalar none = b.f32(0);
                 return b.select(v[0] == none, none, v[0] * v[1]);
               });
}

Value attn::withSlopes(TileBuilder &b, Value weights, Value gradient,
                       Value slopes) {
  if (!slopes)
    return gradient;
  return b.map({weights, gradient, slopes}, weights.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                 Scalar none = b.f32(0);
                 return b.select(v[0] == none, none, v[1] * v[2]);
               });
}

Value attn::withoutHidden(TileBuilder &b, Value weights, Value gradient) {
  return b.map({weights, gradient}, weights.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                 Scalar none = b.f32(0);
                 return b.select(v[0] == none, none, v[1]);
               });
}
