//===- GroupTime.cpp - How long a group of blocks takes -------------------===//
//
// The blocks of a group wait for each other in every strip of keys, so nothing
// runs ahead; a strip is, one after the other,
//
//   scores     of the own share
//   output     of all shares
//   softmax    of a slice of the own share: the others' have products beside
//   waiting    for the first scores, for barriers
//   shares     of each share of P: the product before drains, P is scaled
//
// Scores and output take as long as their products, or as the ring brings what
// they read.  A unit of the ring comes, waits for the product before, is read,
// and is handed back: so many clocks a unit, and a ring of so many units at the
// same time.  While scores are worked out panels of Q come besides those of K.
//
// Example: one H100, four blocks with d = 1024, 8 panels of Q resident, 6
// units.  A panel's products take 512 clocks, so a unit 930 + 2·512 + 450 =
// 2404; 24 units 24·2404/6 = 9616, the products only 8192.  The strip: 9616 +
// 8192 + 256 + 460 + 4·370 = 20004.  With 6 panels and 8 units 26·2404/8 =
// 7813, so that it is 18580.
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
  double tensor() const {
    return (scores.products + output.products) / blockSteps;
  }
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
    double work = clocksOf(scores) + clocksOf(output) +
                  std::max(exp(), issue()) * kFirstSlice + c.groupWaitClocks +
                  how.group * c.shareClocks;
    return std::max(work, smem());
  }

  /// Clocks of a tile beside its strips.
  double boundary() const {
    return (1 + c.exchangeLatencies) * latency + c.groupBoundaryClocks +
           how.warpgroups * (c.groupTileClocks + epilogueSlots);
  }

private:
  /// Rows and bytes of what a unit of the ring holds, and of a share the part
  /// whose softmax has no product beside it.
  static constexpr double kPieceRows = 32, kUnitBytes = 16384;
  static constexpr double kFirstSlice = 0.25;
  /// A ring nearly as slow as products holds them up now and then.
  static constexpr double kRingPower = 64;

  /// Products that read the same stream, and what the ring brings for them.
  struct Phase {
    double products = 0; ///< clocks
    double steps = 0, units = 0, bytes = 0;
  };

  const GridCensus &grid;
  const Pipeline &how;
  const Machine &machine;
  const Calibration &c;
  double blockSteps; ///< strips of all blocks, one head
  double latency;
  double bytesPerClock; ///< that the copy engine brings
  Phase scores, output;
  double exps = 0, slots = 0, smemBytes = 0;
  double epilogueSlots = 0; ///< of one tile

  /// Of one strip.
  double clocksOf(const Phase &phase) const {
    double most = std::max(phase.products, phase.bytes / bytesPerClock);
    if (how.units > 0) {
      double held = 2 * phase.products / phase.steps;
      double life = latency + held + c.handBackClocks;
      most = powerMean({most, phase.units * life / how.units}, kRingPower);
    }
    return most / blockSteps;
  }

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
      Phase &phase = node.tensor == Tensor::S ? scores : output;
      phase.products +=
          std::max(flops / rate, smem / machine.smemBytesPerClockPerSm);
      slots += padded(node.a, use.tile.depth, problem) / 16.0 *
               c.groupWgmmaSlots * use.count;
      return;
    }
    case Verb::softmax:
      exps += area * use.count;
      slots += area / 32 * c.groupSoftmaxSlots * use.count;
      return;
    case Verb::stream: {
      bool isValue = node.tensor == Tensor::V;
      Phase &phase = isValue ? output : scores;
      double units = isValue ? double(use.tile.rows) * use.count / kPieceRows
                             : smem / kUnitBytes;
      phase.bytes += smem;
      phase.units += units;
      if (node.tensor != Tensor::Q)
        phase.steps += units;
      return;
    }
    case Verb::absorb:
    case Verb::spill:
    case Verb::reduce:
      slots += double(use.moved) * bytesMoved(node, problem) /
               c.bytesPerWarpInstruction * c.copySlots;
      return;
    case Verb::load:
      return; // panels come faster than their products need them
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
