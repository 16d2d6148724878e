//===- Tanh.cpp - The hyperbolic tangent, exact to f32 --------------------===//

#include "Region/Tanh.h"

#include "Softmax/ScoreScale.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn;

/// Where the polynomial ends, and its coefficients, the last one first.
static constexpr double kNear = 0.5;
static constexpr double kCoefficients[] = {
    0.017241491221171273, -0.0530454941365157, 0.13325878955465612,
    -0.33333143896166534};

static Scalar tanhNear0(TileBuilder &b, Scalar x) {
  Scalar square = b.product(x, x), sum = b.f32(kCoefficients[0]);
  for (double coefficient : llvm::drop_begin(kCoefficients))
    sum = b.fma(sum, square, b.f32(coefficient));
  return b.fma(b.product(x, square), sum, x);
}

Scalar attn::exactTanh(TileBuilder &b, Scalar x) {
  Scalar size = b.abs(x), one = b.f32(1);
  Scalar power = b.exp2(b.product(size, b.f32(2 * kLog2E)));
  Scalar rest = b.fma(one / (power + one), b.f32(-2), one);
  Scalar far = b.wrap(math::CopySignOp::create(b, rest, x));
  return b.select(size < b.f32(kNear), tanhNear0(b, x), far);
}
