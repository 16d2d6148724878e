//===- Launch.cpp - How long a launch takes -------------------------------===//

#include "Time/Launch.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

using namespace attn;

/// Tiles differ in length from so much on.
static constexpr double kUnequal = 1.05;
/// Blocks of an average strip are no whole number; a part of one has a wave to
/// itself, but below this it is an error of arithmetic.
static constexpr double kRoundOff = 1e-6;

namespace {

/// Clocks until all tiles are done, if tiles could be cut at will, and of the
/// longest tile alone.
struct Makespan {
  double whole = 0, ideal = 0, longest = 0;
};

/// Multiprocessors that each take the next tile when they have done one.
class Multiprocessors {
public:
  explicit Multiprocessors(double count) : count(size_t(count)) {}

  void take(double clocks) {
    if (ends.size() == count) {
      clocks += ends.top();
      ends.pop();
    }
    ends.push(clocks);
    last = std::max(last, clocks);
  }
  double end() const { return last; }

private:
  size_t count;
  double last = 0;
  std::priority_queue<double, std::vector<double>, std::greater<>> ends;
};

/// The tiles of one grid, on so many multiprocessors, or sets of them.
class TileRun {
public:
  TileRun(const Work &w, const Step &step, double sms, const Calibration &c)
      : w(w), step(step), sms(sms), c(c) {}

  Makespan all() const {
    Makespan sum;
    for (const RoundTiles &round : w.rounds) {
      Makespan one = ofRound(round);
      sum.whole += round.times * one.whole;
      sum.ideal += round.times * one.ideal;
      sum.longest += round.times * one.longest;
    }
    if (!w.lengths.empty())
      sum.whole = oneByOne();
    return sum;
  }

private:
  const Work &w;
  const Step &step;
  double sms;
  const Calibration &c;

  double tile(const RoundTiles &round, double steps, double blocks) const {
    return steps * step.average(blocks) + step.boundary(blocks) +
           round.empty * step.empty();
  }

  /// Equal tiles come in waves, of which the last is paid in full; of unequal
  /// ones the longest go first, and a share of a short one is left at the end.
  Makespan ofRound(const RoundTiles &round) const {
    if (round.tiles <= 0)
      return {};
    double perSm = std::max(
        1.0, std::min(w.blocksPerSm, std::ceil(round.tiles / sms - kRoundOff)));
    double atOnce = sms * perSm, average = tile(round, round.average, perSm);
    double ideal = average * round.tiles / atOnce;
    double waves = std::floor((round.tiles + kRoundOff) / atOnce);
    double left = std::ceil(round.tiles - waves * atOnce - kRoundOff);
    double last = std::ceil(left / sms);
    double equal = waves * average;
    if (left > 0)
      equal += last == perSm ? average : tile(round, round.average, last);
    double longest = tile(round, round.longest, 1);
    if (round.longest < kUnequal * round.average)
      return {std::max(equal, longest), ideal, longest};
    double least = w.isPersistent && w.blocksPerSm <= 1
                       ? tile(round, round.least, 1)
                       : average;
    return {std::max(longest, std::min(equal, ideal + c.tailShare * least)),
            ideal, longest};
  }

  /// Tiles of each head as they are drawn; of different lengths, the longest of
  /// all heads first.
  double oneByOne() const {
    std::vector<double> clocks;
    double blocks = w.blocksPerSm, boundary = step.boundary(blocks);
    for (const TileLength &one : w.lengths)
      clocks.push_back(one.steps * (one.active > 0
                                        ? step.clocks(blocks, one.active)
                                        : step.average(blocks)) +
                       boundary);
    Multiprocessors all(sms * blocks);
    size_t heads = size_t(w.heads), count = clocks.size();
    if (w.takesLongestFirst)
      std::sort(clocks.begin(), clocks.end(), std::greater<>());
    for (size_t i = 0; i < heads * count; ++i)
      all.take(clocks[w.takesLongestFirst ? i / heads : i % count]);
    return all.end();
  }
};

} // namespace

std::vector<LaunchWork> attn::launchWork(const Census &census,
                                         const Schedule &schedule,
                                         const Problem &problem,
                                         const Machine &machine,
                                         TensorCoreFamily family) {
  std::vector<LaunchWork> launches;
  size_t number = 0;
  bool walksInParts = false;
  for (const Schedule::Launch &launch : schedule.launches) {
    bool isMerge = walksInParts;
    walksInParts = launch.main.sharing.keyParts > 1;
    LaunchWork &queue = launches.emplace_back();
    for (const Grid *grid : launch.grids()) {
      if (grid == &launch.main || launch.isMerged())
        queue.push_back(
            workOf(census, *grid, number, problem, machine, family));
      ++number;
    }
    queue.back().isMerge = isMerge;
  }
  return launches;
}

void attn::addContention(Time &t, double whole, const Calibration &c) {
  double longest = std::max({whole, t.l2, t.hbm});
  double together = powerMean({whole, t.l2, t.hbm}, c.memoryPower);
  t.contention = std::max(0.0, together - longest);
  t.seconds = longest + t.contention + t.overhead;
}

/// Adds what units do in a grid, in clocks of a multiprocessor.
static void addUnits(Time &t, const Work &w, double share,
                     const Calibration &c) {
  t.tensor += w.tensor * share;
  t.exp += w.exp * share;
  t.issue += w.issue * share;
  t.smem += (w.isWgmma ? c.operandShare : 1) * w.smem * share;
}

/// Seconds for a byte that rings bring, by Little's law: those of
/// multiprocessors with tiles ask for no more ahead than their slots, which
/// first fill without waiting.  8 tiles of a decoding step were measured at 541
/// GB/s, of a device's 3000.
static double ringWait(const Work &main, double sms, const Calibration &c) {
  double busy = std::min(sms, main.tiles * main.heads * main.together);
  double ahead = busy * (main.slots - 0.5) * main.streamedBytes / main.steps;
  double steps = main.steps * main.heads / busy;
  return c.memoryLatencySeconds / ahead * std::max(0.0, 1 - main.slots / steps);
}

/// Bytes of all grids of a queue take as long as device memory and rings need.
static void addMemory(Time &t, const LaunchWork &launch, const Machine &machine,
                      const Calibration &c) {
  const Work &main = launch.back();
  double sms = double(machine.sms), bytes = 0, copies = 0;
  for (const Work &w : launch) {
    bytes += double(w.bytes.hbm);
    copies += Step(w, machine, c).copies() * w.heads / sms;
  }
  t.hbm = bytes / hbmRateOf(machine, c);
  if (main.isWgmma && main.slotsRead == 0)
    t.hbm = std::max(t.hbm, bytes * ringWait(main, sms, c));
  t.l2 = copies / clockOf(machine);
}

Time attn::launchTime(const LaunchWork &launch, const Machine &machine,
                      const Calibration &c) {
  const Work &main = launch.back();
  double sms = double(machine.sms), clock = clockOf(machine);
  Time t;
  Makespan clocks;
  double launches = 0;
  for (const RoundTiles &round : main.rounds)
    launches += round.times;
  for (const Work &w : launch) {
    double teams = std::max(1.0, std::floor(sms / w.together));
    Step step(w, machine, c);
    Makespan one = TileRun(w, step, teams, c).all();
    // Grids of a queue fill each other's last waves, but wait for the first
    // tiles of the one before.
    bool isLast = &w == &main;
    double start = isLast ? step.start() : 0;
    clocks.ideal += one.ideal + start;
    clocks.whole +=
        (isLast ? one.whole : std::max(one.ideal, one.longest)) + start;
    addUnits(t, w, w.heads / (teams * w.together), c);
  }
  // The less the tensor cores have to do, the less power limits the clock.
  double used = clocks.whole > 0 ? t.tensor / clocks.whole : 0;
  if (machine.measuredClockHz > 0)
    clock *= 1 + c.spareClock * std::max(0.0, 1 - used);
  for (double Time::*unit :
       {&Time::tensor, &Time::exp, &Time::issue, &Time::smem})
    t.*unit /= clock;
  double busiest = std::max({t.tensor, t.exp, t.issue, t.smem});
  double whole = std::max(clocks.whole / clock, busiest);
  double ideal = std::clamp(clocks.ideal / clock, busiest, whole);
  double sums =
      secondsOfSums(main, Step(main, machine, c), whole, clock, machine, c);
  whole += sums, ideal += sums;
  addMemory(t, launch, machine, c);
  // For sums that L2 does not hold a block waits, and only others multiply.
  double waits = main.lost * t.hbm / main.blocksPerSm;
  t.exposed = ideal - busiest + waits;
  t.tail = whole - ideal;
  // The launch of a merge is made while walks run, where it may wait for them.
  double begins = main.isMerge && machine.canChain() ? 0 : c.launchSeconds;
  t.overhead = launches * (begins + c.latencySeconds);
  addContention(t, whole + waits, c);
  addFusedGrids(t, whole, main, machine, c);
  return t;
}
