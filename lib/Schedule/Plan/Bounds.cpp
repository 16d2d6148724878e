//===- Bounds.cpp - What no schedule can beat -----------------------------===//
//
// A run is cut where T words have moved.  Whatever T is, between two cuts no
// more than `most(T)` pairs can be finished, so V of them need V T / most(T)
// words.  The best T is 0.5 to 2 times M, or fills a tile that a mask or a
// pattern bounds, or where every pair is one that waits in memory.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Bounds.h"
#include "attn/Schedule/Census.h"
#include <algorithm>
#include <cmath>

using namespace attn;

std::string_view attn::name(Regime regime) {
  switch (regime) {
  case Regime::largeCache:
    return "large_cache";
  case Regime::smallCache:
    return "small_cache";
  }
  return "";
}

int64_t attn::cacheWords(const Problem &problem, const Machine &machine) {
  return machine.smemBytesPerBlock / leastBytes(problem);
}

/// Of a multiprocessor.
static double registerBytes(const Machine &machine) {
  constexpr double registerBytes = 4;
  return registerBytes * double(machine.registersPerSm);
}

double attn::fastWords(const Problem &problem, const Machine &machine,
                       int64_t multiprocessors) {
  double bytes = double(machine.smemBytesPerSm) + registerBytes(machine);
  return double(multiprocessors) * bytes / double(leastBytes(problem));
}

Regime attn::regime(const Problem &problem, const Machine &machine) {
  int64_t d = std::max(problem.headDim, problem.headDimV);
  return cacheWords(problem, machine) >= d * d ? Regime::largeCache
                                               : Regime::smallCache;
}

//===----------------------------------------------------------------------===//
// What a problem has
//===----------------------------------------------------------------------===//

/// Rows of an axis that something sees or that see something, of all heads.  Of
/// a density those of the other axis count by blocks, of which a band shows a
/// row a few.
static double rowsInUse(const Problem &problem, Axis axis) {
  bool isOfKeys = axis == Axis::Key;
  int64_t step = 0;
  if (problem.pattern && !problem.pattern->hasLists())
    step = isOfKeys ? problem.pattern->size().queries
                    : problem.pattern->size().keys;
  double heads = double(problem.batch) *
                 double(isOfKeys ? problem.kvHeads : problem.heads);
  Visits all = visits(problem, isOfKeys ? Axis::Query : Axis::Key, step, 1);
  return double(all.innerSpan) * heads / double(headsOfSum(problem, axis));
}

/// The most rows of the other axis that a row of this one has pairs with, or
/// more: of keys those of all query heads that share them.
static double mostPairsOf(const Problem &problem, Axis axis) {
  bool isOfKeys = axis == Axis::Key;
  double sharing =
      isOfKeys ? double(problem.heads) / double(problem.kvHeads) : 1;
  double all = double(isOfKeys ? problem.queries : problem.keys);
  Problem band = problem;
  band.pattern.reset();
  double most = double(visits(band, axis, 1, 1).mostPairs) + 1; // within one
  if (problem.pattern) {
    BlockSize size = problem.pattern->size();
    if (isOfKeys)
      size = size.transposed();
    // Of lists of their own, visits add up what shares a key head.
    Visits blocks = visits(problem, axis, size.queries, size.keys);
    double lists =
        double(listsOfSum(problem)) / double(headsOfSum(problem, Axis::Key));
    double ofBlocks = double(blocks.mostPairs) * double(size.keys);
    most = std::min(most, isOfKeys ? ofBlocks / lists : ofBlocks);
  }
  return std::min(most, all) * sharing;
}

//===----------------------------------------------------------------------===//
// Pairs between two cuts
//===----------------------------------------------------------------------===//

namespace {

/// Pairs of the rows at hand, if a row of Q takes so many words and one of K
/// others, and no query has more than `keys` pairs and no key more than
/// `queries`.
struct RowsAtHand {
  double queryWords, keyWords, keys, queries;

  /// Words of a tile that no larger one has more pairs of.
  double wholeTile() const { return queries * queryWords + keys * keyWords; }
  /// Words up to which a tile can be as is best, half of them of each kind.
  double freeTile() const {
    return 2 * std::min(queries * queryWords, keys * keyWords);
  }
  double pairs(double words) const {
    if (words >= wholeTile())
      return words * queries * keys / wholeTile();
    double rows = words / (2 * queryWords), columns = words / (2 * keyWords);
    if (rows > queries)
      return queries * (words - queries * queryWords) / keyWords;
    if (columns > keys)
      return keys * (words - keys * keyWords) / queryWords;
    return rows * columns;
  }
};

} // namespace

/// V words over all cuts of which each is `cut` words behind the other and
/// finishes at most so many pairs, or one for every word at hand.
static double wordsOfCuts(double all, double cut, double pairs, double words) {
  double most = std::max(pairs, words);
  return cut > 0 && most > 0 ? all * cut / most : 0;
}

static double boundOfRows(const RowsAtHand &rows, double all, double m) {
  if (rows.keys <= 0 || rows.queries <= 0)
    return 0;
  // As many pairs as words: with tiles of any shape, or cut on one side.
  double even = 4 * rows.queryWords * rows.keyWords;
  double least = 0;
  auto cutAt = [&](double words) {
    least =
        std::max(least, wordsOfCuts(all, words - m, rows.pairs(words), words));
  };
  for (double words : {2 * m, even, rows.freeTile(), rows.wholeTile()})
    cutAt(words);
  // Tiles without end, of which each is as good as the last.
  double slope = rows.queries * rows.keys / rows.wholeTile();
  return std::max(least, all / std::max(slope, 1.0));
}

/// Where sums count too: S words of rows and sums, S = 2M + T, have S² / even
/// pairs.
static double boundOfSums(double even, double all, double m) {
  double words = std::max(4 * m, even);
  return wordsOfCuts(all, words - 2 * m, words * words / even, words);
}

static double largeCacheWords(const Problem &problem, double m) {
  double d = double(problem.headDim), e = double(problem.headDimV);
  double all = allVisiblePairs(problem);
  double keys = mostPairsOf(problem, Axis::Query);
  double queries = mostPairsOf(problem, Axis::Key);
  if (problem.direction == Direction::forward) {
    double ofKey = problem.valuesOfKeys ? d : d + e;
    double rows = boundOfRows({d, ofKey, keys, queries}, all, m);
    return e > d ? std::max(rows, boundOfSums(16 * d * e, all, m)) : rows;
  }
  double narrow = std::min(d, e);
  double rows = boundOfRows({d + e, d + e, keys, queries}, all, m);
  double even = 8 * (d + narrow) * (2 * d + narrow);
  return std::max(rows, boundOfSums(even, all, m));
}

static double smallCacheWords(const Problem &problem, double m,
                              int64_t processors) {
  double d = double(problem.headDim), e = double(problem.headDimV);
  double all = allVisiblePairs(problem);
  bool isForward = problem.direction == Direction::forward;
  // So that it pays to complete a score, and a gradient of one, once only.
  double columns = isForward ? d : std::min(d, e);
  if (m <= 0 || m > columns * columns)
    return 0;
  // What is at hand of K for scores is there for values too, so that of these
  // nothing is counted.
  double values = problem.valuesOfKeys ? 0 : e;
  double products = isForward ? d + values : 3 * d + 2 * e;
  double written = isForward ? 2 : 4;
  return (2 * products / std::sqrt(m) - written) * all -
         2 * m * double(processors);
}

Bounds attn::bounds(const Problem &problem, double m, int64_t processors) {
  double heads = double(problem.batch) * double(problem.heads);
  double keyHeads = double(problem.batch) * double(problem.kvHeads);
  double wide = double(problem.headDim) +
                (problem.valuesOfKeys ? 0 : double(problem.headDimV));
  // Keys that no query sees need not be read; results are always written.
  double span = rowsInUse(problem, Axis::Key);
  double seeing = rowsInUse(problem, Axis::Query);
  Bounds result;
  double results;
  if (problem.direction == Direction::forward) {
    result.inputWords = seeing * double(problem.headDim) + span * wide;
    results = heads * double(problem.queries) * double(problem.headDimV);
  } else {
    result.inputWords = (seeing + span) * wide;
    results = heads * double(problem.queries) * double(problem.headDim) +
              keyHeads * double(problem.keys) * wide;
  }
  result.compulsoryWords = result.inputWords + results;
  result.largeCacheWords = largeCacheWords(problem, m);
  result.smallCacheWords = smallCacheWords(problem, m, processors);
  result.words = std::max(
      {result.compulsoryWords, result.largeCacheWords, result.smallCacheWords});
  return result;
}

//===----------------------------------------------------------------------===//
// Non-zeros, and where regimes meet
//===----------------------------------------------------------------------===//

PublishedBound attn::publishedBound(const Problem &problem, double m) {
  double heads = double(problem.batch) * double(problem.heads);
  double d = double(problem.headDim);
  double rows = double(std::min(problem.queries, problem.keys));
  double pairs = double(visiblePairs(problem));
  // Of Q or K, of what is between them, and of their product.
  double a = rows * d, x = d * d, scores = pairs;
  double large = a * a + a * x;
  double small = a * std::sqrt(scores) + std::sqrt(a * x * a);
  PublishedBound result;
  if (m > 0)
    result.words = heads * std::min(large / m, small / std::sqrt(m));
  if (small > 0)
    result.dividingWords = (large / small) * (large / small);
  return result;
}

double attn::dividingWords(const Problem &problem) {
  // 4r² = 4r + 1, r = d / √M.
  double d = double(problem.headDim), r = (1 + std::sqrt(2.0)) / 2;
  double dense = d * d / (r * r);
  if (!problem.pattern)
    return dense;
  return std::min(dense, 2 * double(problem.pattern->size().queries) * d);
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

static int64_t bytesOfWords(double words, const Problem &problem) {
  return static_cast<int64_t>(words) * leastBytes(problem);
}

static double wordsAtL2(const Problem &problem, const Machine &machine,
                        int64_t together) {
  return bounds(problem, fastWords(problem, machine, together),
                ceilDiv(machine.sms, together))
      .words;
}

LevelBounds attn::levelBounds(const Problem &problem, const Machine &machine,
                              int64_t together) {
  double size = double(leastBytes(problem));
  double onChip =
      double(machine.l2Bytes) / size + fastWords(problem, machine, machine.sms);
  Bounds ofChip = bounds(problem, onChip);
  return {bytesOfWords(ofChip.words, problem),
          bytesOfWords(wordsAtL2(problem, machine, together), problem),
          bytesOfWords(ofChip.inputWords, problem)};
}

int64_t attn::lowerBoundBytes(const Problem &problem, const Machine &machine) {
  return bytesOfWords(wordsAtL2(problem, machine, 1), problem);
}
