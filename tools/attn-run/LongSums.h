//===- LongSums.h - What tensor cores lose of a long sum --------*- C++ -*-===//
//
// A step of a product adds 16 terms to what it has summed up.  On Hopper it
// first brings all of them to the largest exponent and cuts them off two bits
// behind the last of an f32, then it cuts the sum off behind that.  In units in
// the last place of the sum a step so loses less than 16 / 4 + 1 = 5.  A unit
// is at most 2^-23 of the sum, so N / 16 steps lose less than
//
//   5 N / 16 2^-23 = 5 N 2^-27
//
// of the sum of the terms' magnitudes.  That is the bound.  What is expected of
// terms of one sign is a fifth of it: half of what a step can lose, in units of
// 2^-23 to 2^-24 of the sum, on average 0.72 2^-23, of a sum that is half of
// the last one on average, 5 N 2^-27 (1/2 0.72 1/2) = 0.9 N 2^-27.  On an H100
// dv over 2^24 queries was 10 % too small, where that is 11 %.
//
// Example: 2^17 terms lose 0.1 %, a quarter of what bf16 rounds by.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_LONGSUMS_H
#define ATTN_TOOLS_RUN_LONGSUMS_H

#include "attn/Schedule/Problem.h"

#include <algorithm>

namespace attn::run {

/// Expected of one term, relative; at most kWorst times as much.
inline constexpr double kLostOfTerm = 0x1p-27;
inline constexpr double kWorst = 5;

/// What is expected of the longest sum in a problem's products of P or dS, if
/// it has one sign; relative to the sum of magnitudes.
inline double lostInSums(const Problem &problem) {
  int64_t terms = problem.keys;
  if (problem.direction == Direction::backward) {
    int64_t sharers = problem.heads / std::max<int64_t>(problem.kvHeads, 1);
    terms = std::max(terms, problem.queries * sharers);
  }
  return std::min(1.0, double(terms) * kLostOfTerm);
}

} // namespace attn::run

#endif
