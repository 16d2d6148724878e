//===- GradientStrips.cpp - Statistics of queries for gradients -----------===//
//
// A block for each strip of 64 queries, of which a warp has 16: statistics from
// O, dO, LSE (and dLSE), in the form in which the launches behind want them.
//
//===----------------------------------------------------------------------===//

#include "GradientFrame.h"
#include "GradientScores.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Preparation {
public:
  explicit Preparation(GradientFrame &f) : f(f), b(f.b) {}

  KernelOp build(function_ref<void()> declare,
                 function_ref<void(const StripRows &)> more) {
    f.arguments.operand("o", f.element);
    f.arguments.operand("do", f.element);
    f.arguments.operand("lse", b.getF32Type());
    if (f.problem.dlse)
      f.arguments.operand("dlse", b.getF32Type());
    f.declareStatistics();
    if (declare)
      declare();
    for (StringRef size : {"queries", "heads"})
      f.arguments.scalar(size, b.getI32Type());
    KernelOp kernel = f.arguments.createKernel(b, f.request, kWarpsPerGroup);
    at.emplace(f);
    queries = f.arguments.get(b, "queries");
    // In this order: rows of O and dO on their way take all registers there
    // are.
    store(delta(), /*first=*/f.block);
    store(shift(), /*first=*/0);
    if (more)
      more(*at);
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

  Value shift() {
    Value lse =
        LoadRowOp::create(b, b.rowType(kWarpRows), vector("lse"), at->row);
    return shiftOf(b, lse, at->row, /*endOfRows=*/queries);
  }

  Value delta() {
    return deltaOf(b, matrix("o"), matrix("do"),
                   f.problem.dlse ? vector("dlse") : Value(), at->row,
                   kWarpRows);
  }

  /// To the numbers of the block, those of a statistic from `first` on.
  void store(Value values, int64_t first) {
    Value view = f.statistics(at->block, /*first=*/0, b.i32(2 * f.block));
    Scalar row = at->strip * kStripRows + at->warp * kWarpRows;
    StoreRowOp::create(b, values, view, row + first);
  }

  GradientFrame &f;
  TileBuilder &b;
  std::optional<StripRows> at;
  Scalar queries;
};

} // namespace

KernelOp attn::prepareStrips(GradientFrame &frame, function_ref<void()> declare,
                             function_ref<void(const StripRows &)> more) {
  return Preparation(frame).build(declare, more);
}
