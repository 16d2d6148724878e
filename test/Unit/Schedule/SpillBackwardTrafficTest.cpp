//===- SpillBackwardTrafficTest.cpp - What matrix products move -----------===//

#include "RandomProblem.h"
#include "SpillBackwardTiles.h"
#include "TokenProblem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

Schedule scheduleOf(const Tiles &tiles) {
  return findScheduleKind("spill_backward")->build(tiles);
}

/// Tiles of b x b, of as many queries as keys, as in the theory.
int64_t wordsOf(int64_t n, int64_t d, int64_t b, int64_t strip,
                bool isKept = false, bool isMerged = false) {
  Problem p;
  p.direction = Direction::backward;
  p.queries = p.keys = n;
  p.headDim = p.headDimV = d;
  Tiles tiles{{"query", b},  {"key_block", b},   {"key", b},
              {"column", b}, {"query_block", b}, {"strip", strip},
              {"heads", 1},  {"stages", 1},      {"persistent", 1}};
  if (isKept)
    tiles.set("kept", 1);
  if (isMerged)
    tiles.set("merged", 1);
  return trafficWords(scheduleOf(tiles), p);
}

// The theory counts 26208 words for 32 rows of 16 columns and b = 8, with a
// launch each for S and dP: 10N²d/b + 3N² + 5Nd + 3N.  Here P stays until dS is
// made of it, N² less; and LSE and D are passed on together, 2N more for every
// block of keys.
TEST(SpillBackward, Words) {
  EXPECT_EQ(wordsOf(32, 16, 8, 32), 26208 - 32 * 32 + 2 * 32 * 4);
  EXPECT_EQ(wordsOf(32, 16, 8, 32), 25440);
  for (int64_t n : {64, 256, 1024})
    for (int64_t d : {32, 64, 512})
      for (int64_t b : {8, 16, 32})
        for (int64_t strip : {n / 2, n, 2 * n}) {
          int64_t strips = ceilDiv(n, strip);
          EXPECT_EQ(wordsOf(n, d, b, strip),
                    10 * n * n * d / b + 2 * n * n + 5 * n * d + 3 * n +
                        2 * n * n / b + 2 * (strips - 1) * n * d);
          // D of other tiles is the same words.
          EXPECT_EQ(wordsOf(n, d, b, strip, /*isKept=*/false,
                            /*isMerged=*/true),
                    wordsOf(n, d, b, strip));
          // No Q and K for scores; weights, and a maximum of every block.
          EXPECT_EQ(wordsOf(n, d, b, strip) -
                        wordsOf(n, d, b, strip, /*isKept=*/true),
                    2 * n * n * d / b - n * n - n * n / b);
        }
}

/// What the launches in rounds do, tile by tile, looking at every pair.  D is
/// what tiles of it do where launches are merged.
struct Kernel {
  const Problem &p;
  const SpillBackwardTiles &c;
  struct {
    int64_t l2 = 0, smem = 0;
  } deltas, scores, keys, queries; ///< of a head of queries, but keys of one
                                   ///< of keys

  Kernel(const Problem &p, const SpillBackwardTiles &c) : p(p), c(c) {
    for (int64_t strip = 0; strip < p.keys; strip += c.strip) {
      for (int64_t i = 0; i < p.queries; i += own)
        scoresTile(i, strip);
      for (int64_t j = strip; j < end(strip); j += own) {
        gradientTiles(j, e);
        gradientTiles(j, d);
      }
    }
    for (int64_t i = 0; i < p.queries; i += own)
      deltaTile(i);
    for (int64_t i = 0; i < p.queries; i += own)
      for (int64_t first = 0; first < d; first += c.column)
        queriesTile(i, std::min(c.column, d - first));
  }

private:
  int64_t d = p.headDim, e = p.headDimV;
  static constexpr int64_t own = 128; ///< rows of a tile

  int64_t end(int64_t strip) const { return std::min(strip + c.strip, p.keys); }
  /// A pair of factors comes to every block, and two warpgroups read them.
  int64_t smemOf(int64_t right) const {
    return 2 * 64 * (128 + right) + 2 * 2 * 64 * (64 + right);
  }

  /// Slices of dO and O, of which a warpgroup reads its own 64 rows.
  void deltaTile(int64_t i) {
    if (!sees(p, i, own, 0, p.keys))
      return;
    int64_t rows = std::min(own, p.queries - i);
    deltas.l2 += rows * (2 * 2 * e + 4 * p.dlse) + 4 * roundUp(rows, 64);
    deltas.smem += ceilDiv(e, 64) * 2 * (2 * 64 * (own + own));
  }

  void scoresTile(int64_t i, int64_t strip) {
    int64_t rows = std::min(own, p.queries - i);
    for (int64_t j = strip; j < end(strip); j += c.keyBlock) {
      if (!sees(p, i, own, j, c.keyBlock))
        continue;
      int64_t cols = std::min(c.keyBlock, p.keys - j);
      scores.l2 += 4 * (2 + p.lseLow) * rows; // statistics
      scores.l2 += 2 * (rows + cols) * e + 2 * 2 * own * c.keyBlock;
      scores.l2 += c.kept ? 2 * rows * cols + 4 * rows : 2 * (rows + cols) * d;
      int64_t slices = (c.kept ? 0 : ceilDiv(d, 64)) + ceilDiv(e, 64);
      scores.smem += slices * smemOf(c.keyBlock);
      scores.smem += 2 * 2 * (2 * own * c.keyBlock); // staged
      if (c.kept)
        scores.smem += 2 * (2 * own * c.keyBlock);
    }
  }

  /// All columns of dV or of dK.
  void gradientTiles(int64_t j, int64_t width) {
    int64_t rows = std::min(own, p.keys - j);
    for (int64_t first = 0; first < width; first += c.column) {
      int64_t cols = std::min(c.column, width - first);
      for (int64_t head = 0; head < p.heads / p.kvHeads; ++head)
        for (int64_t i = 0; i < p.queries; i += 64)
          if (sees(p, i, 64, j, own)) {
            keys.l2 += 2 * 64 * own;
            keys.l2 += 2 * std::min<int64_t>(64, p.queries - i) * cols;
            keys.smem += smemOf(c.column);
          }
      keys.l2 += 2 * rows * cols;
      keys.smem += 2 * (own * c.column + rows * cols);
    }
  }

  void queriesTile(int64_t i, int64_t cols) {
    int64_t rows = std::min(own, p.queries - i), strips = 0;
    for (int64_t strip = 0; strip < p.keys; strip += c.strip) {
      bool seesAny = false;
      for (int64_t j = strip; j < end(strip); j += 64)
        if (sees(p, i, own, j, 64)) {
          seesAny = true;
          queries.l2 += 2 * own * 64;
          queries.l2 += 2 * std::min<int64_t>(64, p.keys - j) * cols;
          queries.smem += smemOf(c.column);
        }
      strips += seesAny;
    }
    // Written and read between strips, 64 rows at a time.
    int64_t sums = 4 * roundUp(rows, 64) * c.column;
    queries.l2 += 2 * sums * std::max<int64_t>(0, strips - 1);
    queries.l2 += 2 * rows * cols;
    queries.smem += 2 * (own * c.column + rows * cols);
  }
};

TEST(SpillBackward, MovesWhatTheKernelMoves) {
  Random random(31);
  for (int round = 0; round < 120; ++round) {
    Problem p = random.problem(700);
    p.direction = Direction::backward;
    p.dlse = random.number(0, 1) != 0;
    p.headDim = 8 * random.number(1, 80);
    p.headDimV = 8 * random.number(1, 80);
    SpillBackwardTiles c;
    c.keyBlock = 128 * random.number(1, 2);
    c.column = 64 * random.number(1, 4);
    c.strip = 256 * random.number(1, 3);
    c.heads = random.number(1, 8);
    c.kept = p.keepsWeights = c.keyBlock == 256 && random.number(0, 1);
    c.merged = random.number(0, 1);
    Schedule schedule = scheduleOf(c);
    Census counted = census(schedule, p);
    auto bytes = [&](size_t launch) {
      return gridTraffic(counted, launch, p, h100(), 132);
    };
    int64_t heads = p.batch * p.heads, keyHeads = p.batch * p.kvHeads;
    int64_t lse = 1 + p.lseLow;
    Kernel kernel(p, c);
    size_t first = 1; // of the grids in rounds
    if (c.merged) {
      EXPECT_EQ(bytes(0).l2,
                heads * 4 * lse * (p.queries + roundUp(p.queries, 64)))
          << p;
      EXPECT_EQ(bytes(1).l2, heads * kernel.deltas.l2) << p;
      EXPECT_EQ(bytes(1).smem, heads * kernel.deltas.smem) << p;
      first = 2;
    } else {
      EXPECT_EQ(bytes(0).l2,
                heads * (p.queries * (4 * p.headDimV + 4 * lse + 4 * p.dlse) +
                         4 * (lse + 1) * roundUp(p.queries, 64)))
          << p;
    }
    EXPECT_EQ(bytes(first).l2, heads * kernel.scores.l2) << p;
    EXPECT_EQ(bytes(first).smem, heads * kernel.scores.smem) << p;
    EXPECT_EQ(bytes(first + 1).l2, keyHeads * kernel.keys.l2) << p;
    EXPECT_EQ(bytes(first + 1).smem, keyHeads * kernel.keys.smem) << p;
    EXPECT_EQ(bytes(first + 2).l2, heads * kernel.queries.l2) << p;
    EXPECT_EQ(bytes(first + 2).smem, heads * kernel.queries.smem) << p;
    for (size_t launch = 0; launch < first + 3; ++launch)
      EXPECT_LE(bytes(launch).hbm, bytes(launch).l2) << p;
  }
}

// By hand, d = 512, 4096 rows, one head: 32 x 16 blocks of scores, in MiB.
TEST(SpillBackward, BytesByHand) {
  Problem p = tokenGradients(512, 4096);
  p.batch = p.heads = p.kvHeads = 1;
  Schedule schedule = scheduleOf(SpillBackwardTiles());
  Census counted = census(schedule, p);
  constexpr int64_t mib = 1 << 20;
  auto l2 = [&](size_t launch) {
    return gridTraffic(counted, launch, p, h100(), 132).l2;
  };
  // Q, dO and statistics for every column of blocks, K and V for every row; P
  // and dS.
  EXPECT_EQ(l2(1), 16 * 8 * mib + 32 * 8 * mib + 2 * 32 * mib + 16 * 4096 * 8);
  // P and dS for two tiles of columns each; dO and Q for every tile of keys.
  EXPECT_EQ(l2(2), 2 * 2 * 32 * mib + 32 * 8 * mib + 8 * mib);
  EXPECT_EQ(l2(3), 2 * 32 * mib + 32 * 4 * mib + 4 * mib);
}

// All arrays of the operands are read and written, and no fewer words move than
// any schedule must with as much fast memory.
TEST(SpillBackward, Bounds) {
  Random random(32);
  for (int round = 0; round < 200; ++round) {
    Problem p = random.problem(3000);
    p.direction = Direction::backward;
    p.headDim = 8 * random.number(1, 160);
    p.headDimV = 8 * random.number(1, 160);
    Schedule schedule = scheduleOf(SpillBackwardTiles());
    Bytes bytes = traffic(schedule, p, h100());
    LevelBounds least = levelBounds(p, h100());
    EXPECT_GE(bytes.l2, least.l2Bytes) << p;
    EXPECT_GE(bytes.smem, least.smemBytes) << p;
    EXPECT_GE(trafficWords(schedule, p),
              bounds(p, double(peakWords(schedule, p))).words)
        << p;
  }
}

} // namespace
