//===- Copies.cpp - Between global and shared memory ----------------------===//

#include "Memory/Elements.h"
#include "Memory/Visibility.h"
#include "Run/Buffers.h"
#include "Run/Handlers.h"

#include "attn/Host/Rounding.h"

#include <algorithm>
#include <cstring>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Step attn::interpreter::runView(Warp &warp, const Instruction &in) {
  tile::ViewType type = cast<tile::ViewOp>(in.op).getResult().getType();
  int64_t elementBytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  uint64_t base = uint64_t(warp.integer(in, 0)) +
                  uint64_t(warp.integer(in, 1)) * uint64_t(elementBytes);
  return warp.set(in,
                  View{base, warp.integer(in, 2), warp.integer(in, 3), type});
}

/// The rows of `first .. first + count - 1` that the view has, as a range of
/// indices into these.
static std::pair<int64_t, int64_t> clip(const View &view, int64_t first,
                                        int64_t count) {
  int64_t begin = std::clamp<int64_t>(-first, 0, count);
  int64_t end = std::clamp<int64_t>(view.rows - first, begin, count);
  return {begin, end};
}

/// False, and reported, when the row breaks the promise of the view's type.
static bool checkAligned(Warp &warp, const Instruction &in, const View &view,
                         int64_t row) {
  uint64_t address = view.addressOfRow(row);
  if (address % uint64_t(view.type.getAlign()) == 0)
    return true;
  warp.report(in, "alignment",
              "expects rows at multiples of " + Twine(view.type.getAlign()) +
                  " bytes, but got row " + Twine(row) + " at address " +
                  Twine(address));
  return false;
}

/// Reads bytes of a row of a view from byte `begin` on; on an error reported,
/// the target is not touched.
static void readRow(Warp &warp, const Instruction &in, const View &view,
                    int64_t row, int64_t begin, int64_t bytes,
                    uint8_t *target) {
  if (!checkAligned(warp, in, view, row))
    return;
  if (std::optional<std::string> error = readGlobal(
          warp, in, view.addressOfRow(row) + uint64_t(begin), target, bytes))
    warp.report(in, "global read", *error + " in row " + Twine(row));
}

static void readRow(Warp &warp, const Instruction &in, const View &view,
                    int64_t row, uint8_t *target) {
  readRow(warp, in, view, row, 0, view.type.rowBytes(), target);
}

/// Writes bytes of a row from byte `begin` on.
static void writeRow(Warp &warp, const Instruction &in, const View &view,
                     int64_t row, int64_t begin, int64_t bytes,
                     const void *source) {
  if (!checkAligned(warp, in, view, row))
    return;
  if (std::optional<std::string> error = writeGlobal(
          warp, in, view.addressOfRow(row) + uint64_t(begin), source, bytes))
    warp.report(in, "global write", *error + " in row " + Twine(row));
}

//===----------------------------------------------------------------------===//
// tile.copy_async
//===----------------------------------------------------------------------===//

/// The first warp to come starts the copy for all: reads the source, counts.
static unsigned startCopy(Warp &warp, const Instruction &in, const Part &part,
                          const View &view, int64_t row) {
  Copy copy{};
  copy.instruction = in.index;
  copy.target = part.rectangle();
  copy.source = view.addressOfRow(row);
  int64_t width = copy.target.width;
  copy.data.resize(part.rows * width);
  // The elements of a vector lie side by side.
  bool isVector = view.type.isVector();
  int64_t step = isVector ? view.type.rowBytes() : width;
  auto [begin, end] = clip(view, row, isVector ? part.columns : part.rows);
  for (int64_t i = begin; i < end; ++i)
    readRow(warp, in, view, row + i, &copy.data[i * step]);
  warp.block.traffic.global += (end - begin) * view.type.rowBytes();
  warp.block.traffic.smem += int64_t(copy.data.size());
  return warp.block.shared.begin(std::move(copy));
}

Step attn::interpreter::runCopyAsync(Warp &warp, const Instruction &in) {
  const View &view = warp.view(in, 0);
  int64_t row = warp.integer(in, 1);
  const Buffer &buffer = warp.buffer(in, 2);
  Part part{buffer, warp.integer(in, 3),     0, buffer.type.getRows(),
            0,      buffer.type.getColumns()};
  if (!checkInside(warp, in, part))
    return Step::stop;

  ThreadBlock &block = warp.block;
  auto [entry, first] =
      block.copies.try_emplace({in.index, warp.executions[in.index]++}, 0);
  if (first)
    entry->second = startCopy(warp, in, part, view, row);
  unsigned index = entry->second;
  const Copy &copy = block.shared.copy(index);
  if (copy.source != view.addressOfRow(row) ||
      copy.target.begin != part.rectangle().begin)
    return warp.stop(in, "disagreement",
                     "expects all warps to copy the same rows to the same "
                     "stage, but got a warp that differs");
  if (std::optional<Breach> breach = block.shared.issue(index, warp.id))
    reportBreach(warp, in, part, *breach, "overwritten");
  warp.openGroup.push_back(index);
  return Step::next;
}

//===----------------------------------------------------------------------===//
// Rows and fragments: tile.copy_out, tile.store_row, tile.load_row ...
//===----------------------------------------------------------------------===//

Step attn::interpreter::runCopyOut(Warp &warp, const Instruction &in) {
  int64_t count = cast<tile::CopyOutOp>(in.op).getCount();
  const View &view = warp.view(in, 2);
  int64_t sourceRow = warp.integer(in, 1), row = warp.integer(in, 3);
  Part all{warp.buffer(in, 0), 0, sourceRow, count, 0, view.type.getColumns()};
  if (!checkInside(warp, in, all))
    return Step::stop;
  auto [begin, end] = clip(view, row, count);
  Part part{all.buffer, 0, sourceRow + begin, end - begin, 0, all.columns};
  int64_t width = view.type.rowBytes();
  std::vector<uint8_t> bytes = readPart(warp, in, part);
  for (int64_t i = begin; i < end; ++i)
    writeRow(warp, in, view, row + i, 0, width,
             bytes.data() + (i - begin) * width);
  warp.block.traffic.global += int64_t(bytes.size());
  return Step::next;
}

Step attn::interpreter::runStoreRow(Warp &warp, const Instruction &in) {
  const Matrix &values = *warp.matrix(in, 0);
  const View &view = warp.view(in, 1);
  int64_t row = warp.integer(in, 2);
  auto [begin, end] = clip(view, row, values.rows);
  int64_t width = view.type.rowBytes();
  for (int64_t i = begin; i < end; ++i) {
    if (!values.integers.empty()) {
      int32_t value = int32_t(values.integers[i]);
      writeRow(warp, in, view, row + i, 0, width, &value);
    } else {
      writeRow(warp, in, view, row + i, 0, width, &values.reals[i]);
    }
  }
  warp.block.traffic.global += (end - begin) * width;
  return Step::next;
}

/// Lanes whose rows lie behind the view's read its last one, and drop it.
static bool checkHasRow(Warp &warp, const Instruction &in, const View &view) {
  if (view.rows > 0)
    return true;
  warp.report(in, "no row",
              "expects a view with a row to read, but got one of " +
                  Twine(view.rows) + " rows");
  return false;
}

Step attn::interpreter::runLoadRow(Warp &warp, const Instruction &in) {
  const View &view = warp.view(in, 0);
  if (!checkHasRow(warp, in, view))
    return Step::stop;
  int64_t row = warp.integer(in, 1);
  tile::RowType type = cast<tile::LoadRowOp>(in.op).getValues().getType();
  auto [begin, end] = clip(view, row, type.getRows());
  int64_t width = view.type.rowBytes();
  auto result = std::make_shared<Matrix>(type.getRows(), 1,
                                         type.getElementType().isF32());
  for (int64_t i = begin; i < end; ++i) {
    uint8_t bytes[4] = {};
    readRow(warp, in, view, row + i, bytes);
    if (result->integers.empty()) {
      std::memcpy(&result->reals[i], bytes, sizeof(bytes));
    } else {
      int32_t value;
      std::memcpy(&value, bytes, sizeof(value));
      result->integers[i] = value;
    }
  }
  warp.block.traffic.global += (end - begin) * width;
  return warp.set(in, MatrixRef(std::move(result)));
}

Step attn::interpreter::runRowDot(Warp &warp, const Instruction &in) {
  const View &lhs = warp.view(in, 0), &rhs = warp.view(in, 1);
  if (!checkHasRow(warp, in, lhs) || !checkHasRow(warp, in, rhs))
    return Step::stop;
  int64_t row = warp.integer(in, 2);
  tile::RowType type = cast<tile::RowDotOp>(in.op).getValues().getType();
  auto [begin, end] = clip(lhs, row, type.getRows());
  int64_t width = lhs.type.rowBytes(), columns = lhs.type.getColumns();
  auto result = std::make_shared<Matrix>(type.getRows(), 1);
  std::vector<uint8_t> bytes(width);
  std::vector<float> left(columns), right(columns);
  for (int64_t i = begin; i < end; ++i) {
    readRow(warp, in, lhs, row + i, bytes.data());
    decode(lhs.type.getElementType(), bytes.data(), left);
    readRow(warp, in, rhs, row + i, bytes.data());
    decode(rhs.type.getElementType(), bytes.data(), right);
    for (int64_t column = 0; column < columns; ++column)
      result->reals[i] += left[column] * right[column];
  }
  warp.block.traffic.global += 2 * (end - begin) * width;
  return warp.set(in, MatrixRef(std::move(result)));
}

static uint64_t addressOfNumber(Warp &warp, const Instruction &in,
                                unsigned pointer, size_t bytes = 4) {
  return uint64_t(warp.integer(in, pointer)) +
         uint64_t(warp.integer(in, pointer + 1)) * bytes;
}

/// A whole number of a type at a place.
template <typename Whole>
static std::optional<std::string> readWhole(Warp &warp, const Instruction &in,
                                            int64_t &number) {
  uint64_t address = addressOfNumber(warp, in, 0, sizeof(Whole));
  Whole found = 0;
  std::optional<std::string> error =
      readGlobal(warp, in, address, &found, sizeof found);
  number = found;
  return error;
}

Step attn::interpreter::runLoadNumber(Warp &warp, const Instruction &in) {
  int64_t number = 0;
  bool isWide = cast<tile::LoadNumberOp>(in.op)
                    .getBase()
                    .getType()
                    .getElementType()
                    .isInteger(64);
  if (std::optional<std::string> error =
          isWide ? readWhole<int64_t>(warp, in, number)
                 : readWhole<int32_t>(warp, in, number))
    return warp.stop(in, "number", *error);
  return warp.set(in,
                  Number{std::clamp<int64_t>(number, INT32_MIN, INT32_MAX)});
}

std::optional<std::string>
attn::interpreter::readElement(Warp &warp, const Instruction &in,
                               tile::ReadOp read, uint64_t base, int64_t index,
                               Number &number) {
  Type element = read.getBase().getType().getElementType();
  unsigned bits = element.getIntOrFloatBitWidth();
  int64_t bytes = std::max<int64_t>(bits / 8, 1);
  uint64_t address = base + uint64_t(index * bytes);
  std::array<uint8_t, 8> data = {};
  if (std::optional<std::string> error =
          readGlobal(warp, in, address, data.data(), bytes))
    return *error + " at element " + std::to_string(index);
  if (isa<FloatType>(element)) {
    decode(element, data.data(), number.real);
    return std::nullopt;
  }
  std::memcpy(&number.integer, data.data(), data.size());
  if (bits == 1)
    number.integer &= 1;
  else if (bits < 64)
    number.integer = number.integer << (64 - bits) >> (64 - bits);
  return std::nullopt;
}

Step attn::interpreter::runRead(Warp &warp, const Instruction &in) {
  Number number;
  bool exists = in.operands.size() < 4 || warp.integer(in, 3) != 0;
  if (exists)
    if (std::optional<std::string> error = readElement(
            warp, in, cast<tile::ReadOp>(in.op), uint64_t(warp.integer(in, 0)),
            warp.integer(in, 1) + warp.integer(in, 2), number))
      return warp.stop(in, "read", *error);
  return warp.set(in, number);
}

Step attn::interpreter::runSplitView(Warp &warp, const Instruction &in) {
  const View &source = warp.view(in, 0), &target = warp.view(in, 1);
  if (source.rows != target.rows)
    return warp.stop(in, "rows",
                     "expects views of as many rows, but got " +
                         Twine(source.rows) + " and " + Twine(target.rows));
  using Op = tile::SplitViewOp;
  int64_t block = warp.integer(in, 2),
          row = block + int64_t(warp.id) * Op::kRows;
  int64_t columns = source.type.getColumns();
  int64_t width = target.type.getColumns() / Op::kParts;
  std::vector<uint8_t> bytes(source.type.rowBytes()),
      written(target.type.rowBytes());
  std::vector<float> values(columns), parts(target.type.getColumns());
  auto load = [&](int64_t i) {
    readRow(warp, in, source, i, bytes.data());
    decode(source.type.getElementType(), bytes.data(), values);
  };
  // Every warp looks at all rows here.
  uint32_t largest = 0;
  auto [blockBegin, blockEnd] = clip(source, block, Op::kBlockRows);
  for (int64_t i = blockBegin; i < blockEnd; ++i) {
    load(block + i);
    for (float value : values)
      if (std::isfinite(value))
        largest = std::max(largest, bitsOfFloat(std::fabs(value)));
  }
  int32_t exponent =
      std::clamp(Op::kLargest + 127 - int32_t(largest >> 23), Op::kLeastMove,
                 int32_t(cast<Op>(in.op).getMost()));
  if (warp.id == 0)
    if (std::optional<std::string> error = writeGlobal(
            warp, in, addressOfNumber(warp, in, 3), &exponent, sizeof exponent))
      return warp.stop(in, "exponent", *error);
  auto [begin, end] = clip(source, row, Op::kRows);
  for (int64_t i = begin; i < end; ++i) {
    load(row + i);
    for (int64_t column = 0; column < columns; ++column) {
      F16Parts split = splitToF16(std::ldexp(values[column], exponent));
      parts[column] = split.first;
      parts[width + column] = split.second;
    }
    encode(target.type.getElementType(), parts, written.data());
    writeRow(warp, in, target, row + i, 0, int64_t(written.size()),
             written.data());
  }
  warp.block.traffic.global +=
      (end - begin) * int64_t(bytes.size() + written.size());
  return Step::next;
}

/// Columns of an accumulator at (row, column) that the view has; nothing, and
/// reported, if the place is none for one.
static std::optional<int64_t> columnsThere(Warp &warp, const Instruction &in,
                                           const View &view, int64_t column,
                                           int64_t columns) {
  if (column >= 0 && column % 8 == 0)
    return std::clamp<int64_t>(view.type.getColumns() - column, 0, columns);
  warp.report(in, "column",
              "expects a column that is a multiple of 8, but got " +
                  Twine(column));
  return std::nullopt;
}

Step attn::interpreter::runStoreFragment(Warp &warp, const Instruction &in) {
  const Matrix &source = *warp.matrix(in, 0);
  const View &view = warp.view(in, 1);
  int64_t row = warp.integer(in, 2), column = warp.integer(in, 3);
  std::optional<int64_t> columns =
      columnsThere(warp, in, view, column, source.columns);
  if (!columns)
    return Step::stop;
  auto [begin, end] = clip(view, row, source.rows);
  Type type = view.type.getElementType();
  int64_t elementBytes = type.getIntOrFloatBitWidth() / 8;
  std::vector<uint8_t> bytes(*columns * elementBytes);
  for (int64_t i = begin; i < end && *columns != 0; ++i) {
    encode(type, {source.row(i), size_t(*columns)}, bytes.data());
    writeRow(warp, in, view, row + i, column * elementBytes,
             int64_t(bytes.size()), bytes.data());
  }
  warp.block.traffic.global += (end - begin) * int64_t(bytes.size());
  return Step::next;
}

Step attn::interpreter::runLoadFragment(Warp &warp, const Instruction &in) {
  const View &view = warp.view(in, 0);
  if (!checkHasRow(warp, in, view))
    return Step::stop;
  int64_t row = warp.integer(in, 1), column = warp.integer(in, 2);
  tile::FragType fragment =
      cast<tile::LoadFragmentOp>(in.op).getResult().getType();
  std::optional<int64_t> columns =
      columnsThere(warp, in, view, column, fragment.getColumns());
  if (!columns)
    return Step::stop;
  auto [begin, end] = clip(view, row, fragment.getRows());
  Type type = view.type.getElementType();
  int64_t elementBytes = type.getIntOrFloatBitWidth() / 8;
  auto result =
      std::make_shared<Matrix>(fragment.getRows(), fragment.getColumns());
  std::vector<uint8_t> bytes(*columns * elementBytes);
  for (int64_t i = begin; i < end && *columns != 0; ++i) {
    readRow(warp, in, view, row + i, column * elementBytes,
            int64_t(bytes.size()), bytes.data());
    decode(type, bytes.data(), {result->row(i), size_t(*columns)});
  }
  warp.block.traffic.global += (end - begin) * int64_t(bytes.size());
  return warp.set(in, MatrixRef(std::move(result)));
}
