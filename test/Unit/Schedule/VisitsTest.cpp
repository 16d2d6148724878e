//===- VisitsTest.cpp - The closed form against enumeration ---------------===//

#include "RandomProblem.h"
#include "VisitsChecks.h"
#include "attn/Schedule/Census.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <chrono>
#include <numeric>

using namespace attn;

namespace {

/// Looks at every pair of rows of every pair of tiles.
Visits enumerate(const Problem &p, Axis outer, int64_t outerStep,
                 int64_t innerStep) {
  bool byQuery = outer == Axis::Query;
  int64_t outerRows = byQuery ? p.queries : p.keys;
  int64_t innerRows = byQuery ? p.keys : p.queries;
  Visits v;
  int64_t spanBegin = innerRows, spanEnd = 0;
  for (int64_t o = 0; o < outerRows; o += outerStep) {
    int64_t rows = std::min(outerStep, outerRows - o), pairs = 0;
    for (int64_t n = 0; n < innerRows; n += innerStep) {
      int64_t cols = std::min(innerStep, innerRows - n);
      bool isVisited = false;
      for (int64_t a = o; a < o + rows; ++a)
        for (int64_t b = n; b < n + cols; ++b)
          isVisited |= byQuery ? isVisible(p, a, b) : isVisible(p, b, a);
      if (!isVisited)
        continue;
      ++pairs;
      (cols == innerStep ? v.wholePairs : v.raggedPairs) += 1;
      (cols == innerStep ? v.wholePairRows : v.raggedPairRows) += rows;
      spanBegin = std::min(spanBegin, n);
      spanEnd = std::max(spanEnd, n + cols);
    }
    v.outerTiles += 1;
    v.visitedTiles += pairs > 0;
    v.visitedRows += pairs > 0 ? rows : 0;
    v.mostPairs = std::max(v.mostPairs, pairs);
  }
  v.innerSpan = std::max<int64_t>(0, spanEnd - spanBegin);
  return v;
}

TEST(Visits, AgreeWithEnumeration) {
  Random random(2);
  for (int round = 0; round < 2000; ++round) {
    Problem p = random.problem(60);
    Axis outer = random.number(0, 1) ? Axis::Query : Axis::Key;
    int64_t outerStep = random.number(1, 20), innerStep = random.number(1, 20);
    int64_t outerRows = outer == Axis::Query ? p.queries : p.keys;
    int64_t innerRows = outer == Axis::Query ? p.keys : p.queries;
    Visits v = visits(p, outer, outerStep, innerStep);
    Visits w = enumerate(p, outer, std::min(outerStep, outerRows),
                         std::min(innerStep, innerRows));
    SCOPED_TRACE(testing::Message() << p << " " << outerStep << "x" << innerStep
                                    << " outer " << static_cast<int>(outer));
    expectSameSums(v, w);
    EXPECT_LE(std::abs(v.mostPairs - w.mostPairs), 1);
    std::vector<int64_t> pairs = pairsOfTiles(p, outer, outerStep, innerStep);
    EXPECT_EQ(int64_t(pairs.size()), w.outerTiles);
    EXPECT_EQ(std::accumulate(pairs.begin(), pairs.end(), int64_t(0)),
              w.wholePairs + w.raggedPairs);
    EXPECT_EQ(*std::max_element(pairs.begin(), pairs.end()), w.mostPairs);
  }
}

TEST(Visits, CostDoesNotGrowWithRows) {
  Problem p;
  p.queries = p.keys = kMaxRows;
  p.headDim = p.headDimV = 1;
  p.mask = {MaskKind::causal};
  Visits v = visits(p, Axis::Query, 128, 64);
  int64_t tiles = ceilDiv(kMaxRows, 128);
  EXPECT_EQ(v.outerTiles, tiles);
  EXPECT_EQ(v.wholePairs + v.raggedPairs, tiles * (tiles + 1));
}

} // namespace
