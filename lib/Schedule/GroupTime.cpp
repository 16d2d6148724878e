//===- GroupTime.cpp - How long a group of blocks takes -------------------===//
//
// The blocks of a group wait for each other in every strip of keys, so nothing
// runs ahead; a strip is, one after the other,
//
//   products   scores of the own share, output of all shares
//   softmax    of the own share: all warpgroups at the same time
//   waiting    for the first scores, for barriers
//   shares     of each share of P: the product before drains, P is scaled
//
// or the loads of the ring, if they take longer.  d = 512, two blocks, one
// H100: 8192 + 1024 + 300 + 2·470 = 10456 clocks; d = 1024, four blocks: 16384
// + 1024 + 300 + 4·470 = 19588.  Measured: 10.4 K and 19.6 K.
//
// A tile is its strips and what is around them: the queries come, the last
// exchange is waited for, the output is written.  Measured: 7 to 10 K clocks.
//
// Tiles are taken by *teams*, the blocks of all groups of a cluster; as many
// teams run as have whole sets of multiprocessors: 33 of four blocks on 132,
// but 16 of eight.
//
//===----------------------------------------------------------------------===//

#include "GroupTime.h"
#include <algorithm>
#include <cmath>

using namespace attn;

namespace {

/// Clocks of one block.
class GroupModel {
public:
  GroupModel(const Census &census, size_t number, const Node &node,
             const Problem &problem, const Machine &machine,
             TensorCoreFamily family, const Calibration &c)
      : grid(census.grids[number]), how(node.pipeline), machine(machine), c(c),
        blockSteps(double(grid.steps) * grid.together),
        latency(c.loadLatencySeconds * clockOf(machine)),
        bytesPerClock(l2RateOf(machine) * c.burstGain / clockOf(machine) /
                      machine.sms) {
    double rate = productRate(machine, problem, family);
    for (const Use &use : census.uses)
      if (use.grid == number)
        add(use, problem, rate);
  }

  double tiles() const { return double(grid.blocks); }
  double strips() const { return double(grid.steps) / tiles(); }
  double mostStrips() const { return double(grid.mostSteps); }

  // Of one strip.
  double tensor() const { return productClocks / blockSteps; }
  double exp() const { return exps / machine.expPerClockPerSm / blockSteps; }
  double issue() const { return slots / kSchedulersPerSm / blockSteps; }
  double smem() const {
    return c.operandShare * smemBytes / machine.smemBytesPerClockPerSm /
           blockSteps;
  }
  double busiest() const {
    return std::max({tensor(), exp(), issue(), smem()});
  }
  double strip() const {
    double work = tensor() + std::max(exp(), issue()) + c.groupWaitClocks +
                  how.group * c.shareClocks;
    // A ring brings its bytes once per latency, or as fast as L2 gives them.
    double ringBytes = double(how.units) * kUnitBytes;
    double perClock = ringBytes > 0
                          ? std::min(bytesPerClock, ringBytes / latency)
                          : bytesPerClock;
    return std::max({work, smem(), loadBytes / blockSteps / perClock});
  }

  /// Clocks of a tile beside its strips.
  double boundary() const {
    double queryLoad = latency + queryBytes / bytesPerClock;
    return queryLoad + c.exchangeLatencies * latency + c.groupBoundaryClocks +
           how.warpgroups * (c.groupTileClocks + epilogueSlots);
  }

private:
  /// What a unit of the ring holds.
  static constexpr double kUnitBytes = 16384;

  const GridCensus &grid;
  const Pipeline &how;
  const Machine &machine;
  const Calibration &c;
  double blockSteps; ///< strips of all blocks, one head
  double latency;
  double bytesPerClock; ///< that the copy engine brings
  double productClocks = 0, exps = 0, slots = 0, smemBytes = 0, loadBytes = 0;
  double queryBytes = 0, epilogueSlots = 0; ///< of one tile

  void add(const Use &use, const Problem &problem, double rate) {
    const Node &node = *use.node;
    double smem = attn::smemBytes(use, problem);
    double area =
        double(use.tile.rows) * padded(node.tensor, use.tile.cols, problem);
    smemBytes += smem;
    switch (node.verb) {
    case Verb::multiply: {
      double flops =
          2 * area * padded(node.a, use.tile.depth, problem) * use.count;
      productClocks +=
          std::max(flops / rate, smem / machine.smemBytesPerClockPerSm);
      slots += padded(node.a, use.tile.depth, problem) / 16.0 *
               c.groupWgmmaSlots * use.count;
      return;
    }
    case Verb::softmax:
      exps += area * use.count;
      slots += area / 32 * c.groupSoftmaxSlots * use.count;
      return;
    case Verb::stream:
      loadBytes += smem;
      return;
    case Verb::absorb:
    case Verb::spill:
    case Verb::reduce:
      slots += double(use.moved) * bytesMoved(node, problem) /
               c.bytesPerWarpInstruction * c.copySlots;
      return;
    case Verb::load:
      queryBytes += area * bytesPerElement(node.tensor, problem);
      return;
    case Verb::store:
      if (shapeOf(node.tensor).cols)
        epilogueSlots += kWarpgroupRows *
                         double(padded(node.tensor, use.tile.cols, problem)) /
                         32 / kSchedulersPerSm * c.epilogueSlots;
      return;
    case Verb::weigh: // no group has them
    case Verb::differentiate:
    case Verb::rescale:
    case Verb::transpose:
    case Verb::grid:
    case Verb::loop:
    case Verb::share:
    case Verb::hold:
      return;
    }
  }
};

} // namespace

static TileClocks clocksOf(const GroupModel &model) {
  double boundary = model.boundary();
  double average = model.strips() * model.strip() + boundary;
  return {average, model.mostStrips() * model.strip() + boundary, average,
          model.mostStrips() < 1.05 * model.strips()};
}

Time attn::groupTime(const Census &census, size_t number, const Node &grid,
                     const Problem &problem, const Machine &machine,
                     TensorCoreFamily family, const Calibration &c) {
  GroupModel model(census, number, grid, problem, machine, family, c);
  int64_t together = census.grids[number].together;
  int64_t teams = std::max<int64_t>(1, machine.sms / together);
  double clock = clockOf(machine);
  double tiles = model.tiles() * problem.batch * problem.heads;
  double strips = model.strips() * tiles / teams;
  // About half of an average tile is left at the end.
  constexpr double tailShare = 0.5;
  double whole = makespan(clocksOf(model), tiles, teams, tailShare) / clock;
  double ideal =
      (strips * model.strip() + tiles / teams * model.boundary()) / clock;

  Time t;
  t.tensor = model.tensor() * strips / clock;
  t.exp = model.exp() * strips / clock;
  t.issue = model.issue() * strips / clock;
  t.smem = model.smem() * strips / clock;
  t.exposed = ideal - model.busiest() * strips / clock;
  t.tail = whole - ideal;
  t.overhead = c.launchSeconds + c.loadLatencySeconds;
  Bytes bytes =
      gridTraffic(census, number, problem, machine, teams * together, c);
  t.l2 = bytes.l2 / (l2RateOf(machine) * c.burstGain);
  t.hbm = bytes.hbm / hbmRateOf(machine, c);
  double longest = std::max({whole, t.l2, t.hbm});
  t.contention = powerMean({whole, t.l2, t.hbm}, c.contentionPower) - longest;
  t.seconds = longest + t.contention + t.overhead;
  t.boundBy = binding(t, whole, family);
  return t;
}
