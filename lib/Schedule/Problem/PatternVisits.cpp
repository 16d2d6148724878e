//===- PatternVisits.cpp - Pairs of tiles that lists show -----------------===//
//
// An outer tile touches some rows of blocks.  Each of them sees blocks, of
// which the mask leaves a run; the runs, in order, are cut into inner tiles.
// What a tile inside a row of blocks sees without a mask is what the one before
// saw.  So a tiling costs as much as it has visited pairs, or as there are
// blocks if those are more, and each is counted once (PatternData.h).
//
//===----------------------------------------------------------------------===//

#include "Problem/PatternVisits.h"
#include "Problem/PatternData.h"
#include <algorithm>

using namespace attn;

namespace {

/// Rows `first .. first + rows - 1` of an axis, in tiles and in blocks.
struct Side {
  int64_t first, rows, step, block;

  int64_t tiles() const { return ceilDiv(rows, step); }
  int64_t end() const { return first + rows; }
  /// Rows of a tile.
  Span tile(int64_t number) const {
    int64_t begin = first + number * step;
    return {begin, std::min(begin + step, end())};
  }
  /// Those of a block that belong to a span.
  Span ofBlock(int64_t number, Span span) const {
    return {std::max(span.begin, number * block),
            std::min(span.end, (number + 1) * block)};
  }
  bool hasRaggedTile() const { return rows % step != 0; }
};

struct Tiling {
  Side outer, inner;
  Visible visible;
};

/// Inner tiles that an outer tile visits.
struct Pairs {
  int64_t whole = 0, ragged = 0;

  int64_t all() const { return whole + ragged; }
};

/// Goes through the outer tiles of a list.
class Walk {
public:
  Walk(const Tiling &t, const BlockRows &list, std::vector<char> &touched)
      : t(t), list(list), touched(touched) {}

  Pairs tile(int64_t number) {
    Span rows = t.outer.tile(number);
    int64_t from = rows.begin / t.outer.block;
    int64_t to = (rows.end - 1) / t.outer.block;
    bool isAlike = from == to && from == known && !isCut(shown(rows));
    if (!isAlike)
      see(rows, from, to);
    return pairs;
  }

private:
  const Tiling &t;
  const BlockRows &list;
  std::vector<char> &touched; ///< inner tiles that some outer one visits
  std::vector<Span> runs;
  Pairs pairs;
  /// The row of blocks whose tiles all see as many, if there is one.
  int64_t known = -1;

  void see(Span rows, int64_t from, int64_t to) {
    runs.clear();
    for (int64_t row = from; row <= to; ++row)
      addRow(row, shown(t.outer.ofBlock(row, rows)));
    if (from != to)
      std::sort(runs.begin(), runs.end(),
                [](const Span &a, const Span &b) { return a.begin < b.begin; });
    known = from == to && !isCut(shown(rows)) ? from : -1;
    count();
  }

  /// What the mask shows to rows, in the strip, and whether that is not all.
  Span shown(Span rows) const {
    Span seen = t.visible.seenBySome(rows, t.inner.end());
    return {std::max(seen.begin, t.inner.first), seen.end};
  }
  bool isCut(Span seen) const {
    return seen.begin > t.inner.first || seen.end < t.inner.end();
  }

  void addRow(int64_t row, Span seen) {
    for (const int32_t *block = list.begin(row); block != list.end(row);
         ++block) {
      Span run = t.inner.ofBlock(*block, seen);
      if (!run.isEmpty())
        runs.push_back(run);
    }
  }

  void count() {
    pairs = {};
    int64_t next = 0;
    for (const Span &run : runs) {
      int64_t begin = (run.begin - t.inner.first) / t.inner.step;
      int64_t end = ceilDiv(run.end - t.inner.first, t.inner.step);
      for (int64_t tile = std::max(begin, next); tile < end; ++tile)
        touched[size_t(tile)] = 1;
      pairs.whole += std::max<int64_t>(0, end - std::max(begin, next));
      next = std::max(next, end);
    }
    if (next == t.inner.tiles() && t.inner.hasRaggedTile())
      --pairs.whole, ++pairs.ragged;
  }
};

/// Adds up the outer tiles of heads.
class Sums {
public:
  /// Of pairs, those of steps that take so many at a time.
  Sums(const Tiling &t, int64_t together)
      : t(t), together(together), touched(size_t(t.inner.tiles())) {}

  Visits v;
  std::vector<int64_t> lengths; ///< pairs of every outer tile

  /// Heads whose outer tiles are their own and that have the inner ones in
  /// common.
  void addSharing(const std::vector<const BlockRows *> &lists) {
    for (const BlockRows *list : lists) {
      std::vector<Pairs> tiles(size_t(t.outer.tiles()));
      walk(*list, tiles);
      addTiles(tiles);
    }
    addSpan();
  }

  /// Heads that have the outer tiles in common.
  void addShared(const std::vector<const BlockRows *> &lists) {
    std::vector<Pairs> tiles(size_t(t.outer.tiles()));
    for (const BlockRows *list : lists) {
      walk(*list, tiles);
      addSpan();
    }
    addTiles(tiles);
  }

private:
  const Tiling &t;
  const int64_t together;
  std::vector<char> touched;

  void walk(const BlockRows &list, std::vector<Pairs> &tiles) {
    Walk walk(t, list, touched);
    for (size_t i = 0; i < tiles.size(); ++i) {
      Pairs pairs = walk.tile(int64_t(i));
      tiles[i].whole += pairs.whole, tiles[i].ragged += pairs.ragged;
    }
  }

  void addTiles(const std::vector<Pairs> &tiles) {
    v.outerTiles += int64_t(tiles.size());
    for (size_t i = 0; i < tiles.size(); ++i) {
      Pairs pairs = tiles[i];
      if (together > 1)
        pairs = {ceilDiv(pairs.all(), together), 0};
      int64_t rows = t.outer.tile(int64_t(i)).size();
      lengths.push_back(pairs.all());
      if (pairs.all() == 0)
        continue;
      v.visitedTiles += 1;
      v.visitedRows += rows;
      v.wholePairs += pairs.whole, v.raggedPairs += pairs.ragged;
      v.wholePairRows += pairs.whole * rows;
      v.raggedPairRows += pairs.ragged * rows;
      v.mostPairs = std::max(v.mostPairs, pairs.all());
    }
  }

  /// Inner tiles that were touched, which then begin anew.
  void addSpan() {
    for (size_t tile = 0; tile < touched.size(); ++tile)
      if (touched[tile])
        v.innerSpan += t.inner.tile(int64_t(tile)).size();
    std::fill(touched.begin(), touched.end(), 0);
  }
};

} // namespace

static Tiling tilingOf(const Problem &problem, Axis outer, int64_t outerStep,
                       int64_t innerStep, const StripRange &strip) {
  BlockSize size = problem.pattern->size();
  auto side = [&](Axis axis, int64_t step) {
    bool isCut = axis == strip.axis;
    int64_t rows = isCut ? strip.rows : extent(problem, axis);
    return Side{isCut ? strip.first : 0, rows,
                step ? std::min(step, rows) : rows,
                axis == Axis::Query ? size.queries : size.keys};
  };
  bool isByQueries = outer == Axis::Query;
  Visible seen = visible(problem);
  return {side(outer, outerStep),
          side(isByQueries ? Axis::Key : Axis::Query, innerStep),
          isByQueries ? seen : seen.transposed()};
}

int64_t attn::listsOfSum(const Problem &problem) {
  bool hasLists = problem.pattern && problem.pattern->hasLists();
  return hasLists ? problem.pattern->lists() : 1;
}

int64_t attn::headsOfSum(const Problem &problem, Axis outer) {
  int64_t lists = listsOfSum(problem);
  return outer == Axis::Key ? std::min(lists, problem.kvHeads) : lists;
}

static Sums sumsOf(const Tiling &tiling, const Problem &problem, Axis outer,
                   int64_t together = 1) {
  const Pattern &pattern = *problem.pattern;
  int64_t keyHeads = headsOfSum(problem, Axis::Key);
  int64_t sharing = pattern.lists() / keyHeads;
  Sums sums(tiling, together);
  for (int64_t head = 0; head < keyHeads; ++head) {
    std::vector<const BlockRows *> lists;
    for (int64_t i = head * sharing; i < (head + 1) * sharing; ++i)
      lists.push_back(outer == Axis::Query ? &pattern.byQueries(i)
                                           : &pattern.byKeys(i));
    outer == Axis::Query ? sums.addSharing(lists) : sums.addShared(lists);
  }
  return sums;
}

Visits attn::visitsOfLists(const Problem &problem, Axis outer,
                           int64_t outerStep, int64_t innerStep,
                           const StripRange &strip, int64_t together) {
  Tiling t = tilingOf(problem, outer, outerStep, innerStep, strip);
  const PatternData &known = problem.pattern->shared();
  PatternData::Tiled key = {int64_t(outer),
                            t.outer.first,
                            t.outer.rows,
                            t.outer.step,
                            t.inner.first,
                            t.inner.rows,
                            t.inner.step,
                            t.visible.first,
                            t.visible.last,
                            t.visible.openRows,
                            t.visible.openColumns,
                            problem.kvHeads,
                            together};
  std::lock_guard<std::mutex> guard(known.lock);
  auto [at, isNew] = known.visits.try_emplace(key);
  if (isNew)
    at->second = sumsOf(t, problem, outer, together).v;
  return at->second;
}

std::vector<int64_t> attn::pairsOfLists(const Problem &problem, Axis outer,
                                        int64_t outerStep, int64_t innerStep) {
  Tiling t = tilingOf(problem, outer, outerStep, innerStep,
                      {Axis::Key, 0, problem.keys});
  return sumsOf(t, problem, outer).lengths;
}
