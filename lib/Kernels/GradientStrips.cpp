//===- GradientStrips.cpp - Statistics of queries for gradients -----------===//
//
// A block for each strip of 64 queries, of which a warp has 16: statistics from
// O, dO, LSE (and dLSE), in the form in which the launches behind want them.
//
//===----------------------------------------------------------------------===//

#include "GradientFrame.h"
#include "ScoreScale.h"

#include <limits>

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

  /// -log2(e) LSE.  A query that sees nothing has LSE = -inf and P = 0, and so
  /// has one behind the end.
  Value shift() {
    double infinity = std::numeric_limits<double>::infinity();
    Value lse =
        LoadRowOp::create(b, b.rowType(kWarpRows), vector("lse"), at->row);
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
    RowType type = b.rowType(kWarpRows);
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
