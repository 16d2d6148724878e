//===- Matrix.cpp - Products, casts and reductions of fragments -----------===//

#include "Memory/Elements.h"
#include "Run/Handlers.h"

#include "attn/Host/Rounding.h"

#include "llvm/Support/xxhash.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

static Step finish(Warp &warp, const Instruction &in,
                   std::shared_ptr<Matrix> result) {
  return warp.set(in, MatrixRef(std::move(result)));
}

/// A matrix for a fragment or row type.
static std::shared_ptr<Matrix> makeMatrix(Type type) {
  if (auto fragment = dyn_cast<tile::FragType>(type))
    return std::make_shared<Matrix>(fragment.getRows(), fragment.getColumns());
  auto row = cast<tile::RowType>(type);
  return std::make_shared<Matrix>(row.getRows(),
                                  row.getPartial() ? kPartsOfRow : 1,
                                  row.getElementType().isF32());
}

Step attn::interpreter::runFill(Warp &warp, const Instruction &in) {
  std::shared_ptr<Matrix> result = makeMatrix(in.op->getResult(0).getType());
  const Number &value = warp.number(in, 0);
  std::fill(result->reals.begin(), result->reals.end(), value.real);
  std::fill(result->integers.begin(), result->integers.end(), value.integer);
  return finish(warp, in, std::move(result));
}

Step attn::interpreter::runMma(Warp &warp, const Instruction &in) {
  auto result = std::make_shared<Matrix>(*warp.matrix(in, 2));
  Type factors = cast<tile::MmaOp>(in.op).getLhs().getType().getElementType();
  auto product = isa<FloatTF32Type>(factors) ? multiplyTf32 : multiply;
  product(*warp.matrix(in, 0), *warp.matrix(in, 1), *result);
  return finish(warp, in, std::move(result));
}

Step attn::interpreter::runCast(Warp &warp, const Instruction &in) {
  Type type = cast<tile::CastOp>(in.op).getResult().getType().getElementType();
  auto result = std::make_shared<Matrix>(*warp.matrix(in, 0));
  roundTo(type, result->reals);
  return finish(warp, in, std::move(result));
}

Step attn::interpreter::runSplit(Warp &warp, const Instruction &in) {
  auto high = std::make_shared<Matrix>(*warp.matrix(in, 0));
  auto low = std::make_shared<Matrix>(*high);
  for (auto [source, first, second] :
       llvm::zip_equal(warp.matrix(in, 0)->reals, high->reals, low->reals)) {
    first = cutOffToTf32(source * tile::SplitOp::kCutFactor);
    second = cutOffToTf32(source - first);
  }
  warp.cell(in.results[0]) = MatrixRef(std::move(high));
  warp.cell(in.results[1]) = MatrixRef(std::move(low));
  return Step::next;
}

Step attn::interpreter::runExtract(Warp &warp, const Instruction &in) {
  auto extract = cast<tile::ExtractOp>(in.op);
  const Matrix &source = *warp.matrix(in, 0);
  std::shared_ptr<Matrix> result = makeMatrix(extract.getResult().getType());
  for (int64_t i = 0; i < result->rows; ++i)
    std::copy_n(source.row(i) + extract.getColumn(), result->columns,
                result->row(i));
  return finish(warp, in, std::move(result));
}

Step attn::interpreter::runConcat(Warp &warp, const Instruction &in) {
  auto concat = cast<tile::ConcatOp>(in.op);
  const Matrix &left = *warp.matrix(in, 0), &right = *warp.matrix(in, 1);
  std::shared_ptr<Matrix> result = makeMatrix(concat.getResult().getType());
  for (int64_t i = 0; i < result->rows; ++i) {
    std::copy_n(left.row(i), left.columns, result->row(i));
    std::copy_n(right.row(i), right.columns, result->row(i) + left.columns);
  }
  return finish(warp, in, std::move(result));
}

Step attn::interpreter::runRowReduce(Warp &warp, const Instruction &in) {
  auto reduce = cast<tile::RowReduceOp>(in.op);
  bool max = reduce.getKind() == tile::Reduction::max;
  const Matrix &source = *warp.matrix(in, 0);
  std::shared_ptr<Matrix> result;
  if (reduce.getInit()) {
    result = std::make_shared<Matrix>(*warp.matrix(in, 1));
  } else {
    result = makeMatrix(reduce.getResult().getType());
    float identity = max ? -std::numeric_limits<float>::infinity() : 0;
    std::fill(result->reals.begin(), result->reals.end(), identity);
  }
  for (int64_t i = 0; i < source.rows; ++i)
    for (int64_t j = 0; j < source.columns; ++j) {
      float value = source.row(i)[j];
      // Lane l of a row's four holds columns 2l and 2l + 1 of every eight.
      float &part = result->row(i)[j / 2 % result->columns];
      part = max ? std::fmax(part, value) : part + value;
    }
  return finish(warp, in, std::move(result));
}

Step attn::interpreter::runRowCombine(Warp &warp, const Instruction &in) {
  const Matrix &source = *warp.matrix(in, 0);
  std::shared_ptr<Matrix> result = makeMatrix(in.op->getResult(0).getType());
  bool max = cast<tile::RowCombineOp>(in.op).getMax();
  auto combine = [&](float a, float b) {
    return max ? std::fmax(a, b) : a + b;
  };
  for (int64_t i = 0; i < source.rows; ++i) {
    const float *part = source.row(i);
    *result->row(i) =
        combine(combine(part[0], part[1]), combine(part[2], part[3]));
  }
  return finish(warp, in, std::move(result));
}

Step attn::interpreter::runKeepColumns(Warp &warp, const Instruction &in) {
  auto result = std::make_shared<Matrix>(*warp.matrix(in, 0));
  bool hasFirst = bool(cast<tile::KeepColumnsOp>(in.op).getFirst());
  const Matrix &lasts = *warp.matrix(in, hasFirst ? 2 : 1);
  for (int64_t i = 0; i < result->rows; ++i) {
    int64_t first = hasFirst ? warp.matrix(in, 1)->integers[i] : 0;
    for (int64_t j = 0; j < result->columns; ++j)
      if (j < first || j > lasts.integers[i])
        result->row(i)[j] = -std::numeric_limits<float>::infinity();
  }
  return finish(warp, in, std::move(result));
}

/// One in eight, by numbers and a seed and not by what else happens: the same
/// question has the same answer in every run of that seed.
static bool chanceOf(const Matrix &matrix, uint64_t seed) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(matrix.reals.data());
  std::mt19937_64 random(
      seed ^ llvm::xxh3_64bits({bytes, matrix.reals.size() * sizeof(float)}));
  return random() % 8 == 0;
}

Step attn::interpreter::runAnyAbove(Warp &warp, const Instruction &in) {
  const Matrix &values = *warp.matrix(in, 0), &limits = *warp.matrix(in, 1);
  bool above = false;
  for (int64_t i = 0; i < values.rows; ++i)
    for (int64_t part = 0; part < values.columns; ++part)
      above |= values.row(i)[part] > limits.row(i)[0];
  // Yes is always allowed.
  if (warp.block.chance())
    above |= chanceOf(values, warp.block.seed);
  return warp.set(in, Number{above});
}
