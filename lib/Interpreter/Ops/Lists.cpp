//===- Lists.cpp - Lists of blocks, ranks of sequences --------------------===//

#include "Run/Buffers.h"
#include "Run/Handlers.h"

#include "attn/Tile/Ranks.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Step attn::interpreter::runAny(Warp &warp, const Instruction &in) {
  const Matrix &values = *warp.matrix(in, 0);
  bool isAny =
      llvm::any_of(values.reals, [](float value) { return value > 0; });
  return warp.set(in, Number{isAny});
}

Step attn::interpreter::runStoreNumber(Warp &warp, const Instruction &in) {
  int32_t number = int32_t(warp.integer(in, 0));
  uint64_t address = uint64_t(warp.integer(in, 1)) +
                     uint64_t(warp.integer(in, 2)) * sizeof number;
  if (std::optional<std::string> error =
          writeGlobal(warp, in, address, &number, sizeof number))
    return warp.stop(in, "number", *error);
  return Step::next;
}

// The first warp stands for all of them, which meet before they read.  Like a
// message a table is not counted as traffic.
Step attn::interpreter::runRank(Warp &warp, const Instruction &in) {
  if (warp.id != 0)
    return Step::next;
  auto op = cast<tile::RankOp>(in.op);
  std::optional<std::string> error;
  auto read = [&](bool isLength, int64_t element) -> std::optional<int64_t> {
    tile::PtrType type =
        (isLength ? op.getLengths() : op.getOffsets()).getType();
    int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
    uint64_t address = uint64_t(warp.integer(in, isLength ? 3 : 0)) +
                       uint64_t(element * bytes);
    int64_t wide = 0;
    int32_t narrow = 0;
    bool isWide = bytes == sizeof wide;
    error = readGlobal(warp, in, address,
                       isWide ? static_cast<void *>(&wide) : &narrow, bytes);
    if (error)
      return std::nullopt;
    return isWide ? wide : narrow;
  };
  tile::RankScalars scalars{warp.integer(in, 1), warp.integer(in, 2),
                            warp.integer(in, 4), warp.integer(in, 5),
                            warp.integer(in, 6)};
  std::optional<std::vector<tile::Rank>> ranks =
      tile::runRank(op, scalars, read);
  if (!ranks)
    return warp.stop(in, "number", *error);
  if (ranks->empty())
    return Step::next;
  RawPart target{warp.buffer(in, 7), /*stage=*/0, /*first=*/0,
                 int64_t(ranks->size() * sizeof(tile::Rank))};
  if (std::optional<Breach> breach = warp.block.shared.write(
          target.rectangle(), warp.id, in.index,
          reinterpret_cast<const uint8_t *>(ranks->data())))
    reportBreach(warp, in, target, *breach, "overwritten");
  return Step::next;
}

Step attn::interpreter::runGetNumber(Warp &warp, const Instruction &in) {
  const Buffer &buffer = warp.buffer(in, 0);
  int32_t value = 0;
  int64_t first = warp.integer(in, 1) * int64_t(sizeof value);
  if (first < 0 || first + int64_t(sizeof value) > buffer.type.totalBytes())
    return warp.stop(in, "number", "which is outside of the buffer");
  RawPart place{buffer, /*stage=*/0, first, sizeof value};
  uint8_t bytes[sizeof value];
  if (std::optional<Breach> breach =
          warp.block.shared.read(place.rectangle(), warp.id, in.index, bytes))
    reportBreach(warp, in, place, *breach, "read");
  std::memcpy(&value, bytes, sizeof value);
  return warp.set(in, Number{value});
}
