//===- PatternTest.cpp - Blocks as a value, and what tiles see of them ----===//

#include "attn/Schedule/Pattern.h"
#include "PatternText.h"
#include "RandomProblem.h"
#include "VisitsChecks.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Plan.h"
#include "gtest/gtest.h"
#include <chrono>
#include <numeric>

using namespace attn;

namespace {

//===----------------------------------------------------------------------===//
// The value
//===----------------------------------------------------------------------===//

TEST(Pattern, TransposedTwiceIsItself) {
  Random random(41);
  for (int round = 0; round < 200; ++round) {
    int64_t rows = random.number(0, 12), columns = random.number(1, 12);
    BlockRows list = random.blockRows(rows, columns, random.number(0, 100));
    BlockRows turned = list.transposed();
    EXPECT_EQ(turned.transposed(), list);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        EXPECT_EQ(list.sees(i, j), turned.sees(j, i));
  }
}

TEST(Pattern, SizesReadBack) {
  EXPECT_EQ(parseBlockSize("128x64"), (BlockSize{128, 64}));
  EXPECT_EQ(parseBlockSize("32"), (BlockSize{32, 32}));
  for (const char *text : {"", "x", "64x", "x64", "64 x 64", "64x64x64", "a"})
    EXPECT_EQ(parseBlockSize(text), std::nullopt) << text;
  EXPECT_EQ(str(BlockSize{128, 64}), "128x64");
}

TEST(Pattern, IsDescribed) {
  EXPECT_EQ(str(Pattern({128, 64}, 0.125)), "blocks 128x64, density 0.125");
  EXPECT_EQ(str(Pattern({8, 8}, 1, /*isShared=*/false)),
            "blocks 8x8, density 1, each head its own");
  BlockRows list = blockRowsOf("##./..#");
  EXPECT_EQ(str(Pattern({4, 4}, {list})), "blocks 4x4, 3 of 6 visible");
  EXPECT_EQ(str(Pattern({4, 4}, {list, list})),
            "blocks 4x4, 6 of 12 visible, in 2 lists");
  EXPECT_DOUBLE_EQ(Pattern({4, 4}, {list}).density(), 0.5);
}

Problem problemOf(Pattern pattern) {
  Problem p;
  p.queries = 7, p.keys = 12;
  p.headDim = p.headDimV = 16;
  p.heads = 4, p.kvHeads = 2;
  p.pattern = std::move(pattern);
  return p;
}

TEST(Pattern, IsChecked) {
  BlockRows good = blockRowsOf("##./..#"), more = blockRowsOf("##./..#/...");
  BlockRows wide = blockRowsOf("##.#/..##"), twice = good, far = good,
            negative = good, back = good, torn = good;
  twice.blocks = {1, 1, 2};
  far.blocks = {0, 3, 2};
  negative.blocks = {-1, 0, 2};
  back.begins = {0, 4, 3};
  torn.begins = {0, 2, 2};
  struct {
    Pattern pattern;
    const char *sentence;
  } rows[] = {
      {{{4, 4}, {good, good, good}},
       "expects one list of blocks, one for each of 2 kv heads or one for each "
       "of 4 heads, but got 3"},
      {{{4, 4}, {more}}, "expects 2 rows of blocks, but got 3"},
      {{{4, 4}, {wide}}, "expects 3 blocks of keys, but got 4"},
      {{{4, 4}, {twice}},
       "expects the blocks of row 0 to rise, but got 1 behind 1"},
      {{{4, 4}, {good, far}},
       "expects blocks of keys from 0 to 2 in row 0, but got 3 in list 1"},
      {{{4, 4}, {negative}},
       "expects blocks of keys from 0 to 2 in row 0, but got -1"},
      {{{4, 4}, {back}},
       "expects row 1 of blocks to begin before it ends, but got 4 and 3"},
      {{{4, 4}, {torn}},
       "expects rows of blocks from 0 to the end of the list, 3, but got 0 "
       "and 2"},
      {{{0, 4}, 0.5},
       "expects blocks of 1 to 1073741823 queries and keys, but got 0x4"},
      {{{4, 4}, 1.5},
       "expects a density of blocks between 0 and 1, but got 1.500000"},
      {{{4, 4}, std::nan("")},
       "expects a density of blocks between 0 and 1, but got nan"}};
  for (const auto &row : rows)
    EXPECT_EQ(check(problemOf(row.pattern)), row.sentence);
  for (size_t lists : {1, 2, 4})
    EXPECT_EQ(check(problemOf({{4, 4}, std::vector<BlockRows>(lists, good)})),
              std::nullopt);
}

//===----------------------------------------------------------------------===//
// What tiles see
//===----------------------------------------------------------------------===//

struct Tiling {
  Axis outer;
  int64_t outerStep, innerStep;
};

/// Looks at every pair of rows of every pair of tiles, of all heads.
Visits enumerate(const Problem &p, Tiling t) {
  bool byQuery = t.outer == Axis::Query;
  int64_t outerRows = byQuery ? p.queries : p.keys;
  int64_t innerRows = byQuery ? p.keys : p.queries;
  t.outerStep = std::min(t.outerStep, outerRows);
  t.innerStep = std::min(t.innerStep, innerRows);
  int64_t group = p.heads / p.kvHeads;
  Visits v;
  auto sees = [&](int64_t head, int64_t o, int64_t n) {
    for (int64_t a = o; a < std::min(o + t.outerStep, outerRows); ++a)
      for (int64_t b = n; b < std::min(n + t.innerStep, innerRows); ++b)
        if (byQuery ? isVisible(p, head, a, b) : isVisible(p, head, b, a))
          return true;
    return false;
  };
  for (int64_t keyHead = 0; keyHead < p.kvHeads; ++keyHead) {
    // Outer tiles of several heads are one, or inner tiles are.
    std::vector<int64_t> touched(size_t(ceilDiv(innerRows, t.innerStep)));
    std::vector<int64_t> lengths(size_t(ceilDiv(outerRows, t.outerStep)));
    auto finish = [&] {
      for (size_t i = 0; i < lengths.size(); ++i) {
        int64_t rows =
            clipped(int64_t(i) * t.outerStep, t.outerStep, outerRows);
        v.outerTiles += 1;
        v.visitedTiles += lengths[i] > 0;
        v.visitedRows += lengths[i] > 0 ? rows : 0;
        v.mostPairs = std::max(v.mostPairs, lengths[i]);
        lengths[i] = 0;
      }
    };
    auto addSpan = [&] {
      for (size_t i = 0; i < touched.size(); ++i)
        if (touched[i])
          v.innerSpan +=
              clipped(int64_t(i) * t.innerStep, t.innerStep, innerRows);
      std::fill(touched.begin(), touched.end(), 0);
    };
    for (int64_t head = keyHead * group; head < (keyHead + 1) * group; ++head) {
      for (int64_t o = 0; o < outerRows; o += t.outerStep)
        for (int64_t n = 0; n < innerRows; n += t.innerStep) {
          if (!sees(head, o, n))
            continue;
          int64_t rows = clipped(o, t.outerStep, outerRows);
          bool isWhole = n + t.innerStep <= innerRows;
          (isWhole ? v.wholePairs : v.raggedPairs) += 1;
          (isWhole ? v.wholePairRows : v.raggedPairRows) += rows;
          lengths[size_t(o / t.outerStep)] += 1;
          touched[size_t(n / t.innerStep)] = 1;
        }
      if (byQuery)
        finish();
      else
        addSpan();
    }
    byQuery ? addSpan() : finish();
  }
  return v;
}

void expectEqual(const Visits &v, const Visits &w) {
  expectSameSums(v, w);
  EXPECT_EQ(v.mostPairs, w.mostPairs);
}

/// Every head has a list of its own, so that sums are those of all heads.
Problem ofOwnLists(Random &random, int64_t mostRows, int64_t mostBlock) {
  Problem p = random.problem(mostRows);
  BlockSize size = {random.number(1, mostBlock), random.number(1, mostBlock)};
  std::vector<BlockRows> lists;
  for (int64_t head = 0; head < p.heads; ++head)
    lists.push_back(random.blockRows(ceilDiv(p.queries, size.queries),
                                     ceilDiv(p.keys, size.keys),
                                     random.number(0, 100)));
  p.pattern = Pattern(size, lists);
  return p;
}

TEST(Pattern, VisitsAgreeWithEnumeration) {
  Random random(42);
  for (int round = 0; round < 600; ++round) {
    Problem p = ofOwnLists(random, 40, 16);
    Tiling t = {random.number(0, 1) ? Axis::Query : Axis::Key,
                random.number(1, 16), random.number(1, 16)};
    SCOPED_TRACE(testing::Message()
                 << p << " " << t.outerStep << "x" << t.innerStep << " outer "
                 << static_cast<int>(t.outer));
    Visits w = enumerate(p, t);
    expectEqual(visits(p, t.outer, t.outerStep, t.innerStep), w);
    // From memory.
    expectEqual(visits(p, t.outer, t.outerStep, t.innerStep), w);
    std::vector<int64_t> pairs =
        pairsOfTiles(p, t.outer, t.outerStep, t.innerStep);
    EXPECT_EQ(int64_t(pairs.size()), w.outerTiles);
    EXPECT_EQ(std::accumulate(pairs.begin(), pairs.end(), int64_t(0)),
              w.wholePairs + w.raggedPairs);
  }
}

/// A strip is a problem of its own, of which blocks begin where they do.
TEST(Pattern, StripsAddUp) {
  Random random(43);
  for (int round = 0; round < 300; ++round) {
    Problem p = ofOwnLists(random, 40, 16);
    Tiling t = {random.number(0, 1) ? Axis::Query : Axis::Key,
                random.number(1, 8), random.number(1, 8)};
    Axis axis = random.number(0, 1) ? Axis::Query : Axis::Key;
    int64_t rows =
        (axis == t.outer ? t.outerStep : t.innerStep) * random.number(1, 4);
    Visits all = visits(p, t.outer, t.outerStep, t.innerStep);
    int64_t pairs = 0, pairRows = 0;
    for (int64_t first = 0; first < extent(p, axis); first += rows) {
      Visits v = visitsOfStrip(p, t.outer, t.outerStep, t.innerStep,
                               {axis, first, rows});
      pairs += v.wholePairs + v.raggedPairs;
      pairRows += v.wholePairRows + v.raggedPairRows;
    }
    EXPECT_EQ(pairs, all.wholePairs + all.raggedPairs) << p;
    EXPECT_EQ(pairRows, all.wholePairRows + all.raggedPairRows) << p;
  }
}

/// All blocks are visible: what the mask alone shows.
TEST(Pattern, FullListsChangeNothing) {
  Random random(44);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(60), full = p;
    BlockSize size = {random.number(1, 20), random.number(1, 20)};
    BlockRows list;
    list.columns = ceilDiv(p.keys, size.keys);
    std::vector<int32_t> row(size_t(list.columns));
    std::iota(row.begin(), row.end(), 0);
    for (int64_t i = 0; i < ceilDiv(p.queries, size.queries); ++i)
      list.add(row);
    full.pattern = Pattern(size, {list});
    Tiling t = {random.number(0, 1) ? Axis::Query : Axis::Key,
                random.number(1, 20), random.number(1, 20)};
    Visits w = visits(p, t.outer, t.outerStep, t.innerStep);
    Visits v = visits(full, t.outer, t.outerStep, t.innerStep);
    w.mostPairs = v.mostPairs; // of a band within one
    SCOPED_TRACE(testing::Message() << full);
    expectEqual(v, w);
    EXPECT_EQ(visiblePairs(full), visiblePairs(p));
    // And so does a density of one.
    full.pattern = Pattern(size, 1.0);
    Visits u = visits(full, t.outer, t.outerStep, t.innerStep);
    w.mostPairs = u.mostPairs;
    expectEqual(u, w);
    EXPECT_EQ(visiblePairs(full), visiblePairs(p));
  }
}

TEST(Pattern, VisiblePairs) {
  Random random(45);
  for (int round = 0; round < 200; ++round) {
    Problem p = random.problem(40);
    p.pattern = random.pattern(p, 12);
    int64_t pairs = 0;
    for (int64_t head = 0; head < p.heads; ++head)
      for (int64_t i = 0; i < p.queries; ++i)
        for (int64_t j = 0; j < p.keys; ++j)
          pairs += isVisible(p, head, i, j);
    EXPECT_NEAR(allVisiblePairs(p), double(p.batch * pairs), 1e-6) << p;
  }
}

//===----------------------------------------------------------------------===//
// A density
//===----------------------------------------------------------------------===//

/// Of 64 x 64 blocks, drawn; every sum within some percent of what is expected.
TEST(Pattern, DensityIsWhatIsDrawn) {
  Random random(46);
  Problem p;
  p.heads = 16, p.kvHeads = 4;
  p.queries = p.keys = 64 * 16;
  p.headDim = p.headDimV = 64;
  for (int64_t percent : {3, 5, 20, 60}) {
    Problem drawn = p, expected = p;
    std::vector<BlockRows> lists;
    for (int64_t head = 0; head < p.heads; ++head) {
      BlockRows list;
      list.columns = 64;
      for (int64_t i = 0; i < 64; ++i) {
        std::vector<int32_t> row;
        for (int32_t j = 0; j < 64; ++j)
          if (random.number(1, 100) <= percent)
            row.push_back(j);
        list.add(row);
      }
      lists.push_back(list);
    }
    drawn.pattern = Pattern({16, 16}, lists);
    expected.pattern =
        Pattern({16, 16}, double(percent) / 100, /*isShared=*/false);
    for (Axis outer : {Axis::Query, Axis::Key})
      for (int64_t a : {4, 16, 24, 32, 64})
        for (int64_t b : {4, 16, 24, 32, 64}) {
          Visits v = visits(expected, outer, a, b);
          Visits w = visits(drawn, outer, a, b);
          SCOPED_TRACE(testing::Message()
                       << percent << " % " << a << "x" << b << " outer "
                       << static_cast<int>(outer));
          double heads = double(headsOfSum(drawn, outer));
          double lists = double(listsOfSum(drawn));
          double others = heads == lists ? double(p.kvHeads) : double(p.heads);
          auto near = [](double expected, double drawn) {
            EXPECT_NEAR(drawn / expected, 1, 0.06);
          };
          near(double(v.wholePairs + v.raggedPairs) * lists,
               double(w.wholePairs + w.raggedPairs));
          near(double(v.wholePairRows + v.raggedPairRows) * lists,
               double(w.wholePairRows + w.raggedPairRows));
          near(double(v.visitedRows) * heads, double(w.visitedRows));
          near(double(v.innerSpan) * others, double(w.innerSpan));
          double most =
              double(v.mostPairs) * (outer == Axis::Key ? lists / heads : 1);
          EXPECT_LE(double(w.mostPairs), 1.35 * most + 1);
          EXPECT_GE(double(w.mostPairs), 0.6 * most);
        }
  }
}

} // namespace
