//===- LazySoftmax.cpp - An online softmax that seldom rescales -----------===//

#include "LazySoftmax.h"

#include "Softmax.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

LazySoftmax::LazySoftmax(TileBuilder &b, Scalar scale, double sign,
                         Type element)
    : scale(b, scale, sign),
      bias(element.getIntOrFloatBitWidth() == 8 ? kMostBits / 2 : 0) {
  Scalar bits = b.f32(kMostBits - bias);
  slack = this->scale.scalesFirst ? bits : bits / this->scale.factor;
}

Value LazySoftmax::weights(TileBuilder &b, Value scores,
                           Value reference) const {
  Value shift = b.map(reference, reference.getType(),
                      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                        Scalar product = x[0] * scale.factor;
                        return bias == 0 ? -product : b.f32(bias) - product;
                      });
  return b.map({scores, shift}, scores.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.exp2(b.fma(x[0], scale.factor, x[1]));
               });
}

LazySoftmax::Block LazySoftmax::first(TileBuilder &b, Value scores) const {
  int64_t rows = cast<FragType>(scores.getType()).getRows();
  Value nothing = b.fill(b.f32(kNothingSeen), b.rowType(rows));
  Value reference = b.rowMax(scores, nothing);
  Value result = weights(b, scores, reference);
  return {{reference, b.rowSum(result, Value())}, result};
}

Scalar LazySoftmax::mustMove(TileBuilder &b, Rows rows, Value scores) const {
  Value limits = b.map(rows.reference, rows.reference.getType(),
                       [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                         return x[0] + slack;
                       });
  return b.wrap(AnyAboveOp::create(b, b.getI1Type(), scores, limits));
}

SmallVector<Value> LazySoftmax::moved(TileBuilder &b, Rows rows,
                                      Value scores) const {
  Value reference = b.rowMax(scores, rows.reference);
  Value alpha = b.map({rows.reference, reference}, reference.getType(),
                      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                        return b.exp2((x[0] - x[1]) * scale.factor);
                      });
  return {reference, scaleRows(b, rows.sum, alpha), alpha};
}

LazySoftmax::Step LazySoftmax::step(TileBuilder &b, Rows rows, Value scores,
                                    Scalar moves, ValueRange output) const {
  ValueRange moved = b.choose(
      moves,
      [&]() -> SmallVector<Value> {
        SmallVector<Value> results = this->moved(b, rows, scores);
        Value alpha = results.pop_back_val();
        for (Value part : output)
          results.push_back(scaleRows(b, part, alpha));
        return results;
      },
      [&]() -> SmallVector<Value> {
        SmallVector<Value> results = {rows.reference, rows.sum};
        llvm::append_range(results, output);
        return results;
      });
  Value result = weights(b, scores, moved[0]);
  return {{{moved[0], b.rowSum(result, moved[1])}, result},
          llvm::to_vector(moved.drop_front(2))};
}

LazySoftmax::Early LazySoftmax::stepEarly(TileBuilder &b, Rows rows,
                                          Value scores) const {
  Scalar moves = mustMove(b, rows, scores);
  ValueRange moved = b.choose(
      moves, [&] { return this->moved(b, rows, scores); },
      [&]() -> SmallVector<Value> {
        return {rows.reference, rows.sum,
                b.fill(b.f32(1), rows.reference.getType())};
      });
  Value result = weights(b, scores, moved[0]);
  return {{{moved[0], b.rowSum(result, moved[1])}, result}, moves, moved[2]};
}

Value LazySoftmax::scaled(TileBuilder &b, const Early &step,
                          Value output) const {
  return b.choose(
      step.moves,
      [&] { return SmallVector<Value>{scaleRows(b, output, step.alpha)}; },
      [&] { return SmallVector<Value>{output}; })[0];
}

LazySoftmax::End LazySoftmax::finish(TileBuilder &b, Rows rows) const {
  auto type = cast<RowType>(rows.reference.getType());
  Value sum = RowCombineOp::create(b, type, /*max=*/false, rows.sum);
  Value inverse = inverseOf(b, sum);
  Value lse = b.map({sum, rows.reference}, type,
                    [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                      Scalar log = b.log2(x[0]) + x[1] * scale.factor;
                      if (bias != 0)
                        log = log - b.f32(bias);
                      double none = -std::numeric_limits<double>::infinity();
                      return b.select(x[0] == b.f32(0), b.f32(none),
                                      log * b.f32(1 / kLog2E));
                    });
  return {inverse, lse};
}
