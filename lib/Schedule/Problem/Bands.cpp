//===- Bands.cpp - Unions of bands, as regions show them ------------------===//

#include "attn/Schedule/Bands.h"
#include "Problem/BandVisits.h"
#include "attn/Schedule/Arithmetic.h"
#include <algorithm>
#include <cstdlib>

using namespace attn;

bool RowBound::operator==(const RowBound &other) const {
  return constant == other.constant && ofQueries == other.ofQueries &&
         ofKeys == other.ofKeys;
}

bool Band::operator==(const Band &other) const {
  return sides == other.sides && isWhole == other.isWhole;
}

bool attn::fits(const RowBound &bound) {
  bool isPlain = bound.ofQueries == 0 && bound.ofKeys == 0;
  int64_t most = isPlain ? kUnbounded : kMostBesideRows;
  return std::abs(bound.constant) <= most && std::abs(bound.ofQueries) <= 1 &&
         std::abs(bound.ofKeys) <= 1 &&
         (isPlain || bound.ofQueries != bound.ofKeys);
}

Bands::Bands(std::vector<Band> bands) {
  auto made = std::make_shared<BandsData>();
  made->bands = std::move(bands);
  data = std::move(made);
}

const std::vector<Band> &Bands::all() const {
  static const std::vector<Band> *const none = new std::vector<Band>();
  return data ? data->bands : *none;
}

std::string attn::str(const Bands &bands) {
  size_t count = bands.all().size();
  auto isPart = [](const Band &band) { return !band.isWhole; };
  auto parts = std::count_if(bands.all().begin(), bands.all().end(), isPart);
  std::string text = std::to_string(count) + (count == 1 ? " band" : " bands");
  return parts ? text + ", " + std::to_string(parts) + " of them in part"
               : text;
}

/// Of a side: whether it is there, its constant and its factors.
static constexpr size_t kNumbersOfSide = 4;
static constexpr size_t kNumbersOfBand = 1 + kBandSides * kNumbersOfSide;

std::vector<int64_t> attn::numbersOf(const Bands &bands) {
  std::vector<int64_t> numbers;
  for (const Band &band : bands.all()) {
    numbers.push_back(band.isWhole);
    for (const std::optional<RowBound> &side : band.sides) {
      RowBound bound = side.value_or(RowBound());
      for (int64_t number : {int64_t(side.has_value()), bound.constant,
                             bound.ofQueries, bound.ofKeys})
        numbers.push_back(number);
    }
  }
  return numbers;
}

std::optional<Bands> attn::bandsOf(const std::vector<int64_t> &numbers) {
  if (numbers.size() % kNumbersOfBand != 0 ||
      numbers.size() > kMostBands * kNumbersOfBand)
    return std::nullopt;
  std::vector<Band> bands;
  for (auto at = numbers.begin(); at != numbers.end();) {
    Band &band = bands.emplace_back();
    band.isWhole = *at++ != 0;
    for (std::optional<RowBound> &side : band.sides) {
      RowBound bound = {at[1], at[2], at[3]};
      if (at[0] != 0)
        side = bound;
      if (!fits(bound))
        return std::nullopt;
      at += kNumbersOfSide;
    }
  }
  return bands.empty() ? Bands() : Bands(std::move(bands));
}

//===----------------------------------------------------------------------===//
// With so many rows
//===----------------------------------------------------------------------===//

namespace {

/// A band of a problem: rows `firstRow .. lastRow` see the columns from
/// row + first to row + last, out of `firstColumn .. lastColumn`.
struct Shown {
  int64_t first, last, firstColumn, lastColumn, firstRow, lastRow;

  /// What columns are seen by, as rows that see.
  Shown transposed() const {
    return {-last, -first, firstRow, lastRow, firstColumn, lastColumn};
  }
  Span seenBySome(Span rows) const {
    int64_t begin = std::max(rows.begin, firstRow);
    int64_t end = std::min(rows.end, lastRow + 1);
    if (begin >= end || first > last)
      return {};
    return {std::max(firstColumn, begin + first),
            std::min(lastColumn, end - 1 + last) + 1};
  }
  Span seenByAll(Span rows) const {
    if (rows.begin < firstRow || rows.end > lastRow + 1)
      return {};
    return {std::max(firstColumn, rows.end - 1 + first),
            std::min(lastColumn, rows.begin + last) + 1};
  }
};

} // namespace

static Shown shownBy(const Band &band, const Problem &p) {
  auto side = [&](BandSide which, int64_t none) {
    const std::optional<RowBound> &bound = band.at(which);
    return bound ? std::clamp(bound->at(p.queries, p.keys), -kUnbounded,
                              kUnbounded)
                 : none;
  };
  return {side(BandSide::firstDiagonal, -kUnbounded),
          side(BandSide::lastDiagonal, kUnbounded),
          std::max<int64_t>(side(BandSide::firstKey, 0), 0),
          std::min(side(BandSide::lastKey, kUnbounded), p.keys - 1),
          std::max<int64_t>(side(BandSide::firstQuery, 0), 0),
          std::min(side(BandSide::lastQuery, kUnbounded), p.queries - 1)};
}

/// In order and apart.
static std::vector<Span> merged(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span &a, const Span &b) { return a.begin < b.begin; });
  std::vector<Span> runs;
  for (const Span &span : spans)
    if (span.isEmpty())
      continue;
    else if (!runs.empty() && span.begin <= runs.back().end)
      runs.back().end = std::max(runs.back().end, span.end);
    else
      runs.push_back(span);
  return runs;
}

bool attn::sees(const Problem &problem, int64_t row, int64_t column) {
  for (const Span &run : runsOf(problem, {row, row + 1}))
    if (run.begin <= column && column < run.end)
      return true;
  return false;
}

std::vector<Span> attn::runsOf(const Problem &problem, Span rows) {
  std::vector<Span> spans;
  for (const Band &band : problem.bands.all())
    spans.push_back(shownBy(band, problem).seenBySome(rows));
  return merged(std::move(spans));
}

/// Bands that touch open no tile together.
static std::vector<Span> openSpans(const Problem &problem, Span rows) {
  std::vector<Span> spans;
  for (const Band &band : problem.bands.all())
    if (band.isWhole)
      spans.push_back(shownBy(band, problem).seenByAll(rows));
  return spans;
}

std::vector<Span> attn::openRunsOf(const Problem &problem, Span rows) {
  return merged(openSpans(problem, rows));
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Tiles of so many columns, counted from the first column on.
static Span tilesOf(Span columns, int64_t step) {
  return columns.isEmpty()
             ? Span()
             : Span{columns.begin / step, ceilDiv(columns.end, step)};
}
static Span tilesInside(Span columns, int64_t step) {
  return {ceilDiv(columns.begin, step), columns.end / step};
}

static int64_t sizeOf(const std::vector<Span> &spans) {
  int64_t sum = 0;
  for (const Span &span : spans)
    sum += span.size();
  return sum;
}

static double countedCutShare(const Problem &problem, int64_t query,
                              int64_t key) {
  int64_t all = 0, open = 0;
  for (int64_t row = 0; row < problem.queries; row += query) {
    Span rows = {row, std::min(row + query, problem.queries)};
    std::vector<Span> shown, whole;
    for (const Span &run : runsOf(problem, rows))
      shown.push_back(tilesOf(run, key));
    for (const Span &span : openSpans(problem, rows))
      whole.push_back(tilesInside(span, key));
    all += sizeOf(merged(std::move(shown)));
    open += sizeOf(merged(std::move(whole)));
  }
  return all ? 1 - double(open) / double(all) : 0;
}

double attn::cutShareOfBands(const Problem &problem, int64_t query,
                             int64_t key) {
  const BandsData &known = problem.bands.shared();
  std::lock_guard<std::mutex> guard(known.lock);
  auto [at, isNew] =
      known.cutShares.try_emplace({problem.queries, problem.keys, query, key});
  if (isNew)
    at->second = countedCutShare(problem, query, key);
  return at->second;
}

namespace {

/// Rows of an axis that are counted, in tiles.
struct Side {
  int64_t first, rows, step;

  Span tile(int64_t number) const {
    int64_t begin = number * step;
    return {first + begin, first + std::min(begin + step, rows)};
  }
  int64_t tiles() const { return ceilDiv(rows, step); }
};

/// The tiles of columns that each tile of rows visits.
class Tiling {
public:
  Tiling(const Problem &problem, Axis outer, int64_t outerStep,
         int64_t innerStep, const StripRange &strip)
      : outer(side(problem, outer, outerStep, strip)),
        inner(side(problem, outer == Axis::Query ? Axis::Key : Axis::Query,
                   innerStep, strip)) {
    for (const Band &band : problem.bands.all()) {
      Shown one = shownBy(band, problem);
      shown.push_back(outer == Axis::Query ? one : one.transposed());
    }
  }

  std::vector<Span> visitedBy(int64_t tile) const {
    std::vector<Span> spans;
    for (const Shown &one : shown) {
      Span seen = one.seenBySome(outer.tile(tile));
      spans.push_back(tilesOf({std::max<int64_t>(seen.begin - inner.first, 0),
                               std::min(seen.end - inner.first, inner.rows)},
                              inner.step));
    }
    return merged(std::move(spans));
  }

  const Side outer, inner;

private:
  static Side side(const Problem &problem, Axis axis, int64_t step,
                   const StripRange &strip) {
    bool isCut = axis == strip.axis;
    int64_t rows = isCut ? strip.rows : extent(problem, axis);
    return {isCut ? strip.first : 0, rows, step ? std::min(step, rows) : rows};
  }

  std::vector<Shown> shown;
};

} // namespace

static Visits counted(const Tiling &t) {
  Visits v;
  v.outerTiles = t.outer.tiles();
  int64_t last = t.inner.tiles() - 1;
  bool hasRagged = t.inner.rows % t.inner.step != 0;
  // How many runs begin at an inner tile, less those that end before it.
  std::vector<int64_t> begun(size_t(last) + 2);
  for (int64_t tile = 0; tile < v.outerTiles; ++tile) {
    std::vector<Span> runs = t.visitedBy(tile);
    if (runs.empty())
      continue;
    int64_t rows = t.outer.tile(tile).size(), pairs = sizeOf(runs);
    int64_t ragged = hasRagged && runs.back().end > last ? 1 : 0;
    v.visitedTiles += 1;
    v.visitedRows += rows;
    v.wholePairs += pairs - ragged;
    v.raggedPairs += ragged;
    v.wholePairRows += (pairs - ragged) * rows;
    v.raggedPairRows += ragged * rows;
    v.mostPairs = std::max(v.mostPairs, pairs);
    for (const Span &run : runs)
      ++begun[size_t(run.begin)], --begun[size_t(run.end)];
  }
  int64_t around = 0;
  for (int64_t tile = 0; tile <= last; ++tile)
    if ((around += begun[size_t(tile)]) > 0)
      v.innerSpan += t.inner.tile(tile).size();
  return v;
}

Visits attn::visitsOfBands(const Problem &problem, Axis outer,
                           int64_t outerStep, int64_t innerStep,
                           const StripRange &strip) {
  Tiling tiling(problem, outer, outerStep, innerStep, strip);
  const BandsData &known = problem.bands.shared();
  BandsData::Tiled key = {
      int64_t(outer),    problem.queries,     problem.keys, tiling.outer.step,
      tiling.inner.step, int64_t(strip.axis), strip.first,  strip.rows};
  std::lock_guard<std::mutex> guard(known.lock);
  auto [at, isNew] = known.visits.try_emplace(key);
  if (isNew)
    at->second = counted(tiling);
  return at->second;
}

std::vector<int64_t> attn::pairsOfBands(const Problem &problem, Axis outer,
                                        int64_t outerStep, int64_t innerStep) {
  Tiling tiling(problem, outer, outerStep, innerStep,
                {Axis::Key, 0, problem.keys});
  std::vector<int64_t> pairs;
  for (int64_t tile = 0; tile < tiling.outer.tiles(); ++tile)
    pairs.push_back(sizeOf(tiling.visitedBy(tile)));
  return pairs;
}
