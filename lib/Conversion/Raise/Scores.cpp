//===- Scores.cpp - Scores and weights as a result of their own -----------===//
//
// attn.forward never holds queries x keys.  Who asks for them gets linalg ops
// beside it, each of one element for every pair of rows:
//
//   s = scale Q K^T                       scaled
//   c = softcap tanh(s / softcap)         capped
//   m = c + bias, or -inf if hidden       masked
//   exp(m - max m) / sum                  weights; 0 where all is hidden
//
// They cost the product once more, and memory for every pair.
//
//===----------------------------------------------------------------------===//

#include "Form.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <limits>

using namespace attn::raise;
using namespace attn;
using namespace mlir;

namespace {

using Body = llvm::function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;

/// Writes linalg ops of f32.
class ScoreBuilder {
public:
  explicit ScoreBuilder(Form &form)
      : form(form), b(form.op->getLoc(), form.builder) {}

  Value run(Value q, Value k);

private:
  Value product(Value q, Value k);
  Value masked(Value scores);
  Value weights(Value scores);
  Value visible(ImplicitLocOpBuilder &in, std::optional<Value> used);
  Value toResult(Value scores);

  /// The sum or the largest of each row.
  Value rows(Value of, double first, Body body);
  Value generic(ArrayRef<Value> inputs, ArrayRef<AffineMap> maps, Value into,
                AffineMap intoMap, Body body);
  /// Of each pair; other inputs have maps of their own.
  Value each(Value scores, ArrayRef<Value> others, ArrayRef<AffineMap> maps,
             Type element, Body body);
  Value filled(ArrayRef<OpFoldResult> sizes, double value);

  static Value number(ImplicitLocOpBuilder &in, double value) {
    return arith::ConstantOp::create(in, in.getF32FloatAttr(float(value)));
  }
  static Value wide(ImplicitLocOpBuilder &in, Value value) {
    return value.getType().isF32()
               ? value
               : arith::ExtFOp::create(in, in.getF32Type(), value);
  }
  AffineMap pairs() { return b.getMultiDimIdentityMap(4); }
  AffineMap ofRows() { return pairs().getMajorSubMap(3); }
  AffineMap broadcast(Value tensor);

  Form &form;
  ImplicitLocOpBuilder b;
};

} // namespace

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

Value ScoreBuilder::filled(ArrayRef<OpFoldResult> sizes, double value) {
  Value empty = tensor::EmptyOp::create(b, sizes, b.getF32Type());
  return linalg::FillOp::create(b, number(b, value), empty).getResult(0);
}

/// Loops that the result lacks are summed up.
Value ScoreBuilder::generic(ArrayRef<Value> inputs, ArrayRef<AffineMap> maps,
                            Value into, AffineMap intoMap, Body body) {
  SmallVector<AffineMap> all(maps);
  all.push_back(intoMap);
  SmallVector<utils::IteratorType> kinds(intoMap.getNumDims(),
                                         utils::IteratorType::reduction);
  for (AffineExpr result : intoMap.getResults())
    kinds[cast<AffineDimExpr>(result).getPosition()] =
        utils::IteratorType::parallel;
  return linalg::GenericOp::create(
             b, TypeRange{into.getType()}, inputs, into, all, kinds,
             [&](OpBuilder &builder, Location loc, ValueRange elements) {
               ImplicitLocOpBuilder in(loc, builder);
               linalg::YieldOp::create(in, body(in, elements));
             })
      .getResult(0);
}

Value ScoreBuilder::each(Value scores, ArrayRef<Value> others,
                         ArrayRef<AffineMap> maps, Type element, Body body) {
  Value into = tensor::EmptyOp::create(
      b, tensor::getMixedSizes(b, b.getLoc(), scores), element);
  SmallVector<Value> inputs = {scores};
  llvm::append_range(inputs, others);
  SmallVector<AffineMap> all = {pairs()};
  llvm::append_range(all, maps);
  return generic(inputs, all, into, pairs(), body);
}

/// Query heads that share keys are a dimension of their own.
Value ScoreBuilder::product(Value q, Value k) {
  int64_t heads = cast<RankedTensorType>(q.getType()).getDimSize(1),
          kvHeads = cast<RankedTensorType>(k.getType()).getDimSize(1);
  SmallVector<int64_t> shape(cast<RankedTensorType>(q.getType()).getShape());
  shape[1] = heads / kvHeads;
  shape.insert(shape.begin() + 1, kvHeads);
  SmallVector<ReassociationIndices> groups = {{0}, {1, 2}, {3}, {4}};
  auto type = cast<RankedTensorType>(q.getType()).clone(shape);
  q = tensor::ExpandShapeOp::create(b, type, q, groups);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), q);
  sizes.back() = tensor::getMixedSize(b, b.getLoc(), k, 2);

  auto map = [&](ArrayRef<unsigned> dims) { // of batch, g, r, i, j, d
    SmallVector<AffineExpr> list = llvm::map_to_vector(
        dims, [&](unsigned dim) { return b.getAffineDimExpr(dim); });
    return AffineMap::get(6, 0, list, b.getContext());
  };
  Value sum = generic({q, k}, {map({0, 1, 2, 3, 5}), map({0, 1, 4, 5})},
                      filled(sizes, 0), map({0, 1, 2, 3, 4}),
                      [](ImplicitLocOpBuilder &in, ValueRange of) -> Value {
                        Value product = arith::MulFOp::create(
                            in, wide(in, of[0]), wide(in, of[1]));
                        return arith::AddFOp::create(in, of[2], product);
                      });
  return tensor::CollapseShapeOp::create(b, sum, groups);
}

/// A tensor whose sizes are those of [batch, heads, queries, keys], from the
/// last, or 1.
AffineMap ScoreBuilder::broadcast(Value tensor) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  SmallVector<AffineExpr> places;
  for (auto [dim, size] : llvm::enumerate(shape))
    places.push_back(size == 1 ? b.getAffineConstantExpr(0)
                               : b.getAffineDimExpr(4 - shape.size() + dim));
  return AffineMap::get(4, 0, places, b.getContext());
}

/// Whether the mask shows the pair of the loops at hand; `used` are the keys
/// that its batch entry uses, from whose end the mask then counts.
Value ScoreBuilder::visible(ImplicitLocOpBuilder &in,
                            std::optional<Value> used) {
  Value i = linalg::IndexOp::create(in, 2), j = linalg::IndexOp::create(in, 3);
  raise::Band band = form.visible.band;
  Value shown = arith::ConstantOp::create(in, in.getBoolAttr(true));
  auto require = [&](arith::CmpIPredicate predicate, Value a, Value b) {
    Value holds = arith::CmpIOp::create(in, predicate, a, b);
    shown = arith::AndIOp::create(in, shown, holds);
  };
  if (used) {
    require(arith::CmpIPredicate::slt, j, *used);
    Value behind = arith::SubIOp::create(
        in, *used, arith::ConstantIndexOp::create(in, form.rows.queries));
    i = arith::AddIOp::create(in, i, behind);
    if (form.named)
      band = {form.named->kind == MaskKind::window ? -form.named->left
                                                   : -kUnbounded,
              form.named->kind == MaskKind::window ? form.named->right : 0};
  }
  auto bound = [&](int64_t distance) -> Value {
    return arith::AddIOp::create(in, i,
                                 arith::ConstantIndexOp::create(in, distance));
  };
  if (band.first > -kUnbounded)
    require(arith::CmpIPredicate::sge, j, bound(band.first));
  if (band.last < kUnbounded)
    require(arith::CmpIPredicate::sle, j, bound(band.last));
  return shown;
}

Value ScoreBuilder::masked(Value scores) {
  SmallVector<Value> others;
  SmallVector<AffineMap> maps;
  for (Value tensor : {form.bias, form.seen})
    if (tensor) {
      others.push_back(tensor);
      maps.push_back(broadcast(tensor));
    }
  if (form.usedKeys) {
    others.push_back(form.usedKeys);
    maps.push_back(pairs().getMajorSubMap(1));
  }
  return each(
      scores, others, maps, b.getF32Type(),
      [&](ImplicitLocOpBuilder &in, ValueRange of) -> Value {
        unsigned next = 1;
        Value score = of[0], seen;
        if (form.bias)
          score = arith::AddFOp::create(in, score, wide(in, of[next++]));
        if (form.seen)
          seen = of[next++];
        std::optional<Value> used;
        if (form.usedKeys)
          used = arith::IndexCastOp::create(in, in.getIndexType(), of[next++]);
        Value shown = visible(in, used);
        if (seen)
          shown = arith::AndIOp::create(in, shown, seen);
        return arith::SelectOp::create(in, shown, score,
                                       number(in, -kInfinity));
      });
}

Value ScoreBuilder::rows(Value of, double first, Body body) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), of);
  sizes.pop_back();
  return generic({of}, {pairs()}, filled(sizes, first), ofRows(), body);
}

Value ScoreBuilder::weights(Value scores) {
  Value largest = rows(scores, -kInfinity,
                       [](ImplicitLocOpBuilder &in, ValueRange of) -> Value {
                         return arith::MaximumFOp::create(in, of[0], of[1]);
                       });
  Value parts =
      each(scores, largest, ofRows(), b.getF32Type(),
           [](ImplicitLocOpBuilder &in, ValueRange of) -> Value {
             Value isBlind = arith::CmpFOp::create(
                 in, arith::CmpFPredicate::OEQ, of[1], number(in, -kInfinity));
             Value centre =
                 arith::SelectOp::create(in, isBlind, number(in, 0), of[1]);
             return math::ExpOp::create(
                 in, arith::SubFOp::create(in, of[0], centre));
           });
  Value sums =
      rows(parts, 0, [](ImplicitLocOpBuilder &in, ValueRange of) -> Value {
        return arith::AddFOp::create(in, of[0], of[1]);
      });
  return each(parts, sums, ofRows(), b.getF32Type(),
              [](ImplicitLocOpBuilder &in, ValueRange of) -> Value {
                Value isBlind = arith::CmpFOp::create(
                    in, arith::CmpFPredicate::OEQ, of[1], number(in, 0));
                Value whole =
                    arith::SelectOp::create(in, isBlind, number(in, 1), of[1]);
                return arith::DivFOp::create(in, of[0], whole);
              });
}

Value ScoreBuilder::toResult(Value scores) {
  Type element = getElementTypeOrSelf(form.scores->result);
  if (element.isF32())
    return scores;
  return each(scores, {}, {}, element,
              [&](ImplicitLocOpBuilder &in, ValueRange of) -> Value {
                return arith::TruncFOp::create(in, element, of[0]);
              });
}

Value ScoreBuilder::run(Value q, Value k) {
  ScoresAt at = form.scores->at;
  int64_t headDim = cast<RankedTensorType>(q.getType()).getDimSize(3);
  double scale = form.scale.value_or(1 / std::sqrt(double(headDim)));
  bool isCapped = form.softcap != 0 && at != ScoresAt::scaled;
  Value scores = each(product(q, k), {}, {}, b.getF32Type(),
                      [&](ImplicitLocOpBuilder &in, ValueRange of) -> Value {
                        Value scaled =
                            arith::MulFOp::create(in, of[0], number(in, scale));
                        if (!isCapped)
                          return scaled;
                        Value cap = number(in, form.softcap);
                        Value part = math::TanhOp::create(
                            in, arith::DivFOp::create(in, scaled, cap));
                        return arith::MulFOp::create(in, part, cap);
                      });
  if (at == ScoresAt::masked || at == ScoresAt::weights)
    scores = masked(scores);
  if (at == ScoresAt::weights)
    scores = weights(scores);
  return toResult(scores);
}

Value attn::raise::buildScores(Form &form, Value q, Value k) {
  return ScoreBuilder(form).run(q, k);
}
