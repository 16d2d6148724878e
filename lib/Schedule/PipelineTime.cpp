//===- PipelineTime.cpp - How long a pipeline takes -----------------------===//
//
// A multiprocessor has one block.  Its W warpgroups make one step each in a
// *round*, which takes the longest of
//
//   units   all products, all exponentials and all instructions of a scheduler,
//           which get into each other's way: a power mean
//   smem    operands and fills, which the tensor cores and the copy engine move
//           by themselves
//   chain   what one warpgroup does one behind the other: its scores, its
//           softmax, waiting, and, unless they overlap, its output
//   transposer   what the warps that transpose do, beside all that
//
// d = 128, two warpgroups, 128 keys, one H100: tensor 2064, exp 1024 and issue
// 661 clocks, together 2171; smem 1075; chain 1814.  Where some warpgroups have
// nothing to do, under a mask or behind the last row, the chain of the others
// remains.
//
// A tile is its rounds and a *boundary*: the output is written, the next tile
// begun.  Two query stages in a persistent block put the beginning under the
// end.
//
// Beside all that the copy engines bring keys and values through L2.
//
//===----------------------------------------------------------------------===//

#include "PipelineTime.h"
#include <algorithm>
#include <cmath>

using namespace attn;

/// Of L2 and device memory.
static constexpr int64_t kSectorBytes = 32;

namespace {

/// Clocks of one step of one warpgroup on each unit, if it were alone.
struct Step {
  double scores = 0, output = 0; ///< tensor cores
  double exp = 0, issue = 0;
};

class PipelineModel {
public:
  PipelineModel(const Census &census, size_t number, const Node &node,
                const Problem &problem, const Machine &machine,
                TensorCoreFamily family, const Calibration &c)
      : grid(census.grids[number]), how(node.pipeline), problem(problem),
        machine(machine), c(c), rate(productRate(machine, problem, family)),
        across(double(node.across)),
        groups(double(node.pipeline.warpgroups) / across),
        latency(c.copyLatencySeconds * clockOf(machine)),
        bytesPerClock(l2RateOf(machine) / clockOf(machine) / machine.sms) {
    for (const Use &use : census.uses)
      if (use.grid == number)
        add(use);
  }

  double tiles() const { return double(grid.blocks); }
  /// Rounds of an average tile: one for every block of keys.
  double rounds() const { return double(grid.steps) / tiles(); }
  /// As many in which all warpgroups work do what is done in all rounds.
  double busyRounds() const {
    return grid.groupSteps == 0 ? rounds() : grid.groupSteps / groups / tiles();
  }
  /// The share of rounds in which, of all warpgroups, one has something to do,
  /// if in all others all have.
  double lonely() const {
    if (grid.groupSteps == 0 || groups <= 1)
      return 0;
    double all = groups * double(grid.steps);
    return (all - double(grid.groupSteps)) / (all - double(grid.steps));
  }

  double tensor() const {
    return groups * (step.scores + step.output + c.switchClocks +
                     (how.takesTurns ? c.turnClocks : 0));
  }
  double exp() const { return groups * step.exp; }
  double issue() const { return groups * step.issue; }
  double smem() const {
    return smemBytes / (tiles() * grid.together * busyRounds()) /
           machine.smemBytesPerClockPerSm;
  }
  double busiest() const {
    return std::max({tensor(), exp(), issue(), c.operandShare * smem()});
  }

  double softmax() const { return step.exp + step.issue; }
  double chain() const {
    // Warpgroups that have the same rows wait for each other's P as well.
    double waits = across > 1 ? 2 * c.waitClocks : c.waitClocks;
    return (step.scores + softmax() + (how.overlaps ? 0 : step.output)) /
               across +
           waits;
  }
  /// A round in which so many warpgroups have something to do, without what
  /// loads add.
  double busy(double active) const {
    double units = powerMean({tensor(), exp(), issue()},
                             how.takesTurns ? c.turnPower : c.pipelinePower);
    units *= active / groups;
    double busy = std::max(powerMean({units, chain()}, c.chainPower),
                           c.operandShare * smem() * active / groups);
    busy = std::max(busy, transposer);
    return busy * (1 + c.ringShare / std::max(1.0, grid.stages - 1.0));
  }
  double round(double active) const {
    return busy(active) + loadGap(busy(active));
  }
  /// Clocks of a round in which its loads are waited for, if it is otherwise
  /// busy for so long: a ring of n buffers asks for data n - 1/2 handovers
  /// ahead.
  double loadGap(double busy) const {
    double handovers = std::max(1.0, double(grid.handovers) / grid.steps);
    double load = latency + copyClocks / blockSteps() / handovers;
    return std::max(0.0, handovers * load - (grid.stages - 0.5) * busy);
  }
  /// Of all rounds, where all warpgroups have something to do.
  double loadGaps() const { return rounds() * loadGap(busy(groups)); }

  double longestRound() const { return round(groups); }
  double averageRound() const {
    double alone = round(1);
    // Who is done goes on to the next tile, if its queries are there already.
    if (how.isPersistent && queryStages > 1 && grid.together == 1)
      alone += (1 - c.idleShare) * (longestRound() / groups - alone);
    return longestRound() + lonely() * (alone - longestRound());
  }

  /// Clocks between the rounds of two tiles.
  double boundary() const {
    double queryLoad = latency + queryBytes / (bytesPerClock * c.burstGain);
    double perGroup = c.groupTileClocks + epilogueSlots;
    if (problem.mask.kind != MaskKind::none)
      perGroup += c.maskedGroupClocks * waitsUnderMask();
    double clocks = groups * perGroup + (strips - 1) * c.stripClocks;
    if (!how.isPersistent)
      return clocks + c.blockClocks + queryLoad + step.scores + softmax();
    // One buffer is free again after the last scores; the last output hides
    // some of the load.
    if (queryStages == 1)
      clocks += std::max(0.0, queryLoad - step.output);
    return clocks;
  }

  /// The share of what masks cost between tiles that is left with slots beyond
  /// the first two, in which a warpgroup that is done runs ahead of the others.
  double waitsUnderMask() const {
    return 1 - c.aheadShare * (1 - 1 / std::max(1.0, grid.stages - 1.0));
  }

  /// Bytes that the ring of keys and values asks for ahead.
  double bytesAhead() const {
    return (grid.stages - 0.5) * loadBytes / blockSteps();
  }

  /// Steps of all blocks, one head.
  double blockSteps() const { return double(grid.steps) * grid.together; }

  /// Clocks of the copy engine for the keys and values of all tiles.
  double copying() const { return copyClocks; }

  double longestRounds() const { return double(grid.mostSteps); }
  double averageSteps() const { return double(grid.steps) / tiles(); }

private:
  const GridCensus &grid;
  const Pipeline &how;
  const Problem &problem;
  const Machine &machine;
  const Calibration &c;
  double rate;
  double across;        ///< warpgroups that have the same rows
  double groups;        ///< that have rows of their own
  double latency;       ///< clocks of a load
  double bytesPerClock; ///< that the copy engine brings
  Step step;
  double transposer = 0; ///< clocks of a step, beside all others
  double smemBytes = 0, queryBytes = 0, loadBytes = 0, copyClocks = 0;
  double epilogueSlots = 0, strips = 1;
  int64_t queryStages = 1;

  /// Clocks in which copy engines bring keys or values, row of a box by row.
  double clocksToCopy(const Use &use) const {
    Tensor tensor = use.node->tensor;
    int64_t columns = extent(problem, *shapeOf(tensor).cols);
    int64_t rowBytes = columns * bytesPerElement(tensor, problem);
    double rows = double(use.elements) / double(columns);
    bool crosses = rowBytes % kSectorBytes != 0;
    double boxes = double(ceilDiv(rowBytes, kPanelBytes));
    double bytes =
        double(rowBytes) + boxes * (crosses ? c.crossingBytes : c.boxBytes);
    return rows * bytes / (bytesPerClock * c.boxGain);
  }

  void add(const Use &use) {
    const Node &node = *use.node;
    double smem = attn::smemBytes(use, problem);
    double area =
        double(use.tile.rows) * padded(node.tensor, use.tile.cols, problem);
    // A warp of each warpgroup runs on every scheduler.
    double perScheduler = area / 32 / kSchedulersPerSm;
    smemBytes += smem;
    switch (node.verb) {
    case Verb::multiply: {
      double depth = padded(node.a, use.tile.depth, problem);
      double clocks =
          std::max(2 * area * depth / rate,
                   smem / use.count / machine.smemBytesPerClockPerSm);
      // In slices, several in a step.
      double ofGroups =
          grid.groupSteps > 0 ? double(grid.groupSteps) : blockSteps() * groups;
      double times = std::max(1.0, use.count / ofGroups);
      clocks *= times;
      (node.tensor == Tensor::S ? step.scores : step.output) += clocks;
      step.issue += depth * bytesPerElement(node.b, problem) / kStepBytes *
                    c.wgmmaSlots * times;
      return;
    }
    case Verb::transpose: {
      // The three warps that the producer leaves take 32 rows each in turn.
      double chunks = std::ceil(use.tile.rows / 32.0 / 3);
      double pieces = chunks * padded(node.tensor, use.tile.cols, problem) / 16;
      transposer = pieces * c.transposeClocks + c.transposeWaitClocks;
      return;
    }
    case Verb::softmax:
      step.exp += area / machine.expPerClockPerSm;
      step.issue += perScheduler * c.lazySoftmaxSlots + c.stepSlots;
      return;
    case Verb::stream:
      loadBytes += smem;
      copyClocks += clocksToCopy(use);
      return;
    case Verb::load:
      queryBytes += area * bytesPerElement(node.tensor, problem);
      queryStages = node.stages;
      return;
    case Verb::store:
      if (!shapeOf(node.tensor).cols)
        return;
      epilogueSlots += kWarpgroupRows *
                       double(padded(node.tensor, use.tile.cols, problem)) /
                       32 / kSchedulersPerSm * c.epilogueSlots;
      if (node.step > 0)
        strips = ceilDiv(use.tile.cols, node.step);
      return;
    case Verb::rescale: // hardly ever done: only when a maximum grows by 2^8
    case Verb::grid:
    case Verb::loop:
    case Verb::share:
    case Verb::hold:
    case Verb::absorb:
    case Verb::spill:
    case Verb::reduce:
      return;
    }
  }
};

} // namespace

/// Clocks until the last multiprocessor is done.  Equal tiles come in waves, of
/// which the last is paid in full; of unequal ones the longest go first, and
/// about half of a short one is left at the end.
static double makespan(const PipelineModel &model, double blocks, double sms,
                       double boundary, double tailShare) {
  double round = model.longestRound();
  double average = model.rounds() * model.averageRound() + boundary;
  double ideal = average * blocks / sms;
  double equal = std::ceil(blocks / sms) * average;
  double longest = model.longestRounds() * round + boundary;
  if (model.longestRounds() < 1.05 * model.averageSteps())
    return std::max(longest, equal);
  double least =
      std::max(1.0, 2 * model.averageSteps() - model.longestRounds());
  return std::max(
      longest, std::min(equal, ideal + tailShare * (least * round + boundary)));
}

Time attn::pipelineTime(const Census &census, size_t number, const Node &grid,
                        const Problem &problem, const Machine &machine,
                        TensorCoreFamily family, const Calibration &c) {
  PipelineModel model(census, number, grid, problem, machine, family, c);
  // Blocks that work together take tiles of all of them.
  int64_t together = census.grids[number].together;
  double clock = clockOf(machine);
  double sms = double(std::max<int64_t>(1, machine.sms / together));
  double heads = double(problem.batch) * problem.heads;
  double blocks = model.tiles() * heads;
  double roundsPerSm = model.busyRounds() * blocks / sms;
  double boundary = model.boundary();
  double whole = makespan(model, blocks, sms, boundary, c.tailShare) / clock;
  double ideal =
      (model.rounds() * model.averageRound() + boundary) * blocks / sms / clock;

  Time t;
  t.tensor = model.tensor() * roundsPerSm / clock;
  t.exp = model.exp() * roundsPerSm / clock;
  t.issue = model.issue() * roundsPerSm / clock;
  t.smem = c.operandShare * model.smem() * roundsPerSm / clock;
  t.exposed = ideal - model.busiest() * roundsPerSm / clock;
  t.tail = whole - ideal;
  t.overhead = c.launchSeconds + c.loadLatencySeconds;
  Bytes bytes =
      gridTraffic(census, number, problem, machine, sms * together, c);
  t.l2 = std::max(bytes.l2 / l2RateOf(machine),
                  model.copying() * heads / (sms * clock));
  // No faster than the bytes that the rings have asked for arrive.
  double ringRate = sms * model.bytesAhead() / c.memoryLatencySeconds;
  t.hbm = bytes.hbm / std::min(hbmRateOf(machine, c), ringRate);
  double longest = std::max({whole, t.l2, t.hbm});
  t.contention = powerMean({whole, t.l2, t.hbm}, c.contentionPower) - longest;
  t.seconds = longest + t.contention + t.overhead;
  double withoutGaps = whole - model.loadGaps() * blocks / sms / clock;
  t.boundBy = binding(t, withoutGaps, family);
  return t;
}
