//===- BandVisits.h - Pairs of tiles that unions of bands show --*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_PROBLEM_BANDVISITS_H
#define ATTN_LIB_SCHEDULE_PROBLEM_BANDVISITS_H

#include "attn/Schedule/Census.h"
#include <array>
#include <map>
#include <mutex>

namespace attn {

/// What copies of a union share: the visits of every tiling that was asked for.
struct BandsData {
  std::vector<Band> bands;

  using Tiled = std::array<int64_t, 8>;
  mutable std::mutex lock;
  mutable std::map<Tiled, Visits> visits;
  /// By queries and keys, of the problem and of a tile.
  mutable std::map<std::array<int64_t, 4>, double> cutShares;
};

/// `visitsOfStrip` of a problem with bands, whose axes are not empty.
Visits visitsOfBands(const Problem &problem, Axis outer, int64_t outerStep,
                     int64_t innerStep, const StripRange &strip);
std::vector<int64_t> pairsOfBands(const Problem &problem, Axis outer,
                                  int64_t outerStep, int64_t innerStep);

} // namespace attn

#endif
