//===- Exchange.cpp - Registers in memory as they are ---------------------===//
//
// An image of registers keeps those of its values one behind the other, in as
// many bytes as all lanes have.  Accumulators lie there as lanes keep them, so
// that images of some of their columns, one behind the other, are an image of
// all; of other values the elements come in order, which nobody can tell.
//
//===----------------------------------------------------------------------===//

#include "Memory/Elements.h"
#include "Run/Buffers.h"
#include "Run/Handlers.h"
#include "Run/Residents.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

//===----------------------------------------------------------------------===//
// tile.store_registers, tile.load_registers, tile.put_registers,
// tile.get_registers
//===----------------------------------------------------------------------===//

/// Bytes of a value's registers in all lanes.
static int64_t imageBytes(Type type) {
  constexpr int64_t lanes = 32, registerBytes = 4;
  auto fragment = dyn_cast<tile::FragType>(type);
  return lanes * registerBytes *
         (fragment ? fragment.registers()
                   : cast<tile::RowType>(type).registers());
}

/// Every element of a row lies in four lanes, a part of a partial row in one.
static void encodeRow(const Matrix &row, uint8_t *bytes) {
  for (int64_t i = 0; i < row.rows * kPartsOfRow; ++i) {
    int64_t from = row.columns == 1 ? i / kPartsOfRow : i;
    int32_t integer = 0;
    float real = 0;
    if (row.integers.empty())
      std::memcpy(bytes + 4 * i, &(real = row.reals[from]), 4);
    else
      std::memcpy(bytes + 4 * i, &(integer = int32_t(row.integers[from])), 4);
  }
}

static void decodeRow(const uint8_t *bytes, Matrix &row) {
  int64_t step = row.columns == 1 ? kPartsOfRow : 1;
  for (int64_t i = 0; i < row.rows * row.columns; ++i) {
    int32_t integer;
    float real;
    std::memcpy(&integer, bytes + 4 * i * step, 4);
    std::memcpy(&real, bytes + 4 * i * step, 4);
    if (row.integers.empty())
      row.reals[i] = real;
    else
      row.integers[i] = integer;
  }
}

/// Calls `apply(number)` for the numbers of an accumulator in the order of its
/// image: 16 x 8 pieces, of which each lane has four.
template <typename Apply>
static void forEachRegister(Matrix &value, Apply apply) {
  constexpr int64_t lanes = 32, perLane = 4;
  for (int64_t row = 0; row < value.rows; row += 16)
    for (int64_t column = 0; column < value.columns; column += 8)
      for (int64_t lane = 0; lane < lanes; ++lane)
        for (int64_t i = 0; i < perLane; ++i)
          apply(value.row(row + lane / 4 +
                          i / 2 * 8)[column + lane % 4 * 2 + i % 2]);
}

static void encodeRegisters(Type type, const Matrix &value, uint8_t *bytes) {
  auto fragment = dyn_cast<tile::FragType>(type);
  if (!fragment)
    return encodeRow(value, bytes);
  if (fragment.getLayout() == tile::FragmentLayout::acc) {
    Matrix copy = value;
    forEachRegister(copy, [&](float number) {
      std::memcpy(bytes, &number, sizeof number);
      bytes += sizeof number;
    });
  } else if (fragment.getElementType().isF32())
    std::memcpy(bytes, value.reals.data(), value.reals.size() * 4);
  else
    encode(fragment.getElementType(), value.reals, bytes);
}

static std::shared_ptr<Matrix> decodeRegisters(Type type,
                                               const uint8_t *bytes) {
  auto fragment = dyn_cast<tile::FragType>(type);
  if (!fragment) {
    auto row = cast<tile::RowType>(type);
    auto value = std::make_shared<Matrix>(row.getRows(),
                                          row.getPartial() ? kPartsOfRow : 1,
                                          row.getElementType().isF32());
    decodeRow(bytes, *value);
    return value;
  }
  auto value =
      std::make_shared<Matrix>(fragment.getRows(), fragment.getColumns());
  if (fragment.getLayout() == tile::FragmentLayout::acc)
    forEachRegister(*value, [&](float &number) {
      std::memcpy(&number, bytes, sizeof number);
      bytes += sizeof number;
    });
  else if (fragment.getElementType().isF32())
    std::memcpy(value->reals.data(), bytes, value->reals.size() * 4);
  else
    decode(fragment.getElementType(), bytes, value->reals);
  return value;
}

namespace {
/// A place in an array of images of values of these types.
struct Image {
  uint64_t address;
  int64_t bytes = 0;
};
} // namespace

/// Nothing, and reported, when the lanes' pieces are not aligned.
static std::optional<Image> imageOf(Warp &warp, const Instruction &in,
                                    TypeRange types, unsigned base) {
  Image image{};
  for (Type type : types)
    image.bytes += imageBytes(type);
  image.address = uint64_t(warp.integer(in, base)) +
                  uint64_t(warp.integer(in, base + 1) * image.bytes);
  constexpr uint64_t unit = 16;
  if (image.address % unit == 0)
    return image;
  warp.report(in, "alignment",
              "expects images at a multiple of " + Twine(unit) +
                  " bytes, but got " + Twine(image.address));
  return std::nullopt;
}

/// The image of the first operands, which have these types.
static std::vector<uint8_t> encodeImage(Warp &warp, const Instruction &in,
                                        TypeRange types) {
  std::vector<uint8_t> bytes;
  for (auto [operand, type] : llvm::enumerate(types)) {
    size_t at = bytes.size();
    bytes.resize(at + imageBytes(type));
    encodeRegisters(type, *warp.matrix(in, unsigned(operand)), &bytes[at]);
  }
  return bytes;
}

/// The results, which have these types, from an image.
static void decodeImage(Warp &warp, const Instruction &in, TypeRange types,
                        ArrayRef<uint8_t> bytes) {
  int64_t at = 0;
  for (auto [result, type] : llvm::zip_equal(in.results, types)) {
    warp.cell(result) = MatrixRef(decodeRegisters(type, &bytes[at]));
    at += imageBytes(type);
  }
}

Step attn::interpreter::runPutRegisters(Warp &warp, const Instruction &in) {
  auto put = cast<tile::PutRegistersOp>(in.op);
  auto next = unsigned(put.getValues().size());
  std::vector<uint8_t> bytes =
      encodeImage(warp, in, put.getValues().getTypes());
  auto size = int64_t(bytes.size());
  RawPart part{warp.buffer(in, next), warp.integer(in, next + 1),
               warp.integer(in, next + 2) * size, size};
  if (!checkInside(warp, in, part))
    return Step::stop;
  writePart(warp, in, part, bytes);
  return Step::next;
}

Step attn::interpreter::runStoreRegisters(Warp &warp, const Instruction &in) {
  auto store = cast<tile::StoreRegistersOp>(in.op);
  auto types = store.getValues().getTypes();
  std::optional<Image> image =
      imageOf(warp, in, types, unsigned(store.getValues().size()));
  if (!image)
    return Step::stop;
  std::vector<uint8_t> bytes = encodeImage(warp, in, types);
  if (std::optional<std::string> error =
          writeGlobal(warp, in, image->address, bytes.data(), image->bytes))
    return warp.stop(in, "global write", *error);
  warp.block.traffic.global += image->bytes;
  return Step::next;
}

/// Whether images of accumulators that were stored are several of those that
/// are loaded, of some of their columns each.
static bool areParts(TypeRange stored, TypeRange loaded) {
  if (stored.size() != 1 || loaded.size() != 1)
    return false;
  auto a = dyn_cast<tile::FragType>(stored[0]);
  auto b = dyn_cast<tile::FragType>(loaded[0]);
  constexpr auto acc = tile::FragmentLayout::acc;
  if (!a || !b || a.getLayout() != acc || b.getLayout() != acc ||
      a.getRows() != b.getRows() || a.getElementType() != b.getElementType())
    return false;
  return a.getColumns() % b.getColumns() == 0;
}

/// The write that an image comes from was of the same types, or of columns of
/// them.
static bool checkTypes(Warp &warp, const Instruction &in, const Image &image,
                       TypeRange types) {
  std::optional<Event> writer =
      warp.block.residents.visibility.writerOf(image.address, image.bytes);
  if (!writer)
    return true;
  Operation *op = warp.block.program.ops[writer->instruction];
  auto store = dyn_cast<tile::StoreRegistersOp>(op);
  if (store && (llvm::equal(store.getValues().getTypes(), types) ||
                areParts(store.getValues().getTypes(), types)))
    return true;
  warp.report(in, "types",
              "expects registers of the types that were stored, but got an "
              "image of others",
              op, "the store is here");
  return false;
}

Step attn::interpreter::runLoadRegisters(Warp &warp, const Instruction &in) {
  auto load = cast<tile::LoadRegistersOp>(in.op);
  auto types = load.getValues().getTypes();
  std::optional<Image> image = imageOf(warp, in, types, 0);
  if (!image || !checkTypes(warp, in, *image, types))
    return Step::stop;
  std::vector<uint8_t> bytes(image->bytes);
  if (std::optional<std::string> error =
          readGlobal(warp, in, image->address, bytes.data(), image->bytes))
    return warp.stop(in, "global read", *error);
  decodeImage(warp, in, types, bytes);
  warp.block.traffic.global += image->bytes;
  return Step::next;
}

Step attn::interpreter::runGetRegisters(Warp &warp, const Instruction &in) {
  auto get = cast<tile::GetRegistersOp>(in.op);
  int64_t size = get.bytes();
  RawPart part{warp.buffer(in, 0), warp.integer(in, 1),
               warp.integer(in, 2) * size, size};
  if (!checkInside(warp, in, part))
    return Step::stop;
  decodeImage(warp, in, get.getValues().getTypes(), readPart(warp, in, part));
  return Step::next;
}

//===----------------------------------------------------------------------===//
// tile.scale_rows
//===----------------------------------------------------------------------===//

Step attn::interpreter::runScaleRows(Warp &warp, const Instruction &in) {
  Type type =
      cast<tile::ScaleRowsOp>(in.op).getResult().getType().getElementType();
  auto result = std::make_shared<Matrix>(*warp.matrix(in, 0));
  const Matrix &exponents = *warp.matrix(in, 1);
  for (int64_t i = 0; i < result->rows; ++i) {
    float exponent = exponents.reals[i];
    if (exponent != std::floor(exponent))
      return warp.stop(in, "exponent",
                       "expects whole numbers, but got " +
                           std::to_string(exponent) + " in row " + Twine(i));
    float factor = std::exp2(exponent);
    roundTo(type, factor);
    MutableArrayRef<float> row(result->row(i), result->columns);
    for (float &value : row)
      value *= factor;
    roundTo(type, row);
  }
  return warp.set(in, MatrixRef(std::move(result)));
}
