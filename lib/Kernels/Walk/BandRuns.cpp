//===- BandRuns.cpp - Blocks that unions of bands show --------------------===//

#include "Walk/BandRuns.h"

using namespace mlir;
using namespace attn;

static std::optional<RowBound> negated(const std::optional<RowBound> &bound) {
  if (!bound)
    return std::nullopt;
  return RowBound{-bound->constant, -bound->ofQueries, -bound->ofKeys};
}

/// The same pairs, where rows are keys and columns queries.
static Band transposed(const Band &band) {
  Band other;
  other.isWhole = band.isWhole;
  auto take = [&](BandSide from, BandSide to) { other.at(to) = band.at(from); };
  take(BandSide::firstQuery, BandSide::firstKey);
  take(BandSide::lastQuery, BandSide::lastKey);
  take(BandSide::firstKey, BandSide::firstQuery);
  take(BandSide::lastKey, BandSide::lastQuery);
  other.at(BandSide::firstDiagonal) = negated(band.at(BandSide::lastDiagonal));
  other.at(BandSide::lastDiagonal) = negated(band.at(BandSide::firstDiagonal));
  return other;
}

BandRuns::BandRuns(TileBuilder &b, const Arguments &arguments,
                   const Bands &bands, int64_t own, int64_t streamed,
                   ListSide side)
    : b(b), own(own), streamed(streamed), queries(arguments.get(b, "queries")),
      keys(arguments.get(b, "keys")), rows(queries), columns(keys) {
  bool ownsKeys = side == ListSide::keys;
  for (const Band &band : bands.all())
    this->bands.push_back(ownsKeys ? transposed(band) : band);
  if (ownsKeys)
    std::swap(rows, columns);
}

// What is farther away than all rows is so at the limit, too, and sums with a
// row have 32 bits.
Scalar BandRuns::at(const RowBound &bound) const {
  if (bound.ofQueries == 0 && bound.ofKeys == 0)
    return b.i32(bound.constant);
  Scalar sum = b.i32(0);
  for (auto [factor, rows] :
       {std::pair(bound.ofKeys, keys), std::pair(bound.ofQueries, queries)})
    if (factor != 0)
      sum = factor > 0 ? sum + rows : sum - rows;
  return b.max(b.min(sum + bound.constant, b.i32(kUnbounded)),
               b.i32(-kUnbounded));
}

Scalar BandRuns::beginOf(const Band &band, Scalar row) const {
  Scalar begin = b.i32(0);
  if (const auto &first = band.at(BandSide::firstDiagonal))
    begin = b.max(begin, row + at(*first));
  if (const auto &first = band.at(BandSide::firstKey))
    begin = b.max(begin, at(*first));
  return begin;
}

Scalar BandRuns::endOf(const Band &band, Scalar row) const {
  Scalar last = columns - 1;
  if (const auto &side = band.at(BandSide::lastDiagonal))
    last = b.min(last, row + at(*side));
  if (const auto &side = band.at(BandSide::lastKey))
    last = b.min(last, at(*side));
  return last + 1;
}

Run BandRuns::shownTo(const Band &band, Scalar first, Scalar last) const {
  if (const auto &side = band.at(BandSide::firstQuery))
    first = b.max(first, at(*side));
  if (const auto &side = band.at(BandSide::lastQuery))
    last = b.min(last, at(*side));
  Scalar begin = beginOf(band, first), end = endOf(band, last);
  Scalar isSome = (first <= last) & (begin < end);
  const auto &from = band.at(BandSide::firstDiagonal),
             &to = band.at(BandSide::lastDiagonal);
  if (from && to) // or no row sees a column
    isSome = isSome & (at(*from) <= at(*to));
  return runIf(isSome, begin / streamed, b.ceilDiv(end, streamed));
}

// Empty ones begin and end in front of all others.
Run BandRuns::runIf(Scalar isSome, Scalar begin, Scalar end) const {
  Scalar none = b.i32(0);
  return {b.select(isSome, begin, none), b.select(isSome, end, none)};
}

Run BandRuns::openTo(const Band &band, Scalar first, Scalar last) const {
  Scalar begin = b.ceilDiv(b.min(beginOf(band, last), columns), streamed);
  Scalar end = b.max(endOf(band, first), b.i32(0)) / streamed;
  Scalar isSome = begin < end;
  if (const auto &side = band.at(BandSide::firstQuery))
    isSome = isSome & (at(*side) <= first);
  if (const auto &side = band.at(BandSide::lastQuery))
    isSome = isSome & (last <= at(*side));
  return runIf(isSome, begin, end);
}

BandRuns::Runs BandRuns::apart(Runs runs) const {
  for (size_t sorted = 1; sorted < runs.size(); ++sorted)
    for (size_t i = 0; i + sorted < runs.size(); ++i) {
      Run &low = runs[i], &high = runs[i + 1];
      Scalar inOrder = low.begin <= high.begin;
      Run first{b.select(inOrder, low.begin, high.begin),
                b.select(inOrder, low.end, high.end)};
      high = {b.select(inOrder, high.begin, low.begin),
              b.select(inOrder, high.end, low.end)};
      low = first;
    }
  for (size_t i = 1; i < runs.size(); ++i) {
    runs[i].begin = b.max(runs[i].begin, runs[i - 1].end);
    runs[i].end = b.max(runs[i].end, runs[i].begin);
  }
  return runs;
}

BandRuns::Seen BandRuns::seenFrom(Scalar row) const {
  Scalar last = b.min(row + own, rows) - 1;
  Seen seen;
  for (const Band &band : bands) {
    seen.shown.push_back(shownTo(band, row, last));
    if (band.isWhole)
      seen.open.push_back(openTo(band, row, last));
  }
  return {apart(seen.shown), apart(seen.open)};
}

// What is shown is cut in front of each open run, from the open one before or
// the beginning of a shown one, and in each shown run behind the last open one.
// An open run may lie in two shown ones that touch.
BandRuns::Runs BandRuns::cutOf(const Seen &seen) const {
  Runs cut;
  Scalar before = b.i32(0);
  for (const Run &open : seen.open) {
    Scalar begin = before;
    for (const Run &shown : seen.shown)
      begin =
          b.select(shown.begin <= open.begin, b.max(begin, shown.begin), begin);
    cut.push_back({begin, open.begin});
    before = open.end;
  }
  for (const Run &shown : seen.shown) {
    Scalar begin = shown.begin;
    for (const Run &open : seen.open)
      begin = b.select(open.begin < shown.end, b.max(begin, open.end), begin);
    cut.push_back({begin, b.max(shown.end, begin)});
  }
  return cut;
}

Tile BandRuns::counted(Tile tile) const {
  Scalar zero = b.i32(0), exists = b.i32(-1) < tile.row;
  // Of no tile nothing is asked; its row has no blocks.
  Seen seen = seenFrom(b.max(tile.row, zero));
  Scalar all = BlockList(b, seen.shown).steps;
  Scalar open = BlockList(b, seen.open).steps; // which are shown, too
  tile.partialSteps = b.select(exists, all - open, zero);
  tile.fullSteps = b.select(exists, open, zero);
  return tile;
}

Tile BandRuns::countedOfAll(Tile tile, Scalar sharers) const {
  tile = counted(tile);
  tile.partialSteps = tile.partialSteps * sharers;
  tile.fullSteps = tile.fullSteps * sharers;
  return tile;
}

BlockList BandRuns::partialOf(const Tile &tile) const {
  BlockList list(b, cutOf(seenFrom(tile.row)));
  list.steps = tile.partialSteps;
  return list;
}

BlockList BandRuns::fullOf(const Tile &tile) const {
  BlockList list(b, seenFrom(tile.row).open);
  list.steps = tile.fullSteps;
  return list;
}

// Cut blocks first, as of lists: where gradients went from one end to the other
// they took 1.09 times as long (16384 rows on an H200, a window of 512 and 128
// first keys and queries; 1.03 and 0.94 ms).
ClassedBlocks BandRuns::allOf(const Tile &tile) const {
  Seen seen = seenFrom(tile.row);
  return ClassedBlocks::of(b, {b, cutOf(seen)}, {b, seen.open});
}

std::unique_ptr<TileLists> attn::tileLists(TileBuilder &b,
                                           const Arguments &arguments,
                                           const Problem &problem, int64_t own,
                                           int64_t streamed, ListSide side) {
  if (problem.pattern)
    return std::make_unique<BlockLists>(b, arguments, problem.pattern->size(),
                                        streamed, side);
  return std::make_unique<BandRuns>(b, arguments, problem.bands, own, streamed,
                                    side);
}
