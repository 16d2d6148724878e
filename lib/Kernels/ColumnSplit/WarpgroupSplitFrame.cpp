//===- WarpgroupSplitFrame.cpp - What its roles share ---------------------===//

#include "ColumnSplit/WarpgroupSplitFrame.h"

#include "Softmax/LogSumExp.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Columns that a step of a product contracts, of 16 bits each.
static constexpr int64_t kStepColumns = 16;

WarpgroupSplitFrame::WarpgroupSplitFrame(TileBuilder &b,
                                         const KernelRequest &request)
    : b(b), problem(request.problem), request(request),
      element(elementType(b.getContext(), problem.dtype)),
      stages(request.tiles.get("stages")), columns(problem.headDimV / kParts),
      halves(columns % (2 * kPanelColumns) == 0 ? 2 : 1),
      piece(columns / halves),
      rest(llvm::alignTo(problem.headDim - problem.headDimV, kStepColumns)),
      lateHalves(request.tiles.get("late")),
      prefetches(request.tiles.get("prefetch") != 0), parts(request.tiles) {}

Place WarpgroupSplitFrame::before(Place stage) const {
  if (stages == 1)
    return {stage.slot, stage.parity ^ 1};
  Scalar wraps = stage.slot == b.i32(0);
  return {b.select(wraps, b.i32(stages - 1), stage.slot - 1),
          b.select(wraps, stage.parity ^ 1, stage.parity)};
}

Scalar WarpgroupSplitFrame::parityOf(Place stage) const {
  if (stages == 1)
    return stage.parity;
  Scalar ofSlot = stage.slot & b.i32(1);
  return stages % 2 == 0 ? ofSlot : ofSlot ^ stage.parity;
}

KernelOp WarpgroupSplitFrame::declare() {
  arguments.map(b, "q", kRows, problem.headDim, element);
  declareKeys();
  if (parts.areSeveral())
    parts.declare(arguments, b, problem);
  else
    arguments.operand("o", element);
  if (problem.lse && !parts.areSeveral())
    declareLse(arguments, b, problem);
  arguments.pointer(kCounterRole, b.getI32Type());
  declareProblem(arguments, b, problem.mask);
  KernelOp kernel =
      arguments.createKernel(b, request, kWarpsPerGroup * (kParts + 1));
  reserve();
  queries = arguments.get(b, "queries");
  band.emplace(b, arguments, problem.mask);
  blocks.emplace(*band, queries, kRows, kStrip, /*lists=*/nullptr, parts,
                 locator ? &*locator : nullptr);
  order.emplace(b, arguments, problem, kRows, request.sms, request.l2Bytes);
  if (parts.areSeveral())
    order = order->inParts(parts);
  return kernel;
}

/// Where nothing says which keys are used, the array's end does.
void WarpgroupSplitFrame::declareKeys() {
  if (!problem.place.any()) {
    arguments.map(b, "k", kKeys, problem.headDim, element);
    return;
  }
  locator.emplace(b, arguments, problem.place, kKeys);
  if (rest > 0)
    locator->declareMapOfKeys(arguments, problem);
  locator->declareMapsOfValues(arguments, problem);
  RowLocator::declare(arguments, b, problem.place);
}

Value WarpgroupSplitFrame::buffer(StringRef name, int64_t stages, int64_t rows,
                                  int64_t columns) {
  auto type = SmemType::get(b.getContext(), stages, rows, columns, element,
                            SmemLayout::sw128);
  return AllocOp::create(b, type, name);
}

void WarpgroupSplitFrame::reserve() {
  int64_t slots = stages * kParts;
  queriesOfParts = buffer("query", kParts * halves, kRows, piece);
  keysOwn = buffer("key_own", slots * halves, kKeys, piece);
  keysShared = buffer("key_shared", slots * halves, kKeys, piece);
  if (rest > 0) {
    queriesOfRest = buffer("query_rest", 1, kRows, rest);
    keysRest = buffer("key_rest", slots, kKeys, rest);
  }
  image = buffer("image", 1, kImageRows, kPanelColumns);
  auto barriers = [&](StringRef name, int64_t count, int64_t arrivals) {
    return MbarrierOp::create(b, MbarrierType::get(b.getContext(), count), name,
                              uint32_t(arrivals));
  };
  queryFull = barriers("query_full", 1, kParts * halves + (rest > 0 ? 1 : 0));
  queryEmpty = barriers("query_empty", 1, kConsumers);
  ringOwn = Ring(b, "key_own", slots * halves, kWarpsPerGroup);
  ringShared = Ring(b, "key_shared", slots * halves, kConsumers);
  if (rest > 0)
    ringRest = Ring(b, "key_rest", slots, kWarpsPerGroup);
  published = barriers("published", kParts, kWarpsPerGroup);
  queue =
      tileQueueOf(b, arguments, problem.place, kConsumers, parts.areSeveral());
}
