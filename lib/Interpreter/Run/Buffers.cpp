//===- Buffers.cpp - Shared memory: reservation, matrices, breaches -------===//

#include "Run/Buffers.h"

#include "Memory/Elements.h"
#include "Run/Handlers.h"

#include <cstring>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

//===----------------------------------------------------------------------===//
// What can be wrong
//===----------------------------------------------------------------------===//

/// `count` of `what` ("rows") from `first` on are among the `extent` that the
/// buffer has.
static bool checkExtent(Warp &warp, const Instruction &in, const Buffer &buffer,
                        StringRef what, int64_t first, int64_t count,
                        int64_t extent) {
  if (first >= 0 && first + count <= extent)
    return true;
  warp.report(in, what,
              "expects " + Twine(what) + " 0 to " + Twine(extent - 1) +
                  " of buffer '" + buffer.name + "', but got " + Twine(first) +
                  " to " + Twine(first + count - 1));
  return false;
}

bool attn::interpreter::checkInside(Warp &warp, const Instruction &in,
                                    const Part &part) {
  const Buffer &buffer = part.buffer;
  tile::SmemType type = buffer.type;
  return checkExtent(warp, in, buffer, "stages", part.stage, 1,
                     type.getStages()) &&
         checkExtent(warp, in, buffer, "rows", part.row, part.rows,
                     type.getRows()) &&
         checkExtent(warp, in, buffer, "columns", part.column, part.columns,
                     type.getColumns());
}

bool attn::interpreter::checkInside(Warp &warp, const Instruction &in,
                                    const RawPart &part) {
  const Buffer &buffer = part.buffer;
  return checkExtent(warp, in, buffer, "stages", part.stage, 1,
                     buffer.type.getStages()) &&
         checkExtent(warp, in, buffer, "bytes", part.first, part.bytes,
                     buffer.type.stageBytes());
}

std::vector<uint8_t> attn::interpreter::asColumns(const Part &part,
                                                  std::vector<uint8_t> bytes) {
  if (!part.buffer.type.isPaired())
    return bytes;
  constexpr int64_t piece = tile::SmemType::kPairedColumns;
  std::vector<uint8_t> columns(bytes.size());
  for (int64_t i = 0; i < int64_t(bytes.size()); ++i)
    columns[i] = bytes[i - i % piece + tile::SmemType::pairedByte(i % piece)];
  return columns;
}

std::vector<uint8_t>
attn::interpreter::asTheyLie(const Part &part, std::vector<uint8_t> columns) {
  if (!part.buffer.type.isPaired())
    return columns;
  constexpr int64_t piece = tile::SmemType::kPairedColumns;
  std::vector<uint8_t> bytes(columns.size());
  for (int64_t i = 0; i < int64_t(bytes.size()); ++i)
    bytes[i - i % piece + tile::SmemType::pairedByte(i % piece)] = columns[i];
  return bytes;
}

/// `rows 16 to 31 of buffer 'q' (stage 1)`.
static std::string nameOf(const Buffer &buffer, int64_t stage, StringRef what,
                          int64_t first, int64_t last) {
  std::string name = (what + " " + Twine(first) + " to " + Twine(last) +
                      " of buffer '" + buffer.name + "'")
                         .str();
  if (buffer.type.getStages() != 1)
    name += " (stage " + std::to_string(stage) + ")";
  return name;
}

/// Says what is wrong with the access to `rows`.
static void reportBreach(Warp &warp, const Instruction &in, StringRef rows,
                         const Breach &breach, StringRef verb,
                         const ThreadBlock *owner) {
  std::string other = "warp " + std::to_string(breach.other);
  if (owner && owner != &warp.block)
    other += " of " + owner->name();
  Operation *cause = warp.block.program.ops[breach.instruction];
  switch (breach.conflict) {
  case Conflict::neverWritten:
    return warp.report(in, "never written",
                       "expects " + Twine(rows) +
                           " to be written before they are read, but got "
                           "bytes that nobody wrote");
  case Conflict::overtaken:
    return warp.report(in, "overtaken",
                       "expects a barrier between this op and the copy to " +
                           Twine(rows) + " by " + other + ", but got none",
                       cause, "the copy is here");
  case Conflict::notIssued:
    return warp.report(in, "not issued",
                       "expects all warps to have copied their share to " +
                           Twine(rows) + " before they are " + verb +
                           ", but got none from " + other,
                       cause, "the copy is here");
  case Conflict::inFlight:
    return warp.report(in, "in flight",
                       "expects the copy to " + Twine(rows) +
                           " to be waited for before they are " + verb +
                           ", but got it in flight in " + other,
                       cause, "the copy is here");
  case Conflict::unorderedLoad: {
    const ThreadBlock &block = warp.block;
    unsigned barrier = breach.other - block.clocks.mbarrier(0);
    return warp.report(in, "unordered load",
                       "expects the load to " + Twine(rows) +
                           " to be waited for before they are " + verb +
                           ", but got no wait for phase " +
                           Twine(breach.time - 1) + " of " +
                           block.program.barriers[barrier].title,
                       cause, "the load is here");
  }
  case Conflict::unfenced:
    return warp.report(in, "unfenced",
                       "expects tile.fence_async by " + Twine(other) +
                           " and then a barrier between its store to " + rows +
                           " and this op, or a fence behind the barrier, but "
                           "got neither",
                       cause, "the store is here");
  case Conflict::readInFlight:
    return warp.report(in, "read in flight",
                       "expects " + Twine(other) +
                           (isa<tile::LoadMatrixOp>(cause)
                                ? " to have used what it loads from "
                                : " to have waited for its asynchronous read "
                                  "of ") +
                           rows + " before they are " + verb +
                           ", but got it in flight",
                       cause, "the read is here");
  case Conflict::unorderedWrite:
    return warp.report(in, "unordered write",
                       "expects a barrier after the write to " + Twine(rows) +
                           " by " + other + " before they are " + verb +
                           ", but got none",
                       cause, "the write is complete here");
  case Conflict::unorderedRead:
    return warp.report(in, "unordered read",
                       "expects a barrier after the read of " + Twine(rows) +
                           " by " + other + " before they are " + verb +
                           ", but got none",
                       cause, "the read is here");
  }
}

void attn::interpreter::reportBreach(Warp &warp, const Instruction &in,
                                     const Part &part, const Breach &breach,
                                     StringRef verb, const ThreadBlock *owner) {
  ::reportBreach(warp, in,
                 nameOf(part.buffer, part.stage, "rows",
                        part.row + breach.firstRow, part.row + breach.lastRow),
                 breach, verb, owner);
}

void attn::interpreter::reportBreach(Warp &warp, const Instruction &in,
                                     const RawPart &part, const Breach &breach,
                                     StringRef verb) {
  ::reportBreach(warp, in,
                 nameOf(part.buffer, part.stage, "bytes", part.first,
                        part.first + part.bytes - 1),
                 breach, verb, /*owner=*/nullptr);
}

template <typename AnyPart>
static std::vector<uint8_t> read(Warp &warp, const Instruction &in,
                                 const AnyPart &part, int64_t size) {
  std::vector<uint8_t> bytes(size);
  if (std::optional<Breach> breach = warp.block.shared.read(
          part.rectangle(), warp.id, in.index, bytes.data()))
    reportBreach(warp, in, part, *breach, "read");
  warp.block.traffic.smem += size;
  return bytes;
}

std::vector<uint8_t> attn::interpreter::readPart(Warp &warp,
                                                 const Instruction &in,
                                                 const Part &part) {
  return read(warp, in, part, part.bytes());
}

std::vector<uint8_t> attn::interpreter::readPart(Warp &warp,
                                                 const Instruction &in,
                                                 const RawPart &part) {
  return read(warp, in, part, part.bytes);
}

template <typename AnyPart>
static void write(Warp &warp, const Instruction &in, const AnyPart &part,
                  ArrayRef<uint8_t> bytes) {
  if (std::optional<Breach> breach = warp.block.shared.write(
          part.rectangle(), warp.id, in.index, bytes.data()))
    reportBreach(warp, in, part, *breach, "overwritten");
  warp.block.traffic.smem += int64_t(bytes.size());
}

void attn::interpreter::writePart(Warp &warp, const Instruction &in,
                                  const Part &part, ArrayRef<uint8_t> bytes) {
  write(warp, in, part, bytes);
}

void attn::interpreter::writePart(Warp &warp, const Instruction &in,
                                  const RawPart &part,
                                  ArrayRef<uint8_t> bytes) {
  write(warp, in, part, bytes);
}

//===----------------------------------------------------------------------===//
// tile.alloc, tile.alias
//===----------------------------------------------------------------------===//

Step attn::interpreter::runAlloc(Warp &warp, const Instruction &in) {
  auto alloc = cast<tile::AllocOp>(in.op);
  return warp.set(in, Buffer{warp.block.program.shared.offset(alloc),
                             alloc.getResult().getType(), alloc.getName()});
}

Step attn::interpreter::runAlias(Warp &warp, const Instruction &in) {
  Buffer buffer = warp.buffer(in, 0);
  buffer.type = cast<tile::AliasOp>(in.op).getResult().getType();
  if (buffer.begin % buffer.type.alignment() != 0)
    return warp.stop(in, "alignment",
                     "expects a buffer at a multiple of " +
                         Twine(buffer.type.alignment()) + " bytes, but got '" +
                         buffer.name + "' at " + Twine(buffer.begin));
  return warp.set(in, buffer);
}

//===----------------------------------------------------------------------===//
// tile.load_matrix, tile.store_matrix, tile.store_transposed, tile.transpose
//===----------------------------------------------------------------------===//

/// Reads what is under way until the result is used.
static std::vector<uint8_t> loadPart(Warp &warp, const Instruction &in,
                                     const Part &part) {
  SharedMemory &shared = warp.block.shared;
  std::vector<uint8_t> bytes(part.bytes());
  unsigned slot = in.results.front(), token = shared.beginLoad(warp.id);
  if (std::optional<Breach> breach = shared.readUntilUsed(
          part.rectangle(), warp.id, in.index, token, bytes.data()))
    reportBreach(warp, in, part, *breach, "read");
  warp.block.traffic.smem += int64_t(bytes.size());
  // One before that came there, for nobody.
  llvm::erase_if(warp.loads, [&](const Warp::Load &load) {
    if (load.slot == slot)
      shared.endRead(warp.id, load.token);
    return load.slot == slot;
  });
  warp.loads.push_back({slot, token});
  return bytes;
}

Step attn::interpreter::runLoadMatrix(Warp &warp, const Instruction &in) {
  auto load = cast<tile::LoadMatrixOp>(in.op);
  tile::FragType type = load.getResult().getType();
  bool transpose = load.getTranspose();
  Part part{
      warp.buffer(in, 0),  warp.integer(in, 1),
      warp.integer(in, 2), transpose ? type.getColumns() : type.getRows(),
      warp.integer(in, 3), transpose ? type.getRows() : type.getColumns()};
  if (!checkInside(warp, in, part))
    return Step::stop;
  if (part.row % 8 != 0 || part.column % 8 != 0)
    return warp.stop(in, "corner",
                     "expects a row and a column in multiples of 8, but got " +
                         Twine(part.row) + " and " + Twine(part.column));
  std::vector<uint8_t> bytes = loadPart(warp, in, part);

  std::vector<float> values(part.rows * part.columns);
  decode(type.getElementType(), bytes.data(), values);
  auto value = [&](int64_t row, int64_t column) {
    return values[row * part.columns + column];
  };
  auto result = std::make_shared<Matrix>(type.getRows(), type.getColumns());
  for (int64_t i = 0; i < result->rows; ++i)
    for (int64_t j = 0; j < result->columns; ++j)
      result->row(i)[j] = transpose ? value(j, i) : value(i, j);
  return warp.set(in, MatrixRef(std::move(result)));
}

Step attn::interpreter::runStoreMatrix(Warp &warp, const Instruction &in) {
  const Matrix &source = *warp.matrix(in, 0);
  auto store = cast<tile::StoreMatrixOp>(in.op);
  unsigned next = 3;
  int64_t column = store.getColumn() ? warp.integer(in, next++) : 0;
  int64_t stage = store.getStage() ? warp.integer(in, next) : 0;
  Part part{warp.buffer(in, 1), stage,  warp.integer(in, 2),
            source.rows,        column, source.columns};
  if (!checkInside(warp, in, part))
    return Step::stop;
  if (part.column % 8 != 0)
    return warp.stop(in, "corner",
                     "expects a column in multiples of 8, but got " +
                         Twine(part.column));
  std::vector<uint8_t> bytes(part.bytes());
  encode(part.buffer.type.getElementType(), source.reals, bytes.data());
  writePart(warp, in, part, bytes);
  return Step::next;
}

Step attn::interpreter::runStoreTransposed(Warp &warp, const Instruction &in) {
  const Matrix &source = *warp.matrix(in, 0);
  Part part{warp.buffer(in, 1), warp.integer(in, 2), warp.integer(in, 3),
            source.columns,     warp.integer(in, 4), source.rows};
  if (!checkInside(warp, in, part))
    return Step::stop;
  if (part.row % 8 != 0 || part.column % 16 != 0)
    return warp.stop(in, "corner",
                     "expects a row in multiples of 8 and a column in "
                     "multiples of 16, but got " +
                         Twine(part.row) + " and " + Twine(part.column));
  std::vector<float> values(source.reals.size());
  for (int64_t i = 0; i < source.rows; ++i)
    for (int64_t j = 0; j < source.columns; ++j)
      values[j * source.rows + i] = source.row(i)[j];
  std::vector<uint8_t> bytes(part.bytes());
  encode(part.buffer.type.getElementType(), values, bytes.data());
  writePart(warp, in, part, bytes);
  return Step::next;
}

Step attn::interpreter::runPutRow(Warp &warp, const Instruction &in) {
  const Matrix &values = *warp.matrix(in, 0);
  Part part{warp.buffer(in, 1),  0,          warp.integer(in, 2), 1,
            warp.integer(in, 3), values.rows};
  if (!checkInside(warp, in, part))
    return Step::stop;
  std::vector<uint8_t> bytes(part.bytes());
  std::memcpy(bytes.data(), values.reals.data(), bytes.size());
  writePart(warp, in, part, bytes);
  return Step::next;
}

Step attn::interpreter::runGetRow(Warp &warp, const Instruction &in) {
  int64_t count = cast<tile::GetRowOp>(in.op).getValues().getType().getRows();
  Part part{warp.buffer(in, 0),  0,    warp.integer(in, 1), 1,
            warp.integer(in, 2), count};
  if (!checkInside(warp, in, part))
    return Step::stop;
  std::vector<uint8_t> bytes = readPart(warp, in, part);
  auto result = std::make_shared<Matrix>(count, 1);
  std::memcpy(result->reals.data(), bytes.data(), bytes.size());
  return warp.set(in, MatrixRef(std::move(result)));
}

Step attn::interpreter::runGetColumns(Warp &warp, const Instruction &in) {
  tile::FragType type = cast<tile::GetColumnsOp>(in.op).getResult().getType();
  Part part{warp.buffer(in, 0),  warp.integer(in, 1), warp.integer(in, 2), 1,
            warp.integer(in, 3), type.getColumns()};
  if (!checkInside(warp, in, part))
    return Step::stop;
  if (part.column % 8 != 0)
    return warp.stop(in, "corner",
                     "expects a column in multiples of 8, but got " +
                         Twine(part.column));
  std::vector<uint8_t> bytes = readPart(warp, in, part);
  auto result = std::make_shared<Matrix>(type.getRows(), type.getColumns());
  for (int64_t i = 0; i < type.getRows(); ++i)
    std::memcpy(result->row(i), bytes.data(), bytes.size());
  return warp.set(in, MatrixRef(std::move(result)));
}

Step attn::interpreter::runTranspose(Warp &warp, const Instruction &in) {
  constexpr int64_t rows = tile::TransposeOp::kRows;
  const Buffer &source = warp.buffer(in, 0), &target = warp.buffer(in, 3);
  int64_t row = warp.integer(in, 2), columns = source.type.getColumns();
  Part from{source, warp.integer(in, 1), row, rows, 0, columns};
  Part to{target, warp.integer(in, 4), 0, columns, row, rows};
  if (!checkInside(warp, in, from) || !checkInside(warp, in, to))
    return Step::stop;
  if (row % rows != 0)
    return warp.stop(in, "row",
                     "expects a row in multiples of " + Twine(rows) +
                         ", but got " + Twine(row));
  std::vector<uint8_t> bytes = readPart(warp, in, from), turned(to.bytes());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      turned[j * rows + i] = bytes[i * columns + j];
  writePart(warp, in, to, asTheyLie(to, std::move(turned)));
  return Step::next;
}
