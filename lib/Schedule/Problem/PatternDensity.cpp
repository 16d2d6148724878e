//===- PatternDensity.cpp - Visits that are expected of a density ---------===//
//
// Every block is visible with the same probability s, by itself.  A tile that
// touches n blocks is visited with 1 - (1 - s)^n: of rows that lie in one block
// each, s.  How many blocks a tile touches depends on where it begins, and is
// one of two numbers.  The longest of T rows of n blocks is expected at
//
//   n s + sqrt(2 n s (1 - s) log T).
//
//===----------------------------------------------------------------------===//

#include "Problem/PatternVisits.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace attn;

// A row of tiles with m pairs has at least one step, and what is left of its
// last step is anything from nothing to all but one pair.
Visits attn::expectedGathered(Visits v, int64_t together) {
  auto stepsOf = [&](int64_t tiles, int64_t pairs) -> int64_t {
    if (pairs == 0)
      return 0;
    double average = double(pairs) / double(tiles);
    double steps = (average + double(together - 1) / 2) / double(together);
    double most = std::ceil(double(v.mostPairs) / double(together));
    return std::llround(double(tiles) * std::clamp(steps, 1.0, most));
  };
  v.wholePairRows = stepsOf(v.visitedRows, v.wholePairRows + v.raggedPairRows);
  v.wholePairs = stepsOf(v.visitedTiles, v.wholePairs + v.raggedPairs);
  v.raggedPairs = v.raggedPairRows = 0;
  v.mostPairs = ceilDiv(v.mostPairs, together);
  return v;
}

namespace {
/// Blocks that a tile touches: `least`, or one more in a share of all tiles.
struct Touched {
  double least, share;

  double average() const { return least + share; }
};
} // namespace

static Touched touched(int64_t rows, int64_t block) {
  // Tiles begin at all multiples of what both have in common.
  int64_t sum = rows + block - std::gcd(rows, block);
  double average = double(sum) / double(block), least = std::floor(average);
  return {least, average - least};
}

/// The probability that one of so many blocks is visible.
static double showsOne(double density, double blocks) {
  return 1 - std::pow(1 - density, blocks);
}

/// The same of blocks of a tile, times so many.
static double showsOne(double density, Touched outer, Touched inner,
                       double times = 1) {
  double share = 0;
  for (double more : {0.0, 1.0})
    for (double across : {0.0, 1.0}) {
      double often = (more > 0 ? outer.share : 1 - outer.share) *
                     (across > 0 ? inner.share : 1 - inner.share);
      if (often > 0)
        share += often * showsOne(density, times * (outer.least + more) *
                                               (inner.least + across));
    }
  return share;
}

static int64_t blockOf(const Pattern &pattern, Axis axis) {
  return axis == Axis::Query ? pattern.size().queries : pattern.size().keys;
}

static Axis otherOf(Axis outer) {
  return outer == Axis::Query ? Axis::Key : Axis::Query;
}

double attn::expectedShare(const Pattern &pattern, Axis outer,
                           int64_t outerRows, int64_t innerRows) {
  return showsOne(pattern.density(),
                  touched(outerRows, blockOf(pattern, outer)),
                  touched(innerRows, blockOf(pattern, otherOf(outer))));
}

static double longest(double pairs, double pairsOfBlock, double share,
                      double tiles) {
  double blocks = pairs / pairsOfBlock;
  double spread = std::sqrt(2 * blocks * share * (1 - share) *
                            std::log(std::max(1.0, tiles)));
  return std::min(pairs, (blocks * share + spread) * pairsOfBlock);
}

Visits attn::expectedVisits(const Visits &band, const Problem &problem,
                            Axis outer, int64_t outerStep, int64_t innerStep,
                            const StripRange &strip) {
  const Pattern &pattern = *problem.pattern;
  if (band.visitedTiles == 0)
    return band;
  Axis inner = otherOf(outer);
  auto rowsOf = [&](Axis axis) {
    return axis == strip.axis ? strip.rows : extent(problem, axis);
  };
  auto stepOf = [&](Axis axis, int64_t step) {
    return step ? std::min(step, rowsOf(axis)) : rowsOf(axis);
  };
  outerStep = stepOf(outer, outerStep), innerStep = stepOf(inner, innerStep);
  int64_t outerBlock = blockOf(pattern, outer);
  int64_t innerBlock = blockOf(pattern, inner);
  int64_t ragged = rowsOf(inner) % innerStep;
  double s = pattern.density();
  Touched ofOuter = touched(outerStep, outerBlock);
  Touched ofInner = touched(innerStep, innerBlock);
  double whole = showsOne(s, ofOuter, ofInner);
  double last = ragged ? showsOne(s, ofOuter, touched(ragged, innerBlock)) : 0;

  // Of what may be seen, one at least: a plan has something to do.
  auto expected = [](double share, int64_t count) -> int64_t {
    int64_t rounded = std::llround(share * double(count));
    return share > 0 && count > 0 ? std::max<int64_t>(1, rounded) : 0;
  };
  Visits v = band;
  v.wholePairs = expected(whole, band.wholePairs);
  v.wholePairRows = expected(whole, band.wholePairRows);
  v.raggedPairs = expected(last, band.raggedPairs);
  v.raggedPairRows = expected(last, band.raggedPairRows);
  // Heads that share a key head have its tiles in common.
  double heads =
      pattern.isShared() ? 1 : double(problem.heads) / double(problem.kvHeads);
  double seenRows =
      double(band.wholePairs * innerStep + band.raggedPairs * ragged);
  double seenBlocks =
      std::max(1.0, seenRows / double(band.visitedTiles) / double(innerBlock));
  double seeing =
      showsOne(s, ofOuter, {seenBlocks, 0}, outer == Axis::Key ? heads : 1);
  v.visitedTiles = expected(seeing, band.visitedTiles);
  v.visitedRows = expected(seeing, band.visitedRows);
  double innerTiles = std::max(1.0, double(band.innerSpan) / double(innerStep));
  double pairs = double(band.wholePairs + band.raggedPairs);
  double seeingBlocks = std::max(1.0, pairs / innerTiles * double(outerStep) /
                                          double(outerBlock));
  v.innerSpan = expected(
      showsOne(s, {seeingBlocks, 0}, ofInner, outer == Axis::Query ? heads : 1),
      band.innerSpan);
  double rowsOfBlocks = double(band.visitedTiles) *
                        std::min(1.0, double(outerStep) / double(outerBlock));
  double pairsOfBlock = std::max(1.0, double(innerBlock) / double(innerStep));
  v.mostPairs = std::max<int64_t>(
      v.wholePairs + v.raggedPairs > 0,
      int64_t(std::ceil(
          longest(double(band.mostPairs), pairsOfBlock, whole, rowsOfBlocks))));
  return v;
}
