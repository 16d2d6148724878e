//===- Split.cpp - f32 as sums of numbers of bf16 or f16 ------------------===//

#include "Memory/Elements.h"
#include "Run/Buffers.h"
#include "Run/Handlers.h"

#include "attn/Host/Rounding.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Step attn::interpreter::runSplitBf16(Warp &warp, const Instruction &in) {
  const Matrix &source = *warp.matrix(in, 0);
  std::array<std::shared_ptr<Matrix>, 3> parts;
  for (auto &part : parts)
    part = std::make_shared<Matrix>(source);
  for (size_t i = 0; i < source.reals.size(); ++i) {
    Bf16Parts split = splitToBf16(source.reals[i]);
    parts[0]->reals[i] = split.first;
    parts[1]->reals[i] = split.second;
    parts[2]->reals[i] = split.third;
  }
  for (auto [result, part] : llvm::zip_equal(in.results, parts))
    warp.cell(result) = MatrixRef(std::move(part));
  return Step::next;
}

Step attn::interpreter::runSplitF16(Warp &warp, const Instruction &in) {
  const Matrix &source = *warp.matrix(in, 0);
  auto first = std::make_shared<Matrix>(source);
  auto second = std::make_shared<Matrix>(source);
  for (size_t i = 0; i < source.reals.size(); ++i) {
    F16Parts split =
        splitToF16(std::ldexp(source.reals[i], tile::SplitF16Op::kExponent));
    first->reals[i] = split.first;
    second->reals[i] = split.second;
  }
  warp.cell(in.results[0]) = MatrixRef(std::move(first));
  warp.cell(in.results[1]) = MatrixRef(std::move(second));
  return Step::next;
}

Step attn::interpreter::runSplitRows(Warp &warp, const Instruction &in) {
  constexpr int64_t rows = tile::SplitRowsOp::kRows;
  constexpr int64_t most = tile::SplitRowsOp::kColumns;
  int64_t column = warp.integer(in, 3);
  int64_t columns =
      std::min(most, warp.buffer(in, 4).type.getColumns() - column);
  if (column < 0 || column % most != 0 || columns <= 0)
    return warp.stop(in, "column",
                     "expects a column of the buffers in multiples of " +
                         Twine(most) + ", but got " + Twine(column));
  Part from{warp.buffer(in, 0),
            warp.integer(in, 1),
            warp.integer(in, 2),
            rows,
            column,
            columns};
  if (!checkInside(warp, in, from))
    return Step::stop;
  int64_t stage = warp.integer(in, 7), row = warp.integer(in, 8);
  for (int64_t each : {from.row, row})
    if (each % rows != 0)
      return warp.stop(in, "row",
                       "expects a row in multiples of " + Twine(rows) +
                           ", but got " + Twine(each));
  std::vector<uint8_t> bytes = readPart(warp, in, from);
  std::vector<float> values(rows * columns);
  decode(from.buffer.type.getElementType(), bytes.data(), values);
  std::array<std::vector<float>, 3> parts;
  for (float value : values) {
    Bf16Parts split = splitToBf16(value);
    parts[0].push_back(split.first);
    parts[1].push_back(split.second);
    parts[2].push_back(split.third);
  }
  for (auto [i, part] : llvm::enumerate(parts)) {
    Part to{warp.buffer(in, 4 + i), stage, row, rows, column, columns};
    if (!checkInside(warp, in, to))
      return Step::stop;
    std::vector<uint8_t> written(to.bytes());
    encode(to.buffer.type.getElementType(), part, written.data());
    writePart(warp, in, to, written);
  }
  return Step::next;
}
