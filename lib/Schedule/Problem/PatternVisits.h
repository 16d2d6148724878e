//===- PatternVisits.h - Pairs of tiles that blocks show --------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_PROBLEM_PATTERNVISITS_H
#define ATTN_LIB_SCHEDULE_PROBLEM_PATTERNVISITS_H

#include "attn/Schedule/Census.h"

namespace attn {

/// `visitsOfStrip` of a problem with lists, whose axes are not empty; or, of so
/// many at a time, `gatheredVisits`.
Visits visitsOfLists(const Problem &problem, Axis outer, int64_t outerStep,
                     int64_t innerStep, const StripRange &strip,
                     int64_t together = 1);
std::vector<int64_t> pairsOfLists(const Problem &problem, Axis outer,
                                  int64_t outerStep, int64_t innerStep);

/// What is expected of those that the mask shows, if blocks have a density.
Visits expectedVisits(const Visits &band, const Problem &problem, Axis outer,
                      int64_t outerStep, int64_t innerStep,
                      const StripRange &strip);
/// Of what is expected, steps of so many at a time.
Visits expectedGathered(Visits expected, int64_t together);
/// The share of tiles of so many rows that show some block.
double expectedShare(const Pattern &pattern, Axis outer, int64_t outerRows,
                     int64_t innerRows);

} // namespace attn

#endif
