//===- LogSumExp.cpp - Log-sum-exps of rows in two words ------------------===//

#include "Softmax/LogSumExp.h"

#include "Softmax/ScoreScale.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

TwoWords attn::twoWords(TileBuilder &b, double number) {
  double high = float(number);
  return {b.f32(high), b.f32(number - high)};
}

TwoWords attn::times(TileBuilder &b, const TwoWords &x, const TwoWords &y) {
  Scalar product = b.product(x.high, y.high);
  Scalar error = b.fma(x.high, y.high, -product);
  Scalar rest = b.fma(x.high, y.low, error);
  return {product, b.fma(x.low, y.high, rest)};
}

TwoWords attn::quotient(TileBuilder &b, Scalar x, Scalar y) {
  Scalar quotient = x / y;
  return {quotient, b.fma(-quotient, y, x) / y};
}

Scalar attn::finiteOrZero(TileBuilder &b, Scalar low) {
  return b.select(b.abs(low) < b.f32(kInfinity), low, b.f32(0));
}

TwoWords attn::settled(TileBuilder &b, TwoWords x) {
  Scalar sum = x.high + x.low, second = sum - x.high;
  Scalar first = sum - second;
  return {sum, (x.high - first) + (x.low - second)};
}

LogSumExp attn::logSumExp(TileBuilder &b, ValueRange rows, bool hasLow,
                          const TwoWords &natural,
                          function_ref<Scalar(ArrayRef<Scalar>)> plain,
                          function_ref<TwoWords(ArrayRef<Scalar>)> binary) {
  Type type = rows[0].getType();
  auto forEach = [&](function_ref<Scalar(ArrayRef<Scalar>)> value) -> Value {
    return b.map(rows, type, [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
      return value(x);
    });
  };
  if (!hasLow)
    return {forEach(plain), Value()};
  auto words = [&](ArrayRef<Scalar> x) {
    return settled(b, times(b, binary(x), natural));
  };
  Value high = forEach([&](ArrayRef<Scalar> x) {
    TwoWords lse = words(x);
    Scalar hasBoth = b.abs(lse.low) < b.f32(kInfinity);
    return b.select(hasBoth, lse.high, plain(x));
  });
  Value low = forEach(
      [&](ArrayRef<Scalar> x) { return finiteOrZero(b, words(x).low); });
  return {high, low};
}

void attn::declareLse(Arguments &arguments, TileBuilder &b,
                      const Problem &problem) {
  arguments.operand("lse", b.getF32Type());
  if (problem.lseLow)
    arguments.operand("lse_low", b.getF32Type());
}
