//===- GroupTime.cpp - How long a group of blocks takes -------------------===//
//
// The blocks of a group wait for each other in every strip of keys, so nothing
// runs ahead; a strip is, one after the other,
//
//   scores     of the own share
//   own share  its product, or its weights, which come in slices before it
//   output     of the other shares
//   shares     of each: it is waited for and scaled; in a cluster, where blocks
//              wait for each other with every unit, that takes longer
//
// In a cluster panels of Q that stream are not shared, and those of K wait for
// them: what their rows take longer for reaching into a second line is on top.
//
// Scores and output take as long as their products, or as the ring brings what
// they read.  A unit of the ring comes, waits for the product before, is read,
// and is handed back: so many clocks a unit, and a ring of so many units at the
// same time.  While scores are worked out panels of Q come besides those of K.
//
// Example: one H100, four blocks with d = 1024 in clusters, 8 panels of Q
// resident, 6 units.  A panel's products take 512 clocks, so a unit 960 + 2·512
// + 470 = 2454; 24 units 24·2454/6 = 9816, the products only 8192.  The own
// share's weights take 2591 clocks, its product 2048, together 2637.  The
// strip: 9816 + 2637 + 3·2048 + 4·(545 + 342) = 22145.  With 6 panels and 8
// units 26·2454/8 = 7976, so that it is 20543.
//
// A tile is its strips and what is around them: the queries and the keys of the
// first strip come, the last exchange is waited for, the output is written; of
// query heads that share a key head, the keys are in L2 for all but the first;
// under a mask a strip is looked at for what it hides, and tiles of few strips
// have nothing under which to wait for others.
//
// Nor do all blocks together take less than copy engines need for the rows of
// all boxes (clocksToCopyLines), of which some reach into a second line of 128
// bytes or begin within a sector.  Where d is an odd multiple of 8 that is
// longest, and clusters, which share boxes, are faster than blocks by
// themselves.
//
// Where all groups begin at once, so does what they read first: from device
// memory, with nothing beside it.
//
// Tiles are taken by *teams*, the blocks of all groups of a cluster; as many
// teams run as have whole sets of multiprocessors: 33 of four blocks on 132,
// but 16 of eight.
//
//===----------------------------------------------------------------------===//

#include "Time/GroupTime.h"
#include "Folds/PipelineFootprint.h"
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
        sharers(double(problem.heads) / double(problem.kvHeads)),
        isMasked(!problem.mask.isOpen()) {
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
    double share = clocksOf(output) / how.group;
    double own = powerMean({share, c.groupWeightShare * exp()}, kWeightPower);
    double ofShare =
        c.shareClocks + (how.cluster > 1 ? c.clusterShareClocks : 0);
    double work =
        clocksOf(scores) + own + (how.group - 1) * share + how.group * ofShare;
    if (how.cluster > 1)
      work += queryLines / blockSteps;
    return std::max({work, issue(), smem()});
  }

  /// Clocks of a tile beside its strips.
  double boundary() const {
    double between =
        isMasked ? c.groupMaskedBoundaryClocks : c.groupBoundaryClocks;
    return (1 + c.exchangeLatencies) * latency + between -
           c.groupSharedKeyClocks * (1 - 1 / sharers) + keyCopies / blockSteps +
           how.warpgroups * (c.groupTileClocks + epilogueSlots) +
           (isMasked ? shareScores / 32 / kSchedulersPerSm * c.maskSlots +
                           shortTiles() * shortTileClocks()
                     : 0);
  }

  /// Bytes that so many groups begin with: the queries of each, and of every
  /// key head the first share of keys and values.
  double firstBytes(const Problem &problem, double groups) const {
    double keyHeads = std::ceil(groups / (tiles() * sharers));
    double keyColumns = double(problem.headDim + problem.headDimV);
    return double(kProductRows * bytesOf(problem.dtype)) *
           (groups * double(problem.headDim) + keyHeads * keyColumns);
  }

  /// Clocks of the copy engines for what streams, one head.
  double copying() const { return scores.copies + output.copies; }

private:
  /// Rows of V that a unit of the ring holds.
  static constexpr double kPieceRows = 32;
  static constexpr double kStripsUnderWay = 4;
  /// A ring nearly as slow as products holds them up now and then, and weights
  /// a product.
  static constexpr double kRingPower = 64, kWeightPower = 8;

  /// Products that read the same stream, and what the ring brings for them.
  struct Phase {
    double products = 0, copies = 0; ///< clocks
    double steps = 0, units = 0;
  };

  const GridCensus &grid;
  const Pipeline &how;
  const Machine &machine;
  const Calibration &c;
  double blockSteps; ///< strips of all blocks, one head
  double latency;
  double sharers; ///< query heads of a key head
  bool isMasked;
  double shareScores = 0; ///< of a strip
  double columns = 0;     ///< of the output, of a block
  Phase scores, output;
  double keyCopies = 0;  ///< clocks, of all strips
  double queryLines = 0; ///< likewise, of second lines of what streams of Q
  double exps = 0, slots = 0, smemBytes = 0;
  double epilogueSlots = 0; ///< of one tile

  /// The share of tiles with fewer strips than are under way at once, if under
  /// a mask there are as many of each length.
  double shortTiles() const {
    double least = std::max(1.0, 2 * strips() - mostStrips());
    double lengths = std::max(1.0, mostStrips() - least + 1);
    return std::clamp((kStripsUnderWay - least) / lengths, 0.0, 1.0);
  }
  /// By how much longer such a tile is: heads of 512 and 768 columns took 13 %
  /// longer at 1024 rows than else predicted, those of up to 256, of which a
  /// block has 128, did not.
  double shortTileClocks() const {
    return c.groupShortTileClocks * (columns / 128 - 1);
  }

  /// Of one strip.
  double clocksOf(const Phase &phase) const {
    double most = std::max(phase.products, c.aloneShare * phase.copies);
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
      if (node.tensor == Tensor::O)
        columns = double(padded(node.tensor, use.tile.cols, problem));
      Phase &phase = node.tensor == Tensor::S ? scores : output;
      phase.products +=
          std::max(flops / rate, smem / machine.smemBytesPerClockPerSm);
      slots += padded(node.a, use.tile.depth, problem) / 16.0 *
               c.groupWgmmaSlots * use.count;
      return;
    }
    case Verb::softmax:
      shareScores = how.warpgroups * area;
      exps += area * use.count;
      slots += area / 32 * c.groupSoftmaxSlots * use.count;
      return;
    case Verb::stream: {
      bool isValue = node.tensor == Tensor::V;
      Phase &phase = isValue ? output : scores;
      double units = isValue ? double(use.tile.rows) * use.count / kPieceRows
                             : smem / double(kUnitBytes);
      double copies = clocksToCopyLines(use, problem, c);
      phase.copies += copies;
      if (node.tensor == Tensor::K)
        keyCopies = copies;
      phase.units += units;
      if (node.tensor == Tensor::Q)
        queryLines += copies - clocksToCopy(use, problem, c);
      else
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

  BusyClocks work = {model.tensor() * strips,  model.exp() * strips,
                     model.issue() * strips,   model.smem() * strips,
                     model.busiest() * strips, model.tensor() * strips};
  UnitTimes units = unitTimes(work, whole, ideal, clock, machine, c);
  Time t = units.time;
  double atOnce =
      std::min(tiles, double(teams * together) / double(grid.pipeline.group));
  double first = model.firstBytes(problem, atOnce) / hbmRateOf(machine, c);
  t.overhead = c.launchSeconds + c.loadLatencySeconds + c.groupStartSeconds +
               c.groupFirstLoadShare * first;
  Bytes bytes =
      gridTraffic(census, number, problem, machine, teams * together, c);
  double heads = double(problem.batch) * problem.heads;
  t.l2 = std::max(bytes.l2 / (l2RateOf(machine) * c.burstGain),
                  model.copying() * heads / double(teams * together) / clock);
  t.hbm = bytes.hbm / hbmRateOf(machine, c);
  addContention(t, units.whole, c.l2Power, c);
  return t;
}
