//===- Softmax.cpp - The online softmax of a strip of rows ----------------===//

#include "Softmax.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

Softmax::Rows Softmax::start(TileBuilder &b, int64_t rows) const {
  return {b.fill(b.f32(-kInfinity), b.rowType(rows)),
          b.fill(b.f32(0), b.rowType(rows, /*partial=*/true))};
}

Value Softmax::reference(TileBuilder &b, Value max) const {
  return b.map(max, max.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 Scalar none = x[0] == b.f32(-kInfinity);
                 return b.select(none, b.f32(0), x[0]);
               });
}

Value Softmax::shift(TileBuilder &b, Value reference) const {
  return b.map(reference, reference.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.f32(0) - x[0] * scale.factor;
               });
}

Softmax::Step Softmax::step(TileBuilder &b, Rows rows, Value scores,
                            Whole wholeMax) const {
  Value max = b.rowMax(scores, rows.max);
  if (wholeMax)
    max = wholeMax(max);
  Value reference = this->reference(b, max);
  Value shifted = shift(b, reference);
  // The difference first: where m stays, alpha is exactly 1.  With c m_old -
  // round(c m_new) it is 1 + 2^-24 c m, and that to the power of all steps.
  Value alpha = b.map({rows.max, reference}, max.getType(),
                      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                        return b.exp2((x[0] - x[1]) * scale.factor);
                      });
  Value weights = b.map({scores, shifted}, scores.getType(),
                        [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                          return b.exp2(b.fma(x[0], scale.factor, x[1]));
                        });
  Value shrunk = b.map(
      {rows.sum, alpha}, rows.sum.getType(),
      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value { return x[0] * x[1]; });
  return {{max, b.rowSum(weights, shrunk)}, weights, alpha};
}

Softmax::End Softmax::finish(TileBuilder &b, Rows rows, Whole wholeSum) const {
  auto type = cast<RowType>(rows.max.getType());
  Value sum = RowCombineOp::create(b, type, /*max=*/false, rows.sum);
  if (wholeSum)
    sum = wholeSum(sum);
  Value inverse = inverseOf(b, sum);
  Value lse = b.map({sum, shift(b, reference(b, rows.max))}, type,
                    [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                      Scalar log = b.log2(x[0]) - x[1];
                      return b.select(x[0] == b.f32(0), b.f32(-kInfinity),
                                      log * b.f32(1 / kLog2E));
                    });
  return {inverse, lse};
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
