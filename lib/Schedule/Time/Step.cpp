//===- Step.cpp - How long a step and a tile take -------------------------===//

#include "Time/Step.h"
#include <algorithm>
#include <cmath>

using namespace attn;

double attn::powerMean(std::initializer_list<double> values, double power) {
  double longest = std::max(values), sum = 0;
  if (longest <= 0)
    return 0;
  for (double one : values)
    if (one > 0)
      sum += std::pow(one / longest, power);
  return longest * std::pow(sum, 1 / power);
}

double attn::clockOf(const Machine &machine) {
  return machine.measuredClockHz > 0 ? machine.measuredClockHz
                                     : machine.clockHz;
}

double attn::l2RateOf(const Machine &machine) {
  return machine.measuredL2BytesPerSecond > 0 ? machine.measuredL2BytesPerSecond
                                              : machine.l2BytesPerSecond;
}

double attn::hbmRateOf(const Machine &machine, const Calibration &c) {
  return machine.measuredHbmBytesPerSecond > 0
             ? machine.measuredHbmBytesPerSecond
             : machine.hbmBytesPerSecond * c.hbmEfficiency;
}

/// Warps of a scheduler beyond which it finds no more to do.
static constexpr double kMostWorkers = 3;

Step::Step(const Work &work, const Machine &machine, const Calibration &c)
    : w(work), c(c), latency(c.latencySeconds * clockOf(machine)),
      sms(double(machine.sms)),
      bytesPerClock(c.l2Gain * l2RateOf(machine) / clockOf(machine) / sms),
      memoryBytesPerClock(hbmRateOf(machine, c) / clockOf(machine) / sms),
      tensor(w.tensor / w.steps), output(w.output / w.steps),
      smem(w.smem / w.steps), exp(w.exp / w.steps), issue(w.issue / w.steps) {}

double Step::copies() const {
  const Copies &all = w.copies;
  return all.rows * c.rowClocks + all.bytes / bytesPerClock +
         all.reaching * c.lineClocks + all.cut * c.cutClocks;
}

/// Like warps load fragments by instructions, beside the tensor cores.  In
/// halves exponentials have products of the other half beside them as well.
double Step::chain() const {
  bool isAhead =
      w.order == Order::Overlapped || (w.order == Order::Turns && w.overlaps);
  double hidden = isAhead ? c.hiddenShare * std::min(issue, output) : 0;
  if (w.isInHalves)
    hidden += c.hiddenShare * std::min(exp, tensor);
  double products = w.isWgmma ? tensor : std::max(tensor, smem);
  return (products + exp + issue - hidden) / w.workers +
         w.handovers * c.barrierClocks;
}

/// With fewer workers than schedulers some units have nobody to feed them; and
/// where each is on its own, what one waits for, others fill.  Between the
/// turns of a block other blocks multiply.
double Step::units(double blocks, double part) const {
  double workers = w.workers * blocks, all = blocks * part;
  bool isApart = w.order != Order::Alike && w.order != Order::Together;
  double lone = isApart ? std::max(0.0, kMostWorkers - workers) : 0;
  double slower = all * (1 + c.fewShare * lone);
  // Who passes its turn has products under way, behind which some of the
  // barrier is hidden.
  double own = tensor / w.workers;
  double barrier = std::max(0.0, c.turnClocks - c.turnHiddenShare * own);
  double turns = w.order == Order::Turns ? barrier * w.workers * part : 0;
  double share = w.isWgmma ? c.operandShare : 1;
  double products = std::max(all * tensor, part * tensor + turns);
  return powerMean({products, share * all * smem, slower * exp, slower * issue},
                   c.unitPower) /
         std::min(1.0, workers);
}

/// Barriers keep the like warps of a block together, so only blocks are
/// independent.  Turns are those of a block, which others do not wait for. What
/// begins in step stays so for long: more is lost where a
/// multiprocessor has few tiles.
double Step::exposed(double blocks) const {
  auto apart = [&](double workers) {
    return std::pow(std::max(1.0, workers), -c.fillPower);
  };
  double first =
      1 + c.firstTileShare * std::min(1.0, sms / (w.tiles * w.heads));
  switch (w.order) {
  case Order::Turns:
    if (blocks > 1)
      return first * c.overlapShare * apart(blocks * w.workers);
    return w.overlaps ? 0 : c.turnShare;
  case Order::Together:
    return c.togetherShare;
  case Order::Alike:
    return apart(blocks * std::min(1.0, w.workers));
  case Order::Free:
    return first * apart(blocks * w.workers);
  case Order::Overlapped:
    return first * c.overlapShare * apart(blocks * w.workers);
  }
  return 1;
}

/// In ping-pong a softmax has the turns of the block's others beside it.  In
/// the walk of a mask nothing is lost if it is longer.  Where lists name the
/// blocks, a step waits for that (d = 128: 3.5 %, d = 256: nothing; H200).
double Step::uncovered(double blocks) const {
  if (w.order != Order::Turns || !w.isListed || blocks > 1)
    return 0;
  double softmax = (exp + issue) / w.workers;
  double turns = tensor * (1 - 1 / w.workers) - c.turnClocks;
  return std::max(0.0, softmax - turns);
}

double Step::ring() const {
  double copy = w.streamedBytes / w.steps / w.units / bytesPerClock;
  double read = w.slotsRead * tensor / w.units;
  double life = latency + copy + read;
  return w.units * life / w.slots;
}

double Step::clocks(double blocks, double active) const {
  double together = units(blocks, active / w.workers), alone = chain();
  double locked = blocks * active * alone;
  if (w.isPersistent && !w.isOfProducts)
    alone += leaving() * w.tiles * w.together / w.steps;
  double lost =
      exposed(blocks) * std::max(0.0, locked - together) + uncovered(blocks);
  double busy = std::max({together + lost, alone, w.helpers});
  // While a lone worker waits for those that split nobody multiplies.
  constexpr double loneShare = 1.25;
  if (w.isSplit && w.workers <= 1 && w.helpers > 0)
    busy *= loneShare;
  // The more slots there are, the less one late copy matters.
  return powerMean({busy, ring()}, c.ringPower * std::max(1.0, w.slots / 2)) +
         w.exchanges * c.exchangeClocks;
}

/// Who is done goes on to the next tile, if its inputs are there already.
double Step::average(double blocks) const {
  double all = clocks(blocks, w.workers);
  if (w.lonely <= 0)
    return all;
  double alone = clocks(blocks, 1);
  if (w.takesNext && w.together == 1)
    alone = std::min(alone, (alone + all / w.workers) / 2);
  return all + w.lonely * (alone - all);
}

/// Of one worker, between two tiles.
double Step::leaving() const {
  return w.leaves * c.tileClocks + w.epilogue / std::max(1.0, w.workers);
}

/// What a tile begins with where nothing of it has come ahead.
double Step::restart() const {
  return latency + w.residentBytes / bytesPerClock + w.helped + chain();
}

double Step::start() const {
  return w.isPersistent ? c.restartShare * (c.startClocks + restart()) : 0;
}

double Step::boundary(double blocks) const {
  double leave = c.exposedShare * std::max(1.0, w.workers) * leaving();
  double returns = w.returns * latency + w.returnBytes / bytesPerClock +
                   w.waitingBytes / memoryBytesPerClock;
  // Blocks that share a tile begin and end with an exchange: it is written,
  // told of and read.
  constexpr double exchange = 1;
  if (w.sharesTiles)
    return leave + returns + restart() + exchange * latency;
  if (w.isPersistent)
    return leave + returns + (w.takesNext ? 0 : c.restartShare * restart());
  // Other blocks hide some of it.
  double others = std::max(1.0, blocks * std::min(1.0, w.workers));
  return returns + blocks * std::pow(others, -c.fillPower) *
                       (leave + c.startClocks + restart());
}
