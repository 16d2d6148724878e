//===- LazySoftmax.cpp - An online softmax that seldom rescales -----------===//

#include "Softmax/LazySoftmax.h"

#include "Softmax/Softmax.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// The reference of a row that has seen nothing.  It is no score's unless it is
/// the least of all.
static constexpr double kNothing = -kLargest;
/// Where c is more, c times that is not finite.
static constexpr double kMostFactor = 0.5;

LazySoftmax::LazySoftmax(TileBuilder &b, Scalar scale, double sign,
                         Type element)
    : scale(b, scale, sign),
      bias(element.getIntOrFloatBitWidth() == 8 ? kMostBits / 2 : 0) {
  Scalar c = this->scale.factor;
  slack = b.f32(kMostBits - bias) / c;
}

Scalar LazySoftmax::shift(TileBuilder &b, Scalar reference) const {
  if (bias == 0)
    return -scale.bits(b, reference);
  return b.fma(-reference, scale.factor, b.f32(bias));
}

Scalar LazySoftmax::remainder(TileBuilder &b, Scalar reference) const {
  return b.fma(reference, scale.factor, shift(b, reference)) - b.f32(bias);
}

Scalar LazySoftmax::distance(TileBuilder &b, Scalar reference) const {
  return b.select(reference == b.f32(kNothing),
                  b.product(scale.factor, b.f32(kNearBits / kMostFactor)),
                  b.abs(scale.bits(b, reference)));
}

/// Whether a row's scores are centred, by the distance of its reference.
static Scalar isFar(TileBuilder &b, Scalar distance) {
  return b.f32(kNearBits) < distance;
}

LazySoftmax::Stand LazySoftmax::stand(TileBuilder &b, Value reached,
                                      Value scores, bool isUsual) const {
  using Element = function_ref<Value(Scalar)>;
  auto forEach = [&](Value row, Element body) {
    return b.map(row, row.getType(), [&](Scalar, Scalar, ArrayRef<Scalar> x) {
      return body(x[0]);
    });
  };
  auto orNothing = [&](Scalar score) { return b.max(score, b.f32(kNothing)); };
  Value distances = forEach(
      reached, [&](Scalar x) -> Value { return distance(b, orNothing(x)); });
  Value reference = forEach(reached, [&](Scalar x) -> Value {
    return b.min(orNothing(x), b.f32(kLargest));
  });
  Value shifts =
      forEach(reference, [&](Scalar x) -> Value { return shift(b, x); });
  Scalar far = anyBeyond(b, distances, kNearBits);
  auto either = [&](Value row, Scalar ifFar, Scalar ifNear) {
    return b.map({distances, row}, row.getType(),
                 [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                   Scalar value = x[1];
                   return b.select(isFar(b, x[0]), Value(ifFar) ? ifFar : value,
                                   Value(ifNear) ? ifNear : value);
                 });
  };
  auto centred = [&]() -> SmallVector<Value> {
    Value centres = either(reference, Scalar(), b.f32(0));
    return {scale.centre(b, scores, centres),
            either(shifts, b.f32(bias), Scalar())};
  };
  SmallVector<Value> scored =
      isUsual ? llvm::to_vector(b.choose(
                    far, centred,
                    [&]() -> SmallVector<Value> { return {scores, shifts}; }))
              : centred();
  Value none = forEach(reached, [&](Scalar x) -> Value {
    return b.select(x == b.f32(-kInfinity), b.f32(1), b.f32(0));
  });
  Value asks = arith::OrIOp::create(b, far, anyBeyond(b, none, 0));
  return {reference, asks, {scored[0], scored[1]}};
}

LazySoftmax::Block LazySoftmax::weigh(TileBuilder &b, const Stand &stand,
                                      Value sum) const {
  Value weights = scale.weights(b, stand.scored.scores, stand.scored.shift);
  return {{stand.reference, b.rowSum(weights, sum), stand.asks}, weights};
}

LazySoftmax::Block LazySoftmax::first(TileBuilder &b, Value scores) const {
  int64_t rows = cast<FragType>(scores.getType()).getRows();
  Value none = b.fill(b.f32(-kInfinity), b.rowType(rows));
  Value top = b.rowMax(scores, none);
  return weigh(b, stand(b, top, scores, /*isUsual=*/true), Value());
}

Scalar LazySoftmax::mustMove(TileBuilder &b, Rows rows, Value scores) const {
  Value limits = b.map(rows.reference, rows.reference.getType(),
                       [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                         return x[0] + slack;
                       });
  Value above = AnyAboveOp::create(b, b.getI1Type(), scores, limits);
  return b.wrap(arith::OrIOp::create(b, above, rows.asks));
}

LazySoftmax::Moved LazySoftmax::moved(TileBuilder &b, Rows rows,
                                      Value scores) const {
  Type type = rows.reference.getType();
  Value before = b.map(
      rows.reference, type, [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
        return b.select(x[0] == b.f32(kNothing), b.f32(-kInfinity), x[0]);
      });
  Value top = b.rowMax(scores, before);
  Stand after = stand(b, top, scores, /*isUsual=*/false);
  // The difference first: where the reference stays, alpha is exactly 1.
  auto rest = [&](Scalar reference) {
    return b.select(isFar(b, distance(b, reference)), b.f32(0),
                    remainder(b, reference));
  };
  Value alpha = b.map(
      {rows.reference, after.reference}, type,
      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
        Scalar difference = b.product(x[0] - x[1], scale.factor);
        Scalar exponent = difference + (rest(x[1]) - rest(x[0]));
        // Whoever has seen nothing may see less than that.
        return b.select(x[0] == b.f32(kNothing), b.f32(0), b.exp2(exponent));
      });
  return {after, alpha};
}

LazySoftmax::Step LazySoftmax::stepIf(
    TileBuilder &b, Scalar moves, Rows rows, Value scores,
    function_ref<SmallVector<Value>(Value alpha)> scaled) const {
  Type type = rows.reference.getType();
  auto all = [&](const Stand &stand, Value sum, Value alpha) {
    SmallVector<Value> values = {stand.reference, stand.asks,
                                 stand.scored.scores, stand.scored.shift, sum};
    llvm::append_range(values, scaled(alpha));
    return values;
  };
  ValueRange v = b.choose(
      moves,
      [&] {
        Moved after = moved(b, rows, scores);
        return all(after.stand, scaleRows(b, rows.sum, after.alpha),
                   after.alpha);
      },
      [&] {
        Value shifts = b.map(rows.reference, type,
                             [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                               return shift(b, x[0]);
                             });
        return all({rows.reference, b.boolean(false), {scores, shifts}},
                   rows.sum, Value());
      });
  return {weigh(b, {v[0], v[1], {v[2], v[3]}}, v[4]),
          llvm::to_vector(v.drop_front(5))};
}

LazySoftmax::Step LazySoftmax::step(TileBuilder &b, Rows rows, Value scores,
                                    Scalar moves, ValueRange output) const {
  return stepIf(b, moves, rows, scores, [&](Value alpha) {
    SmallVector<Value> parts = llvm::to_vector(output);
    if (alpha)
      for (Value &part : parts)
        part = scaleRows(b, part, alpha);
    return parts;
  });
}

LazySoftmax::Early LazySoftmax::stepEarly(TileBuilder &b, Rows rows,
                                          Value scores) const {
  Scalar moves = mustMove(b, rows, scores);
  Step step =
      stepIf(b, moves, rows, scores, [&](Value alpha) -> SmallVector<Value> {
        Type type = rows.reference.getType();
        return {alpha ? alpha : b.fill(b.f32(1), type)};
      });
  return {step.block, moves, step.output[0]};
}

Value LazySoftmax::scaled(TileBuilder &b, const Early &step,
                          Value output) const {
  return b.choose(
      step.moves,
      [&] { return SmallVector<Value>{scaleRows(b, output, step.alpha)}; },
      [&] { return SmallVector<Value>{output}; })[0];
}

LazySoftmax::End LazySoftmax::finish(TileBuilder &b, Rows rows,
                                     bool hasLow) const {
  Value sum = RowCombineOp::create(b, rows.reference.getType(), /*max=*/false,
                                   rows.sum);
  Value inverse = inverseOf(b, sum);
  auto plain = [&](ArrayRef<Scalar> x) {
    Scalar log = b.log2(x[0]), ln2 = b.f32(1 / kLog2E);
    Scalar near = (log - shift(b, x[1])) * ln2;
    Scalar far = scale.natural(b, x[1]) + (log - b.f32(bias)) * ln2;
    Scalar value = b.select(isFar(b, distance(b, x[1])), far, near);
    return b.select(x[0] == b.f32(0), b.f32(-kInfinity), value);
  };
  // Near weights stand at the rounded shift, far ones at the score.
  auto binary = [&](ArrayRef<Scalar> x) -> TwoWords {
    Scalar log = b.log2(x[0]);
    Scalar far = (log - b.f32(bias)) + scale.lostBits(b, x[1]);
    Scalar isFar = ::isFar(b, distance(b, x[1]));
    return {b.select(isFar, scale.bits(b, x[1]), -shift(b, x[1])),
            b.select(isFar, far, log)};
  };
  return {inverse,
          scale.logSumExp(b, {sum, rows.reference}, hasLow, plain, binary)};
}
