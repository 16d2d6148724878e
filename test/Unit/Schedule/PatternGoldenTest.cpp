//===- PatternGoldenTest.cpp - Words of block lists, from the theory ------===//
//
// Counts by who wrote the theory down: every schedule was executed on these
// lists word by word, with numbers that equal the reference.
//
//===----------------------------------------------------------------------===//

#include "PatternText.h"
#include "attn/Schedule/Bounds.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"
#include <array>

using namespace attn;

namespace {

/// Words, or tiles and pairs, in this order.
enum Count {
  kFlash,
  kStreamedQuery,
  kOutputSpill,
  kScoreSpill,
  kScoreSpillStrips,
  kFlashBackward,
  kFirstStores,
  kSplitBackward,
  kSpillBackward,
  kSpillBackwardStrips,
  kCompulsory,
  kCompulsoryBackward,
  kTiles,
  kPairs,
  kCounts
};

struct Case {
  const char *name;
  int64_t queries, keys, d, e;
  BlockSize block;
  bool isCausal;
  /// One for every query head; all of them share a key head.
  std::vector<const char *> lists;
  int64_t tileQ, tileK, backwardKey, column, strip;
  std::array<int64_t, kCounts> counts;
};

const std::vector<Case> cases = {
    {"dense 16x16",
     16,
     16,
     4,
     4,
     {4, 4},
     false,
     {"####/####/####/####"},
     4,
     4,
     4,
     2,
     8,
     {656, 848, 1232, 1808, 1936, 1520, 1456, 1760, 4336, 4464, 256, 448, 16,
      256}},
    {"dense 16x16, key 8",
     16,
     16,
     4,
     4,
     {4, 4},
     false,
     {"####/####/####/####"},
     4,
     4,
     8,
     2,
     8,
     {656, 848, 1232, 1808, 1936, 1520, 1456, 1440, 4080, 4208, 256, 448, 16,
      256}},
    {"dense 32x32 d16 8x8",
     32,
     32,
     16,
     16,
     {8, 8},
     false,
     {"####/####/####/####"},
     8,
     8,
     8,
     8,
     16,
     {5152, 6688, 9760, 10144, 11168, 11104, 10592, 13120, 25440, 26464, 2048,
      3584, 16, 1024}},
    {"causal 16x16",
     16,
     16,
     4,
     4,
     {4, 4},
     true,
     {"####/####/####/####"},
     4,
     4,
     4,
     2,
     8,
     {464, 560, 752, 1160, 1224, 1184, 1120, 1328, 2848, 2912, 256, 448, 10,
      136}},
    {"causal 18x18 ragged",
     18,
     18,
     4,
     4,
     {4, 4},
     true,
     {"#####/#####/#####/#####/#####"},
     4,
     4,
     4,
     2,
     8,
     {626, 754, 1010, 1492, 1588, 1402, 1330, 1648, 3578, 3674, 288, 504, 15,
      171}},
    {"diagonal",
     16,
     16,
     4,
     4,
     {4, 4},
     false,
     {"#.../.#../..#./...#"},
     4,
     4,
     4,
     2,
     8,
     {272, 272, 272, 512, 512, 848, 784, 896, 1360, 1360, 256, 448, 4, 64}},
    {"window 1 block",
     24,
     24,
     4,
     4,
     {4, 4},
     false,
     {"##..../###.../.###../..###./...###/....##"},
     4,
     4,
     4,
     2,
     8,
     {728, 888, 1208, 1848, 1976, 1832, 1736, 2064, 4520, 4648, 384, 672, 16,
      256}},
    {"sink and window",
     24,
     24,
     4,
     4,
     {4, 4},
     false,
     {"##..../###.../####../#.###./#..###/#...##"},
     4,
     4,
     4,
     2,
     8,
     {856, 1080, 1528, 2280, 2504, 2056, 1960, 2352, 5512, 5736, 384, 672, 20,
      320}},
    {"one global row",
     16,
     16,
     4,
     4,
     {4, 4},
     false,
     {"####/.#../..#./...#"},
     4,
     4,
     4,
     2,
     8,
     {368, 416, 512, 836, 868, 1016, 952, 1112, 2104, 2136, 256, 448, 7, 112}},
    {"one column",
     16,
     16,
     4,
     4,
     {4, 4},
     false,
     {"..#./..#./..#./..#."},
     4,
     4,
     4,
     2,
     8,
     {272, 272, 272, 512, 512, 752, 688, 800, 1360, 1360, 160, 352, 4, 64}},
    {"checkerboard",
     16,
     16,
     4,
     4,
     {4, 4},
     false,
     {"#.#./.#.#/#.#./.#.#"},
     4,
     4,
     4,
     2,
     8,
     {400, 464, 592, 944, 1072, 1072, 1008, 1184, 2352, 2480, 256, 448, 8,
      128}},
    {"empty row and column",
     16,
     16,
     4,
     4,
     {4, 4},
     false,
     {"##../..../.#../...#"},
     4,
     4,
     4,
     2,
     8,
     {256, 272, 304, 512, 512, 816, 736, 832, 1360, 1360, 208, 384, 4, 64}},
    {"nothing",
     8,
     8,
     4,
     4,
     {4, 4},
     false,
     {"../.."},
     4,
     4,
     4,
     2,
     8,
     {40, 40, 40, 40, 40, 248, 184, 176, 184, 184, 32, 96, 0, 0}},
    {"one block",
     16,
     16,
     4,
     4,
     {4, 4},
     false,
     {"..../...#/..../...."},
     4,
     4,
     4,
     2,
     8,
     {128, 128, 128, 188, 188, 584, 472, 488, 616, 616, 112, 256, 1, 16}},
    {"random 1/2",
     24,
     24,
     4,
     4,
     {4, 4},
     false,
     {"#..###/..##.#/.##.#./.##..#/######/######"},
     4,
     4,
     4,
     2,
     8,
     {1016, 1320, 1928, 2820, 3172, 2336, 2240, 2712, 6752, 7104, 384, 672, 25,
      400}},
    {"random 1/4",
     24,
     24,
     4,
     4,
     {4, 4},
     false,
     {"..##../.....#/....../..##../....##/.#...#"},
     4,
     4,
     4,
     2,
     8,
     {488, 552, 680, 1092, 1124, 1408, 1296, 1496, 2784, 2816, 336, 608, 9,
      144}},
    {"random 1/4 ragged 22x19",
     22,
     19,
     4,
     4,
     {4, 4},
     false,
     {"#..../##..#/...../#..../.#.../#...."},
     4,
     4,
     4,
     2,
     8,
     {398, 430, 494, 808, 840, 1110, 1006, 1168, 2074, 2106, 248, 472, 7, 100}},
    {"random 1/4 d_v 6",
     24,
     24,
     4,
     6,
     {4, 4},
     false,
     {"##.##./...#../###.../.#..../.#...#/.#...."},
     4,
     4,
     4,
     2,
     8,
     {744, 840, 1128, 1800, 1992, 1896, 1800, 2208, 4152, 4280, 480, 816, 12,
      192}},
    {"blocks 8, tiles 4",
     24,
     24,
     4,
     4,
     {8, 8},
     false,
     {"..#/##./#.#"},
     4,
     4,
     4,
     2,
     8,
     {856, 1080, 1528, 2280, 2408, 2056, 1960, 2352, 5512, 5640, 384, 672, 20,
      320}},
    {"blocks 2, tiles 4",
     24,
     24,
     4,
     4,
     {2, 2},
     false,
     {"...#..#.#.##/..#......#../##.......##./............/...#....#.../"
      "..........#./......#..##./#...#......./..........#./.......#..../"
      "..#.##...##./#.#..#...#.."},
     4,
     4,
     4,
     2,
     8,
     {920, 1176, 1688, 2496, 2784, 2168, 2072, 2496, 6008, 6296, 376, 656, 22,
      120}},
    {"blocks 6, tiles 4",
     24,
     24,
     4,
     4,
     {6, 6},
     false,
     {"#.#./##.#/..../#.##"},
     4,
     4,
     4,
     2,
     8,
     {1000, 1320, 1960, 2820, 3140, 2336, 2224, 2680, 6752, 7072, 360, 624, 25,
      288}},
    {"blocks 4x8, tiles 8x4",
     24,
     32,
     4,
     4,
     {4, 8},
     false,
     {"..#./#..#/..#./...#/##../...."},
     8,
     4,
     8,
     2,
     16,
     {664, 1016, 1720, 2696, 2760, 2632, 2536, 2048, 6440, 6504, 432, 768, 14,
      224}},
    {"random and causal",
     24,
     24,
     4,
     4,
     {4, 4},
     true,
     {".#.#../.#.##./.#..##/.#..#./...###/.##.#."},
     4,
     4,
     4,
     2,
     8,
     {456, 504, 600, 984, 1080, 1320, 1208, 1392, 2536, 2632, 304, 576, 8,
      116}},
    {"2 heads, shared",
     16,
     16,
     4,
     4,
     {4, 4},
     false,
     {"..../..#./..##/#..#", "..../..#./..##/#..#"},
     4,
     4,
     4,
     2,
     8,
     {576, 640, 768, 1240, 1304, 1520, 1360, 1584, 3088, 3152, 320, 544, 10,
      160}},
    {"2 heads, each its own",
     16,
     16,
     4,
     4,
     {4, 4},
     false,
     {"..../..#./..##/#..#", "...#/###./..../#.#."},
     4,
     4,
     4,
     2,
     8,
     {608, 688, 848, 1348, 1444, 1608, 1448, 1688, 3336, 3432, 352, 576, 11,
      176}},
    {"4 heads, each its own, ragged",
     14,
     18,
     4,
     2,
     {4, 4},
     false,
     {"....#/....#/..##./.##.#", "#...#/....#/#..#./###..",
      ".##.#/#.#.#/.#.../..#..", "...#./..##./#.##./....#"},
     4,
     4,
     4,
     2,
     8,
     {1016, 1208, 1400, 2136, 2272, 2528, 2304, 2568, 5740, 6012, 444, 776, 30,
      360}}};

Problem problemOf(const Case &c, Direction direction) {
  Problem p;
  p.direction = direction;
  p.queries = c.queries, p.keys = c.keys;
  p.headDim = c.d, p.headDimV = c.e;
  p.heads = int64_t(c.lists.size());
  if (c.isCausal)
    p.mask = {MaskKind::causal};
  std::vector<BlockRows> lists;
  for (const char *text : c.lists)
    lists.push_back(blockRowsOf(text));
  p.pattern = Pattern(c.block, lists);
  return p;
}

int64_t words(const char *kind, const Tiles &tiles, const Problem &p) {
  return trafficWords(findScheduleKind(kind)->build(tiles), p);
}

void expectForward(const Case &c, const Problem &p) {
  Tiles tiles = {{"query", c.tileQ}, {"key", c.tileK}, {"slice", 1}};
  EXPECT_EQ(words("flash", tiles, p), c.counts[kFlash]);
  EXPECT_EQ(words("streamed_query", tiles, p), c.counts[kStreamedQuery]);
  tiles.set("column", c.column);
  EXPECT_EQ(words("output_spill", tiles, p), c.counts[kOutputSpill]);
  tiles.set("strip", roundUp(c.keys, c.tileK));
  EXPECT_EQ(words("score_spill", tiles, p), c.counts[kScoreSpill]);
  tiles.set("strip", c.strip);
  EXPECT_EQ(words("score_spill", tiles, p), c.counts[kScoreSpillStrips]);
}

/// The theory reads sums of tiles that see something, the last launch those of
/// strips that do, which are larger than all queries here.
int64_t rowsBesideSeen(const Case &c) {
  int64_t rows = 0;
  for (size_t head = 0; head < c.lists.size(); ++head) {
    Problem one = problemOf(c, Direction::forward);
    one.heads = 1;
    one.pattern = Pattern(c.block, {blockRowsOf(c.lists[head])});
    int64_t seeing = visits(one, Axis::Query, c.tileQ, 0).visitedRows;
    rows += seeing > 0 ? c.queries - seeing : 0;
  }
  return rows;
}

void expectBackward(const Case &c, const Problem &p) {
  Tiles flash = {{"key", c.tileK}, {"query_block", c.tileQ}};
  EXPECT_EQ(words("flash_backward", flash, p), c.counts[kFlashBackward]);
  flash.set("first_stores", 1);
  EXPECT_EQ(words("flash_backward", flash, p),
            c.counts[kFirstStores] + c.d * rowsBesideSeen(c));
  Tiles split = {{"query", c.tileQ},
                 {"key_block", c.tileK},
                 {"key", c.backwardKey},
                 {"query_block", c.tileQ}};
  EXPECT_EQ(words("split_backward", split, p), c.counts[kSplitBackward]);
  Tiles spill = split;
  spill.set("column", c.column);
  spill.set("slice", c.tileQ); // of both contracted axes
  spill.set("stages", 1);
  spill.set("strip", roundUp(c.keys, c.tileK));
  EXPECT_EQ(words("spill_backward", spill, p), c.counts[kSpillBackward]);
  spill.set("strip", c.strip);
  EXPECT_EQ(words("spill_backward", spill, p), c.counts[kSpillBackwardStrips]);
}

TEST(PatternGolden, Words) {
  ASSERT_EQ(cases.size(), 26u);
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    Problem p = problemOf(c, Direction::forward);
    ASSERT_EQ(check(p), std::nullopt);
    expectForward(c, p);
    expectBackward(c, problemOf(c, Direction::backward));
    Visits v = visits(p, Axis::Query, c.tileQ, c.tileK);
    EXPECT_EQ(v.wholePairs + v.raggedPairs, c.counts[kTiles]);
    EXPECT_EQ(allVisiblePairs(p), double(c.counts[kPairs]));
  }
}

/// Two heads with the same list are two heads with one list.
TEST(PatternGolden, ListsInCommon) {
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    if (c.lists.size() != 2 ||
        std::string(c.lists[0]) != std::string(c.lists[1]))
      continue;
    Problem p = problemOf(c, Direction::forward);
    p.pattern = Pattern(c.block, {blockRowsOf(c.lists[0])});
    expectForward(c, p);
    p.direction = Direction::backward;
    expectBackward(c, p);
  }
}

TEST(PatternGolden, CompulsoryWords) {
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    for (auto [direction, count] :
         {std::pair(Direction::forward, kCompulsory),
          std::pair(Direction::backward, kCompulsoryBackward)})
      EXPECT_EQ(bounds(problemOf(c, direction), 1e9).compulsoryWords,
                double(c.counts[count]));
  }
}

} // namespace
