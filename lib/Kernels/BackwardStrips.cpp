//===- BackwardStrips.cpp - Before and after flash_backward ---------------===//
//
// Two launches with a block for each strip of 64 queries, of which a warp has
// 16.  What the main launch reads and adds to goes through the cache in
// the form in which it wants it.
//
//   prepare   statistics from O, dO, LSE (and dLSE); dQ = 0
//   finish    dQ from sums in f32 to rows of the problem's type
//
//===----------------------------------------------------------------------===//

#include "BackwardFrame.h"
#include "ScoreScale.h"
#include "Softmax.h"

#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// The strip of a block of the grid, and the queries of a warp in it. `fromEnd`
/// takes strips, heads and batch entries from the last to the first.
struct StripRows {
  explicit StripRows(BackwardFrame &f, bool fromEnd = false)
      : f(f), tile(position(0, fromEnd)), head(position(1, fromEnd)),
        batch(position(2, fromEnd)), warp(f.b.warpId()),
        row(tile * kStripRows + warp * BackwardFrame::kWarpRows) {
    int64_t strips = f.block / kStripRows;
    strip = tile % strips;
    block = f.numberOf(batch, head, tile / strips);
  }

  Scalar position(int dim, bool fromEnd) const {
    Scalar number = f.b.programId(dim);
    return fromEnd ? f.b.gridSize(dim) - 1 - number : number;
  }

  /// The place of one of the warp's images of dQ.
  Scalar imagePlace(int64_t image) const {
    Scalar part = f.splitsColumns ? f.b.i32(image) : strip;
    return (block * f.groups + part) * kWarpsPerGroup + warp;
  }

  BackwardFrame &f;
  Scalar tile, head, batch, warp, row;
  Scalar block, strip; ///< the number of the block, and which of its strips
};

class Preparation {
public:
  explicit Preparation(BackwardFrame &f) : f(f), b(f.b) {}

  KernelOp build() {
    f.arguments.operand("o", f.element);
    f.arguments.operand("do", f.element);
    f.arguments.operand("lse", b.getF32Type());
    if (f.problem.dlse)
      f.arguments.operand("dlse", b.getF32Type());
    f.declareStatistics();
    f.declareSums();
    for (StringRef size : {"queries", "heads"})
      f.arguments.scalar(size, b.getI32Type());
    KernelOp kernel = f.arguments.createKernel(b, f.request, kWarpsPerGroup);
    at.emplace(f);
    queries = f.arguments.get(b, "queries");
    store(shift(), /*first=*/0);
    store(delta(), /*first=*/f.block);
    clear();
    ReturnOp::create(b);
    return kernel;
  }

private:
  Value matrix(StringRef role) {
    auto type = ViewType::get(b.getContext(), f.problem.headDimV, f.element,
                              f.request.alignmentOf(role));
    return f.arguments.view(b, role, type, at->batch, at->head, queries);
  }
  Value vector(StringRef role) {
    return f.arguments.vector(b, role, at->batch, at->head, queries);
  }

  /// -log2(e) LSE.  A query that sees nothing has LSE = -inf and P = 0, and so
  /// has one behind the end.
  Value shift() {
    double infinity = std::numeric_limits<double>::infinity();
    Value lse = LoadRowOp::create(b, b.rowType(BackwardFrame::kWarpRows),
                                  vector("lse"), at->row);
    return b.map(lse, lse.getType(),
                 [&](Scalar row, Scalar, ArrayRef<Scalar> v) -> Value {
                   Scalar none = b.f32(-infinity);
                   Scalar some =
                       b.select(v[0] == none, none, v[0] * b.f32(-kLog2E));
                   return b.select(at->row + row < queries, some, none);
                 });
  }

  /// D = rowsum(dO * O) - dLSE.
  Value delta() {
    RowType type = b.rowType(BackwardFrame::kWarpRows);
    Value products =
        RowDotOp::create(b, type, matrix("o"), matrix("do"), at->row);
    if (!f.problem.dlse)
      return products;
    Value more = LoadRowOp::create(b, type, vector("dlse"), at->row);
    return b.map({products, more}, type,
                 [&](Scalar, Scalar, ArrayRef<Scalar> v) -> Value {
                   return v[0] - v[1];
                 });
  }

  /// To the numbers of the block, those of a statistic from `first` on.
  void store(Value values, int64_t first) {
    auto type = ViewType::get(b.getContext(), ViewType::kVector, b.getF32Type(),
                              /*align=*/4);
    Scalar one = b.wide(b.i32(1));
    Value view = ViewOp::create(
        b, type, f.arguments.get(b, "scratch_statistics"),
        b.wide(at->block) * (2 * f.block), b.i32(2 * f.block), one);
    Scalar row = at->strip * kStripRows + at->warp * BackwardFrame::kWarpRows;
    StoreRowOp::create(b, values, view, row + first);
  }

  void clear() {
    Value zeros = b.fill(b.f32(0), f.imageType());
    for (int64_t image = 0; image < f.imagesOfWarp(); ++image)
      StoreRegistersOp::create(b, ValueRange{zeros},
                               f.arguments.get(b, "scratch_dq"),
                               at->imagePlace(image));
  }

  BackwardFrame &f;
  TileBuilder &b;
  std::optional<StripRows> at;
  Scalar queries;
};

} // namespace

KernelOp attn::prepareStrips(BackwardFrame &frame) {
  return Preparation(frame).build();
}

KernelOp attn::finishStrips(BackwardFrame &f) {
  TileBuilder &b = f.b;
  f.arguments.operand("dq", f.element);
  f.declareSums();
  for (StringRef size : {"queries", "heads"})
    f.arguments.scalar(size, b.getI32Type());
  f.arguments.scalar("scale", b.getF32Type());
  KernelOp kernel = f.arguments.createKernel(b, f.request, kWarpsPerGroup);
  // The sums that the main launch added to last are still in L2.
  StripRows at(f, /*fromEnd=*/true);
  auto type = ViewType::get(b.getContext(), f.problem.headDim, f.element,
                            f.request.alignmentOf("dq"));
  Value view = f.arguments.view(b, "dq", type, at.batch, at.head,
                                f.arguments.get(b, "queries"));
  Value factors =
      b.fill(f.arguments.get(b, "scale"), b.rowType(BackwardFrame::kWarpRows));
  for (int64_t image = 0; image < f.imagesOfWarp(); ++image) {
    auto sums = LoadRegistersOp::create(b, TypeRange(f.imageType()),
                                        f.arguments.get(b, "scratch_dq"),
                                        at.imagePlace(image));
    StoreFragmentOp::create(b, scaleRows(b, sums.getResult(0), factors), view,
                            at.row, b.i32(image * f.gradientColumns));
  }
  ReturnOp::create(b);
  return kernel;
}
