//===- Reasons.h - Why the others were not chosen ---------------*- C++ -*-===//
//
// What an explanation and a page say of plans that lost, and of choices that
// are not possible.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_REPORT_REASONS_H
#define ATTN_LIB_REPORT_REASONS_H

#include "attn/Schedule/Plan.h"

namespace attn {

struct Rival {
  const Plan *plan;
  bool isRunnerUp; ///< the next in order of time
  std::string why; ///< it lost, or could not be chosen
};
/// The next best plan, the best of every other schedule, and any faster plan
/// that is not chosen, in order of time.
std::vector<Rival> rivalsOf(const PlanReport &report, const Plan &winner);

/// Reasons that differ only in their numbers.
struct RefusedGroup {
  const Refused *example = nullptr;
  size_t count = 0;
};
/// By schedule.
std::vector<RefusedGroup> groupsOfRefused(const PlanReport &report);

} // namespace attn

#endif // ATTN_LIB_REPORT_REASONS_H
