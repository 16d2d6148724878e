//===- LongSums.h - What tensor cores lose of a long sum --------*- C++ -*-===//
//
// Tensor cores cut sums off where f32 ends: with every step a sum loses what it
// has no bits for, and one of N terms up to N 2^-27 of their magnitudes.  On an
// H100 dv over 2^24 queries was 10 % too small.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_LONGSUMS_H
#define ATTN_TOOLS_RUN_LONGSUMS_H

#include "attn/Schedule/Problem.h"

#include <algorithm>

namespace attn::run {

/// That of the longest sum in a problem's products of P or dS, relative.
inline double lostInSums(const Problem &problem) {
  int64_t terms = problem.keys;
  if (problem.direction == Direction::backward) {
    int64_t sharers = problem.heads / std::max<int64_t>(problem.kvHeads, 1);
    terms = std::max(terms, problem.queries * sharers);
  }
  return double(terms) * 0x1p-27;
}

} // namespace attn::run

#endif
