//===- Sink.cpp - A score of a head that has no value ---------------------===//

#include "Softmax/Sink.h"

#include "Softmax/ScoreScale.h"

using namespace mlir;
using namespace attn;

/// exp(x).
static Scalar exponential(TileBuilder &b, Scalar x) {
  return b.exp2(x * b.f32(kLog2E));
}

/// What the larger of two exponents, this far apart, lacks of their sum.
static Scalar beyondLarger(TileBuilder &b, Scalar apart) {
  Scalar less = exponential(b, -b.abs(apart));
  return b.log2(b.f32(1) + less) * b.f32(1 / kLog2E);
}

void attn::addSink(TileBuilder &b, Value &inverse, LogSumExp &lse,
                   Scalar sink) {
  Scalar nothing = b.f32(-kInfinity);
  SmallVector<Value> rows = {lse.high, inverse};
  if (lse.low)
    rows.push_back(lse.low);
  auto apartOf = [&](ArrayRef<Scalar> x) {
    Scalar apart = x[0] - sink;
    return x.size() > 2 ? apart + x[2] : apart;
  };
  // Where neither is there, what is apart is not a number.
  auto isThere = [&](ArrayRef<Scalar> x) {
    return b.select(b.max(x[0], sink) == nothing, b.boolean(false),
                    b.boolean(true));
  };
  auto ofRow = [&](function_ref<Scalar(ArrayRef<Scalar>)> value) -> Value {
    return b.map(rows, inverse.getType(),
                 [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                   return value(x);
                 });
  };
  Value shared = ofRow([&](ArrayRef<Scalar> x) {
    Scalar share = b.f32(1) / (b.f32(1) + exponential(b, -apartOf(x)));
    return b.select(isThere(x), x[1] * share, b.f32(0));
  });
  auto words = [&](ArrayRef<Scalar> x) -> TwoWords {
    Scalar apart = apartOf(x), isBelow = apart < b.f32(0);
    Scalar more = beyondLarger(b, apart);
    Scalar low = x.size() > 2 ? x[2] + more : more;
    return settled(b, {b.select(isBelow, sink, x[0]),
                       b.select(isBelow, more, low)});
  };
  Value high = ofRow([&](ArrayRef<Scalar> x) {
    return b.select(isThere(x), words(x).high, nothing);
  });
  Value low;
  if (lse.low)
    low = ofRow([&](ArrayRef<Scalar> x) {
      return b.select(isThere(x), finiteOrZero(b, words(x).low), b.f32(0));
    });
  inverse = shared;
  lse = {high, low};
}
