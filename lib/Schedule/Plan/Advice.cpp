//===- Advice.cpp - What would fit, and where the crossover is ------------===//

#include "attn/Schedule/Advice.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Registry.h"
#include <algorithm>
#include <cmath>

using namespace attn;

const Refused *attn::nearestFit(const PlanReport &report, bool hasKernel) {
  const Refused *nearest = nullptr;
  for (const Refused &refused : report.refused) {
    if (refused.smemBytes == 0 || (hasKernel && refused.kernel.empty()))
      continue;
    if (!nearest || refused.smemBytes < nearest->smemBytes)
      nearest = &refused;
  }
  return nearest;
}

const Machine *attn::smallestMachine(const Problem &problem, bool hasKernel) {
  const Machine *smallest = nullptr;
  for (const Machine &machine : machines()) {
    if (smallest && machine.smemBytesPerBlock >= smallest->smemBytesPerBlock)
      continue;
    PlanReport report = plans(problem, machine);
    if (hasKernel ? report.best() != nullptr : !report.plans.empty())
      smallest = &machine;
  }
  return smallest;
}

bool attn::isForSmallCache(std::string_view schedule) {
  const ScheduleKind *kind = findScheduleKind(schedule);
  return kind && kind->regime == Regime::smallCache;
}

/// Where a r² and b r + c meet, for r > 0.
static double meeting(double a, double b, double c) {
  return (b + std::sqrt(b * b + 4 * a * c)) / (2 * a);
}

/// The same of words, for M of them in fast memory.
static std::vector<WordsCrossover> wordsCrossovers(Direction direction,
                                                   double m) {
  auto at = [&](double r) { return r * std::sqrt(m); };
  if (direction == Direction::forward)
    return {{"flash", at(meeting(4, 4, 1))}};
  return {{"flash_backward", at(meeting(12, 10, 3))},
          {"split_backward", at(meeting(14, 10, 3))}};
}

Crossover attn::crossover(const Problem &problem, const Machine &machine) {
  Crossover result;
  double m = double(cacheWords(problem, machine));
  result.regime = static_cast<int64_t>(std::floor(std::sqrt(m))) + 1;
  result.words = wordsCrossovers(problem.direction, m);

  // The fastest schedule at a head dimension; where nothing fits any more there
  // is nothing to compare.
  int64_t unit = kMaxAlignment / leastBytes(problem);
  auto fastestAt = [&](int64_t units) -> std::string {
    Problem other = problem;
    other.headDim = other.headDimV = units * unit;
    PlanReport report = plans(other, machine);
    return report.plans.empty() ? "" : report.plans.front().schedule;
  };
  // Wider heads never favour large caches, so halving finds the first.
  int64_t low = 1, high = 4096 / unit;
  std::string schedule = fastestAt(high);
  while (schedule.empty() && high > 1)
    schedule = fastestAt(high /= 2);
  if (!isForSmallCache(schedule))
    return result;
  result.schedule = schedule;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    schedule = fastestAt(middle);
    if (!isForSmallCache(schedule)) {
      low = middle + 1;
      continue;
    }
    high = middle;
    result.schedule = schedule;
  }
  result.predicted = high * unit;
  return result;
}
