//===- FlashBackwardFrame.cpp - What the roles of flash_backward share ----===//

#include "FlashBackward/FlashBackwardFrame.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Columns of a product in all types, and of a panel of 16-bit elements.
static constexpr int64_t kColumns = 16, kPanel = 64;

FlashBackwardFrame::FlashBackwardFrame(TileBuilder &b,
                                       const KernelRequest &request)
    : GradientFrame(b, request,
                    {/*ownsKeys=*/true, request.tiles.get("key"),
                     request.tiles.get("query_block")}),
      stages(request.tiles.get("stages")),
      overlap(request.tiles.get("overlap") != 0),
      inHalves(request.tiles.get("overlap") > 1),
      finishesBeside(request.tiles.get("beside") > 0),
      preparesBeside(request.tiles.get("beside") > 1),
      ordered(request.tiles.get("ordered") != 0),
      firstStores(request.tiles.get("first_stores") != 0),
      dim(llvm::alignTo(problem.headDim, kColumns)),
      dimV(llvm::alignTo(problem.headDimV, kColumns)),
      splitsColumns(block != own),
      gradientColumns(splitsColumns ? int64_t(llvm::alignTo(problem.headDim,
                                                            kPanel * groups)) /
                                          groups
                                    : dim) {
  keyOrder.isBinding = ordered;
  keyOrder.drawsAll = ordered || finishesBeside || firstStores;
  keyOrder.takesShortFirst = request.tiles.get("short_first") != 0;
  keyOrder.step = block;
  // So that a tile meets what the one before, which is shorter, has left.
  walksUp = keyOrder.takesShortFirst;
  walksOnlySeen =
      problem.isListed() || (firstStores && problem.mask.mayHideKeys());
  pulls = captures.any();
}

//===----------------------------------------------------------------------===//
// Blocks of queries
//===----------------------------------------------------------------------===//

void FlashBackwardFrame::declareSums() {
  arguments.perStrip("scratch_dq", b.getF32Type(),
                     imagesOfWarp() * partElements());
}

//===----------------------------------------------------------------------===//
// The main launch
//===----------------------------------------------------------------------===//

KernelOp FlashBackwardFrame::declareMain() {
  arguments.map(b, "q", block, problem.headDim, element);
  arguments.map(b, "k", own, problem.headDim, element);
  arguments.map(b, "v", own, problem.headDimV, element);
  arguments.map(b, "do", block, problem.headDimV, element);
  arguments.map(b, "dk", kGroupRows, problem.headDim, element);
  arguments.map(b, "dv", kGroupRows, problem.headDimV, element);
  declareStatistics();
  declareSums();
  if (ordered || firstStores)
    declareTurns();
  if (finishesBeside)
    declareBeside();
  KernelOp kernel = createKernel();
  reserve();
  return kernel;
}

void FlashBackwardFrame::reserve() {
  // As a right factor of dQ, K is cut at panels.
  int64_t dimK = std::max(dim, splitsColumns ? groups * gradientColumns : 0);
  bufferK = allocate("key", 1, own, dimK);
  bufferV = allocate("value", 1, own, dimV);
  bufferQ = allocate("query", stages, block, dim);
  bufferGradient = allocate("output_gradient", stages, block, dimV);
  if (inHalves) {
    halvesOfQ = alias(bufferQ, 2 * stages, kHalf, dim);
    halvesOfGradient = alias(bufferGradient, 2 * stages, kHalf, dimV);
  }
  reserveStatistics(stages);
  bufferScores = allocate("score_gradient", 2, block, own);
  // A part of dQ in f32, or 64 rows of dK or dV.
  int64_t columns = std::max<int64_t>(llvm::alignTo(dim, kPanel),
                                      llvm::alignTo(dimV, kPanel));
  columns =
      std::max<int64_t>(columns, llvm::alignTo(2 * gradientColumns, kPanel));
  staging = allocate("staging", groups, kGroupRows, columns);
  int64_t consumers = kWarpsPerGroup * groups;
  ringK = Ring(b, "key", 1, consumers);
  ringV = Ring(b, "value", 1, consumers);
  ringQ = Ring(b, "query", stages, consumers);
  ringGradient = Ring(b, "gradient", stages, consumers, /*writers=*/2);
  ringStaged = Ring(b, "staging", groups, /*readers=*/1, kWarpsPerGroup);
  // The writer hears of tiles and of steps.
  reserveQueues(consumers, /*others=*/1, /*ofSteps=*/1);
}
