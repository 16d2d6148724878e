//===- SplitFrame.cpp - What the roles of split_backward share ------------===//

#include "SplitFrame.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Columns of a product in all types.
static constexpr int64_t kColumns = 16;

/// Of a launch behind that of the statistics.
static SplitSide sideOf(const KernelRequest &request) {
  constexpr int64_t queries = 1, firstOfKeys = 2;
  if (request.launch <= queries)
    return {false, true, false};
  bool isSeparate = request.tiles.get("separate") != 0;
  return {true, !isSeparate || request.launch == firstOfKeys,
          !isSeparate || request.launch != firstOfKeys};
}

static SplitRows rowsOf(StringRef role, StringRef gradient, int64_t columns) {
  return {role, gradient, columns, int64_t(llvm::alignTo(columns, kColumns))};
}

SplitFrame::SplitFrame(TileBuilder &b, const KernelRequest &request)
    : GradientFrame(b, request), side(sideOf(request)),
      own(request.tiles.get(side.ownsKeys ? "key" : "query")),
      streamed(request.tiles.get(side.ownsKeys ? "query_block" : "key_block")),
      stagesX(request.tiles.get("stages")),
      stagesY(request.tiles.get(side.hasY ? "stages" : "value_stages")),
      groups(own / kGroupRows) {
  SplitRows q = rowsOf("q", "dq", problem.headDim),
            k = rowsOf("k", "dk", problem.headDim),
            v = rowsOf("v", "dv", problem.headDimV),
            gradient = rowsOf("do", "", problem.headDimV);
  x = side.ownsKeys ? k : q;
  y = side.ownsKeys ? v : gradient;
  streamedX = side.ownsKeys ? q : k;
  streamedY = side.ownsKeys ? gradient : v;
}

KernelOp SplitFrame::declare() {
  Type i32 = b.getI32Type();
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
  arguments.scalar(kCounterRole, PtrType::get(b.getContext(), i32));
  for (StringRef size : {"queries", "keys", "heads", "batch", "group"})
    arguments.scalar(size, i32);
  declareBand(arguments, b.getContext(), problem.mask.kind);
  arguments.scalar("scale", b.getF32Type());
  // The producer's warpgroup has the writer too.
  KernelOp kernel =
      arguments.createKernel(b, request, kWarpsPerGroup * (groups + 1));
  reserve();
  ownRows = arguments.get(b, side.ownsKeys ? "keys" : "queries");
  streamedRows = arguments.get(b, side.ownsKeys ? "queries" : "keys");
  sharers = arguments.get(b, "group");
  MaskKind kind = problem.mask.kind;
  if (side.ownsKeys)
    band.emplace(KeyBand::seeing(b, arguments, kind));
  else
    band.emplace(b, arguments, kind);
  blocks.emplace(*band, ownRows, own, streamed);
  return kernel;
}

Value SplitFrame::map(StringRef operand) const {
  return arguments.get(b, mapRole(operand));
}

void SplitFrame::reserve() {
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
  if (side.ownsKeys)
    bufferStatistics = AllocOp::create(
        b, SmemType::get(stagesX, 1, 2 * streamed, b.getF32Type()),
        "statistics");
  bufferStreamedY = AllocOp::create(
      b, type(stagesY, streamed, streamedY.padded), streamedY.role);
  int64_t consumers = kWarpsPerGroup * groups;
  // Who starts what leaves hands places back for each warpgroup.
  ringX = Ring(b, x.role, 1, groups);
  if (side.hasX)
    ringY = Ring(b, y.role, 1, ownsBareY() ? consumers : groups);
  ringStreamedX = Ring(b, streamedX.role, stagesX, consumers,
                       /*writers=*/side.ownsKeys ? 2 : 1);
  ringStreamedY = Ring(b, streamedY.role, stagesY, consumers);
  ringStaged = Ring(b, "staged", groups, /*readers=*/1, kWarpsPerGroup);
  queue = tileQueue(b, consumers + 1);
}

Walk SplitFrame::walkOf(const Tile &tile) const {
  Run run = blocks->ofTile(b, tile.row);
  Scalar steps = run.end - run.begin;
  if (side.ownsKeys)
    steps = steps * sharers;
  return {run, side.ownsKeys ? tile.head * sharers : tile.head / sharers,
          b.select(b.i32(0) < streamedRows, steps, b.i32(0))};
}
