//===- ColumnSplitFrame.cpp - What the roles of column_split share --------===//

#include "ColumnSplit/ColumnSplitFrame.h"

#include "Softmax/LogSumExp.h"

#include "attn/Schedule/Schedule.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

ColumnSplitFrame::ColumnSplitFrame(TileBuilder &b, const KernelRequest &request)
    : b(b), problem(request.problem), request(request),
      element(elementType(b.getContext(), problem.dtype)),
      groupSize(request.tiles.get("group")),
      cluster(request.tiles.get("cluster")),
      resident(request.tiles.get("resident")),
      slots(request.tiles.get("slots")),
      panels(llvm::divideCeil(problem.headDim, kPanel)),
      columns(equalPart(problem, Axis::HeadDimV, groupSize)),
      strip(groupSize * kKeys), parts(request.tiles) {}

KernelOp ColumnSplitFrame::declare() {
  Type i32 = b.getI32Type();
  arguments.map(b, "q", kRows, problem.headDim, element);
  declareKeysAndValues();
  if (parts.areSeveral())
    parts.declare(arguments, b, problem);
  else
    arguments.operand("o", element);
  if (problem.lse && !parts.areSeveral())
    declareLse(arguments, b, problem);
  // P of a warp, and four numbers of every lane.
  int64_t imageWords = kWarpRows * kKeys / 2 + 4 * 32;
  arguments.perBlock(kScratchRole, i32,
                     kExchangeSlots * kConsumers * imageWords);
  arguments.perBlock(kFlagsRole, i32,
                     kGroups +
                         int64_t(llvm::divideCeil(kDrawnSlots, groupSize)));
  arguments.pointer(kCounterRole, i32);
  if (problem.pattern)
    BlockLists::declare(arguments, b);
  declareProblem(arguments, b, problem.mask);
  KernelOp kernel =
      arguments.createKernel(b, request, kWarpsPerGroup * (kGroups + 1));
  kernel.setCooperative(true);
  kernel.setCluster(uint32_t(cluster));
  reserve();
  queries = arguments.get(b, "queries");
  band.emplace(b, arguments, problem.mask);
  if (problem.pattern)
    lists.emplace(b, arguments, problem.pattern->size(), kKeys);
  blocks.emplace(*band, queries, kRows * cluster, strip, /*lists=*/nullptr,
                 parts);
  order.emplace(b, arguments, problem, kRows * cluster,
                std::max<int64_t>(1, request.sms / (groupSize * cluster)),
                request.l2Bytes);
  if (parts.areSeveral())
    order = order->inParts(parts);
  team.emplace(b, groupSize, cluster);
  return kernel;
}

void ColumnSplitFrame::declareKeysAndValues() {
  if (problem.place.any()) {
    keysAt.emplace(b, arguments, problem.place, kKeys);
    valuesAt.emplace(b, arguments, problem.place, kPieceKeys);
    keysAt->declareMapOfKeys(arguments, problem);
    valuesAt->declareMapsOfValues(arguments, problem);
    RowLocator::declare(arguments, b, problem.place);
    return;
  }
  arguments.map(b, "k", kKeys / cluster, problem.headDim, element);
  // Blocks of a cluster share the panels of a piece, if they can: the boxes are
  // half as many.
  bool sharesPanels = columns / kPanel % cluster == 0;
  arguments.map(b, "v", sharesPanels ? kPieceKeys : kPieceKeys / cluster,
                problem.headDimV, element);
}

SmemType ColumnSplitFrame::bufferType(int64_t stages, int64_t rows,
                                      int64_t columns) const {
  return SmemType::get(b.getContext(), stages, rows, columns, element,
                       SmemLayout::sw128);
}

Value ColumnSplitFrame::barriers(StringRef name, int64_t count,
                                 int64_t arrivals) {
  return MbarrierOp::create(b, MbarrierType::get(b.getContext(), count), name,
                            uint32_t(arrivals));
}

void ColumnSplitFrame::reserve() {
  bufferQ = AllocOp::create(b, bufferType(resident, kRows, kPanel), "query");
  units = AllocOp::create(b, bufferType(slots, kKeys, kPanel), "ring");
  pieces =
      AliasOp::create(b, bufferType(slots, kPieceKeys, kMostColumns), units);
  queryFull = barriers("query_full", 1, resident);
  queryEmpty = barriers("query_empty", 1, kConsumers);
  ring = Ring(b, "ring", slots, kConsumers * cluster,
              /*writers=*/1, cluster > 1);
  written = barriers("written", kGroups, kWarpsPerGroup);
  ready = barriers("ready", kGroups, 1);
  queue = queueFor(/*readers=*/kConsumers + kGroups);
}

TileQueue ColumnSplitFrame::queueFor(int64_t readers) const {
  if (problem.pattern)
    return tileQueueOfLists(b, readers, arguments.get(b, "heads"));
  return tileQueueOf(b, arguments, problem.place, readers, parts.areSeveral());
}

KeyWalk ColumnSplitFrame::walkOf(const Tile &tile) const {
  if (!lists)
    return blocks->walkOf(b, tile, /*goesUp=*/true);
  Scalar entries = tile.partialSteps + tile.fullSteps;
  Scalar strips = b.max(b.ceilDiv(entries, groupSize), b.i32(1));
  return KeyWalk({b.i32(0), strips}, /*goesUp=*/true);
}

Scalar ColumnSplitFrame::keyOf(const Tile &tile, Scalar number,
                               Scalar part) const {
  if (!lists)
    return number * strip + part * kKeys;
  ListWalk walk(b, {lists->partialOf(tile), lists->fullOf(tile)});
  Scalar entry = entryOf(number, part);
  return b.wrap(b.choose(
      entry < walk.steps(),
      [&]() -> SmallVector<Value> { return {walk.block(entry) * kKeys}; },
      [&]() -> SmallVector<Value> {
        return {b.ceilDiv(band->keys, kKeys) * kKeys};
      })[0]);
}

KeyBand ColumnSplitFrame::bandOf(const Tile &tile, Scalar number) const {
  if (!lists)
    return blocks->bandOfPart(b, tile);
  return band->where(b, entryOf(number, team->part) < tile.partialSteps);
}

std::optional<int64_t> ColumnSplitFrame::placeOf(int64_t panel) const {
  int64_t streamed = panels - resident, before = panel * streamed / panels;
  if ((panel + 1) * streamed / panels > before)
    return std::nullopt;
  return panel - before;
}
