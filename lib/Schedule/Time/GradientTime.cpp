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
// Tiles that add in order stand behind each other: at the end of a walk that
// all tiles of a head begin there, each waits for one *turn* more than the one
// before.  Later they are apart, and nobody waits.  Of 132 tiles at once of 14
// heads the last waits for 8 turns, 16 us of 2.2 ms.  Under a mask that makes
// every tile of a head shorter than the one before, those that began a turn
// apart end a step less a turn apart, and the next wait for what that is short
// of a turn.  If the shortest are first, they meet each other's blocks one step
// apart and none waits, but the longest are left for the end.
//
// Where the first tile of a block of queries stores, those that begin with it
// stand one turn behind it, and stay there.
//
// A grid before the tiles that the same warps do takes the time in which all
// warps do the share of the heads that come first.  The rest goes by beside the
// tiles, if they last as long.
//
// A grid beside the tiles moves its bytes while they are worked on, by few
// warps.  Of 16384 x 2048 sums those of a multiprocessor have 376 us to do.  So
// much hides, if tiles last 1.3 times as long; if they last no longer, the
// warps fall behind, and nothing does.  What the heads have that are worked on
// last comes in any case when all tiles are done: under a mask those of a
// section (TileOrder.h), which are through together.
//
//===----------------------------------------------------------------------===//

#include "Time/GradientTime.h"
#include <algorithm>
#include <cmath>

using namespace attn;

namespace {

class GradientModel {
public:
  GradientModel(const Census &census, size_t number, const Node &node,
                const Problem &problem, const Machine &machine,
                TensorCoreFamily family, const Calibration &c)
      : grid(census.grids[number]), how(node.pipeline), problem(problem),
        machine(machine), c(c), rate(productRate(machine, problem, family)),
        groups(double(node.pipeline.warpgroups)),
        made(double(std::max<int64_t>(grid.steps, 1))),
        hasShortSteps(stepOf(node) < node.step) {
    for (const Use &use : census.uses)
      if (use.grid == number)
        add(use);
  }

  double tiles() const { return double(grid.blocks); }
  /// Blocks of queries of an average tile, all heads of a group.
  double steps() const { return double(grid.steps) / tiles(); }

  // Clocks of an average step.
  double tensor() const { return work.flops / rate / made; }
  double smem() const {
    return work.smemBytes / machine.smemBytesPerClockPerSm / made;
  }
  double exp() const { return work.scores / machine.expPerClockPerSm / made; }
  double issue() const { return work.slots / kSchedulersPerSm / made; }
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

  /// Seconds that an average multiprocessor waits for its turn, at that clock,
  /// when tiles of so many heads are worked on at once.
  double turns(double headsAtOnce, double clock) const {
    if (!how.isOrdered)
      return how.firstStores && tiles() > 1 ? c.turnSeconds : 0;
    double stepSeconds = step() / clock;
    double longer = double(grid.mostSteps) - steps();
    double sms = double(machine.sms);
    double atOnce = std::min(tiles(), sms / headsAtOnce);
    if (how.takesShortFirst) {
      // For every time that tiles of a head come again, and for every step by
      // which a tile is behind the one before: each is late once.
      double behind = 2 * longer / tiles();
      return longer * stepSeconds * (1 + tiles() / atOnce) * behind;
    }
    // Tiles of a window begin as far apart as their keys are.
    bool isWindow = problem.mask.hidesBefore();
    double apart = isWindow ? stepSeconds : 0;
    double turn = std::max(0.0, c.turnSeconds - apart);
    double begin = std::max(0.0, atOnce - 1) / 2 * turn;
    if (isWindow || longer <= 0)
      return begin;
    double ofStep =
        c.turnStepSeconds + (how.hasBeside ? c.besideTurnSeconds : 0);
    double tilesOfSm = tiles() * double(grid.heads) / sms;
    return begin + tilesOfSm * (c.unequalTurnSeconds + steps() * ofStep);
  }

  /// By which tiles that walk along the same queries hold each other up.
  double heldUp() const {
    bool isInStep = problem.mask.isOpen() && tiles() > 1 && hasShortSteps;
    double share = 0;
    if (how.firstStores && !how.isOrdered && isInStep)
      share += c.firstStoresShare;
    if (how.hasBefore && (how.firstStores || how.isOrdered))
      share += c.beforeWaitShare;
    return share;
  }

private:
  const GridCensus &grid;
  const Pipeline &how;
  const Problem &problem;
  const Machine &machine;
  const Calibration &c;
  double rate, groups;
  double made;        ///< steps, of all tiles of a head
  bool hasShortSteps; ///< of fewer rows than a tile has
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
    if (problem.mask.isOpen())
      return 0;
    return work.scores / made / 32 / kSchedulersPerSm * c.hideSlots;
  }

  /// Rows of a step.
  static int64_t stepOf(const Node &grid) {
    for (const Node &node : grid.body)
      if (node.verb == Verb::loop)
        return node.step;
    return grid.step;
  }

  void add(const Use &use) {
    const Node &node = *use.node;
    work.add(use, problem, c);
    switch (node.verb) {
    case Verb::reduce: // from registers to shared memory
      return work.addCopy(use, problem, c);
    case Verb::softmax: // no pipeline of gradients has them
    case Verb::transpose:
    case Verb::split:
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

/// Heads whose tiles are worked on at once: as many as multiprocessors have
/// tiles of, and under a mask or in order no fewer than keep what streams past
/// in L2, up to 16, or than have so many tiles in turn (TileOrder.cpp).
static double headsAtOnce(const GridCensus &tiles, const Pipeline &how,
                          const Problem &problem, const Machine &machine) {
  double most = std::ceil(double(machine.sms) / double(tiles.blocks));
  if (!problem.mask.isOpen() || how.isOrdered) {
    double rows = double(problem.queries) * double(problem.heads) /
                  double(problem.kvHeads);
    double bytes = rows * double(problem.headDim + problem.headDimV) *
                   bytesOf(problem.dtype);
    double fit = std::floor(double(machine.l2Bytes) * 5 / 8 / bytes);
    most = std::max(most, std::min(fit, 16.0));
  }
  if (how.isOrdered)
    most = std::max(most, std::ceil(double(machine.sms) / double(kMostInTurn)));
  return std::min(most, double(tiles.heads));
}

/// What is prepared at a time, of 16 queries.
static double partsOf(const Problem &problem) {
  constexpr int64_t rows = 16;
  return double(problem.batch) * double(problem.heads) *
         double(ceilDiv(problem.queries, rows));
}

/// How long the warps that are left take to prepare the queries of heads that
/// are not among the first, or 0.
static double beforeSeconds(const Node &grid, double firstShare,
                            const Problem &problem, const Machine &machine,
                            const Calibration &c) {
  if (!grid.pipeline.hasBefore)
    return 0;
  constexpr double warps = 2; // of a multiprocessor
  return (1 - firstShare) * partsOf(problem) * c.beforePartSeconds /
         (warps * double(machine.sms));
}

/// Adds the grid before the tiles to their time; so long takes what is beside.
static void addBefore(Time &t, double whole, const Census &census,
                      size_t number, double firstShare, double beside,
                      const Problem &problem, const Machine &machine,
                      const Calibration &c) {
  Bytes bytes =
      gridTraffic(census, number - 1, problem, machine, machine.sms, c);
  double l2 = bytes.l2 / l2RateOf(machine);
  double hbm = bytes.hbm / hbmRateOf(machine, c);
  t.l2 += (1 - firstShare) * l2;
  t.hbm += (1 - firstShare) * hbm;
  addContention(t, std::max(whole, beside), c.l2Power, c);
  t.l2 += firstShare * l2;
  t.hbm += firstShare * hbm;
  double first = c.beforeBeginSeconds +
                 firstShare * bytes.l2 / hbmRateOf(machine, c) +
                 partsOf(problem) * c.beforeWorkSeconds / double(machine.sms);
  t.overhead += first;
  t.seconds += first;
}

/// Of a grid beside tiles that last so long, the share that is left when they
/// are done; so long its warps have something else to do.
static double shareBehind(double seconds, double busy, double headsAtOnce,
                          const GridCensus &tiles, const Bytes &beside,
                          const Machine &machine, const Calibration &c) {
  double needed =
      busy + double(beside.l2) / double(machine.sms) / c.besideBytesPerSecond;
  double room = needed > 0 ? seconds / needed : c.besideRoom;
  double keptUp = std::clamp((room - 1) / (c.besideRoom - 1), 0.0, 1.0);
  return std::max(1 - keptUp, headsAtOnce / double(tiles.heads));
}

/// Adds the grid beside the tiles to their time.  What it does behind them
/// comes from memory, as in a launch of its own.
static void addBeside(Time &t, double whole, const Census &census,
                      size_t number, double headsAtOnce, double busy,
                      const Problem &problem, const Machine &machine,
                      const Calibration &c) {
  const GridCensus &tiles = census.grids[number];
  Bytes bytes =
      gridTraffic(census, number + 1, problem, machine, machine.sms, c);
  double behind = shareBehind(t.seconds - t.overhead, busy, headsAtOnce, tiles,
                              bytes, machine, c);
  t.l2 += (1 - behind) * bytes.l2 / l2RateOf(machine);
  t.hbm += (1 - behind) * bytes.hbm / hbmRateOf(machine, c);
  addContention(t, whole, c.l2Power, c);
  double last = c.besideTailSeconds + behind * bytes.l2 / hbmRateOf(machine, c);
  t.l2 += behind * bytes.l2 / l2RateOf(machine);
  t.hbm += behind * bytes.hbm / hbmRateOf(machine, c);
  t.tail += last;
  t.seconds += last;
}

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
  double heads =
      headsAtOnce(census.grids[number], grid.pipeline, problem, machine);
  double turns = model.turns(heads, clock);
  double longer = 1 + model.heldUp();
  whole = whole * longer + turns, ideal = ideal * longer + turns;

  BusyClocks work = {model.tensor() * stepsPerSm,  model.exp() * stepsPerSm,
                     model.issue() * stepsPerSm,   model.smem() * stepsPerSm,
                     model.busiest() * stepsPerSm, model.tensor() * stepsPerSm};
  UnitTimes units = unitTimes(work, whole, ideal, clock, machine, c);
  Time t = units.time;
  t.overhead = c.launchSeconds + c.pipelineSeconds;
  Bytes bytes = gridTraffic(census, number, problem, machine, machine.sms, c);
  t.l2 = bytes.l2 / l2RateOf(machine);
  t.hbm = bytes.hbm / hbmRateOf(machine, c);
  addContention(t, units.whole, c.l2Power, c);
  double firstShare = heads / double(census.grids[number].heads);
  double before = beforeSeconds(grid, firstShare, problem, machine, c);
  if (grid.pipeline.hasBefore)
    addBefore(t, units.whole, census, number, firstShare, before, problem,
              machine, c);
  if (grid.pipeline.hasBeside)
    addBeside(t, std::max(units.whole, before), census, number, heads, before,
              problem, machine, c);
  return t;
}
