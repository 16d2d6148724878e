//===- BoundsTest.cpp - Regimes and lower bounds --------------------------===//

#include "attn/Schedule/Bounds.h"
#include "RandomProblem.h"
#include "attn/Schedule/Footprint.h"
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
  EXPECT_DOUBLE_EQ(b.largeCacheWords, n * n * d * d / (m + 4 * d * d) - m);
  EXPECT_DOUBLE_EQ(b.smallCacheWords,
                   (2 * d / std::sqrt(m) - 1) * n * n - 2 * m);
  EXPECT_EQ(b.words, b.smallCacheWords);
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
  Bounds ofRegisters = bounds(p, double(machine.registersPerSm));
  EXPECT_EQ(least.smemBytes, 4 * int64_t(ofRegisters.smallCacheWords));
  machine.registersPerSm = 1 << 30;
  EXPECT_EQ(levelBounds(p, machine).smemBytes,
            4 * int64_t(ofRegisters.inputWords));
}

TEST(Bounds, KeyHeadsAreReadOnce) {
  Problem p = square(64, 64);
  p.heads = 8;
  p.kvHeads = 2;
  EXPECT_EQ(bounds(p, 1e9).words, (8 * 2 + 2 * 2) * 64 * 64);
}

/// The words of a schedule with the fast memory it needs never fall below the
/// bound for that much memory.
TEST(Bounds, HoldForEverySchedule) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    int64_t n = random.number(64, 2000), d = random.number(1, 200);
    Problem p = square(n, d);
    p.mask = random.mask();
    int64_t b = random.number(1, 64);
    Schedule flash = findScheduleKind("flash")->build(
        {{"query", b}, {"key", random.number(1, 64)}, {"slice", 1}});
    Schedule spill = findScheduleKind("score_spill")
                         ->build({{"query", b},
                                  {"key", random.number(1, 64)},
                                  {"out_query", b},
                                  {"column", random.number(1, 64)},
                                  {"slice", 1}});
    for (const Schedule &schedule : {flash, spill}) {
      double least = bounds(p, peakWords(schedule, p)).words;
      EXPECT_GE(trafficWords(schedule, p), least) << schedule.name << " " << p;
    }
  }
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
