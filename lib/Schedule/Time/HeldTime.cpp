//===- HeldTime.cpp - How long a pipeline takes that holds P --------------===//
//
// Nothing stays but P, so a tile is what its products take, or the ring to
// bring what they read, or, of narrow heads, softmax: whichever is longest.  A
// unit of the ring comes, waits for its turn, is read, and is handed back: so
// many clocks a unit, and as many units as the ring has at the same time.
//
// On top of that every tile of columns leaves with nothing beside it, and one
// that strips before have summed up has to come back first.
//
// Example: one H100, 382 rows and keys of d = 536, 12 slots.  A tile of 128
// rows multiplies 3 x 128 keys by 576 columns, then by 640: 8 * 3 * 1216 =
// 29184 clocks.  Its units are 9 x (3 + 2) of scores and 5 x 6 of values, 75,
// which take 75 * 2430 / 12 = 15190; softmax takes less.  So it is 29200 + 5 *
// 1500 = 36700.
//
//===----------------------------------------------------------------------===//

#include "Time/HeldTime.h"
#include "Folds/PipelineFootprint.h"
#include <algorithm>

using namespace attn;

namespace {

/// Clocks of all tiles of a head.
struct HeldWork {
  double products = 0, exps = 0, slots = 0, smemBytes = 0, copies = 0;
  double units = 0;
  double stored = 0, absorbed = 0; ///< tiles of columns

  HeldWork(const Census &census, size_t number, const Problem &problem,
           const Machine &machine, double rate, const Calibration &c) {
    for (const Use &use : census.uses)
      if (use.grid == number)
        add(use, problem, machine, rate, c);
    // Of a part that is seen in half, softmax is of that half.
    exps *= shareOfScores, slots *= shareOfScores;
  }

private:
  double shareOfScores = 1; ///< of whole parts, what is multiplied

  void add(const Use &use, const Problem &problem, const Machine &machine,
           double rate, const Calibration &c) {
    const Node &node = *use.node;
    double smem = attn::smemBytes(use, problem);
    double area = paddedArea(use, problem);
    smemBytes += smem;
    switch (node.verb) {
    case Verb::multiply: {
      double flops = 2 * area * use.shareOfKeys() *
                     padded(node.a, use.tile.depth, problem);
      products += std::max(flops / rate, smem / machine.smemBytesPerClockPerSm);
      if (node.tensor == Tensor::S)
        shareOfScores = use.shareOfKeys();
      return;
    }
    case Verb::softmax:
      exps += area;
      slots += area / 32 * c.groupSoftmaxSlots;
      return;
    case Verb::stream:
      units += smem / double(kUnitBytes);
      copies += clocksToCopyLines(use, problem, c);
      return;
    case Verb::absorb:
      absorbed += double(use.count);
      return;
    case Verb::store:
      if (shapeOf(node.tensor).cols)
        stored += double(use.count);
      return;
    case Verb::rescale: // under what comes back
    case Verb::spill:
    case Verb::load: // a pipeline that holds P has none of these
    case Verb::reduce:
    case Verb::weigh:
    case Verb::differentiate:
    case Verb::transpose:
    case Verb::split:
    case Verb::grid:
    case Verb::loop:
    case Verb::share:
    case Verb::hold:
      return;
    }
  }
};

} // namespace

Time attn::heldTime(const Census &census, size_t number, const Node &grid,
                    const Problem &problem, const Machine &machine,
                    TensorCoreFamily family, const Calibration &c) {
  /// Now and then the slowest of these waits for another one.
  constexpr double unitPower = 8;
  /// About half of an average tile is left at the end.
  constexpr double tailShare = 0.5;
  const GridCensus &counted = census.grids[number];
  HeldWork work(census, number, problem, machine,
                productRate(machine, problem, family), c);
  double ring = work.units * c.heldUnitClocks / double(grid.pipeline.units);
  double exp = work.exps / machine.expPerClockPerSm;
  double issue = work.slots / kSchedulersPerSm;
  double softmax = c.heldSoftmaxShare * (exp + issue);
  double clocks = powerMean({work.products, ring, softmax}, unitPower) +
                  (work.stored + work.absorbed) * c.heldColumnClocks +
                  work.absorbed * c.heldReturnClocks;

  double heads = double(counted.heads), sms = double(machine.sms);
  double tiles = double(counted.blocks) * heads;
  double average = clocks / double(counted.blocks);
  TileClocks tile = {average, counted.longest * average, average,
                     counted.longest < 1.05};
  double clock = clockOf(machine);
  double whole = makespan(tile, tiles, sms, tailShare) / clock;
  double ideal = clocks * heads / sms / clock;
  double share = heads / sms;
  double smem =
      c.operandShare * work.smemBytes / machine.smemBytesPerClockPerSm;
  BusyClocks busy = {work.products * share,
                     exp * share,
                     issue * share,
                     smem * share,
                     std::max({work.products, exp, issue, smem}) * share,
                     work.products * share};
  UnitTimes units = unitTimes(busy, whole, ideal, clock, machine, c);
  Time t = units.time;
  t.overhead = c.launchSeconds + c.loadLatencySeconds + c.heldStartSeconds;
  Bytes bytes = gridTraffic(census, number, problem, machine, machine.sms, c);
  t.l2 = std::max(bytes.l2 / (l2RateOf(machine) * c.burstGain),
                  c.heldCopyShare * work.copies * share / clock);
  t.hbm = bytes.hbm / hbmRateOf(machine, c);
  addContention(t, units.whole, c.heldL2Power, c);
  return t;
}
