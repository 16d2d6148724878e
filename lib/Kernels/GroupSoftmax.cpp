//===- GroupSoftmax.cpp - The softmax of rows that blocks share -----------===//

#include "GroupSoftmax.h"

#include "Softmax.h"

#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// f16 goes up to nearly 2^16; with bf16 it is the f32 sums that must not
/// overflow, and they have room for any values of V.
static double reachOf(DataType type) {
  return type == DataType::f16 ? 15 - kMostBits : 30;
}

GroupSoftmax::GroupSoftmax(TileBuilder &b, Scalar scale, double sign,
                           DataType type)
    : scale(b, scale, sign), reach(reachOf(type)) {
  scoresPerBit =
      this->scale.scalesFirst ? b.f32(1) : b.f32(1) / this->scale.factor;
}

GroupSoftmax::Rows GroupSoftmax::start(TileBuilder &b, int64_t rows) const {
  return {b.fill(b.f32(kNothingSeen), b.rowType(rows)),
          b.fill(b.f32(0), b.rowType(rows, /*partial=*/true))};
}

/// 2^(a - b) for every row.
static Value ratio(TileBuilder &b, Value from, Value to) {
  return b.map({from, to}, from.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.exp2(x[0] - x[1]);
               });
}

GroupSoftmax::Rows GroupSoftmax::raise(TileBuilder &b, Rows rows,
                                       Value scores) const {
  Value top = b.rowMax(scores, Value());
  Value max = b.map({top, rows.max}, rows.max.getType(),
                    [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                      return b.max(b.ceil(x[0] * scale.factor), x[1]);
                    });
  return {max, scaleRows(b, rows.sum, ratio(b, rows.max, max))};
}

Value GroupSoftmax::weigh(TileBuilder &b, Rows &rows, Value scores) const {
  Value weights = b.map({scores, rows.max}, scores.getType(),
                        [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                          return b.exp2(b.fma(x[0], scale.factor, -x[1]));
                        });
  rows.sum = b.rowSum(weights, rows.sum);
  return weights;
}

GroupSoftmax::Join GroupSoftmax::join(TileBuilder &b, Value max, Value output,
                                      Value other) const {
  ValueRange moved = b.choose(
      asks(b, other, max),
      [&]() -> SmallVector<Value> {
        Join joined = moveTo(b, max, output, other);
        return {joined.max, joined.output};
      },
      [&]() -> SmallVector<Value> { return {max, output}; });
  return {moved[0], moved[1]};
}

Scalar GroupSoftmax::asks(TileBuilder &b, Value other, Value max) const {
  Value limit = b.fill(b.f32(reach), max.getType());
  return b.wrap(
      AnyAboveOp::create(b, b.getI1Type(), exponents(b, other, max), limit));
}

GroupSoftmax::Join GroupSoftmax::moveTo(TileBuilder &b, Value max, Value output,
                                        Value other) const {
  Value after = b.map({other, max}, max.getType(),
                      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                        return b.select(x[1] + b.f32(reach) < x[0], x[0], x[1]);
                      });
  return {after, scaleRows(b, output, ratio(b, max, after))};
}

GroupSoftmax::Move GroupSoftmax::move(TileBuilder &b, Rows own, Value max,
                                      Value output, Value scores,
                                      Value others) const {
  Value limits = b.map(own.max, own.max.getType(),
                       [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                         return (x[0] + b.f32(kMostBits)) * scoresPerBit;
                       });
  Scalar moves = b.wrap(AnyAboveOp::create(b, b.getI1Type(), scores, limits));
  if (others)
    moves = b.wrap(arith::OrIOp::create(b, moves, asks(b, others, max)));
  ValueRange moved = b.choose(
      moves,
      [&]() -> SmallVector<Value> {
        Rows raised = raise(b, own, scores);
        Join joined =
            moveTo(b, max, output,
                   others ? higher(b, raised.max, others) : raised.max);
        return {raised.max, raised.sum, joined.max, joined.output};
      },
      [&]() -> SmallVector<Value> { return {own.max, own.sum, max, output}; });
  return {{moved[0], moved[1]}, {moved[2], moved[3]}};
}

Value GroupSoftmax::exponents(TileBuilder &b, Value from, Value to) const {
  return b.map(
      {from, to}, from.getType(),
      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value { return x[0] - x[1]; });
}

Value GroupSoftmax::difference(TileBuilder &b, Value from, Value to) {
  return b.map({from, to}, from.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.select(x[0] == x[1], b.f32(0), x[0] - x[1]);
               });
}

Value GroupSoftmax::powers(TileBuilder &b, Value exponents) {
  return b.map(exponents, exponents.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.exp2(x[0]);
               });
}

Value GroupSoftmax::higher(TileBuilder &b, Value one, Value other) const {
  return b.map({one, other}, one.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.max(x[0], x[1]);
               });
}

GroupSoftmax::Rows GroupSoftmax::add(TileBuilder &b, Rows rows,
                                     Rows other) const {
  Value sum = b.map(
      {rows.sum, scaleRows(b, other.sum, ratio(b, other.max, rows.max))},
      rows.sum.getType(),
      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value { return x[0] + x[1]; });
  return {rows.max, sum};
}

GroupSoftmax::Rows GroupSoftmax::whole(TileBuilder &b, Rows rows) const {
  return {rows.max,
          RowCombineOp::create(b, rows.max.getType(), /*max=*/false, rows.sum)};
}

GroupSoftmax::End GroupSoftmax::end(TileBuilder &b, Rows rows) const {
  Value inverse = inverseOf(b, rows.sum);
  Value lse =
      b.map({rows.sum, rows.max}, rows.max.getType(),
            [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
              double none = -std::numeric_limits<double>::infinity();
              return b.select(x[0] == b.f32(0), b.f32(none),
                              (b.log2(x[0]) + x[1]) * b.f32(1 / kLog2E));
            });
  return {inverse, lse};
}
