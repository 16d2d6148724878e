//===- GradientFrame.cpp - What launches for gradients share --------------===//

#include "GradientFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

GradientFrame::GradientFrame(TileBuilder &b, const KernelRequest &request)
    : b(b), problem(request.problem), request(request),
      element(elementType(b.getContext(), problem.dtype)),
      block(request.tiles.get("query_block")) {}

void GradientFrame::declareStatistics() {
  arguments.perStrip("scratch_statistics", b.getF32Type(), 2 * kStripRows);
}

Scalar GradientFrame::numberOf(Scalar batch, Scalar head, Scalar block) const {
  Scalar ofHead = b.ceilDiv(arguments.get(b, "queries"), this->block);
  return (batch * arguments.get(b, "heads") + head) * ofHead + block;
}

Value GradientFrame::statistics(Scalar number, int64_t first,
                                Scalar count) const {
  auto type = ViewType::get(b.getContext(), ViewType::kVector, b.getF32Type(),
                            /*align=*/4);
  Scalar one = b.wide(b.i32(1));
  Scalar offset = b.wide(number) * (2 * block);
  if (first != 0)
    offset = offset + first;
  return ViewOp::create(b, type, arguments.get(b, "scratch_statistics"), offset,
                        count, one);
}

Step GradientFrame::firstStep(const Walk &walk) const {
  return {walk.firstHead, walk.blocks.end - 1};
}

Step GradientFrame::nextStep(const Walk &walk, const Step &step) const {
  Scalar isLast = step.block == walk.blocks.begin;
  return {b.select(isLast, step.head + 1, step.head),
          b.select(isLast, walk.blocks.end - 1, step.block - 1)};
}

static Scalar positionOf(TileBuilder &b, int dimension, bool fromEnd) {
  Scalar number = b.programId(dimension);
  return fromEnd ? b.gridSize(dimension) - 1 - number : number;
}

StripRows::StripRows(const GradientFrame &f, bool fromEnd)
    : tile(positionOf(f.b, 0, fromEnd)), head(positionOf(f.b, 1, fromEnd)),
      batch(positionOf(f.b, 2, fromEnd)), warp(f.b.warpId()),
      row(tile * kStripRows + warp * kWarpRows) {
  int64_t strips = f.block / kStripRows;
  strip = tile % strips;
  block = f.numberOf(batch, head, tile / strips);
}
