//===- Tma.cpp - Boxes of arrays, loaded and stored -----------------------===//

#include "Run/Buffers.h"
#include "Run/Handlers.h"
#include "Run/Residents.h"
#include "Run/Rings.h"

#include <algorithm>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

namespace {
/// Rows `first ..` of a head of an array, some of which exist.
struct Box {
  const TensorMap &map;
  int64_t batch, head, row;
  int64_t rows = map.type.getBoxRows(); ///< of several boxes, if so many

  /// Indices of the box's rows that lie in the array.
  std::pair<int64_t, int64_t> inside() const {
    const std::array<int64_t, 4> &sizes = map.array->sizes;
    if (batch < 0 || batch >= sizes[0] || head < 0 || head >= sizes[1])
      return {0, 0};
    return clip(row, rows, sizes[2]);
  }
  /// Which of `count` columns from `first` on the array has.
  std::pair<int64_t, int64_t> columns(int64_t first, int64_t count) const {
    return clip(first, count, map.array->sizes[3]);
  }
  /// Address of an element.
  uint64_t address(int64_t index, int64_t column) const {
    const std::array<int64_t, 4> &strides = map.array->strides;
    int64_t elements = batch * strides[0] + head * strides[1] +
                       (row + index) * strides[2] + column;
    return map.array->address + uint64_t(elements * elementBytes());
  }
  int64_t elementBytes() const {
    return map.type.getElementType().getIntOrFloatBitWidth() / 8;
  }

private:
  /// Of `count` numbers from `first` on, indices of those in 0 to `size` - 1.
  static std::pair<int64_t, int64_t> clip(int64_t first, int64_t count,
                                          int64_t size) {
    int64_t begin = std::clamp<int64_t>(-first, 0, count);
    return {begin, std::clamp<int64_t>(size - first, begin, count)};
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// tile.tma_load
//===----------------------------------------------------------------------===//

/// The bytes of a box from a column on, as they come to a buffer: zeros outside
/// of the array.
static std::vector<uint8_t> loadBox(Warp &warp, const Instruction &in,
                                    const Box &box, int64_t column,
                                    int64_t width) {
  std::vector<uint8_t> data(box.rows * width);
  auto [begin, end] = box.inside();
  auto [first, last] = box.columns(column, width / box.elementBytes());
  int64_t bytes = (last - first) * box.elementBytes();
  for (int64_t i = begin; i < end && bytes != 0; ++i)
    if (std::optional<std::string> error = loadGlobal(
            warp, in, box.address(i, column + first),
            data.data() + i * width + first * box.elementBytes(), bytes))
      warp.report(in, "global read", *error + " in row " + Twine(box.row + i));
  warp.block.traffic.global += (end - begin) * bytes;
  // Of a box without rows the copy engine reads the first bytes of the array
  // all the same; an array of no elements is of memory that the runtime has.
  if (begin == end && !llvm::is_contained(box.map.array->sizes, 0))
    if (std::optional<std::string> error =
            warp.block.memory.touch(box.map.array->address, box.elementBytes()))
      warp.report(in, "global read", *error + " for a box without rows");
  return data;
}

Step attn::interpreter::runTmaLoad(Warp &warp, const Instruction &in) {
  auto load = cast<tile::TmaLoadOp>(in.op);
  unsigned next = 8;
  int64_t column = load.getColumn() ? warp.integer(in, next++) : 0;
  ThreadBlock &block = warp.block;
  SmallVector<ThreadBlock *> targets{&block};
  int64_t rank = 0;
  if (load.getRank()) {
    rank = warp.integer(in, next);
    targets = block.residents.clusterOf(block);
    if (rank < 0 || rank >= int64_t(targets.size()) || targets[rank] != &block)
      return warp.stop(in, "rank",
                       "expects the block's position in its cluster, but got " +
                           Twine(rank));
  }
  Box box{warp.map(in, 0), warp.integer(in, 1), warp.integer(in, 2),
          warp.integer(in, 3)};
  int64_t rows = box.rows = load.ownRows();
  const Buffer &buffer = warp.buffer(in, 4);
  // Whole panels come, also what lies behind the buffer's columns.
  int64_t columns =
      load.ownPanels(int64_t(targets.size())) * buffer.type.panelColumns();
  int64_t firstRow = load.hasPartsOfPanels() ? 0 : rank * rows;
  int64_t firstColumn = load.hasPartsOfPanels() ? rank * columns : 0;
  box.row += firstRow;
  column += firstColumn;
  Part part{buffer, warp.integer(in, 5),     firstRow, rows,
            0,      buffer.type.getColumns()};
  if (!checkInside(warp, in, part))
    return Step::stop;
  part.column = firstColumn;
  part.columns = columns;
  std::optional<unsigned> barrier =
      slotOf(warp, in, warp.ring(in, 6), warp.integer(in, 7));
  if (!barrier)
    return Step::stop;

  std::vector<uint8_t> data =
      loadBox(warp, in, box, column, part.rectangle().width);
  auto bytes = int64_t(data.size());
  for (ThreadBlock *target : targets) {
    if (std::optional<Breach> breach = target->shared.load(
            part.rectangle(), warp.clock(), in.index,
            target->clocks.mbarrier(*barrier),
            target->mbarriers.phase(*barrier) + 1, data.data()))
      reportBreach(warp, in, part, *breach, "overwritten", target);
    target->traffic.smem += bytes;
  }
  if (!block.mbarriers.arrive(warp, in, *barrier,
                              bytes * int64_t(targets.size())))
    return Step::stop;
  for (ThreadBlock *target : targets)
    if (!target->mbarriers.bring(warp, in, *barrier, bytes))
      return Step::stop;
  return Step::next;
}

//===----------------------------------------------------------------------===//
// tile.mbarrier_expect, tile.tma_load_rows
//===----------------------------------------------------------------------===//

Step attn::interpreter::runMbarrierExpect(Warp &warp, const Instruction &in) {
  auto expect = cast<tile::MbarrierExpectOp>(in.op);
  int64_t bytes = expect.panels() * expect.getBuffer().getType().panelBytes();
  std::optional<unsigned> barrier =
      slotOf(warp, in, warp.ring(in, 0), warp.integer(in, 1));
  if (!barrier || !warp.block.mbarriers.arrive(warp, in, *barrier, bytes))
    return Step::stop;
  return Step::next;
}

Step attn::interpreter::runTmaLoadRows(Warp &warp, const Instruction &in) {
  auto load = cast<tile::TmaLoadRowsOp>(in.op);
  int64_t column = load.getColumn() ? warp.integer(in, 9) : 0;
  ThreadBlock &block = warp.block;
  Box box{warp.map(in, 0), warp.integer(in, 1), warp.integer(in, 2),
          warp.integer(in, 3)};
  const Buffer &buffer = warp.buffer(in, 4);
  int64_t target = warp.integer(in, 6);
  if (target % box.rows != 0)
    return warp.stop(in, "target row",
                     "expects a target row in multiples of " + Twine(box.rows) +
                         ", but got " + Twine(target));
  Part part{buffer, warp.integer(in, 5),     target, box.rows,
            0,      buffer.type.getColumns()};
  if (!checkInside(warp, in, part))
    return Step::stop;
  part.columns = load.panels() * buffer.type.panelColumns();
  std::optional<unsigned> barrier =
      slotOf(warp, in, warp.ring(in, 7), warp.integer(in, 8));
  if (!barrier)
    return Step::stop;
  std::vector<uint8_t> data =
      loadBox(warp, in, box, column, part.rectangle().width);
  if (std::optional<Breach> breach =
          block.shared.load(part.rectangle(), warp.clock(), in.index,
                            block.clocks.mbarrier(*barrier),
                            block.mbarriers.phase(*barrier) + 1, data.data()))
    reportBreach(warp, in, part, *breach, "overwritten", &block);
  block.traffic.smem += int64_t(data.size());
  return block.mbarriers.bring(warp, in, *barrier, int64_t(data.size()))
             ? Step::next
             : Step::stop;
}

//===----------------------------------------------------------------------===//
// tile.tma_prefetch
//===----------------------------------------------------------------------===//

/// Nobody sees what a hint does.
Step attn::interpreter::runTmaPrefetch(Warp &, const Instruction &) {
  return Step::next;
}

//===----------------------------------------------------------------------===//
// tile.tma_store, tile.tma_store_wait
//===----------------------------------------------------------------------===//

Step attn::interpreter::runTmaStore(Warp &warp, const Instruction &in) {
  auto store = cast<tile::TmaStoreOp>(in.op);
  int64_t column = warp.integer(in, 6);
  int64_t stage = store.getStage() ? warp.integer(in, 7) : 0;
  const Buffer &buffer = warp.buffer(in, 0);
  int64_t sourceRow = warp.integer(in, 1);
  Box box{warp.map(in, 2), warp.integer(in, 3), warp.integer(in, 4),
          warp.integer(in, 5)};
  if (column < 0 || column % buffer.type.panelColumns() != 0)
    return warp.stop(in, "column",
                     "expects a column in multiples of " +
                         Twine(buffer.type.panelColumns()) + ", but got " +
                         Twine(column));
  int64_t columns = std::clamp<int64_t>(box.map.array->sizes[3] - column, 0,
                                        buffer.type.getColumns());
  Part all{buffer, stage, sourceRow, box.map.type.getBoxRows(), 0, columns};
  if (!checkInside(warp, in, all))
    return Step::stop;
  if (sourceRow % 8 != 0)
    return warp.stop(in, "source row",
                     "expects a source row in multiples of 8, but got " +
                         Twine(sourceRow));

  auto [begin, end] = box.inside();
  Part part{buffer, stage, sourceRow + begin, end - begin, 0, columns};
  std::vector<uint8_t> data(part.bytes());
  SharedMemory &shared = warp.block.shared;
  unsigned token = shared.beginRead(warp.id);
  warp.startStore(token, in.op);
  if (std::optional<Breach> breach = shared.readLater(
          part.rectangle(), warp.id, in.index, token, data.data()))
    reportBreach(warp, in, part, *breach, "read");
  int64_t width = part.rectangle().width;
  for (int64_t i = begin; i < end; ++i)
    if (std::optional<std::string> error =
            storeGlobal(warp, in, box.address(i, column),
                        data.data() + (i - begin) * width, width))
      warp.report(in, "global write", *error + " in row " + Twine(box.row + i));
  warp.block.traffic.global += int64_t(data.size());
  warp.block.traffic.smem += int64_t(data.size());
  return Step::next;
}

Step attn::interpreter::runTmaStoreWait(Warp &warp, const Instruction &in) {
  size_t inFlight = cast<tile::TmaStoreWaitOp>(in.op).getInFlight();
  while (warp.stores.size() > inFlight) {
    warp.block.shared.endRead(warp.id, warp.stores.front().token);
    warp.stores.erase(warp.stores.begin());
  }
  if (cast<tile::TmaStoreWaitOp>(in.op).getComplete() &&
      warp.storesStarted > inFlight) {
    uint64_t end = warp.storesStarted - inFlight;
    warp.block.launch.additions.complete(eventOf(warp, in), end);
    warp.block.residents.visibility.complete(eventOf(warp, in), end);
  }
  return Step::next;
}
