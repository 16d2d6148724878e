//===- GradientTime.cpp - How long a pipeline of gradients takes ----------===//
//
// All warpgroups of a block make a step together, a block of queries with a
// tile of keys, since what they make of it is shared.  A step takes the longer
// of
//
//   units   products, operands and sums in shared memory, exponentials and
//           instructions, which are in each other's way: a power mean
//   chain   what one warpgroup does one behind the other, with what it waits
//
// and, under a mask, the instructions that look for hidden scores.
//
// d = 128, 64 queries, 128 keys, one H100, in clocks.  Products 2560.  Shared
// memory: S and dP read both factors, 1024; dV and dK one, 512; dQ both, 512;
// dS is written once, 128; sums of dQ are written and read by the copy engine,
// 512; fills 256; together 2976.  A step takes 3560, 3550 were measured.
//
// A tile is its steps and a *boundary*.  Beside all that the copy engines of
// all multiprocessors bring what streams, and take sums away, through L2.
//
//===----------------------------------------------------------------------===//

#include "GradientTime.h"
#include <algorithm>

using namespace attn;

namespace {

class GradientModel {
public:
  GradientModel(const Census &census, size_t number, const Node &node,
                const Problem &problem, const Machine &machine,
                TensorCoreFamily family, const Calibration &c)
      : grid(census.grids[number]), how(node.pipeline), problem(problem),
        machine(machine), c(c), rate(productRate(machine, problem, family)),
        groups(double(node.pipeline.warpgroups)) {
    for (const Use &use : census.uses)
      if (use.grid == number)
        add(use);
  }

  double tiles() const { return double(grid.blocks); }
  /// Blocks of queries of an average tile, all heads of a group.
  double steps() const { return double(grid.steps) / tiles(); }

  // Clocks of an average step.
  double tensor() const { return work.flops / rate / grid.steps; }
  double smem() const {
    return work.smemBytes / machine.smemBytesPerClockPerSm / grid.steps;
  }
  double exp() const {
    return work.scores / machine.expPerClockPerSm / grid.steps;
  }
  double issue() const { return work.slots / kSchedulersPerSm / grid.steps; }
  double busiest() const {
    return std::max({tensor(), smem(), exp(), issue()});
  }
  double step() const {
    double units =
        powerMean({tensor(), smem(), exp(), issue()}, c.gradientPower);
    double chain = (std::max(tensor(), smem()) + exp() + issue()) / groups +
                   c.gradientWaitClocks;
    return std::max(units, chain) + masking();
  }

  TileClocks tile() const {
    double most = double(grid.mostSteps);
    double least = std::max(1.0, 2 * steps() - most);
    return {steps() * step() + boundary(), most * step() + boundary(),
            least * step() + boundary(), most < 1.05 * steps()};
  }

private:
  const GridCensus &grid;
  const Pipeline &how;
  const Problem &problem;
  const Machine &machine;
  const Calibration &c;
  double rate, groups;
  /// Of all tiles of a head.
  GradientWork work;
  double tileBytes = 0;

  /// Where results leave from the places of own rows, those of the next tile
  /// come only when they have.
  double boundary() const {
    if (!how.reusesPlaces)
      return c.gradientTileClocks;
    double perClock = l2RateOf(machine) / clockOf(machine) / machine.sms;
    return c.gradientTileClocks +
           tileBytes / tiles() / (c.burstGain * perClock);
  }

  double masking() const {
    if (problem.mask.kind == MaskKind::none)
      return 0;
    return work.scores / grid.steps / 32 / kSchedulersPerSm *
           c.gradientMaskSlots;
  }

  void add(const Use &use) {
    const Node &node = *use.node;
    work.add(use, problem, c);
    switch (node.verb) {
    case Verb::reduce: // from registers to shared memory
      return work.addCopy(use, problem, c);
    case Verb::softmax: // no pipeline of gradients has them
    case Verb::transpose:
    case Verb::rescale:
    case Verb::absorb:
    case Verb::spill:
    case Verb::load: // by the copy engine
    case Verb::store:
      tileBytes += double(use.moved) * bytesMoved(node, problem);
      return;
    case Verb::multiply:
    case Verb::weigh:
    case Verb::differentiate:
    case Verb::stream:
    case Verb::grid:
    case Verb::loop:
    case Verb::share:
    case Verb::hold:
      return;
    }
  }
};

} // namespace

Time attn::gradientTime(const Census &census, size_t number, const Node &grid,
                        const Problem &problem, const Machine &machine,
                        TensorCoreFamily family, const Calibration &c) {
  GradientModel model(census, number, grid, problem, machine, family, c);
  double sms = double(machine.sms), clock = clockOf(machine);
  double tiles = model.tiles() * double(census.grids[number].heads);
  double stepsPerSm = model.steps() * tiles / sms;
  TileClocks tile = model.tile();
  double whole = makespan(tile, tiles, sms, c.tailShare) / clock;
  double ideal = tile.average * tiles / sms / clock;

  BusyClocks work = {model.tensor() * stepsPerSm,  model.exp() * stepsPerSm,
                     model.issue() * stepsPerSm,   model.smem() * stepsPerSm,
                     model.busiest() * stepsPerSm, model.tensor() * stepsPerSm};
  UnitTimes units = unitTimes(work, whole, ideal, machine, c);
  Time t = units.time;
  t.overhead = c.launchSeconds + c.pipelineSeconds;
  Bytes bytes = gridTraffic(census, number, problem, machine, machine.sms, c);
  t.l2 = bytes.l2 / l2RateOf(machine);
  t.hbm = bytes.hbm / hbmRateOf(machine, c);
  addContention(t, units.whole, c);
  t.boundBy = binding(t, units.whole, family);
  return t;
}
