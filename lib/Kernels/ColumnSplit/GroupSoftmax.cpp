//===- GroupSoftmax.cpp - The softmax of rows that blocks share -----------===//

#include "ColumnSplit/GroupSoftmax.h"

#include "Softmax/Softmax.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Maxima beyond this are far.
static constexpr double kMostWhole = 0x1p23;
/// From here on positions are told by the bits of scores: those of all f32 that
/// are above, without their last ones, are less than three powers of two.
static constexpr double kFirstByBits = 0x1p125;
static constexpr int64_t kBitsLeftOut = 6;
static constexpr int64_t kPower = int64_t(1) << 23, kBitsOfOne = 127 * kPower,
                         kBitsOfFirst = kBitsOfOne + 125 * kPower;

/// f16 goes up to nearly 2^16; with bf16 it is the f32 sums that must not
/// overflow, and they have room for any values of V.
static double reachOf(DataType type) {
  return type == DataType::f16 ? 15 - kMostBits : 30;
}

/// An f32 as an i32, and back.
static Scalar bitsOf(TileBuilder &b, Scalar value) {
  return b.wrap(arith::BitcastOp::create(b, b.getI32Type(), value));
}
static Scalar ofBits(TileBuilder &b, Scalar bits) {
  return b.wrap(arith::BitcastOp::create(b, b.getF32Type(), bits));
}
static Scalar withSignOf(TileBuilder &b, Scalar sign, Scalar size) {
  return b.select(sign < b.f32(0), -size, size);
}

GroupSoftmax::GroupSoftmax(TileBuilder &b, Scalar scale, double sign,
                           DataType type)
    : scale(b, scale, sign), reach(reachOf(type)) {
  Scalar c = this->scale.factor;
  scoresPerBit = b.f32(1) / c;
}

GroupSoftmax::Rows GroupSoftmax::start(TileBuilder &b, int64_t rows) const {
  return {b.fill(b.f32(kNothing), b.rowType(rows)),
          b.fill(b.f32(0), b.rowType(rows, /*partial=*/true))};
}

/// 2^(a - b) for every row.
static Value ratio(TileBuilder &b, Value from, Value to) {
  return b.map({from, to}, from.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return b.exp2(x[0] - x[1]);
               });
}

Scalar GroupSoftmax::firstByBits(TileBuilder &b) const {
  return b.i32(kBitsOfFirst - kPower / 2) -
         (bitsOf(b, scale.factor) - kBitsOfOne);
}

Scalar GroupSoftmax::position(TileBuilder &b, Scalar score) const {
  Scalar bits = scale.bits(b, score);
  Scalar behind = bitsOf(b, b.abs(score)) - firstByBits(b);
  Scalar part =
      b.wrap(arith::ShRSIOp::create(b, behind, Value(b.i32(kBitsLeftOut))));
  Scalar size = ofBits(b, part + kBitsOfFirst);
  Scalar isLarge = b.f32(kFirstByBits) < b.abs(bits);
  Scalar isHidden = score == b.f32(-kInfinity);
  return b.select(isHidden, score,
                  b.select(isLarge, withSignOf(b, score, size), bits));
}

Scalar GroupSoftmax::naturalOf(TileBuilder &b, Scalar position) const {
  Scalar part = bitsOf(b, b.abs(position)) - kBitsOfFirst;
  Scalar behind = part * (int64_t(1) << kBitsLeftOut);
  Scalar size = ofBits(b, behind + firstByBits(b));
  Scalar score = withSignOf(b, position, size);
  Scalar isLarge = b.f32(kFirstByBits) <= b.abs(position);
  return b.select(isLarge, scale.natural(b, score),
                  b.product(position, b.f32(1 / kLog2E)));
}

static Value negative(TileBuilder &b, Value row) {
  return b.map(
      row, row.getType(),
      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value { return -x[0]; });
}

SmallVector<Value> GroupSoftmax::raise(TileBuilder &b, Rows rows, Value scores,
                                       Use use) const {
  Type type = rows.max.getType();
  Value top = b.rowMax(scores, Value());
  auto raised = [&](function_ref<Value(Scalar)> bits) {
    return b.map({top, rows.max}, type,
                 [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                   return b.max(b.ceil(bits(x[0])), x[1]);
                 });
  };
  auto at = [&](Value max, const Exponents &exponents) {
    Value sum = scaleRows(b, rows.sum, ratio(b, rows.max, max));
    return use({{max, sum}, exponents});
  };
  auto isHidden = [&](Scalar score) { return score == b.f32(-kInfinity); };
  Value near = raised([&](Scalar x) -> Value { return scale.bits(b, x); });
  // Where all is hidden nothing is far; what overflows is.
  Value distances = b.map(
      {top, near}, type, [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
        return b.select(isHidden(x[0]), b.f32(0), b.abs(x[1]));
      });
  return llvm::to_vector(b.choose(
      anyBeyond(b, distances, kMostWhole),
      [&] {
        Value max = raised([&](Scalar x) -> Value { return position(b, x); });
        Value centres =
            b.map(top, type, [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
              return b.select(isHidden(x[0]), b.f32(0),
                              b.min(x[0], b.f32(kLargest)));
            });
        Value shift = b.map({centres, max}, type,
                            [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                              return b.select(b.f32(kMostWhole) < b.abs(x[1]),
                                              position(b, x[0]) - x[1],
                                              b.fma(x[0], scale.factor, -x[1]));
                            });
        return at(max, {scale.centre(b, scores, centres), shift});
      },
      [&] { return at(near, {scores, negative(b, near)}); }));
}

GroupSoftmax::Raised GroupSoftmax::raise(TileBuilder &b, Rows rows,
                                         Value scores) const {
  SmallVector<Value> v =
      raise(b, rows, scores, [](const Raised &after) -> SmallVector<Value> {
        return {after.rows.max, after.rows.sum, after.exponents.scores,
                after.exponents.shift};
      });
  return {{v[0], v[1]}, {v[2], v[3]}};
}

Value GroupSoftmax::weigh(TileBuilder &b, Rows &rows,
                          const Exponents &exponents, Value some) const {
  Value weights =
      scale.weights(b, some ? some : exponents.scores, exponents.shift);
  rows.sum = b.rowSum(weights, rows.sum);
  return weights;
}

GroupSoftmax::Join GroupSoftmax::join(TileBuilder &b, Value max, Value output,
                                      Value other) const {
  ValueRange moved = b.choose(
      asks(b, other, max),
      [&]() -> SmallVector<Value> {
        JoinOfParts joined = moveTo(b, max, output, other);
        return {joined.max, joined.outputs.front()};
      },
      [&]() -> SmallVector<Value> { return {max, output}; });
  return {moved[0], moved[1]};
}

Scalar GroupSoftmax::asks(TileBuilder &b, Value other, Value max) const {
  Value limit = b.fill(b.f32(reach), max.getType());
  return b.wrap(
      AnyAboveOp::create(b, b.getI1Type(), exponents(b, other, max), limit));
}

GroupSoftmax::JoinOfParts GroupSoftmax::moveTo(TileBuilder &b, Value max,
                                               ValueRange outputs,
                                               Value other) const {
  Value after = b.map({other, max}, max.getType(),
                      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                        return b.select(x[1] + b.f32(reach) < x[0], x[0], x[1]);
                      });
  JoinOfParts joined{after, {}};
  Value factors = ratio(b, max, after);
  for (Value output : outputs)
    joined.outputs.push_back(scaleRows(b, output, factors));
  return joined;
}

GroupSoftmax::Move GroupSoftmax::move(TileBuilder &b, Rows own, Value max,
                                      Value output, Value scores,
                                      Value others) const {
  Value limits = b.map(own.max, own.max.getType(),
                       [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                         return (x[0] + b.f32(kMostBits)) * scoresPerBit;
                       });
  Scalar moves = b.wrap(AnyAboveOp::create(b, b.getI1Type(), scores, limits));
  auto orIf = [&](Scalar condition) {
    moves = b.wrap(arith::OrIOp::create(b, moves, condition));
  };
  // Far rows, and those that have seen nothing.
  Value distances = b.map(
      own.max, own.max.getType(),
      [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value { return b.abs(x[0]); });
  orIf(anyBeyond(b, distances, kMostWhole));
  if (others)
    orIf(asks(b, others, max));
  auto all = [&](const Rows &rows, const Join &joined,
                 const Exponents &exponents) -> SmallVector<Value> {
    return {rows.max,      rows.sum,         joined.max,
            joined.output, exponents.scores, exponents.shift};
  };
  ValueRange v = b.choose(
      moves,
      [&] {
        auto [raised, exponents] = raise(b, own, scores);
        JoinOfParts joined =
            moveTo(b, max, output,
                   others ? higher(b, raised.max, others) : raised.max);
        return all(raised, {joined.max, joined.outputs.front()}, exponents);
      },
      [&] { return all(own, {max, output}, {scores, negative(b, own.max)}); });
  return {{v[0], v[1]}, {v[2], v[3]}, {v[4], v[5]}};
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

GroupSoftmax::End GroupSoftmax::end(TileBuilder &b, Rows rows, bool hasLow,
                                    Value more) const {
  Value inverse = inverseOf(b, rows.sum);
  SmallVector<Value> inputs = {rows.sum, rows.max};
  if (more)
    inputs.push_back(more);
  auto logOf = [&](ArrayRef<Scalar> x) {
    Scalar log = b.log2(x[0]);
    return more ? log - x[2] : log;
  };
  auto plain = [&](ArrayRef<Scalar> x) {
    Scalar log = logOf(x);
    return b.select(x[0] == b.f32(0), b.f32(-kInfinity),
                    log * b.f32(1 / kLog2E) + naturalOf(b, x[1]));
  };
  // Where positions are no bits there is no second word.
  auto binary = [&](ArrayRef<Scalar> x) -> TwoWords {
    Scalar isLarge = b.f32(kFirstByBits) <= b.abs(x[1]);
    return {b.select(isLarge, b.f32(kInfinity), x[1]), logOf(x)};
  };
  return {inverse, scale.logSumExp(b, inputs, hasLow, plain, binary)};
}
