//===- BackwardFrame.cpp - What the roles of flash_backward share ---------===//

#include "BackwardFrame.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Columns of a product in all types, and of a panel of 16-bit elements.
static constexpr int64_t kColumns = 16, kPanel = 64;

BackwardFrame::BackwardFrame(TileBuilder &b, const KernelRequest &request)
    : GradientFrame(b, request), key(request.tiles.get("key")),
      stages(request.tiles.get("stages")),
      overlap(request.tiles.get("overlap") != 0), groups(key / kGroupRows),
      dim(llvm::alignTo(problem.headDim, kColumns)),
      dimV(llvm::alignTo(problem.headDimV, kColumns)),
      splitsColumns(block != key),
      gradientColumns(splitsColumns ? int64_t(llvm::alignTo(problem.headDim,
                                                            kPanel * groups)) /
                                          groups
                                    : dim) {}

//===----------------------------------------------------------------------===//
// Blocks of queries
//===----------------------------------------------------------------------===//

void BackwardFrame::declareSums() {
  arguments.perStrip("scratch_dq", b.getF32Type(),
                     imagesOfWarp() * partElements());
}

//===----------------------------------------------------------------------===//
// The main launch
//===----------------------------------------------------------------------===//

KernelOp BackwardFrame::declareMain() {
  Type i32 = b.getI32Type();
  arguments.map(b, "q", block, problem.headDim, element);
  arguments.map(b, "k", key, problem.headDim, element);
  arguments.map(b, "v", key, problem.headDimV, element);
  arguments.map(b, "do", block, problem.headDimV, element);
  arguments.map(b, "dk", kGroupRows, problem.headDim, element);
  arguments.map(b, "dv", kGroupRows, problem.headDimV, element);
  declareStatistics();
  declareSums();
  arguments.scalar(kCounterRole, PtrType::get(b.getContext(), i32));
  for (StringRef size : {"queries", "keys", "heads", "batch", "group"})
    arguments.scalar(size, i32);
  declareBand(arguments, b.getContext(), problem.mask.kind);
  arguments.scalar("scale", b.getF32Type());
  // The producer's warpgroup has the writer too.
  KernelOp kernel =
      arguments.createKernel(b, request, kWarpsPerGroup * (groups + 1));
  reserve();
  queries = arguments.get(b, "queries");
  keys = arguments.get(b, "keys");
  sharers = arguments.get(b, "group");
  band.emplace(KeyBand::seeing(b, arguments, problem.mask.kind));
  blocks.emplace(*band, keys, key, block);
  return kernel;
}

Value BackwardFrame::map(StringRef operand) const {
  return arguments.get(b, mapRole(operand));
}

void BackwardFrame::reserve() {
  auto alloc = [&](StringRef name, int64_t count, int64_t rows,
                   int64_t columns) -> Value {
    auto type = SmemType::get(b.getContext(), count, rows, columns, element,
                              SmemLayout::sw128);
    return AllocOp::create(b, type, name);
  };
  // As a right factor of dQ, K is cut at panels.
  int64_t dimK = std::max(dim, splitsColumns ? groups * gradientColumns : 0);
  bufferK = alloc("key", 1, key, dimK);
  bufferV = alloc("value", 1, key, dimV);
  bufferQ = alloc("query", stages, block, dim);
  bufferGradient = alloc("output_gradient", stages, block, dimV);
  auto numbers = SmemType::get(stages, 1, 2 * block, b.getF32Type());
  bufferStatistics = AllocOp::create(b, numbers, "statistics");
  bufferScores = alloc("score_gradient", 2, block, key);
  // A part of dQ in f32, or 64 rows of dK or dV.
  int64_t columns = std::max<int64_t>(llvm::alignTo(dim, kPanel),
                                      llvm::alignTo(dimV, kPanel));
  columns =
      std::max<int64_t>(columns, llvm::alignTo(2 * gradientColumns, kPanel));
  staging = alloc("staging", groups, kGroupRows, columns);
  int64_t consumers = kWarpsPerGroup * groups;
  ringK = Ring(b, "key", 1, consumers);
  ringV = Ring(b, "value", 1, consumers);
  ringQ = Ring(b, "query", stages, consumers);
  ringGradient = Ring(b, "gradient", stages, consumers, /*writers=*/2);
  ringStaged = Ring(b, "staging", groups, /*readers=*/1, kWarpsPerGroup);
  queue = tileQueue(b, consumers + 1);
}

Walk BackwardFrame::walkOf(const Tile &tile) const {
  Run run = blocks->ofTile(b, tile.row);
  Scalar steps = (run.end - run.begin) * sharers;
  return {run, tile.head * sharers,
          b.select(b.i32(0) < queries, steps, b.i32(0))};
}
