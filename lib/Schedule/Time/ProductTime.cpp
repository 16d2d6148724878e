//===- ProductTime.cpp - How long launches of products take ---------------===//
//
// A tile of a product is as long as its units, which are in each other's way: a
// power mean of
//
//   tensor   all columns of its tiles, also those that no row has
//   smem     what wgmma reads of both factors, and what the copy engine brings:
//            of the counted bytes, the share that takes time
//   copies   what one engine brings through L2, where the others leave it room
//
// What is made of scores is *exposed*: both warpgroups take the factors of
// their products from one ring, whose few slots keep them together, so that
// both work on scores while the tensor cores wait.  Then exponentials and
// instructions come on top, and what a warpgroup waits for.  Forward the
// warpgroups end a tile of scores one after the other (RoundsConsumer.h), which
// hides some of that.
//
// 128 x 256 tiles, d = 512, one H100, in clocks.  64 columns of S: products
// 1024, shared memory 1024 of which 614 count, copies 760, together 1200.  A
// block of scores has eight of these and as many of dP, 19.2 K in all, and 4.7
// K are exposed: 2048 of exponentials, 1280 + 192 of instructions, 1200 of
// waiting.  At 1.7 GHz these are 14 us; 15 were measured, beside device memory
// that takes P and dS away.
//
// Copies hold back less than the rate of L2 has it.  128 x 256 tiles have 85
// FLOPs for each byte, at most 615 TFLOP/s from 7.2 TB/s, but the sums reach
// 745: multiprocessors that walk in step ask for the same at the same time.
//
// Products of parts are six for one at the full rate, from tiles of 128 x 128:
// 64 columns of S of f32 are 3072 clocks of products, shared memory 3072 of
// which 1843 count, and copies 1520.
//
// Tiles of D in the launch of scores multiply little.  What they read they
// bring beside products of others, so their bytes are those of one launch with
// the scores'.  d = 1024, 16384 rows, two heads: of 256 tiles of 16 slices a
// multiprocessor has two, 33 K clocks of copies and 10 K between tiles, 25 us;
// the launch before took 45 to 58.  A call took 25 us less.
//
// Every round is a launch of its own, whose last wave is paid in full; but not
// that of scores which sums fill up in the same launch.  Under a mask rounds
// differ: those of the last strips have fewer tiles, and shorter
// ones.  Strips are looked at one by one.
//
//===----------------------------------------------------------------------===//

#include "Time/ProductTime.h"
#include <algorithm>
#include <cmath>

using namespace attn;

/// Strips that are looked at one by one; of more, so many.
static constexpr int64_t kMostStrips = 16;

/// Whether warpgroups take turns with what they make of scores.
static bool takesTurns(const Problem &problem) {
  return problem.direction == Direction::forward && !needsSplit(problem);
}

/// Whether such a grid's tiles, or those behind it, are in the queue of
/// another.
static bool isMerged(const Problem &problem, const std::vector<Node> &grids,
                     size_t number) {
  bool isBehind = number > 0 && grids[number - 1].pipeline.hasBeside;
  return takesTurns(problem) && (isBehind || grids[number].pipeline.hasBeside);
}

namespace {

/// Tiles of one head in a round.
struct StripTiles {
  double count;
  TileClocks clocks;
};

class ProductModel {
public:
  ProductModel(const Census &census, size_t number,
               const std::vector<Node> &grids, const Problem &problem,
               const Machine &machine, TensorCoreFamily family,
               const Calibration &c)
      : grid(census.grids[number]), node(grids[number]), problem(problem),
        machine(machine), c(c), isSplit(needsSplit(problem)),
        isMerged(::isMerged(problem, grids, number)),
        rate(isSplit ? machine.tensor16FlopsPerClockPerSm / kScaledProducts *
                           c.productPartsShare
                     : productRate(machine, problem, family)) {
    for (const Use &use : census.uses)
      if (use.grid == number)
        add(use);
  }

  /// Steps of all blocks of a head.  Every part of the columns makes its own.
  double steps() const {
    double parts = makesScores() ? 1 : double(grid.parts);
    return std::max(1.0, double(grid.steps) * parts);
  }

  // Clocks of all steps of a head, on one multiprocessor.
  double tensor() const { return work.flops / rate; }
  double smem() const {
    return c.operandShare * work.smemBytes / machine.smemBytesPerClockPerSm;
  }
  double exp() const { return work.scores / machine.expPerClockPerSm; }
  double issue() const { return work.slots / kSchedulersPerSm; }
  double busiest() const {
    return std::max({tensor(), smem(), exp(), issue()});
  }

  /// By how much L2 seems to give more than its rate.  Tiles of sums begin and
  /// end at rows of their own where a mask has it so.
  double l2Gain() const {
    if (isOfRows) // nobody else's
      return 1;
    if (makesScores() || problem.mask.isOpen())
      return c.productInStepGain;
    return scalesFactor ? c.productOutputL2Gain : c.productL2Gain;
  }

  /// The tiles in strip number `strip`, all columns.
  StripTiles tilesOf(int64_t strip) const {
    if (isOfRows) { // each in one of them
      double tiles = double(grid.blocks);
      double clocks = step() / tiles + boundary();
      return {tiles / double(grid.strips), {clocks, clocks, clocks, true}};
    }
    Visits v =
        visitsOfStrip(problem, node.axis, node.step, stepRows, range(strip));
    double pairs = double(v.wholePairs + v.raggedPairs);
    if (pairs == 0)
      return {0, {0, 0, 0, true}};
    if (makesScores()) {
      double hidden = hiddenTiles(strip, v);
      double clocks =
          step() + boundary() + hidden / pairs * c.productHiddenClocks;
      return {pairs, {clocks, clocks, clocks, true}};
    }
    bool isOverKeys = node.axis == Axis::Key;
    double sharers =
        isOverKeys ? double(problem.heads) / double(problem.kvHeads) : 1;
    double tiles = double(v.visitedTiles);
    double average = pairs / tiles * sharers * step();
    double longest = double(v.mostPairs) * sharers * step();
    double least = std::max(0.0, 2 * average - longest);
    return {tiles * double(grid.parts),
            {average + boundary(), longest + boundary(), least + boundary(),
             longest < 1.05 * average}};
  }

private:
  const GridCensus &grid;
  const Node &node;
  const Problem &problem;
  const Machine &machine;
  const Calibration &c;
  bool isSplit;  ///< factors are in parts
  bool isMerged; ///< tiles of two grids are in one queue
  double rate;
  /// Of all blocks of a head.
  GradientWork work;
  double bytes = 0;          ///< that stream
  double boxes = 0;          ///< clocks of their rows
  double waitingBytes = 0;   ///< of sums, between strips
  int64_t stepRows = 1;      ///< of the axis that a block walks along
  bool scalesFactor = false; ///< P, on its way to the product for the output
  bool hasBlocks = false;    ///< of scores, or of their gradients
  bool isOfRows = false;     ///< what is made is a number for each row

  bool makesScores() const { return hasBlocks; }

  /// Blocks of scores that are drawn for nothing.  Of strips of queries tiles
  /// share their parts in twos, which see about the same together.
  double hiddenTiles(int64_t strip, const Visits &v) const {
    if (grid.stripAxis == Axis::Query)
      return problem.mask.isOpen() ? 0 : double(v.outerTiles) / 2;
    int64_t keys =
        std::min(problem.keys - strip * grid.stripKeys, grid.stripKeys);
    return double(v.outerTiles * ceilDiv(keys, stepRows)) -
           double(v.wholePairs + v.raggedPairs);
  }

  StripRange range(int64_t strip) const {
    int64_t rows =
        grid.stripAxis == Axis::Key ? grid.stripKeys : grid.stripQueries;
    return {grid.stripAxis, strip * rows, rows};
  }

  double step() const {
    double perClock = l2RateOf(machine) / clockOf(machine) / machine.sms;
    double copies = busyShare() * std::max(bytes / (l2Gain() * perClock),
                                           c.productBoxShare * boxes);
    double units =
        powerMean({ringShare() * tensor(), ringShare() * smem(), copies},
                  c.gradientPower);
    return (units + turnsShare() * (exp() + issue())) / steps() +
           (scalesFactor ? c.productFactorClocks : 0);
  }

  /// Of what is exposed, what is when warpgroups take turns.
  double turnsShare() const {
    return makesScores() && takesTurns(problem) ? c.productTurnsShare : 1;
  }

  /// How long products take with a ring of so many stages, beside one of three:
  /// a slice of parts has a stage for each.  Where copies take longest, they do
  /// with any.
  double ringShare() const {
    constexpr double measured = 3, fall = 4;
    constexpr double fewest = 2;
    auto behind = [&](double stages) { // sum of all gains
      return std::pow(fall, 2 - stages) * fall / (fall - 1);
    };
    if (isSplit)
      return 1;
    double held = double(grid.stages) <= fewest ? c.productHeldShare : 1;
    return held * std::exp(c.productRingWait *
                           (behind(double(grid.stages)) - behind(measured)));
  }

  /// Of the multiprocessors those that have a tile in a round.
  double busyShare() const {
    double tiles = double(grid.blocks) * double(grid.headsAtOnce);
    return std::min(1.0, tiles / double(machine.sms));
  }

  double boundary() const {
    double perClock = hbmRateOf(machine, c) / clockOf(machine) / machine.sms;
    double tiles = double(grid.blocks) * double(grid.strips);
    double outputShare = isMerged ? c.mergedOutputShare : 1;
    return waitingBytes / tiles / perClock +
           (makesScores() ? turnsShare() * c.productScoreClocks
                          : outputShare * c.productTileClocks);
  }

  void add(const Use &use) {
    const Node &node = *use.node;
    work.add(use, problem, c);
    switch (node.verb) {
    case Verb::multiply:
      isOfRows |= !shapeOf(node.tensor).cols;
      if (!makesScores()) // of parts, blocks of two slices
        stepRows = isSplit ? 2 * use.tile.depth : use.tile.depth;
      if (isSplit) // outside of the tensor cores
        work.slots += paddedArea(use, problem) / 32 * c.addClocks;
      scalesFactor |= node.tensor == Tensor::O;
      return;
    case Verb::differentiate:
      stepRows = use.tile.cols;
      hasBlocks = true;
      return;
    case Verb::weigh:
    case Verb::softmax:
      stepRows = use.tile.cols;
      hasBlocks = true;
      if (!problem.mask.isOpen())
        work.slots += paddedArea(use, problem) / 32 * c.hideSlots;
      return;
    case Verb::stream: {
      double moved = double(use.moved) * bytesMoved(node, problem);
      bytes += moved;
      // What a launch has left is whole lines.
      bool isLeft = !isInput(node.tensor, problem) || node.partColumns > 0;
      boxes += isLeft
                   ? moved / kPanelBytes * c.boxClocks * c.wholeLinesShare
                   : clocksToCopyLines(use, problem, c) *
                         (hasWholeLines(use, problem) ? c.wholeLinesShare : 1);
      return;
    }
    case Verb::absorb:
      if (node.isBetween)
        waitingBytes += double(use.moved) * bytesMoved(node, problem);
      return;
    case Verb::spill: // from registers to shared memory, or to where sums wait
      if (node.isBetween)
        waitingBytes += double(use.moved) * bytesMoved(node, problem);
      else if (node.level == Level::Smem)
        work.addCopy(use, problem, c);
      if (node.partColumns > 0)
        work.slots += paddedArea(use, problem) / 32 * c.splitWeightClocks;
      return;
    case Verb::rescale:
    case Verb::transpose: // no pipeline of products has them
    case Verb::split:
    case Verb::reduce:
    case Verb::load: // little
    case Verb::store:
    case Verb::grid:
    case Verb::loop:
    case Verb::share:
    case Verb::hold:
      return;
    }
  }
};

/// Clocks of all rounds: as they come, if tiles could be cut at will, and of
/// the longest tile of each.
struct RoundClocks {
  double whole = 0, ideal = 0, longest = 0;
};

} // namespace

static RoundClocks allRounds(const ProductModel &model, const GridCensus &grid,
                             const Machine &machine, const Calibration &c) {
  double sms = double(machine.sms);
  // The last round of a strip may have fewer heads.
  double heads = double(grid.heads), atOnce = double(grid.headsAtOnce);
  double full = std::floor(heads / atOnce), rest = heads - full * atOnce;
  int64_t looks = std::min(grid.strips, kMostStrips);
  RoundClocks clocks;
  for (int64_t look = 0; look < looks; ++look) {
    StripTiles tiles = model.tilesOf(look * grid.strips / looks);
    if (tiles.count == 0)
      continue;
    auto round = [&](double heads) {
      return heads > 0
                 ? makespan(tiles.clocks, tiles.count * heads, sms, c.tailShare)
                 : 0;
    };
    double strips = double(grid.strips) / double(looks);
    clocks.whole += strips * (full * round(atOnce) + round(rest));
    clocks.ideal += strips * tiles.clocks.average * tiles.count * heads / sms;
    clocks.longest += strips * std::ceil(heads / atOnce) * tiles.clocks.longest;
  }
  return clocks;
}

namespace {

/// What all launches of a grid have multiprocessors do.
struct Work {
  BusyClocks busy;
  RoundClocks rounds;
  double l2, hbm; ///< seconds

  Work(const Census &census, size_t number, const std::vector<Node> &grids,
       const Problem &problem, const Machine &machine, TensorCoreFamily family,
       const Calibration &c) {
    const GridCensus &grid = census.grids[number];
    ProductModel model(census, number, grids, problem, machine, family, c);
    rounds = allRounds(model, grid, machine, c);
    double perSm = double(grid.heads) / double(machine.sms);
    busy = {model.tensor() * perSm,  model.exp() * perSm,
            model.issue() * perSm,   model.smem() * perSm,
            model.busiest() * perSm, model.tensor() * perSm};
    Bytes bytes = gridTraffic(census, number, problem, machine, machine.sms, c);
    l2 = bytes.l2 / (model.l2Gain() * l2RateOf(machine));
    hbm = bytes.hbm / hbmRateOf(machine, c);
  }

  /// Tiles of the same queue, which fill gaps.
  void addBeside(const Work &other) {
    busy.tensor += other.busy.tensor;
    busy.exp += other.busy.exp;
    busy.issue += other.busy.issue;
    busy.smem += other.busy.smem;
    busy.busiest += other.busy.busiest;
    busy.products += other.busy.products;
    rounds.ideal += other.rounds.ideal;
    rounds.whole += other.rounds.ideal;
    l2 += other.l2;
    hbm += other.hbm;
  }
};

} // namespace

Time attn::productTime(const Census &census, const std::vector<Node> &grids,
                       size_t number, const Problem &problem,
                       const Machine &machine, TensorCoreFamily family,
                       const Calibration &c) {
  const GridCensus &grid = census.grids[number];
  const Pipeline &how = grids[number].pipeline;
  auto workOf = [&](size_t number) {
    return Work(census, number, grids, problem, machine, family, c);
  };
  Work work = workOf(number);
  if (how.hasBefore)
    work.addBeside(workOf(number - 1));
  // Merged, the grid behind fills the last wave and pays for the launch; but
  // its first tiles wait for those before.
  bool isFilled = how.hasBeside;
  double clock = clockOf(machine);
  double ideal = work.rounds.ideal / clock;
  double whole = isFilled ? std::max(ideal, work.rounds.longest / clock)
                          : work.rounds.whole / clock;

  UnitTimes units = unitTimes(work.busy, whole, ideal, clock, machine, c);
  Time t = units.time;
  double launches = double(grid.strips) *
                    std::ceil(double(grid.heads) / double(grid.headsAtOnce));
  double start = isMerged(problem, grids, number) ? c.mergedStartSeconds : 0;
  if (!isFilled)
    t.overhead = launches * (c.launchSeconds + c.pipelineSeconds + start);
  t.l2 = work.l2;
  t.hbm = work.hbm;
  bool isForward = problem.direction == Direction::forward;
  addContention(t, units.whole, isForward ? c.productL2Power : c.l2Power, c);
  return t;
}
