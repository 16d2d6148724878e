//===- Products.cpp - Products on mma.sync, in a problem's precision ------===//

#include "MmaSync/Products.h"
#include "Softmax/Softmax.h"

#include "attn/Schedule/Footprint.h"

#include <utility>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Contracted elements of large products that are summed up on the tensor cores
/// alone, and columns of an output at a time.
static constexpr int64_t kSumExtent = 32, kPartColumns = 32;
/// The most that a sum of small products is beside a sum of large ones that is
/// finite.
static constexpr double kMostSmall = 0x1p127;

Products::Products(TileBuilder &b, const Problem &problem)
    : step(problem.dtype == DataType::f32 ? 8 : 16), b(b),
      element(elementType(b.getContext(), problem.dtype)),
      isSingle(problem.dtype == DataType::f32),
      isSplit(productsPerProduct(problem) > 1),
      layout(staggersRows(problem) ? SmemLayout::staggered
                                   : SmemLayout::padded) {}

SmemType Products::bufferOfRows(int64_t stages, int64_t rows,
                                int64_t columns) const {
  return SmemType::get(b.getContext(), stages, rows, columns, element, layout);
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

static FragType inTf32(FragType type, FragmentLayout layout) {
  return FragType::get(type.getContext(), type.getRows(), type.getColumns(),
                       FloatTF32Type::get(type.getContext()), layout);
}

Products::Factor Products::factor(Value fragment) const {
  if (!isSingle)
    return {fragment, Value()};
  auto type = cast<FragType>(fragment.getType());
  bool isAcc = type.getLayout() == FragmentLayout::acc;
  FragType result =
      inTf32(type, isAcc ? FragmentLayout::lhs_paired : type.getLayout());
  if (!isSplit)
    return {CastOp::create(b, result, fragment), Value()};
  auto split = SplitOp::create(b, result, result, fragment);
  return {split.getHigh(), split.getLow()};
}

Products::Factor Products::load(const Corner &corner, FragType type,
                                bool transpose) const {
  return factor(LoadMatrixOp::create(b, type, corner.buffer, corner.stage,
                                     corner.row, corner.column, transpose));
}

Products::Factor Products::queries(const Corner &corner, int64_t rows) const {
  return load(corner, b.lhsType(rows, step, element), /*transpose=*/false);
}

Products::Factor Products::keys(const Corner &corner, int64_t keys) const {
  return load(corner, b.rhsType(step, keys, element), /*transpose=*/true);
}

Products::Factor Products::values(const Corner &corner, int64_t columns) const {
  FragmentLayout layout =
      isSingle ? FragmentLayout::rhs_paired : FragmentLayout::rhs;
  return load(corner,
              FragType::get(b.getContext(), step, columns, element, layout),
              /*transpose=*/false);
}

Products::Factor Products::weights(Value accumulator) const {
  if (isSingle)
    return factor(accumulator);
  auto type = cast<FragType>(accumulator.getType());
  return {CastOp::create(b,
                         b.lhsType(type.getRows(), type.getColumns(), element),
                         accumulator),
          Value()};
}

Products::Factor Products::weights(const Corner &corner, int64_t rows,
                                   bool transpose) const {
  FragmentLayout layout =
      isSingle ? FragmentLayout::lhs_paired : FragmentLayout::lhs;
  return load(corner,
              FragType::get(b.getContext(), rows, step, element, layout),
              transpose);
}

Products::Factor Products::weightsAt(const Factor &weights,
                                     int64_t column) const {
  auto columns = [&](Value fragment) -> Value {
    if (!fragment)
      return {};
    auto type = cast<FragType>(fragment.getType());
    return ExtractOp::create(b,
                             FragType::get(b.getContext(), type.getRows(), step,
                                           type.getElementType(),
                                           type.getLayout()),
                             fragment, uint64_t(column));
  };
  Value high = columns(weights.high);
  return {high, columns(weights.low)};
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Value Products::scaled(Value acc, Value scale) const {
  return isSplit ? acc : scaleRows(b, acc, scale);
}

Value Products::add(Value acc, FragType type, int64_t extent, Factors factors,
                    Value scale) const {
  if (isSplit)
    return addSplit(acc, type, extent, factors, scale);
  if (!acc)
    acc = b.fill(b.f32(0), type);
  for (int64_t at = 0; at < extent; at += step) {
    auto [lhs, rhs] = factors(at);
    acc = MmaOp::create(b, type, lhs.high, rhs.high, acc);
  }
  return acc;
}

Value Products::addSplit(Value acc, FragType type, int64_t extent,
                         Factors factors, Value scale) const {
  auto join = [&](Value large) -> Value {
    if (!acc)
      return large;
    if (scale)
      return b.map({acc, std::exchange(scale, Value()), large}, type,
                   [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                     return b.fma(x[0], x[1], x[2]);
                   });
    return b.map({acc, large}, type,
                 [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                   return x[0] + x[1];
                 });
  };
  Value zero = b.fill(b.f32(0), type), small = zero;
  for (int64_t from = 0; from < extent; from += kSumExtent) {
    Value large = zero;
    for (int64_t at = from; at < std::min(from + kSumExtent, extent);
         at += step) {
      auto [lhs, rhs] = factors(at);
      small = MmaOp::create(b, type, lhs.low, rhs.high, small);
      small = MmaOp::create(b, type, lhs.high, rhs.low, small);
      large = MmaOp::create(b, type, lhs.high, rhs.high, large);
    }
    acc = join(large);
  }
  // Infinite factors have low parts that are NaN, and a sum of their large
  // products is right as it is; the minimum of a NaN and a number is the
  // number.  Where both sums overflow, the large ones have the sign.
  return b.map({acc, small}, type,
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 Scalar most = b.f32(kMostSmall);
                 return x[0] + b.max(b.min(x[1], most), b.f32(-kMostSmall));
               });
}

Value Products::scores(const Corner &queries, int64_t rows, const Corner &keys,
                       int64_t count, int64_t depth) const {
  return add(Value(), b.accType(rows, count), depth, [&](int64_t column) {
    auto at = [&](const Corner &corner) -> Corner {
      return {corner.buffer, corner.stage, corner.row, corner.column + column};
    };
    auto lhs = this->queries(at(queries), rows);
    auto rhs = this->keys(at(keys), count);
    return std::pair(lhs, rhs);
  });
}

void Products::addWeighted(MutableArrayRef<Value> parts, Value accumulator,
                           Value buffer, Scalar stage, Value scale) const {
  int64_t extent = cast<FragType>(accumulator.getType()).getColumns();
  Factor factor = weights(accumulator);
  int64_t column = 0;
  for (Value &part : parts) {
    auto type = cast<FragType>(part.getType());
    part = add(
        part, type, extent,
        [&](int64_t row) {
          auto lhs = weightsAt(factor, row);
          auto rhs = values({buffer, stage, b.i32(row), b.i32(column)},
                            type.getColumns());
          return std::pair(lhs, rhs);
        },
        scale);
    column += type.getColumns();
  }
}

SmallVector<int64_t> Products::parts(int64_t columns) const {
  if (!isSplit)
    return {columns};
  SmallVector<int64_t> result;
  for (int64_t from = 0; from < columns; from += kPartColumns)
    result.push_back(std::min(kPartColumns, columns - from));
  return result;
}

SmallVector<Value> Products::noOutput(int64_t rows, int64_t columns) const {
  SmallVector<Value> output;
  for (int64_t part : parts(columns))
    output.push_back(b.fill(b.f32(0), b.accType(rows, part)));
  return output;
}
