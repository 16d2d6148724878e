//===- BoundsTest.cpp - Regimes and lower bounds --------------------------===//

#include "attn/Schedule/Bounds.h"
#include "RandomProblem.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace attn;

namespace {

Problem square(int64_t n, int64_t d, DataType type = DataType::bf16) {
  Problem p;
  p.dtype = type;
  p.queries = p.keys = n;
  p.headDim = p.headDimV = d;
  return p;
}

bool isLarge(const char *machine, DataType type, int64_t d) {
  return regime(square(1024, d, type), *findMachine(machine)) ==
         Regime::largeCache;
}

TEST(Regime, CriticalHeadDims) {
  // The largest head dimension with M >= d².
  struct {
    const char *machine;
    DataType type;
    int64_t most;
  } rows[] = {
      {"gtx_1060", DataType::f32, 110},    {"gtx_1060", DataType::f16, 156},
      {"t4", DataType::f16, 181},          {"a100_80g", DataType::bf16, 288},
      {"a100_80g", DataType::f32, 204},    {"l4", DataType::bf16, 225},
      {"rtx_4090", DataType::f8e4m3, 318}, {"h100_sxm", DataType::bf16, 340},
      {"h100_sxm", DataType::f32, 241},    {"h100_sxm", DataType::f8e4m3, 482}};
  for (auto &row : rows) {
    EXPECT_TRUE(isLarge(row.machine, row.type, row.most)) << row.machine;
    EXPECT_FALSE(isLarge(row.machine, row.type, row.most + 1)) << row.machine;
  }
}

TEST(Regime, TakesTheLargerHeadDim) {
  Problem p = square(1024, 64);
  p.headDimV = 512;
  EXPECT_EQ(regime(p, *findMachine("h100_sxm")), Regime::smallCache);
}

TEST(Bounds, Formulas) {
  double n = 16384, d = 128, m = 4096;
  Bounds b = bounds(square(n, d), m);
  EXPECT_DOUBLE_EQ(b.inputWords, 3 * n * d);
  EXPECT_DOUBLE_EQ(b.compulsoryWords, 4 * n * d);
  EXPECT_DOUBLE_EQ(b.largeCacheWords, n * n * (1 - m / (8 * d * d)));
  EXPECT_DOUBLE_EQ(b.smallCacheWords,
                   (4 * d / std::sqrt(m) - 2) * n * n - 2 * m);
  EXPECT_EQ(b.words, b.smallCacheWords);
  // With more memory than d² nothing is said of products.
  m = 2 * d * d;
  b = bounds(square(n, d), m);
  EXPECT_EQ(b.smallCacheWords, 0);
  EXPECT_DOUBLE_EQ(b.largeCacheWords, n * n * (1 - m / (8 * d * d)));
  m = 8 * d * d;
  EXPECT_DOUBLE_EQ(bounds(square(n, d), m).largeCacheWords,
                   2 * n * n * d * d / m);
  // As much memory as all rows need: inputs once.
  EXPECT_NEAR(bounds(square(n, d), 1e12).largeCacheWords, 3 * n * d, 1);
}

TEST(Bounds, FormulasOfGradients) {
  double n = 16384, d = 128, m = 4096;
  Problem p = square(n, d);
  p.direction = Direction::backward;
  Bounds b = bounds(p, m);
  EXPECT_DOUBLE_EQ(b.compulsoryWords, 7 * n * d);
  EXPECT_DOUBLE_EQ(b.largeCacheWords, n * n * (1 - m / (24 * d * d)));
  EXPECT_DOUBLE_EQ(b.smallCacheWords,
                   (10 * d / std::sqrt(m) - 4) * n * n - 2 * m);
  m = 24 * d * d;
  EXPECT_DOUBLE_EQ(bounds(p, m).largeCacheWords, 6 * n * n * d * d / m);
}

/// Columns that differ, each formula at a point where it alone is greatest.
TEST(Bounds, FormulasOfUnequalColumns) {
  double n = 1 << 20, d = 192, e = 128;
  Problem p = square(n, d);
  p.headDimV = e;
  EXPECT_DOUBLE_EQ(bounds(p, 1 << 18).largeCacheWords,
                   n * n * d * (d + e) / (1 << 18));
  std::swap(p.headDim, p.headDimV);
  EXPECT_DOUBLE_EQ(bounds(p, 1 << 18).largeCacheWords,
                   n * n * 2 * d * e / (1 << 18));
}

/// The inequality that docs/bounds.md takes from its corners.
TEST(Bounds, CornersOfGradients) {
  for (int halves = 2; halves <= 32; ++halves)
    for (int quarters = 1; quarters <= 2 * halves; ++quarters)
      for (int part = 0; part <= 64; ++part)
        for (int corner = 0; corner < 32; ++corner) {
          double d = halves / 2.0, e = quarters / 4.0, eta = e * part / 64;
          auto at = [&](int bit) { return double(corner >> bit & 1); };
          double alpha = at(0), beta = at(1), gamma = at(2), y = at(3);
          double xi = at(4) * eta / e;
          double words = (d + eta + xi * beta * d) *
                         (d + y * e + gamma * eta + y * alpha * d);
          double products = gamma * eta + xi * y * d * (alpha + beta);
          EXPECT_GE(words * (1 + 1e-12), 2 * (d + e) * products)
              << d << " " << e << " " << eta << " " << corner;
        }
}

/// A window of w keys: no tile has more than w pairs for each of its queries.
TEST(Bounds, WindowsHaveFewPairsPerRow) {
  double n = 1 << 20, d = 64, w = 64, m = 1 << 16;
  Problem p = square(n, d);
  p.mask = {MaskKind::window, int64_t(w) - 1, 0};
  Problem open = p;
  open.mask = {};
  double pairs = double(visiblePairs(p));
  double dense = bounds(open, m).largeCacheWords / (n * n) * pairs;
  EXPECT_GT(bounds(p, m).largeCacheWords, 1.5 * dense);
}

/// Blocks of b x b on the diagonal, of which a tile of any size has b for each
/// row: rows that it needs are all rows, once.  With b > 2d + e that is less
/// than a word for each pair.
TEST(Bounds, BlocksOnTheDiagonalAreReadOnce) {
  int64_t b = 256, count = 16;
  Problem p = square(b * count, 32);
  BlockRows list;
  list.columns = count;
  for (int64_t i = 0; i < count; ++i)
    list.add({int32_t(i)});
  p.pattern = Pattern({b, b}, {list});
  Bounds found = bounds(p, 1 << 12);
  EXPECT_GE(found.largeCacheWords, found.inputWords * 0.999);
}

TEST(Bounds, PublishedDividesAtLessThanAShare) {
  Problem p = square(1 << 20, 64);
  EXPECT_NEAR(publishedBound(p, 4096).dividingWords / (64 * 64), 1, 0.01);
  p.pattern = Pattern({64, 64}, 1.0 / 16);
  PublishedBound found = publishedBound(p, 4096);
  EXPECT_NEAR(found.dividingWords / (64 * 64 * 16), 1, 0.01);
  EXPECT_NEAR(publishedBound(p, found.dividingWords).words /
                  (double(1 << 20) * (1 << 20) * 64 * 64 / found.dividingWords),
              1, 0.01);
}

/// Blocks cap what a taller tile saves (sparse: found 1077, 2099, 4253, 8616 of
/// all powers of two).
TEST(Bounds, DividingWords) {
  Problem p = square(1 << 16, 64);
  EXPECT_NEAR(dividingWords(p), 0.686 * 64 * 64, 2);
  for (auto [block, d] : {std::pair(8, 64), {16, 64}, {16, 128}, {32, 128}}) {
    Problem q = square(1 << 16, d);
    q.pattern = Pattern({block, block}, 0.2);
    EXPECT_EQ(dividingWords(q), 2.0 * block * d);
  }
}

/// At HBM all memory of the chip is before it, at shared memory the registers,
/// and there results do not count.
TEST(Bounds, Levels) {
  Machine machine = *findMachine("t4");
  Problem p = square(4096, 2048, DataType::f32);
  double onChip = double(machine.l2Bytes) +
                  double(machine.sms) * (double(machine.smemBytesPerSm) +
                                         4.0 * double(machine.registersPerSm));
  LevelBounds least = levelBounds(p, machine);
  EXPECT_EQ(least.hbmBytes, 4 * int64_t(bounds(p, onChip / 4).words));
  EXPECT_EQ(least.l2Bytes, lowerBoundBytes(p, machine));
  double ofSm =
      double(machine.smemBytesPerSm) / 4 + double(machine.registersPerSm);
  EXPECT_EQ(least.l2Bytes, 4 * int64_t(bounds(p, ofSm, machine.sms).words));
  EXPECT_EQ(levelBounds(p, machine, 2).l2Bytes,
            4 * int64_t(bounds(p, 2 * ofSm, machine.sms / 2).words));
  EXPECT_EQ(least.smemBytes, 4 * int64_t(bounds(p, ofSm).inputWords));
}

TEST(Bounds, KeyHeadsAreReadOnce) {
  Problem p = square(64, 64);
  p.heads = 8;
  p.kvHeads = 2;
  EXPECT_EQ(bounds(p, 1e9).words, (8 * 2 + 2 * 2) * 64 * 64);
}

/// Every schedule with tiles of any size.
std::vector<Schedule> schedulesOf(Random &random, Direction direction) {
  auto size = [&] { return random.magnitude(1, 128); };
  Tiles tiles = {{"query", size()},     {"key", size()},
                 {"key_block", size()}, {"query_block", size()},
                 {"column", size()},    {"slice", random.magnitude(1, 16)}};
  std::vector<const char *> kinds;
  if (direction == Direction::forward)
    kinds = {"flash", "streamed_query", "output_spill", "score_spill"};
  else
    kinds = {"flash_backward", "split_backward", "spill_backward"};
  tiles.set("strip", tiles.get("key") * random.magnitude(1, 64));
  std::vector<Schedule> all;
  for (const char *kind : kinds)
    all.push_back(findScheduleKind(kind)->build(tiles));
  return all;
}

/// The words of a schedule with the fast memory it needs never fall below the
/// bound for that much memory.
TEST(Bounds, HoldForEverySchedule) {
  Random random(7);
  for (int round = 0; round < 1000; ++round) {
    Problem p = random.problem(2000);
    p.headDim = random.magnitude(1, 200);
    p.headDimV = random.number(0, 1) ? p.headDim : random.magnitude(1, 200);
    if (random.number(0, 1))
      p.pattern = random.pattern(p, 200);
    if (random.number(0, 1))
      p.direction = Direction::backward;
    else if (p.headDimV <= p.headDim)
      p.valuesOfKeys = random.number(0, 1);
    for (const Schedule &schedule : schedulesOf(random, p.direction)) {
      double least = bounds(p, double(peakWords(schedule, p))).words;
      EXPECT_GE(double(trafficWords(schedule, p)), least * (1 - 1e-12))
          << schedule.name << " " << p;
    }
  }
}

/// Bytes of plans, with lists and with a density, at the level where every word
/// crosses; blocks that load together have the memory of all.
TEST(Bounds, HoldForPlansOfPatterns) {
  Random random(8);
  for (int round = 0; round < 40; ++round) {
    Problem p = random.anyProblem();
    p.queries = random.magnitude(1, 4096), p.keys = random.magnitude(1, 4096);
    p.pattern = random.pattern(p, 512);
    if (round % 2 != 0)
      p.pattern = Pattern(p.pattern->size(), p.pattern->density(),
                          p.pattern->isShared());
    if (check(p)) // gradients of 8 bits
      continue;
    const Machine &machine = random.anyMachine();
    for (const Plan &plan : plans(p, machine).plans) {
      int64_t together = plan.tiles.get("cluster", 1);
      ASSERT_GE(plan.bytes.l2, levelBounds(p, machine, together).l2Bytes)
          << p << " " << machine.name << " " << plan.schedule << " "
          << plan.tiles.str();
    }
  }
}

/// Values that are columns of keys cross from memory with them, and in groups
/// of blocks from L2 by themselves.
TEST(Bounds, ValuesOfKeysAreReadOnce) {
  Problem p;
  p.batch = 64, p.queries = 128, p.keys = 8192; // heads as rows
  p.headDim = 576, p.headDimV = 512;
  Problem apart = p;
  p.valuesOfKeys = true;
  Machine machine = *findMachine("h100_sxm");
  std::string error;
  Plan latent = *planFor(p, machine, "column_split",
                         {{"group", 2}, {"cluster", 1}}, error);
  Plan two = *planFor(apart, machine, latent.schedule, latent.tiles, error);
  double keys = double(p.batch * p.keys) * double(p.headDim) * 2;
  double rows =
      double(p.batch * p.queries) * double(p.headDim + p.headDimV) * 2;
  EXPECT_NEAR(double(latent.bytes.hbm), keys + rows, 0.02 * keys);
  EXPECT_EQ(latent.bytes.l2, two.bytes.l2);
  EXPECT_LT(latent.seconds, two.seconds);
  EXPECT_LT(bounds(p, 1e5).words, bounds(apart, 1e5).words);
}

/// In the two-level model, the choice between the two schedules changes near
/// r = d / √M = 1.207, as the theory has it.
TEST(Bounds, CrossOver) {
  int64_t n = 1 << 16, m = 1 << 14;
  auto best = [&](const char *kind, double d) {
    double r = d / std::sqrt(double(m));
    return kind[0] == 'f' ? 4 * r * r : 4 * r + 1;
  };
  for (int64_t d : {63, 126, 144, 252, 504}) {
    // Tiles that fill the memory: 2·Br·d = M, and b² + 4b = M.
    int64_t br = m / (2 * d), b = int64_t(std::sqrt(double(m))) - 2;
    Problem p = square(n, d);
    double flash = trafficWords(findScheduleKind("flash")->build(
                                    {{"query", br}, {"key", 1}, {"slice", 1}}),
                                p);
    double spill = trafficWords(findScheduleKind("score_spill")
                                    ->build({{"query", b},
                                             {"key", b},
                                             {"out_query", b},
                                             {"column", b},
                                             {"slice", 1}}),
                                p);
    double square = double(n) * n;
    EXPECT_NEAR(flash / square / best("flash", d), 1, 0.1) << d;
    EXPECT_EQ(flash < spill, d < 1.207 * std::sqrt(double(m))) << d;
  }
}

} // namespace
