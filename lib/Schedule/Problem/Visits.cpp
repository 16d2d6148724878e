//===- Visits.cpp - Pairs of tiles that a mask shows, in closed form ------===//
//
// Outer tile t of B rows sees the inner rows [max(0, tB + first),
// min(m, tB + B + last)), so the inner tiles that it visits number
// ceil(high / s) - floor(low / s).  Both ends rise with t between two clamps;
// their sums are floor sums of arithmetic progressions, which Euclid's
// algorithm adds up in logarithmic time.  Before these are the tiles that see
// no more than what is open to all, or everything, which are all alike.  Only
// the ragged last outer tile is looked at by itself.
//
//===----------------------------------------------------------------------===//

#include "Problem/BandVisits.h"
#include "Problem/PatternVisits.h"
#include <algorithm>
#include <cmath>

using namespace attn;

/// Rounds towards minus infinity; b > 0.
static int64_t floorDiv(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// Σ over i in [0, n) of floor((a i + b) / m), for a, b >= 0 and m > 0.
static int64_t floorSum(int64_t n, int64_t a, int64_t b, int64_t m) {
  int64_t sum = 0;
  while (n > 0) {
    sum += (a / m) * (n * (n - 1) / 2) + (b / m) * n;
    a %= m;
    b %= m;
    // What is left are lattice points under a line of slope below one; count
    // them along the other axis.
    int64_t top = a * n + b;
    n = top / m;
    b = top % m;
    std::swap(a, m);
  }
  return sum;
}

namespace {

/// A range of tile numbers, empty if begin >= end.
struct Range {
  int64_t begin, end;

  int64_t size() const { return std::max<int64_t>(0, end - begin); }
  Range from(int64_t least) const { return {std::max(begin, least), end}; }
  Range until(int64_t limit) const { return {begin, std::min(end, limit)}; }
};

/// Both tilings, and what the outer axis sees of the inner one.
struct Tiling {
  int64_t outerRows, outerStep, innerRows, innerStep;
  Visible visible;

  int64_t innerTiles() const { return ceilDiv(innerRows, innerStep); }

  /// Numbers of the inner tiles that outer rows [begin, end) visit.
  Range innerRange(int64_t begin, int64_t end) const {
    Span seen = visible.seenBySome({begin, end}, innerRows);
    return {seen.begin / innerStep, ceilDiv(seen.end, innerStep)};
  }
  Range innerRange(int64_t tile) const {
    return innerRange(tile * outerStep, (tile + 1) * outerStep);
  }

  bool hasRaggedTile() const { return innerRows % innerStep != 0; }
  /// Outer tiles in front whose ends do not rise yet.
  int64_t tilesInFront() const {
    int64_t openTo =
        visible.openRows > 0 ? ceilDiv(visible.openRows, outerStep)
        : visible.openColumns > 0
            ? floorDiv(visible.openColumns - visible.last, outerStep)
            : 0;
    return std::clamp<int64_t>(openTo, 0, outerRows / outerStep);
  }

  /// Σ over tiles of floor((tile · outerStep + shift) / innerStep).
  int64_t sumOfFloors(Range tiles, int64_t shift) const {
    if (tiles.size() == 0)
      return 0;
    return floorSum(tiles.size(), outerStep, tiles.begin * outerStep + shift,
                    innerStep);
  }
};

class Sums {
public:
  explicit Sums(const Tiling &t) : t(t) {
    v.outerTiles = ceilDiv(t.outerRows, t.outerStep);
  }
  Visits v;

  /// Outer tiles with the same number of rows, `pairs` in all, of which
  /// `ragged` with the short inner tile at the end.
  void add(int64_t tiles, int64_t rows, int64_t pairs, int64_t ragged) {
    v.visitedTiles += tiles;
    v.visitedRows += tiles * rows;
    v.wholePairs += pairs - ragged;
    v.raggedPairs += ragged;
    v.wholePairRows += (pairs - ragged) * rows;
    v.raggedPairRows += ragged * rows;
  }

  /// One outer tile as an example: of the span, and of the most pairs.
  void see(Range inner) {
    if (inner.size() == 0)
      return;
    v.mostPairs = std::max(v.mostPairs, inner.size());
    begin = std::min(begin, inner.begin);
    end = std::max(end, inner.end);
    int64_t span =
        std::min(end * t.innerStep, t.innerRows) - begin * t.innerStep;
    v.innerSpan = std::max(v.innerSpan, span);
  }

private:
  const Tiling &t;
  int64_t begin = INT64_MAX, end = 0;
};

} // namespace

/// Outer tiles, from the first on, that all see the same.
static void addTilesInFront(Sums &sums, const Tiling &t, int64_t count) {
  if (count == 0)
    return;
  Range inner = t.innerRange(0);
  bool isRagged = t.hasRaggedTile() && inner.end == t.innerTiles();
  sums.add(count, t.outerStep, count * inner.size(), isRagged ? count : 0);
  sums.see(inner);
}

/// All others that have their full extent.
static void addWholeTiles(Sums &sums, const Tiling &t, int64_t front) {
  Visible visible = t.visible;
  int64_t step = t.outerStep, count = t.outerRows / step;
  // The first tile whose high end is positive, and the first whose low end has
  // left the inner rows.
  Range seen =
      Range{front, count}
          .from(floorDiv(-visible.last, step))
          .until(
              ceilDiv(std::max<int64_t>(0, t.innerRows - visible.first), step));
  if (seen.size() == 0)
    return;
  // From here on the high end is clamped; from there on the low end is not.
  int64_t highClamps = floorDiv(t.innerRows - visible.last, step);
  int64_t lowRises = floorDiv(-visible.first, step) + 1;
  int64_t last = t.innerTiles() - 1;

  Range rising = seen.until(highClamps);
  int64_t highs = t.sumOfFloors(rising, step + visible.last + t.innerStep - 1) +
                  seen.from(rising.end).size() * t.innerTiles();
  int64_t lows = t.sumOfFloors(seen.from(lowRises), visible.first);
  int64_t reachesLast = floorDiv(last * t.innerStep - visible.last, step);
  int64_t ragged = t.hasRaggedTile() ? seen.from(reachesLast).size() : 0;
  sums.add(seen.size(), step, highs - lows, ragged);

  for (int64_t tile : {seen.begin, highClamps - 1, highClamps, lowRises - 1,
                       lowRises, seen.end - 1})
    if (tile >= seen.begin && tile < seen.end)
      sums.see(t.innerRange(tile));
}

static void addRaggedTile(Sums &sums, const Tiling &t) {
  int64_t rows = t.outerRows % t.outerStep;
  Range inner = t.innerRange(t.outerRows - rows, t.outerRows);
  if (rows == 0 || inner.size() == 0)
    return;
  sums.add(1, rows, inner.size(),
           t.hasRaggedTile() && inner.end == t.innerTiles());
  sums.see(inner);
}

Visits attn::atLeastOne(Visits v, int64_t outerTiles, int64_t outerRows) {
  v.wholePairs += outerTiles - v.visitedTiles;
  v.wholePairRows += outerRows - v.visitedRows;
  v.outerTiles = v.visitedTiles = outerTiles;
  v.visitedRows = outerRows;
  v.mostPairs = std::max<int64_t>(v.mostPairs, 1);
  return v;
}

static Tiling tilingOf(const Problem &problem, Axis outer, int64_t outerStep,
                       int64_t innerStep, const StripRange &strip) {
  Axis inner = outer == Axis::Query ? Axis::Key : Axis::Query;
  auto rowsOf = [&](Axis axis) {
    return axis == strip.axis ? strip.rows : extent(problem, axis);
  };
  auto tile = [&](Axis axis, int64_t step) {
    return step ? std::min(step, rowsOf(axis)) : rowsOf(axis);
  };
  bool isOfKeys = strip.axis == Axis::Key;
  Visible seen = visible(problem).from(isOfKeys ? 0 : strip.first,
                                       isOfKeys ? strip.first : 0);
  return {rowsOf(outer), tile(outer, outerStep), rowsOf(inner),
          tile(inner, innerStep),
          outer == Axis::Key ? seen.transposed() : seen};
}

static Visits visitsOf(const Tiling &tiling) {
  Sums sums(tiling);
  int64_t front = tiling.tilesInFront();
  addTilesInFront(sums, tiling, front);
  addWholeTiles(sums, tiling, front);
  addRaggedTile(sums, tiling);
  return sums.v;
}

/// Of what the mask shows.
static Visits visitsOfBand(const Problem &problem, Axis outer,
                           int64_t outerStep, int64_t innerStep,
                           const StripRange &strip) {
  return visitsOf(tilingOf(problem, outer, outerStep, innerStep, strip));
}

Visits attn::visits(const Problem &problem, Axis outer, int64_t outerStep,
                    int64_t innerStep) {
  return visitsOfStrip(problem, outer, outerStep, innerStep,
                       {Axis::Key, 0, problem.keys});
}

Visits attn::visitsOfStrip(const Problem &problem, Axis outer,
                           int64_t outerStep, int64_t innerStep,
                           const StripRange &asked) {
  int64_t left = extent(problem, asked.axis) - asked.first;
  StripRange strip = {asked.axis, asked.first, std::min(asked.rows, left)};
  if (strip.rows <= 0 || problem.queries == 0 || problem.keys == 0)
    return {};
  if (problem.pattern && problem.pattern->hasLists())
    return visitsOfLists(problem, outer, outerStep, innerStep, strip);
  if (!problem.bands.isEmpty())
    return visitsOfBands(problem, outer, outerStep, innerStep, strip);
  Visits band = visitsOfBand(problem, outer, outerStep, innerStep, strip);
  return problem.pattern
             ? expectedVisits(band, problem, outer, outerStep, innerStep, strip)
             : band;
}

Visits attn::gatheredVisits(const Problem &problem, Axis outer,
                            int64_t outerStep, int64_t innerStep,
                            int64_t together) {
  if (problem.queries == 0 || problem.keys == 0)
    return {};
  // Of a block that is cut short, tiles behind the end are taken as well.
  if (problem.pattern->hasLists())
    return visitsOfLists(
        problem, outer, outerStep, innerStep,
        {Axis::Key, 0, roundUp(problem.keys, problem.pattern->size().keys)},
        together);
  return expectedGathered(visits(problem, outer, outerStep, innerStep),
                          together);
}

std::vector<int64_t> attn::pairsOfTiles(const Problem &problem, Axis outer,
                                        int64_t outerStep, int64_t innerStep) {
  if (problem.pattern && problem.pattern->hasLists())
    return pairsOfLists(problem, outer, outerStep, innerStep);
  if (!problem.bands.isEmpty())
    return pairsOfBands(problem, outer, outerStep, innerStep);
  Tiling t = tilingOf(problem, outer, outerStep, innerStep,
                      {Axis::Key, 0, problem.keys});
  double share = problem.pattern ? expectedShare(*problem.pattern, outer,
                                                 t.outerStep, t.innerStep)
                                 : 1;
  std::vector<int64_t> pairs;
  for (int64_t begin = 0; begin < t.outerRows; begin += t.outerStep) {
    int64_t end = std::min(begin + t.outerStep, t.outerRows);
    int64_t all = t.innerRange(begin, end).size();
    pairs.push_back(int64_t(std::llround(share * double(all))));
  }
  return pairs;
}
