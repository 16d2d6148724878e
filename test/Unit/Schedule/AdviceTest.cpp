//===- AdviceTest.cpp - What would fit, where the crossover is ------------===//

#include "attn/Schedule/Advice.h"
#include "../Share.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace attn;

namespace {

Problem square(int64_t n, int64_t d) {
  Problem p;
  p.batch = 4;
  p.heads = p.kvHeads = 8;
  p.queries = p.keys = n;
  p.headDim = p.headDimV = d;
  return p;
}

Machine withSharedMemory(int64_t bytes) {
  Machine machine = *findMachine("h100_sxm");
  EXPECT_EQ(overrideField(machine, "smem_bytes_per_block", double(bytes)),
            std::nullopt);
  return machine;
}

TEST(Advice, NearestIsWhatLacksTheFewestBytes) {
  Problem p = square(1024, 128);
  PlanReport report = plans(p, withSharedMemory(4096));
  EXPECT_TRUE(report.plans.empty());
  const Refused *nearest = nearestFit(report);
  const Refused *built = nearestFit(report, true);
  ASSERT_TRUE(nearest && built);
  EXPECT_NE(nearest->reason.find(std::to_string(nearest->smemBytes)),
            std::string::npos);
  EXPECT_FALSE(built->kernel.empty());
  EXPECT_GE(built->smemBytes, nearest->smemBytes);
  // With what it needs, it fits; with one byte less, nothing does.
  EXPECT_FALSE(plans(p, withSharedMemory(nearest->smemBytes)).plans.empty());
  EXPECT_TRUE(plans(p, withSharedMemory(nearest->smemBytes - 1)).plans.empty());
}

TEST(Advice, SmallestMachineHasAPlan) {
  Problem p = square(1024, 128);
  const Machine *any = smallestMachine(p);
  const Machine *built = smallestMachine(p, true);
  ASSERT_TRUE(any && built);
  EXPECT_TRUE(plans(p, *built).best());
  EXPECT_LE(any->smemBytesPerBlock, built->smemBytesPerBlock);
  for (const Machine &machine : machines())
    if (machine.smemBytesPerBlock < built->smemBytesPerBlock)
      EXPECT_FALSE(plans(p, machine).best()) << machine.name;
  // Two products take any width, but no f32: that has places for its output,
  // unless all keys are one block.
  p.headDim = p.headDimV = 65536;
  p.queries = p.keys = 640;
  EXPECT_TRUE(smallestMachine(p, true));
  p.dtype = DataType::f32;
  EXPECT_FALSE(smallestMachine(p, true));
  p.queries = p.keys = 64;
  EXPECT_TRUE(smallestMachine(p, true));
}

/// On either side of the crossover the fastest plan is of its side.
TEST(Advice, CrossoverDivides) {
  ATTN_LONG_TEST();
  for (int64_t kb : {227, 163, 99, 64}) {
    Machine machine = withSharedMemory(kb << 10);
    Crossover where = crossover(square(4096, 128), machine);
    double m = double(kb << 10) / 2;
    EXPECT_EQ(where.regime, int64_t(std::sqrt(m)) + 1);
    ASSERT_EQ(where.words.size(), 1u);
    EXPECT_EQ(where.words.front().schedule, "flash");
    EXPECT_NEAR(where.words.front().headDim, 1.2071 * std::sqrt(m), 0.1);
    ASSERT_GT(where.predicted, 0) << kb;
    for (int64_t d : {where.predicted - 8, where.predicted}) {
      PlanReport report = plans(square(4096, d), machine);
      EXPECT_EQ(isForSmallCache(report.plans.front().schedule),
                d == where.predicted)
          << kb << " " << d << " " << report.plans.front().schedule;
    }
  }
}

/// Gradients have crossovers of their own: on an H100 at d = 363 from sums of
/// dQ that are remote, and at 321 from two views of the products.
TEST(Advice, CrossoverOfGradients) {
  Problem p = square(4096, 128);
  p.direction = Direction::backward;
  p.lse = false;
  const Machine &h100 = *findMachine("h100_sxm");
  Crossover where = crossover(p, h100);
  ASSERT_EQ(where.words.size(), 2u);
  EXPECT_EQ(where.words[0].schedule, "flash_backward");
  EXPECT_EQ(int64_t(where.words[0].headDim), 363);
  EXPECT_EQ(where.words[1].schedule, "split_backward");
  EXPECT_EQ(int64_t(where.words[1].headDim), 321);
  EXPECT_EQ(where.schedule, "spill_backward");
  for (int64_t d : {where.predicted - 8, where.predicted}) {
    p.headDim = p.headDimV = d;
    EXPECT_EQ(isForSmallCache(plans(p, h100).plans.front().schedule),
              d == where.predicted)
        << d;
  }
}

TEST(Advice, BoundsHoldAtEveryLevel) {
  for (const char *machine : {"h100_sxm", "a100_80g", "rtx_4090"})
    for (int64_t d : {64, 256, 512, 1024}) {
      PlanReport report = plans(square(2048, d), *findMachine(machine));
      for (const Plan &plan : report.plans) {
        SCOPED_TRACE(plan.schedule + " " + plan.tiles.str());
        EXPECT_GE(plan.bytes.hbm, report.lowerBounds.hbm);
        EXPECT_GE(plan.bytes.l2, report.lowerBounds.l2);
        EXPECT_GE(plan.bytes.smem, report.lowerBounds.smem);
      }
    }
}

//===----------------------------------------------------------------------===//
// Invented machines
//===----------------------------------------------------------------------===//

constexpr int64_t sizes[] = {16, 32, 48, 64, 99, 163, 227};
constexpr int64_t dims[] = {64, 96, 128, 192, 256, 384, 512, 768, 1024};

/// An H100 that acts as a smaller GPU: no plan takes more than there is, and
/// every size and head dimension has one.
TEST(Advice, InventedMachinesAreRespected) {
  ATTN_LONG_TEST();
  for (int64_t kb : sizes)
    for (int64_t d : dims) {
      PlanReport report = plans(square(4096, d), withSharedMemory(kb << 10));
      for (const Plan &plan : report.plans)
        EXPECT_LE(plan.footprint.smemBytes, kb << 10);
      EXPECT_FALSE(report.plans.empty()) << kb << " KB, d = " << d;
    }
}

/// Slope of the line through points in logarithms, by least squares.
double exponent(const std::vector<double> &x, const std::vector<double> &y) {
  double n = double(x.size()), sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double a = std::log(x[i]), b = std::log(y[i]);
    sx += a, sy += b, sxx += a * a, sxy += a * b;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

int64_t words(const char *kind, const Tiles &tiles, int64_t rows, int64_t d) {
  Problem p = square(rows, d);
  p.batch = p.heads = p.kvHeads = 1;
  p.lse = false;
  return trafficWords(findScheduleKind(kind)->build(tiles), p);
}

/// Words of flash that grow with N², with the tall strip that fills M words.
double flashWords(double m, int64_t d) {
  int64_t query = int64_t(m / (2.0 * d)), rows = 1024 * query;
  int64_t all =
      words("flash", {{"query", query}, {"key", 1}, {"slice", 1}}, rows, d);
  return double(all - 2 * rows * d) / double(rows) / double(rows);
}
/// Rows and columns of the square tile that fills M words with two slices.
int64_t squareTile(double m) { return int64_t(std::sqrt(m + 4)) - 2; }
/// Those of the spill beside P itself, with square tiles that fill M words.
double spillWords(double m, int64_t d) {
  int64_t tile = squareTile(m), rows = 1024 * tile;
  int64_t all = words("score_spill",
                      {{"query", tile},
                       {"key", tile},
                       {"out_query", tile},
                       {"column", tile},
                       {"slice", 1},
                       {"strip", rows}},
                      rows, d);
  return double(all - rows * d) / double(rows) / double(rows) - 1;
}

/// N²d²/M against N²d/√M: the exponents that the theory has, fitted to counted
/// words, each in its own regime.
TEST(Advice, WordsGrowAsTheTheorySays) {
  std::vector<double> m, flashOfM, spillOfM;
  std::vector<double> dOfFlash, flashOfD, dOfSpill, spillOfD;
  for (int64_t kb : sizes) {
    m.push_back(double(kb << 10) / 2);
    flashOfM.push_back(flashWords(m.back(), 64));
    spillOfM.push_back(spillWords(m.back(), 1024));
  }
  double large = double(227 << 10) / 2, least = double(16 << 10) / 2;
  for (int64_t dim : {64, 96, 128, 192, 256, 320}) {
    dOfFlash.push_back(double(dim));
    flashOfD.push_back(flashWords(large, dim));
  }
  for (int64_t tiles : {2, 3, 4, 6, 8, 12}) { // whole ones of columns
    dOfSpill.push_back(double(tiles * squareTile(least)));
    spillOfD.push_back(spillWords(least, tiles * squareTile(least)));
  }
  EXPECT_NEAR(exponent(m, flashOfM), -1, 0.01);
  EXPECT_NEAR(exponent(m, spillOfM), -0.5, 0.02);
  EXPECT_NEAR(exponent(dOfFlash, flashOfD), 2, 0.02);
  EXPECT_NEAR(exponent(dOfSpill, spillOfD), 1, 0.01);
}

} // namespace
