//===- Tma.cpp - Boxes of arrays, loaded and stored -----------------------===//

#include "Buffers.h"
#include "Handlers.h"
#include "Rings.h"

#include <algorithm>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

namespace {
/// Rows `first ..` of a head of an array, some of which exist.
struct Box {
  const TensorMap &map;
  int64_t batch, head, row;

  /// Indices of the box's rows that lie in the array.
  std::pair<int64_t, int64_t> inside() const {
    const std::array<int64_t, 4> &sizes = map.array->sizes;
    int64_t count = map.type.getBoxRows();
    if (batch < 0 || batch >= sizes[0] || head < 0 || head >= sizes[1])
      return {0, 0};
    int64_t begin = std::clamp<int64_t>(-row, 0, count);
    return {begin, std::clamp<int64_t>(sizes[2] - row, begin, count)};
  }
  /// Address of an element.
  uint64_t address(int64_t index, int64_t column) const {
    const std::array<int64_t, 4> &strides = map.array->strides;
    int64_t elements = batch * strides[0] + head * strides[1] +
                       (row + index) * strides[2] + column;
    int64_t bytes = map.type.getElementType().getIntOrFloatBitWidth() / 8;
    return map.array->address + uint64_t(elements * bytes);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// tile.tma_load
//===----------------------------------------------------------------------===//

/// The bytes of a box as they come to a buffer: zeros outside of the array.
static std::vector<uint8_t> loadBox(Warp &warp, const Instruction &in,
                                    const Box &box, int64_t width) {
  std::vector<uint8_t> data(box.map.type.getBoxRows() * width);
  auto [begin, end] = box.inside();
  int64_t bytes = box.map.type.rowBytes();
  for (int64_t i = begin; i < end; ++i)
    if (std::optional<std::string> error =
            warp.block.memory.read(box.address(i, 0), &data[i * width], bytes))
      warp.report(in, "global read", *error + " in row " + Twine(box.row + i));
  warp.block.traffic.global += (end - begin) * bytes;
  return data;
}

Step attn::interpreter::runTmaLoad(Warp &warp, const Instruction &in) {
  Box box{warp.map(in, 0), warp.integer(in, 1), warp.integer(in, 2),
          warp.integer(in, 3)};
  const Buffer &buffer = warp.buffer(in, 4);
  Part part{buffer, warp.integer(in, 5),     0, buffer.type.getRows(),
            0,      buffer.type.getColumns()};
  if (!checkInside(warp, in, part))
    return Step::stop;
  // Whole panels come, also what lies behind the buffer's columns.
  part.columns = buffer.type.panels() * buffer.type.panelColumns();
  std::optional<unsigned> barrier =
      slotOf(warp, in, warp.ring(in, 6), warp.integer(in, 7));
  if (!barrier)
    return Step::stop;

  ThreadBlock &block = warp.block;
  std::vector<uint8_t> data = loadBox(warp, in, box, part.rectangle().width);
  if (std::optional<Breach> breach =
          block.shared.load(part.rectangle(), warp.clock(), in.index,
                            block.clocks.mbarrier(*barrier),
                            block.mbarriers.phase(*barrier) + 1, data.data()))
    reportBreach(warp, in, part, *breach, "overwritten");
  block.traffic.smem += int64_t(data.size());
  if (!block.mbarriers.arrive(warp, in, *barrier, int64_t(data.size())))
    return Step::stop;
  return Step::next;
}

//===----------------------------------------------------------------------===//
// tile.tma_store, tile.tma_store_wait
//===----------------------------------------------------------------------===//

Step attn::interpreter::runTmaStore(Warp &warp, const Instruction &in) {
  int64_t column = int64_t(cast<tile::TmaStoreOp>(in.op).getColumn());
  const Buffer &buffer = warp.buffer(in, 0);
  int64_t sourceRow = warp.integer(in, 1);
  Box box{warp.map(in, 2), warp.integer(in, 3), warp.integer(in, 4),
          warp.integer(in, 5)};
  int64_t columns = std::min<int64_t>(buffer.type.getColumns(),
                                      box.map.type.getColumns() - column);
  Part all{buffer, 0, sourceRow, box.map.type.getBoxRows(), 0, columns};
  if (!checkInside(warp, in, all))
    return Step::stop;
  if (sourceRow % 8 != 0)
    return warp.stop(in, "source row",
                     "expects a source row in multiples of 8, but got " +
                         Twine(sourceRow));

  auto [begin, end] = box.inside();
  Part part{buffer, 0, sourceRow + begin, end - begin, 0, columns};
  std::vector<uint8_t> data(part.bytes());
  SharedMemory &shared = warp.block.shared;
  unsigned token = shared.beginRead(warp.id);
  warp.stores.push_back({token, in.op});
  if (std::optional<Breach> breach = shared.readLater(
          part.rectangle(), warp.id, in.index, token, data.data()))
    reportBreach(warp, in, part, *breach, "read");
  int64_t width = part.rectangle().width;
  for (int64_t i = begin; i < end; ++i)
    if (std::optional<std::string> error = warp.block.memory.write(
            box.address(i, column), &data[(i - begin) * width], width))
      warp.report(in, "global write", *error + " in row " + Twine(box.row + i));
  warp.block.traffic.global += int64_t(data.size());
  warp.block.traffic.smem += int64_t(data.size());
  return Step::next;
}

Step attn::interpreter::runTmaStoreWait(Warp &warp, const Instruction &in) {
  for (const InFlight &store : warp.stores)
    warp.block.shared.endRead(warp.id, store.token);
  warp.stores.clear();
  return Step::next;
}
