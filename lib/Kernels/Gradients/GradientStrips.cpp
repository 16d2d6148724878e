//===- GradientStrips.cpp - Statistics of queries for gradients -----------===//
//
// Statistics from O, dO, LSE (and dLSE), in the form in which tiles want them,
// 16 queries for each warp; and launches that have a block for each strip of
// 64, as the one that leaves them has.
//
//===----------------------------------------------------------------------===//

#include "Gradients/GradientFrame.h"
#include "Region/SinkSums.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void attn::declareOrigins(GradientFrame &f) {
  f.arguments.operand("o", f.element);
  f.arguments.operand("do", f.element);
  declareLse(f.arguments, f.b, f.problem);
  if (f.problem.dlse)
    f.arguments.operand("dlse", f.b.getF32Type());
  if (f.problem.clauses.sinkGradients)
    declareSinkSums(f.arguments, f.b, f.request);
}

namespace {

class Origins {
public:
  Origins(const GradientFrame &f, const StripRows &at)
      : f(f), b(f.b), at(at),
        queries(at.sequence.isOfSequence() ? at.queries
                                           : f.arguments.get(b, "queries")) {}

  LogSumExp lse() const {
    auto load = [&](StringRef role) -> Value {
      return LoadRowOp::create(b, b.rowType(kWarpRows), vector(role), at.row);
    };
    LogSumExp lse{load("lse"), Value()};
    if (f.problem.lseLow)
      lse.low = load("lse_low");
    return lse;
  }

  Shift shift(const LogSumExp &lse) const {
    TwoWords bits;
    if (f.problem.lseLow) {
      ScoreScale scale(b, f.scoring.scale(b), f.scoring.sign());
      bits = scale.bitsOfNatural(b);
    }
    return shiftOf(b, lse, bits, at.row, /*endOfRows=*/queries);
  }

  Value delta() const {
    return deltaOf(b, matrix("o"), matrix("do"),
                   f.problem.dlse ? vector("dlse") : Value(), at.row,
                   kWarpRows);
  }

private:
  Value matrix(StringRef role) const {
    auto type = ViewType::get(b.getContext(), f.problem.headDimV, f.element,
                              f.request.alignmentOf(role));
    return f.arguments.view(b, role, type, at.batch, at.head, queries,
                            /*column=*/Scalar(), at.sequence.firstQuery);
  }
  Value vector(StringRef role) const {
    return f.arguments.vector(b, role, at.batch, at.head, queries,
                              at.sequence.firstQuery);
  }

  const GradientFrame &f;
  TileBuilder &b;
  const StripRows &at;
  Scalar queries;
};

} // namespace

/// To the numbers of the block.
static void store(const GradientFrame &f, const StripRows &at, Value values,
                  GradientFrame::Statistic which) {
  Scalar row = at.strip * kStripRows + at.warp * kWarpRows;
  StoreRowOp::create(f.b, values, f.statistics(at.block),
                     row + f.firstOf(which));
}

static void leaveShift(const GradientFrame &f, const StripRows &at,
                       const LogSumExp &lse) {
  Shift shift = Origins(f, at).shift(lse);
  store(f, at, shift.high, GradientFrame::Statistic::shift);
  if (shift.low)
    store(f, at, shift.low(), GradientFrame::Statistic::low);
}

void attn::leaveShift(const GradientFrame &f, const StripRows &at) {
  ::leaveShift(f, at, Origins(f, at).lse());
}

// In this order: rows of O and dO on their way take all registers there are.
void attn::leaveStatistics(const GradientFrame &f, const StripRows &at) {
  Value delta = Origins(f, at).delta();
  store(f, at, delta, GradientFrame::Statistic::delta);
  LogSumExp lse = Origins(f, at).lse();
  if (f.problem.clauses.sinkGradients)
    leaveSinkSum(f.b, f.arguments, f.request,
                 {at.batch, at.head, at.row, kWarpRows}, lse, delta);
  ::leaveShift(f, at, lse);
}

void attn::declareStripSizes(GradientFrame &f) {
  if (f.problem.ragged) {
    RaggedRows::declare(f.arguments, f.b, f.problem);
    f.arguments.scalar("batch", f.b.getI32Type());
  }
  for (StringRef size : {"queries", "heads"})
    f.arguments.scalar(size, f.b.getI32Type());
}

KernelOp attn::prepareStrips(GradientFrame &f, function_ref<void()> declare,
                             function_ref<void(const StripRows &)> leave) {
  TileBuilder &b = f.b;
  declare();
  declareStripSizes(f);
  if (f.problem.lseLow)
    f.arguments.scalar("scale", b.getF32Type());
  KernelOp kernel = f.arguments.createKernel(b, f.request, kWarpsPerGroup);
  StripRows at(f);
  at.ifAny(b, [&] { leave(at); });
  ReturnOp::create(b);
  return kernel;
}

KernelOp attn::prepareStatistics(GradientFrame &f) {
  return prepareStrips(
      f,
      [&] {
        declareOrigins(f);
        f.declareStatistics();
      },
      [&](const StripRows &at) { leaveStatistics(f, at); });
}
