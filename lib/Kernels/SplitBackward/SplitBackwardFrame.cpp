//===- SplitBackwardFrame.cpp - What the roles of split_backward share ----===//

#include "SplitBackward/SplitBackwardFrame.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Columns of a product in all types.
static constexpr int64_t kColumns = 16;

/// Launches behind that of the statistics.
static constexpr int64_t kOfQueries = 1, kFirstOfKeys = 2;

static GradientRows tilesOf(const KernelRequest &request) {
  bool ownsKeys = request.launch > kOfQueries;
  return {ownsKeys, request.tiles.get(ownsKeys ? "key" : "query"),
          request.tiles.get(ownsKeys ? "query_block" : "key_block")};
}

static SplitSide sideOf(const KernelRequest &request) {
  if (request.launch <= kOfQueries)
    return {true, false};
  bool isSeparate = request.tiles.get("separate") != 0;
  return {!isSeparate || request.launch == kFirstOfKeys,
          !isSeparate || request.launch != kFirstOfKeys};
}

static SplitRows rowsOf(StringRef role, StringRef gradient, int64_t columns) {
  return {role, gradient, columns, int64_t(llvm::alignTo(columns, kColumns))};
}

SplitBackwardFrame::SplitBackwardFrame(TileBuilder &b,
                                       const KernelRequest &request)
    : GradientFrame(b, request, tilesOf(request)), side(sideOf(request)),
      stagesX(request.tiles.get("stages")),
      stagesY(request.tiles.get(side.hasY ? "stages" : "value_stages")) {
  SplitRows q = rowsOf("q", "dq", problem.headDim),
            k = rowsOf("k", "dk", problem.headDim),
            v = rowsOf("v", "dv", problem.headDimV),
            gradient = rowsOf("do", "", problem.headDimV);
  x = ownsKeys ? k : q;
  y = ownsKeys ? v : gradient;
  streamedX = ownsKeys ? q : k;
  streamedY = ownsKeys ? gradient : v;
  pulls = !ownsKeys && captures.any();
}

KernelOp SplitBackwardFrame::declare() {
  auto map = [&](StringRef role, int64_t rows, int64_t columns) {
    arguments.map(b, role, rows, columns, element);
  };
  map(x.role, own, x.columns);
  if (side.hasX) // for dS
    map(y.role, own, y.columns);
  map(streamedX.role, streamed, streamedX.columns);
  map(streamedY.role, streamed, streamedY.columns);
  if (side.hasX)
    map(x.gradient, kGroupRows, x.columns);
  if (side.hasY)
    map(y.gradient, kGroupRows, y.columns);
  declareStatistics();
  KernelOp kernel = createKernel();
  reserve();
  return kernel;
}

void SplitBackwardFrame::reserve() {
  auto type = [&](int64_t count, int64_t rows, int64_t columns) {
    return SmemType::get(b.getContext(), count, rows, columns, element,
                         SmemLayout::sw128);
  };
  auto alias = [&](Value place, int64_t columns) -> Value {
    SmemType wanted = type(1, own, columns);
    return wanted == place.getType() ? place
                                     : AliasOp::create(b, wanted, place);
  };
  // Without y its gradient takes the place of x.
  int64_t columns = side.hasX ? x.padded : std::max(x.padded, y.padded);
  Value place = AllocOp::create(b, type(1, own, columns), x.role);
  bufferX = stagedX = alias(place, x.padded);
  if (side.hasX)
    bufferY = AllocOp::create(b, type(1, own, y.padded), y.role);
  stagedY = side.hasX ? bufferY : alias(place, y.padded);
  bufferStreamedX = AllocOp::create(
      b, type(stagesX, streamed, streamedX.padded), streamedX.role);
  if (ownsKeys)
    reserveStatistics(stagesX);
  bufferStreamedY = AllocOp::create(
      b, type(stagesY, streamed, streamedY.padded), streamedY.role);
  int64_t consumers = kWarpsPerGroup * groups;
  // Who starts what leaves hands places back for each warpgroup.
  ringX = Ring(b, x.role, 1, groups);
  if (side.hasX)
    ringY = Ring(b, y.role, 1, ownsBareY() ? consumers : groups);
  ringStreamedX = Ring(b, streamedX.role, stagesX, consumers,
                       /*writers=*/ownsKeys ? 2 : 1);
  ringStreamedY = Ring(b, streamedY.role, stagesY, consumers);
  ringStaged = Ring(b, "staged", groups, /*readers=*/1, kWarpsPerGroup);
  // The writer hears of tiles only.
  reserveQueues(consumers, /*others=*/1, /*ofSteps=*/0);
}
