//===- Widen.cpp - 8-bit rows in shared memory, in 16 bits ----------------===//

#include "Memory/Elements.h"
#include "Run/Buffers.h"
#include "Run/Handlers.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Step attn::interpreter::runWidenRows(Warp &warp, const Instruction &in) {
  constexpr int64_t rows = tile::WidenRowsOp::kRows;
  constexpr int64_t most = tile::WidenRowsOp::kColumns;
  const Buffer &source = warp.buffer(in, 0), &target = warp.buffer(in, 4);
  int64_t row = warp.integer(in, 2), column = warp.integer(in, 3);
  int64_t columns = std::min(most, source.type.getColumns() - column);
  if (column < 0 || column % most != 0 || columns <= 0)
    return warp.stop(in, "column",
                     "expects a column of the buffers in multiples of " +
                         Twine(most) + ", but got " + Twine(column));
  if (row % rows != 0)
    return warp.stop(in, "row",
                     "expects a row in multiples of " + Twine(rows) +
                         ", but got " + Twine(row));
  Part from{source, warp.integer(in, 1), row, rows, column, columns};
  Part to{target, warp.integer(in, 5), row, rows, column, columns};
  if (!checkInside(warp, in, from) || !checkInside(warp, in, to))
    return Step::stop;
  std::vector<uint8_t> bytes = readPart(warp, in, from), widened(to.bytes());
  std::vector<float> values(rows * columns);
  decode(source.type.getElementType(), bytes.data(), values);
  encode(target.type.getElementType(), values, widened.data());
  writePart(warp, in, to, widened);
  return Step::next;
}
