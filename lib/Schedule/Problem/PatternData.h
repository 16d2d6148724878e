//===- PatternData.h - What copies of a pattern share -----------*- C++ -*-===//
///
/// Lists both ways, and the visits of every tiling that was asked for: a plan
/// asks for the same few dozen thousands of times.
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_PROBLEM_PATTERNDATA_H
#define ATTN_LIB_SCHEDULE_PROBLEM_PATTERNDATA_H

#include "attn/Schedule/Census.h"
#include <array>
#include <map>
#include <mutex>

namespace attn {

struct PatternData {
  BlockSize size;
  std::vector<BlockRows> byQueries, byKeys;
  double density = 0;
  bool isShared = true;

  /// Everything that visits depend on, as numbers.
  using Tiled = std::array<int64_t, 13>;
  mutable std::mutex lock;
  mutable std::map<Tiled, Visits> visits;
};

} // namespace attn

#endif
