//===- Sums.cpp - Tiles that add to sums in slow memory -------------------===//
//
// Tiles that add in order stand behind each other: at the end of a walk that
// all tiles of a head begin there, each waits for one *turn* more than the one
// before.  Later they are apart, and nobody waits.  Of 132 tiles at once of 14
// heads the last waits for 8 turns.  Under a mask that makes every tile of a
// head shorter than the one before, those that began a turn apart end a step
// less a turn apart, and the next wait for what that is short of a turn.  If
// the shortest are first, they meet each other's blocks one step apart and none
// waits, but the longest are left for the end.  Where the first tile of a block
// of queries stores, those that begin with it stand one turn behind it; and all
// but those of a window begin with the last block of queries.
//
// A grid before the tiles takes the time in which all warps do the share of the
// heads that come first; the rest goes by beside the tiles, if they last as
// long.  A grid beside the tiles moves its bytes while they are worked on, by
// few warps: all hides if tiles last 1.3 times as long as it needs, nothing if
// they last no longer.  What the heads have that are worked on last comes when
// all tiles are done.
//
//===----------------------------------------------------------------------===//

#include "Time/Launch.h"
#include <algorithm>
#include <cmath>

using namespace attn;

/// Heads whose tiles are worked on at once: as many as multiprocessors have
/// tiles of, and under a mask or in order no fewer than keep what streams past
/// in L2, up to 16, or than have so many tiles in turn (TileOrder.cpp).
static double headsAtOnce(const GridCensus &grid, const Crew &how,
                          const Problem &problem, const Machine &machine) {
  double sms = double(machine.sms);
  double most = std::ceil(sms / double(grid.blocksOfHead()));
  if (!problem.isOpen() || how.order.isOrdered) {
    double rows = double(problem.queries) * double(problem.heads) /
                  double(problem.kvHeads);
    double bytes = rows * double(problem.headDim + problem.headDimV) *
                   double(bytesOf(problem.dtype));
    double fit = std::floor(double(machine.l2Bytes) * 5 / 8 / bytes);
    most = std::max(most, std::min(fit, 16.0));
  }
  if (how.order.isOrdered)
    most = std::max(most, std::ceil(sms / double(kMostInTurn)));
  return std::min(most, double(grid.allHeads())) / double(grid.headsOfSum);
}

/// Rows of a step.
static int64_t stepOf(const Grid &grid) {
  for (const Node &node : grid.body)
    if (auto *loop = node.as<verb::Loop>())
      return loop->step;
  return grid.step;
}

Sums attn::sumsOf(const Census &census, size_t number, const Grid &node,
                  const Problem &problem, const Machine &machine) {
  constexpr int64_t partRows = 16;
  const GridCensus &grid = census.grids[number];
  const Crew &how = node;
  auto bytesOf = [&](size_t other) {
    return gridTraffic(census, other, problem, machine, machine.sms);
  };
  Sums sums;
  sums.isOrdered = how.order.isOrdered,
  sums.firstStores = how.order.firstStores;
  sums.takesShortFirst = how.order.takesShortFirst;
  sums.isWindow = problem.mask.hidesBefore();
  sums.areInStep =
      !sums.isWindow && grid.blocks > 1 && stepOf(node) < node.step;
  sums.hasBefore = census.hasBefore(number);
  sums.hasBeside = census.hasBeside(number);
  if (sums.hasBefore)
    sums.before = bytesOf(number - 1);
  if (sums.hasBeside)
    sums.beside = bytesOf(number + 1);
  sums.headsAtOnce = headsAtOnce(grid, how, problem, machine);
  sums.parts = double(problem.batch) * double(problem.heads) *
               double(ceilDiv(problem.queries, partRows));
  return sums;
}

/// Seconds that an average multiprocessor waits for turns, if a step takes so
/// long.
static double turns(const Work &w, double step, double sms,
                    const Calibration &c) {
  const Sums &sums = w.sums;
  if (!sums.isOrdered)
    return sums.firstStores && w.tiles > 1 ? c.sumTurnSeconds : 0;
  double longer = w.rounds[0].longest - w.rounds[0].average;
  double atOnce = std::min(w.tiles, sms / sums.headsAtOnce);
  // For every time that tiles of a head come again, and for every step by which
  // a tile is behind the one before: each is late once.
  if (sums.takesShortFirst)
    return longer * step * (1 + w.tiles / atOnce) * 2 * longer / w.tiles;
  // Tiles of a window begin as far apart as their keys are.
  double turn = std::max(0.0, c.sumTurnSeconds - (sums.isWindow ? step : 0));
  double begin = std::max(0.0, atOnce - 1) / 2 * turn;
  if (sums.isWindow || longer <= 0)
    return begin;
  // In lanes of heads (TileOrder.h) a tile loses two turns, and its steps some.
  double ofStep = c.sumStepSeconds * (sums.hasBeside ? 2 : 1);
  return begin + w.tiles * w.heads / sms *
                     (2 * c.sumTurnSeconds + w.rounds[0].average * ofStep);
}

double attn::secondsOfSums(const Work &w, const Step &step, double whole,
                           double clock, const Machine &machine,
                           const Calibration &c) {
  const Sums &sums = w.sums;
  if (!sums.isOrdered && !sums.firstStores)
    return 0;
  double share = 0;
  if (!sums.isOrdered && sums.areInStep)
    share += c.sumShare;
  if (sums.hasBefore)
    share += c.sumShare;
  double ofStep = step.clocks(1, w.workers) / clock;
  return share * whole + turns(w, ofStep, double(machine.sms), c);
}

static void addBytes(Time &t, const Bytes &bytes, double share,
                     const Machine &machine, const Calibration &c) {
  t.l2 += share * double(bytes.l2) / l2RateOf(machine);
  t.hbm += share * double(bytes.hbm) / hbmRateOf(machine, c);
}

void attn::addFusedGrids(Time &t, double whole, const Work &w,
                         const Machine &machine, const Calibration &c) {
  const Sums &sums = w.sums;
  double sms = double(machine.sms), memory = hbmRateOf(machine, c);
  double first = sums.headsAtOnce / w.heads;
  double busy = 0; // of warps beside the tiles
  if (sums.hasBefore) {
    constexpr double warps = 2, lostShare = 0.02; // of a multiprocessor
    busy = (1 - first) * sums.parts * c.partSeconds / (warps * sms);
    addBytes(t, sums.before, 1 - first, machine, c);
    addContention(t, std::max(whole, busy), c);
    addBytes(t, sums.before, first, machine, c);
    double begin = c.launchSeconds + first * double(sums.before.l2) / memory +
                   sums.parts * c.partSeconds * lostShare / sms;
    t.overhead += begin, t.seconds += begin;
  }
  if (sums.hasBeside) {
    constexpr double room = 1.3;
    double needed =
        busy + double(sums.beside.l2) / sms / c.besideBytesPerSecond;
    double has = needed > 0 ? (t.seconds - t.overhead) / needed : room;
    double keptUp = std::clamp((has - 1) / (room - 1), 0.0, 1.0);
    double behind = std::max(1 - keptUp, first);
    addBytes(t, sums.beside, 1 - behind, machine, c);
    addContention(t, std::max(whole, busy), c);
    addBytes(t, sums.beside, behind, machine, c);
    double last =
        c.besideTailSeconds + behind * double(sums.beside.l2) / memory;
    t.tail += last, t.seconds += last;
  }
}
