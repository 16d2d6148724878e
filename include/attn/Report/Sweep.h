//===- Sweep.h - One problem, many sizes ------------------------*- C++ -*-===//
//
// A size of a problem, or a fact of a machine, goes through a list of values;
// at each, every schedule is priced.  So it shows where one schedule takes over
// from another, which the theory puts at d = sqrt(M), and what that takes in
// bytes and in time.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REPORT_SWEEP_H
#define ATTN_REPORT_SWEEP_H

#include "attn/Report/Report.h"

namespace attn {

struct SweepPoint {
  int64_t value = 0;
  Problem problem;
  Machine machine;
  std::string whyNot; ///< why there is no plan; empty if there is one
  Regime regime = Regime::largeCache;
  Bytes lowerBounds;
  /// Of every schedule the plan that would be built, fastest first, but those
  /// without a kernel behind those that have one.
  std::vector<Plan> plans;

  bool hasPlan() const { return !plans.empty(); }
};

/// Prices one point.
SweepPoint sweepPoint(int64_t value, const Problem &problem,
                      const Machine &machine);

/// One machine and one type.
struct Sweep {
  std::string field; ///< as on the command line: `head-dim`
  std::vector<SweepPoint> points;

  const Problem &problem() const { return points.front().problem; }
  const Machine &machine() const { return points.front().machine; }
  /// The schedules that are the fastest somewhere, or priced at least, in the
  /// order in which all schedules are.
  std::vector<std::string> schedules() const;
  /// The least value from which on the fastest schedule is one for small
  /// caches, wherever anything fits.
  std::optional<int64_t> takeover() const;
};

/// The problem, with the first and the last value, and the machine.
std::string sweepTitle(const Sweep &sweep);

/// A table of the chosen plans for each sweep.
void renderSweeps(llvm::raw_ostream &out, const std::vector<Sweep> &sweeps,
                  TableForm form);
/// docs/reference/sweep.schema.json describes it.
void renderSweepsJson(llvm::raw_ostream &out, const std::vector<Sweep> &sweeps);
/// A file: for each sweep bytes, time, the fastest schedule and the regime.
std::string sweepsSvg(const std::vector<Sweep> &sweeps);

} // namespace attn

#endif // ATTN_REPORT_SWEEP_H
