//===- Rounds.cpp - The tiles of a launch ---------------------------------===//
//
// Every round is a launch of its own, whose last wave is paid in full.  Under a
// mask rounds differ: those of the last strips have fewer tiles, and shorter
// ones.  Strips are looked at one by one.
//
//===----------------------------------------------------------------------===//

#include "Time/Work.h"
#include "attn/Schedule/KeyParts.h"
#include <algorithm>
#include <cmath>

using namespace attn;

/// Strips that are looked at one by one; of more, so many.
static constexpr int64_t kMostStrips = 16;
/// Tiles of a multiprocessor up to which those that differ are followed one by
/// one; beyond, how they fall hardly matters.
static constexpr double kFewTiles = 6;

RoundTiles attn::allTiles(const GridCensus &grid, const Grid &node) {
  const Crew &how = node;
  double average = double(grid.steps) / double(grid.blocks);
  bool countsSteps =
      how.isPipeline() && (how.sharing.units == 0 || how.sharing.group > 1);
  double most = std::max(average, countsSteps ? double(grid.mostSteps)
                                              : grid.longest * average);
  double least = std::max(std::min(1.0, average), 2 * average - most);
  return {1, double(grid.blocks) * double(grid.heads), average, most, least};
}

void attn::followTiles(Work &w, const Grid &node, const Problem &problem,
                       const Machine &machine, int64_t keys) {
  bool isMasked = !problem.isOpen();
  int64_t last = problem.queries % node.step;
  double sms = double(machine.sms) / w.together;
  if ((!isMasked && last == 0) || w.tiles * w.heads > kFewTiles * sms)
    return;
  w.takesLongestFirst = isMasked;
  int64_t parts = node.sharing.keyParts;
  if (isMasked || parts > 1) {
    for (int64_t pairs : pairsOfTiles(problem, Axis::Query, node.step, keys))
      for (int64_t part = 0; part < parts; ++part)
        w.lengths.push_back({double(std::max<int64_t>(
                                 1, stepsOfPart(pairs, parts, part).size())),
                             0});
    return;
  }
  // Warpgroups behind the last row have nothing to do.
  w.lengths.assign(size_t(w.tiles), {w.rounds[0].average, w.workers});
  w.lengths.back().active =
      std::min(double(ceilDiv(last, kWarpgroupRows)), w.workers);
}

/// Blocks of scores that are drawn for nothing.  Of strips of queries tiles
/// share their parts in twos, which see about the same together.
static double emptyTiles(const GridCensus &grid, const Visits &v, int64_t strip,
                         int64_t stepRows, const Problem &problem) {
  if (problem.pattern) // entries of lists are drawn several at a time
    return 0;
  if (grid.stripAxis == Axis::Query)
    return problem.isOpen() ? 0 : double(v.outerTiles) / 2;
  int64_t keys =
      std::min(problem.keys - strip * grid.stripKeys, grid.stripKeys);
  return double(v.outerTiles * ceilDiv(keys, stepRows)) -
         double(v.wholePairs + v.raggedPairs);
}

/// The tiles of a head in a strip, all columns.
static RoundTiles ofStrip(int64_t strip, const Work &w, const GridCensus &grid,
                          const Grid &node, const Problem &problem,
                          int64_t stepRows, bool isOfRows) {
  if (isOfRows) { // each in one of them
    double steps = w.steps / w.tiles;
    return {1, w.tiles / double(grid.strips), steps, steps, steps};
  }
  int64_t rows =
      grid.stripAxis == Axis::Key ? grid.stripKeys : grid.stripQueries;
  Visits v = visitsOfStrip(problem, node.axis, node.step, stepRows,
                           {grid.stripAxis, strip * rows, rows});
  double pairs = double(v.wholePairs + v.raggedPairs);
  if (pairs == 0)
    return {1, 0, 0, 0, 0};
  if (w.isMadeOfScores)
    return {1, pairs, 1,
            1, 1,     emptyTiles(grid, v, strip, stepRows, problem) / pairs};
  // Of heads with lists of their own, visits add up those that share.
  double sharers = node.axis == Axis::Key
                       ? double(problem.heads) / double(problem.kvHeads) *
                             double(headsOfSum(problem, Axis::Key)) /
                             double(listsOfSum(problem))
                       : 1;
  double tiles = double(v.visitedTiles), average = pairs / tiles * sharers;
  double longest = double(v.mostPairs) * sharers;
  return {1, tiles * double(grid.parts), average, longest,
          std::max(0.0, 2 * average - longest)};
}

std::vector<RoundTiles>
attn::roundsOfProducts(const Work &w, const GridCensus &grid, const Grid &node,
                       const Problem &problem, int64_t stepRows,
                       bool isOfRows) {
  // The last round of a strip may have fewer heads.
  double atOnce = grid.headsAtOnce;
  double full = std::floor(w.heads / atOnce), rest = w.heads - full * atOnce;
  int64_t looks = std::min(grid.strips, kMostStrips);
  double strips = double(grid.strips) / double(looks);
  std::vector<RoundTiles> rounds;
  for (int64_t look = 0; look < looks; ++look) {
    RoundTiles one = ofStrip(look * grid.strips / looks, w, grid, node, problem,
                             stepRows, isOfRows);
    double tiles = one.tiles;
    one.times = strips * full, one.tiles = tiles * atOnce;
    rounds.push_back(one);
    one.times = strips, one.tiles = tiles * rest;
    if (rest > 0)
      rounds.push_back(one);
  }
  return rounds;
}
