//===- GradientScores.cpp - P and dS from scores, for gradients -----------===//

#include "GradientScores.h"

#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Value attn::shiftOf(TileBuilder &b, Value lse, Scalar firstRow,
                    Scalar endOfRows) {
  double infinity = std::numeric_limits<double>::infinity();
  return b.map(
      lse, lse.getType(), [&](Scalar row, Scalar, ArrayRef<Scalar> v) -> Value {
        Scalar none = b.f32(-infinity);
        Scalar shift = b.select(v[0] == none, none, v[0] * b.f32(-kLog2E));
        if (!Value(endOfRows))
          return shift;
        return b.select(firstRow + row < endOfRows, shift, none);
      });
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

Value attn::weightsOf(TileBuilder &b, const ScoreScale &scale, Value scores,
                      Value shift) {
  return b.map({scores, shift}, scores.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                 return b.exp2(b.fma(v[0], scale.factor, v[1]));
               });
}

Value attn::weightsOf(TileBuilder &b, const ScoreScale &scale, Value scores,
                      Value shift, Scalar isOpen,
                      function_ref<Value(Value scores)> hide) {
  scores = scale.orient(b, scores);
  scores = unless(b, isOpen, scores, [&] { return hide(scores); });
  return weightsOf(b, scale, scores, shift);
}

Value attn::factorOfKept(TileBuilder &b, Value max, Value shift) {
  return b.map({max, shift}, max.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                 return b.exp2(v[0] + v[1]);
               });
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

Value attn::withoutHidden(TileBuilder &b, Value weights, Value gradient) {
  return b.map({weights, gradient}, weights.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                 Scalar none = b.f32(0);
                 return b.select(v[0] == none, none, v[1]);
               });
}
