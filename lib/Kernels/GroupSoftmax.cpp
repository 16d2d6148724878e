//===- GroupSoftmax.cpp - The softmax of rows that blocks share -----------===//

#include "GroupSoftmax.h"

#include "Softmax.h"

#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static constexpr double kNothingSeen = -0x1p100;

/// Weights are at most 1: f16 goes up to nearly 2^16; with bf16 it is the f32
/// sums that must not overflow, and they have room for any values of V.
static double reachOf(DataType type) { return type == DataType::f16 ? 15 : 30; }

GroupSoftmax::GroupSoftmax(TileBuilder &b, Scalar scale, double sign,
                           DataType type)
    : scale(b, scale, sign), reach(reachOf(type)) {}

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

GroupSoftmax::Step GroupSoftmax::step(TileBuilder &b, Rows rows,
                                      Value scores) const {
  Type whole = rows.max.getType();
  Value top = b.rowMax(scores, Value());
  Value max = b.map({top, rows.max}, whole,
                    [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                      return b.max(b.ceil(x[0] * scale.factor), x[1]);
                    });
  Value weights = b.map({scores, max}, scores.getType(),
                        [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                          return b.exp2(b.fma(x[0], scale.factor, -x[1]));
                        });
  Value sum = scaleRows(b, rows.sum, ratio(b, rows.max, max));
  return {{max, b.rowSum(weights, sum)}, weights};
}

GroupSoftmax::Join GroupSoftmax::join(TileBuilder &b, Rows rows, Value output,
                                      Rows other, Value weights) const {
  Type whole = rows.max.getType();
  auto difference = [&](Value from, Value to) {
    return b.map({from, to}, whole,
                 [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                   return x[0] - x[1];
                 });
  };
  Value limit = b.fill(b.f32(reach), whole);
  Scalar moves = b.wrap(AnyAboveOp::create(
      b, b.getI1Type(), difference(other.max, rows.max), limit));
  ValueRange moved = b.choose(
      moves,
      [&]() -> SmallVector<Value> {
        Value max =
            b.map({other.max, rows.max}, whole,
                  [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                    return b.select(x[1] + b.f32(reach) < x[0], x[0], x[1]);
                  });
        Value alpha = ratio(b, rows.max, max);
        return {max, scaleRows(b, rows.sum, alpha),
                scaleRows(b, output, alpha)};
      },
      [&]() -> SmallVector<Value> { return {rows.max, rows.sum, output}; });
  Value exponents = difference(other.max, moved[0]);
  Value sum = b.map(
      {moved[1], scaleRows(b, other.sum, ratio(b, other.max, moved[0]))},
      rows.sum.getType(),
      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value { return x[0] + x[1]; });
  return {{moved[0], sum},
          ScaleRowsOp::create(b, weights.getType(), weights, exponents),
          moved[2]};
}

GroupSoftmax::End GroupSoftmax::finish(TileBuilder &b, Rows rows) const {
  Value sum =
      RowCombineOp::create(b, rows.max.getType(), /*max=*/false, rows.sum);
  Value inverse = inverseOf(b, sum);
  Value lse =
      b.map({sum, rows.max}, rows.max.getType(),
            [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
              double none = -std::numeric_limits<double>::infinity();
              return b.select(x[0] == b.f32(0), b.f32(none),
                              (b.log2(x[0]) + x[1]) * b.f32(1 / kLog2E));
            });
  return {inverse, lse};
}
