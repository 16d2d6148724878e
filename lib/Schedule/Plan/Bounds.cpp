//===- Bounds.cpp - What no schedule can beat -----------------------------===//

#include "attn/Schedule/Bounds.h"
#include "attn/Schedule/Census.h"
#include <algorithm>
#include <cmath>

using namespace attn;

std::string_view attn::name(Regime regime) {
  switch (regime) {
  case Regime::largeCache:
    return "large_cache";
  case Regime::smallCache:
    return "small_cache";
  }
  return "";
}

int64_t attn::cacheWords(const Problem &problem, const Machine &machine) {
  return machine.smemBytesPerBlock / bytesOf(problem.dtype);
}

Regime attn::regime(const Problem &problem, const Machine &machine) {
  int64_t d = std::max(problem.headDim, problem.headDimV);
  return cacheWords(problem, machine) >= d * d ? Regime::largeCache
                                               : Regime::smallCache;
}

/// Rows of an axis that something sees or that see something, of all heads.
static double rowsInUse(const Problem &problem, Axis axis) {
  bool isOfKeys = axis == Axis::Key;
  double heads = double(problem.batch) *
                 double(isOfKeys ? problem.kvHeads : problem.heads);
  Visits all = visits(problem, isOfKeys ? Axis::Query : Axis::Key, 0, 1);
  return double(all.innerSpan) * heads / double(headsOfSum(problem, axis));
}

Bounds attn::bounds(const Problem &problem, double m) {
  double heads = double(problem.batch) * problem.heads;
  double pairs = allVisiblePairs(problem), d = problem.headDim;
  // Keys that no query sees need not be read; results are always written.
  double span = rowsInUse(problem, Axis::Key);
  double seeing = rowsInUse(problem, Axis::Query);

  Bounds result;
  double keyHeads = double(problem.batch) * problem.kvHeads;
  double wide = double(problem.headDim) + problem.headDimV;
  double results;
  if (problem.direction == Direction::forward) {
    result.inputWords = seeing * problem.headDim + span * wide;
    results = heads * double(problem.queries) * problem.headDimV;
  } else {
    result.inputWords = (seeing + span) * wide;
    results = heads * double(problem.queries) * problem.headDim +
              keyHeads * double(problem.keys) * wide;
  }
  result.compulsoryWords = result.inputWords + results;
  result.largeCacheWords = pairs * d * d / (m + 4 * d * d) - heads * m;
  if (m > 0)
    result.smallCacheWords = (2 * d / std::sqrt(m) - 1) * pairs - 2 * heads * m;
  result.words = std::max(
      {result.compulsoryWords, result.largeCacheWords, result.smallCacheWords});
  return result;
}

LevelBounds attn::levelBounds(const Problem &problem, const Machine &machine) {
  double size = double(bytesOf(problem.dtype));
  auto bytes = [&](double words) {
    return static_cast<int64_t>(words) * bytesOf(problem.dtype);
  };
  double registers = 4.0 * double(machine.registersPerSm);
  double onChip =
      double(machine.l2Bytes) +
      double(machine.sms) * (double(machine.smemBytesPerSm) + registers);
  Bounds ofRegisters = bounds(problem, registers / size);
  return {bytes(bounds(problem, onChip / size).words),
          lowerBoundBytes(problem, machine),
          bytes(std::max({ofRegisters.inputWords, ofRegisters.largeCacheWords,
                          ofRegisters.smallCacheWords}))};
}

int64_t attn::lowerBoundBytes(const Problem &problem, const Machine &machine) {
  double words = bounds(problem, double(cacheWords(problem, machine))).words;
  return static_cast<int64_t>(words) * bytesOf(problem.dtype);
}
