//===- Reads.cpp - Whether regions read what is there ---------------------===//

#include "Reads.h"

#include "AttentionOracle.h"
#include "Comparer.h"
#include "Listings.h"

using namespace attn;
using namespace attn::run;
using namespace mlir;

static LogicalResult report(Operation *op, ValueRange captures,
                            const std::optional<OutsideRead> &read) {
  if (!read)
    return success();
  Value array = captures[read->capture];
  InFlightDiagnostic error =
      op->emitError("expects attn.read inside of the array, but it ");
  error << str(*read);
  error.attachNote(array.getLoc())
      << "capture " << read->capture << " is this " << array.getType();
  return error;
}

static bool readsArrays(Operation *op) {
  return op->walk([](ReadOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

namespace {

/// Asks for the pairs of one attention, or of one sequence of a ragged one.
class Pairs {
public:
  Pairs(const Attention &attention, const std::vector<CapturedArray> &captured,
        double budget, int64_t sequence)
      : attention(attention),
        clauses(attention.op, captured, attention.problem.queries,
                attention.problem.keys, sequence),
        seen(oracleProblem(attention), clauses.clauses()), budget(budget) {}

  std::optional<OutsideRead> firstOutside() {
    const Problem &p = attention.problem;
    for (RowRun rows : chooseRows(p, affordableByPairs(budget)))
      for (int64_t b = 0; b < p.batch; ++b)
        for (int64_t h = 0; h < p.heads; ++h)
          for (int64_t i = rows.begin; i < rows.end; ++i) {
            askRow(b, h, i);
            if (std::optional<OutsideRead> read = clauses.outsideRead())
              return read;
          }
    return std::nullopt;
  }

private:
  void askRow(int64_t b, int64_t h, int64_t i) {
    const auto &score = clauses.clauses().score;
    for (int64_t j = 0; j < attention.problem.keys; ++j)
      if (oracle::Pair pair = {b, h, i, j}; seen(pair) && score)
        score(/*z=*/0, pair);
  }

  Attention attention;
  ClauseReference clauses;
  oracle::Seen seen;
  double budget;
};

} // namespace

static LogicalResult checkAttention(const Function &function,
                                    const Attention &attention,
                                    const std::vector<HostBytes> &arrays,
                                    double budget) {
  AttentionOpInterface op = attention.op;
  if (!readsArrays(op))
    return success();
  std::vector<CapturedArray> captured;
  for (const auto &[name, source] : attention.clauseInputs)
    captured.push_back(capturedArray(function, source, arrays));
  auto check = [&](const Attention &one, int64_t sequence) {
    return report(op, op.captures(),
                  Pairs(one, captured, budget, sequence).firstOutside());
  };
  if (!attention.problem.ragged)
    return check(attention, /*sequence=*/0);
  for (int64_t n = 0; n < attention.problem.batch; ++n) {
    Attention one = attention;
    one.problem = denseOf(attention.problem, lengthsOf(attention, arrays, n));
    if (failed(check(one, n)))
      return failure();
  }
  return success();
}

LogicalResult run::checkReads(const Function &function,
                              const std::vector<HostBytes> &arrays,
                              double budget) {
  for (const Attention &attention : function.attentions)
    if (failed(checkAttention(function, attention, arrays, budget)))
      return failure();
  for (const Listing &listing : function.listings) {
    auto op = dyn_cast<BlockListsOp>(listing.op);
    if (op && readsArrays(op) &&
        failed(report(op, op.getCaptures(),
                      blocksOf(function, listing, arrays).outsideRead)))
      return failure();
  }
  return success();
}
