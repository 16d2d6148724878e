//===- PipelineTime.cpp - How long a pipeline takes -----------------------===//
//
// A multiprocessor has one block.  Its W warpgroups make one step each in a
// *round*, which takes the longest of
//
//   units   all products, all exponentials and all instructions of a scheduler,
//           which get into each other's way: a power mean, and more where
//           nothing keeps warpgroups from doing the same at the same time; with
//           few warps a scheduler often finds none that is ready
//   smem    operands and fills, which the tensor cores and the copy engine move
//           by themselves
//   chain   what one warpgroup does one behind the other: its scores, its
//           output, its softmax, waiting.  With overlap as well, since the
//           exponentials wait for the product that was started beside the
//           scores; what overlaps is the maximum.
//   helper  what the warps that transpose or split do, beside all that; with
//           one stage a tile is split when all have multiplied the one before
//
// and combines with what the copy engine takes for the next rows.
//
// d = 128, two warpgroups, 128 keys, one H100: tensor 2048, exp 1024 and issue
// 1422 clocks, together 2154, in step 4494, of which some is lost: 2294; chain
// 2416.  Where some warpgroups have nothing to do, under a mask or behind the
// last row, the chain of the others remains.
//
// A tile is its rounds and a *boundary*: the output is written, the next tile
// begun.  In a persistent block it is part of the chain, and some of it holds
// up the other warpgroups as well.
//
// Beside all that the copy engines of all multiprocessors bring keys and values
// through L2, those of wide heads faster where more of them walk along the
// same.
//
//===----------------------------------------------------------------------===//

#include "Time/PipelineTime.h"
#include "Folds/PipelineFootprint.h"
#include <algorithm>
#include <cmath>

using namespace attn;

/// Warpgroups beyond which a scheduler finds no more to do.
static constexpr double kMostWarpgroups = 3;
/// Tiles of a multiprocessor up to which those that differ, under a mask or at
/// the end of the rows, are followed one by one; beyond, how they fall hardly
/// matters.
static constexpr double kFewTiles = 6;

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
        helperWarps(budgetOf(node, problem).helperWarps()),
        bytesPerClock(l2RateOf(machine) / clockOf(machine) / machine.sms) {
    for (const Use &use : census.uses)
      if (use.grid == number)
        add(use);
    copyClocks /= sharedGain();
  }

  double tiles() const { return double(grid.blocks); }
  /// Of all heads.
  double allTiles() const {
    return tiles() * (double(problem.batch) * problem.heads);
  }
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

  /// All products of a round.
  double products() const { return groups * (step.scores + step.output); }
  /// And what the tensor cores wait for between those of two warpgroups.
  double tensor() const {
    double between = (how.takesTurns ? c.turnClocks : 0) +
                     (how.overlaps ? 0 : c.drainClocks);
    return products() + groups * between;
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

  /// Whether one warpgroup has the multiprocessor to itself, and its steps are
  /// short.
  bool isAlone() const {
    constexpr int64_t fewKeys = 32;
    return how.warpgroups == 1 && keySplitter == 0 && keys <= fewKeys;
  }
  double softmax() const { return step.exp + step.issue; }
  double chain() const {
    // Warpgroups that have the same rows wait for each other's P as well.
    double waits = across > 1  ? 2 * c.waitClocks
                   : isAlone() ? c.aloneWaitClocks
                               : c.waitClocks;
    // The output's product runs beside maxima of the next scores.
    double hidden =
        how.overlaps ? c.hiddenShare * std::min(step.issue, step.output) : 0;
    return (step.scores + softmax() + step.output - hidden) / across + waits;
  }
  /// Of all tiles, those that are the first of their multiprocessor.
  double firstTiles() const {
    return std::min(1.0, double(machine.sms) / allTiles());
  }
  /// All products, exponentials and instructions of a round.
  double units() const {
    double slower = 1 + c.fewWarpsShare * (kMostWarpgroups - groups);
    double units =
        powerMean({tensor(), slower * exp(), slower * issue()}, c.unitPower);
    if (how.takesTurns)
      return units;
    // Nothing keeps warpgroups from doing the same at the same time: then a
    // unit has nothing to do while the others are busy.  More of them seldom
    // all agree, unless each has the next product waiting.
    double share = how.overlaps
                       ? c.lockedShare + c.firstLockedShare * firstTiles()
                       : std::pow(c.inStepShare, groups - 1);
    double inStep = tensor() + groups * softmax();
    return units + share * std::max(0.0, inStep - units);
  }
  /// Of a round, what the warps beside the producer do.
  double helper(double active) const {
    double alone = transposer + keySplitter + valueSplitter;
    if (grid.stages > 1)
      return alone;
    return std::max({alone, keySplitter + active * step.scores,
                     valueSplitter + active * step.output});
  }
  double loneShare() const {
    return groups == 1 && keySplitter > 0 ? c.loneSplitShare : 1;
  }
  /// A round in which so many warpgroups have something to do, without what
  /// loads add.
  double busy(double active) const {
    double ofTile = how.isPersistent ? groupBoundary() / rounds() : 0;
    double part = active / groups;
    // Warpgroups that are free to do so sometimes meet at the tensor cores.
    if (!how.takesTurns)
      ofTile += (c.meetShare + c.firstMeetShare * firstTiles()) * products() *
                (active - 1) / groups;
    double busy = std::max({units() * part, chain() + ofTile,
                            c.operandShare * smem() * part, helper(active)});
    busy = powerMean({busy, c.aloneShare * copyClocks / blockSteps()},
                     c.ringPower);
    return loneShare() * busy *
           (1 + c.ringShare / std::max(1.0, grid.stages - 1.0));
  }
  double round(double active) const {
    return busy(active) + loadGap(busy(active));
  }
  /// Clocks of a round in which its loads are waited for, if it is otherwise
  /// busy for so long: a ring of n buffers asks for data n - 1/2 handovers
  /// ahead.
  double loadGap(double busy) const {
    double handovers = std::max(1.0, double(grid.handovers) / grid.steps);
    double load = copyClocks / blockSteps() / handovers;
    return std::max(0.0, handovers * load - (grid.stages - 0.5) * busy);
  }

  double longestRound() const { return round(groups); }
  double averageRound() const {
    double alone = round(1);
    // Who is done goes on to the next tile, if its queries are there already.
    if (how.isPersistent && queryStages > 1 && grid.together == 1)
      alone += (1 - c.idleShare) * (longestRound() / groups - alone);
    return longestRound() + lonely() * (alone - longestRound());
  }

  /// Clocks of one warpgroup between the rounds of two tiles.
  double groupBoundary() const {
    return c.groupTileClocks + epilogueSlots + (strips - 1) * c.stripClocks +
           maskedScores() / 32 / kSchedulersPerSm * c.maskSlots +
           cutLoops() * c.cutLoopClocks;
  }
  /// Clocks between the rounds of two tiles in which nobody works on another.
  double boundary() const {
    double queryLoad =
        queryBytes / (bytesPerClock * c.burstGain) + querySplitter;
    if (!how.isPersistent)
      return groupBoundary() * (1 + c.exposedShare * (groups - 1)) +
             c.blockClocks + queryLoad + step.scores + softmax() + step.output;
    double share = c.exposedShare, passing = 0;
    if (how.takesTurns) {
      // The next one waits for who writes; a third is still busy meanwhile.
      if (groups <= 2)
        share += c.exposedByTurnsShare;
      // Who has nothing to do in a round passes its turn on.
      passing = lonely() * (groups - 1) * c.passedTurnClocks;
    }
    if (queryStages > 1)
      return groups * groupBoundary() * share + passing;
    // One buffer is free again after the last scores of all; the last output
    // hides some of the load.
    share += c.exposedByQueriesShare;
    return groups * groupBoundary() * share + passing +
           std::max(0.0, queryLoad - step.output);
  }
  /// Clocks in which a persistent block begins its first tile, beside that
  /// tile's boundary: what every tile of other blocks has.
  double firstStart() const {
    if (!how.isPersistent)
      return 0;
    double queryLoad = queryBytes / (bytesPerClock * c.burstGain);
    return c.firstStartShare *
           (c.blockClocks + queryLoad + step.scores + softmax());
  }

  /// Clocks of the copy engine for what fills the ring at first.  The more is
  /// asked for, the later comes what is needed.
  double firstFill() const { return grid.stages * copyClocks / blockSteps(); }

  /// Bytes that the ring of keys and values asks for ahead.
  double bytesAhead() const {
    return (grid.stages - 0.5) * loadBytes / blockSteps();
  }

  /// Steps of all blocks, one head.
  double blockSteps() const { return double(grid.steps) * grid.together; }

  /// Clocks of the copy engine for the keys and values of all tiles.
  double copying() const { return copyClocks; }

  int64_t blockKeys() const { return keys; }
  double longestRounds() const { return double(grid.mostSteps); }

private:
  const GridCensus &grid;
  const Pipeline &how;
  const Problem &problem;
  const Machine &machine;
  const Calibration &c;
  double rate;
  double across;        ///< warpgroups that have the same rows
  double groups;        ///< that have rows of their own
  int64_t helperWarps;  ///< that transpose or split, if some do
  double bytesPerClock; ///< that the copy engine brings
  Step step;
  /// Clocks of a step, or a tile, beside all others.
  double transposer = 0, keySplitter = 0, valueSplitter = 0, querySplitter = 0;
  double smemBytes = 0, queryBytes = 0, loadBytes = 0, copyClocks = 0;
  double epilogueSlots = 0, strips = 1;
  int64_t queryStages = 1;
  int64_t keys = 1; ///< of a block

  /// By how much faster the rows of wide heads come, by how many
  /// multiprocessors walk along the same keys at once.
  double sharedGain() const {
    constexpr double narrow = 160, wide = 240; // columns
    if (bytesOf(problem.dtype) != 2)
      return 1;
    double sharers = double(problem.heads) / double(problem.kvHeads);
    double walkers = std::clamp(tiles() * sharers, 1.0, double(machine.sms));
    double power =
        problem.mask.isOpen() ? c.sharedCopyPower : c.maskedSharedCopyPower;
    double columns = double(problem.headDim + problem.headDimV) / 2;
    double width = std::clamp((columns - narrow) / (wide - narrow), 0.0, 1.0);
    return std::pow(c.sharedCopyGain * std::pow(walkers, power), width);
  }

  /// Loops of a warpgroup for blocks that a mask cuts, beside the one for all
  /// others and the first block: with the diagonal at multiples of its rows a
  /// causal one cuts no other, unless blocks go in step.
  int64_t cutLoops() const {
    const Mask &mask = problem.mask;
    bool atCorners =
        mask.endsAtCorners() && keys % kWarpgroupRows == 0 && how.blocks() == 1;
    return int64_t(mask.hidesBefore()) + (mask.hidesBehind() && !atCorners);
  }
  /// Scores of a warpgroup's tile that are looked at for being hidden.
  double maskedScores() const {
    if (problem.mask.isOpen())
      return problem.keys % keys == 0 ? 0 : double(keys * kWarpgroupRows);
    double cut = cutScores(kWarpgroupRows, keys);
    return problem.mask.hidesBefore() ? 2 * cut : cut;
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
      if (needsSplit(problem) && node.tensor == Tensor::O)
        step.issue += perScheduler * c.addClocks;
      (node.tensor == Tensor::S ? step.scores : step.output) += clocks;
      return;
    }
    case Verb::transpose: {
      // Warps take 32 rows each in turn.
      double chunks = std::ceil(use.tile.rows / 32.0 / double(helperWarps));
      double pieces = chunks * padded(node.tensor, use.tile.cols, problem) / 16;
      transposer = pieces * c.transposeClocks + c.transposeWaitClocks;
      return;
    }
    case Verb::softmax:
      keys = use.tile.cols;
      step.exp += area / machine.expPerClockPerSm;
      step.issue += perScheduler * c.softmaxClocks + c.stepClocks;
      if (needsSplit(problem))
        step.issue += perScheduler * c.splitWeightClocks;
      return;
    case Verb::split: {
      // Warps take turns at units of 8 rows and a panel.
      int64_t units = use.tile.rows / 8 * ceilDiv(use.tile.cols, kPanelColumns);
      double clocks = double(ceilDiv(units, helperWarps)) * c.splitUnitClocks +
                      c.splitWaitClocks;
      (node.tensor == Tensor::Q   ? querySplitter
       : node.tensor == Tensor::K ? keySplitter
                                  : valueSplitter) = clocks;
      return;
    }
    case Verb::stream:
      loadBytes += smem;
      copyClocks += clocksToCopy(use, problem, c) *
                    (hasWholeLines(use, problem) ? c.wholeLinesShare : 1);
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
    case Verb::weigh: // no pipeline has them
    case Verb::differentiate:
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

static TileClocks clocksOf(const PipelineModel &model, double boundary) {
  double round = model.longestRound(), most = model.longestRounds();
  double least = std::max(1.0, 2 * model.rounds() - most);
  return {model.rounds() * model.averageRound() + boundary,
          most * round + boundary, least * round + boundary,
          most < 1.05 * model.rounds()};
}

/// Clocks of the tiles of a head, of so many rows each.
static std::vector<double> clocksOfEach(const PipelineModel &model,
                                        double boundary, int64_t rows,
                                        const Problem &problem) {
  std::vector<double> clocks;
  if (problem.mask.isOpen()) {
    double longest = model.rounds() * model.longestRound() + boundary;
    clocks.assign(size_t(problem.queries / rows), longest);
    // Warpgroups behind the last row have nothing to do.
    double active = double(ceilDiv(problem.queries % rows, kWarpgroupRows));
    if (active > 0)
      clocks.push_back(model.rounds() * model.round(active) + boundary);
    return clocks;
  }
  double round = model.averageRound();
  for (int64_t pairs :
       pairsOfTiles(problem, Axis::Query, rows, model.blockKeys()))
    clocks.push_back(double(std::max<int64_t>(1, pairs)) * round + boundary);
  return clocks;
}

/// Clocks until all tiles are done, of so many rows each.
static double clocksOfTiles(const PipelineModel &model, double boundary,
                            int64_t rows, const Problem &problem, double sms,
                            const Calibration &c) {
  double tiles = model.allTiles();
  bool isMasked = !problem.mask.isOpen();
  bool areEqual = !isMasked && problem.queries % rows == 0;
  if (areEqual || tiles > kFewTiles * sms)
    return makespan(clocksOf(model, boundary), tiles, sms, c.tailShare);
  std::vector<double> clocks = clocksOfEach(model, boundary, rows, problem);
  int64_t heads = problem.batch * problem.heads;
  return isMasked ? makespan(std::move(clocks), heads, int64_t(sms))
                  : makespanInOrder(clocks, heads, int64_t(sms));
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
  double blocks = model.allTiles();
  double roundsPerSm = model.busyRounds() * blocks / sms;
  double boundary = model.boundary();
  // Multiprocessors without a tile leave power to the others.
  double idle = std::max(0.0, 1 - blocks / sms);
  clock *= 1 + c.idleClock * idle;
  double whole = (clocksOfTiles(model, boundary, grid.step, problem, sms, c) +
                  model.firstStart()) /
                 clock;
  double ideal =
      (model.rounds() * model.averageRound() + boundary) * blocks / sms / clock;

  BusyClocks work = {model.tensor() * roundsPerSm,
                     model.exp() * roundsPerSm,
                     model.issue() * roundsPerSm,
                     c.operandShare * model.smem() * roundsPerSm,
                     model.busiest() * roundsPerSm,
                     model.products() * roundsPerSm};
  UnitTimes units = unitTimes(work, whole, ideal, clock, machine, c);
  Time t = units.time;
  t.overhead = c.launchSeconds + c.pipelineSeconds +
               c.fillShare * model.firstFill() / clock;
  Bytes bytes =
      gridTraffic(census, number, problem, machine, sms * together, c);
  t.l2 = std::max(bytes.l2 / l2RateOf(machine),
                  model.copying() * heads / (sms * clockOf(machine)));
  // No faster than the bytes that the rings have asked for arrive.
  double ringRate = sms * model.bytesAhead() / c.memoryLatencySeconds;
  t.hbm = bytes.hbm / std::min(hbmRateOf(machine, c), ringRate);
  addContention(t, units.whole, c.l2Power, c);
  return t;
}
