//===- SensitivityTest.cpp - What another machine would buy ---------------===//

#include "attn/Schedule/Sensitivity.h"
#include "../Share.h"
#include "attn/Schedule/Energy.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace attn;

namespace {

Problem problemOf(int64_t headDim, Direction direction = Direction::forward) {
  Problem p;
  p.heads = p.kvHeads = 16;
  p.queries = p.keys = 4096;
  p.headDim = p.headDimV = headDim;
  p.direction = direction;
  return p;
}

/// M of an H100 in 16 bits.
constexpr double kLarge = 116224;

// The words of the theory, with r = d / sqrt(M): 4r² N² where rows of queries
// stay, (4r + 1) N² where P is spilled.
TEST(Exponent, IdealWordsAreTheLiteratures) {
  double n = std::exp2(20);
  for (double m : {4096.0, 65536.0, 1048576.0})
    for (int64_t d : {128, 512, 2048}) {
      double r = double(d) / std::sqrt(m);
      double flash = idealWords("flash", problemOf(d), m).value_or(0) / n / n;
      if (m > 100 * double(d)) // or what a row has beside Q and O counts
        EXPECT_NEAR(flash / (4 * r * r), 1, 0.03) << m << ' ' << d;
      if (r < 1)
        continue;
      double spill =
          idealWords("score_spill", problemOf(d), m).value_or(0) / n / n;
      EXPECT_NEAR(spill / (4 * r + 1), 1, 0.08) << m << ' ' << d;
    }
}

TEST(Exponent, RowsThatStayHaveOneAndTilesOfScoresAHalf) {
  for (int64_t d : {64, 128, 256}) {
    Exponent large = *exponentOf(problemOf(d), kLarge);
    EXPECT_EQ(large.schedule, "flash");
    EXPECT_NEAR(large.beta, 1, 0.03) << d;
    EXPECT_NEAR(large.savesByHalving(), 4, 0.1) << d;
  }
  for (int64_t d : {1024, 2048}) {
    Exponent small = *exponentOf(problemOf(d), kLarge);
    EXPECT_EQ(small.schedule, "score_spill");
    // 4r + 1: what is written of the scores does not depend on M.
    double r = double(d) / std::sqrt(kLarge), root = std::sqrt(2);
    double beta = std::log2((4 * r * root + 1) / (4 * r / root + 1)) / 2;
    EXPECT_NEAR(small.beta, beta, 0.02) << d;
    EXPECT_DOUBLE_EQ(small.savesByHalving(), 2 * std::exp2(small.beta)) << d;
  }
  Exponent back = *exponentOf(problemOf(128, Direction::backward), kLarge);
  EXPECT_EQ(back.schedule, "split_backward");
  EXPECT_NEAR(back.beta, 1, 0.05);
}

// A kink, where another schedule takes over, is no exponent: M = 12288 and d =
// 128 lie just before it.
TEST(Exponent, IsOfOneSchedule) {
  EXPECT_NEAR(exponentOf(problemOf(128), 12288)->beta, 1, 0.1);
}

TEST(Exponent, NothingFitsInNoMemory) {
  EXPECT_FALSE(exponentOf(problemOf(128), 3));
  EXPECT_FALSE(idealWords("column_split", problemOf(128), kLarge));
  EXPECT_FALSE(idealWords("no_such", problemOf(128), kLarge));
}

TEST(Gains, TwiceAsMuchOfAnythingIsNeverSlower) {
  ATTN_LONG_TEST();
  for (const Machine &machine : machines())
    for (int64_t d : {64, 512}) {
      PlanReport report = plans(problemOf(d), machine);
      for (const Gain &gain : gains(report))
        EXPECT_GE(gain.speedup, 0.999)
            << machine.name << ' ' << d << ' ' << gain.resource->name;
    }
}

// What binds is what limits, where one unit does nearly everything.
TEST(Gains, TheLimitIsWhatBinds) {
  auto limit = [](const Problem &problem, const char *machine) {
    std::vector<Gain> all = gains(plans(problem, *findMachine(machine)));
    const Gain *found = limitOf(all);
    return found ? std::string(found->resource->name) : "";
  };
  EXPECT_EQ(limit(problemOf(128), "rtx_4090"), "tensor_rate");
  EXPECT_EQ(limit(problemOf(128), "gtx_1060"), "fp32_rate");
  Problem decode = problemOf(128);
  decode.queries = 1, decode.keys = 65536, decode.batch = 64;
  EXPECT_EQ(limit(decode, "h100_sxm"), "hbm_rate");
  Problem tiny = problemOf(64);
  tiny.heads = tiny.kvHeads = 1, tiny.queries = tiny.keys = 16;
  EXPECT_EQ(limit(tiny, "h100_sxm"), "");
}

TEST(Gains, EveryResourceChangesItsMachineOnly) {
  Machine machine = *findMachine("h100_sxm");
  for (const Resource &resource : resources()) {
    Machine more = withMore(resource, machine, 2);
    EXPECT_FALSE(check(more)) << resource.name;
    int changed = 0;
    for (const MachineField &field : machineFields()) {
      double before = *fieldValue(machine, field.name);
      double after = *fieldValue(more, field.name);
      EXPECT_TRUE(after == before || after == 2 * before) << field.name;
      changed += after != before;
    }
    EXPECT_GE(changed, 1) << resource.name;
  }
}

TEST(Energy, IsOfBytesByLevel) {
  Energy energy = energyOf({1000, 2000, 3000});
  EXPECT_DOUBLE_EQ(energy.hbm, 1000 * 8 * 30.55e-12);
  EXPECT_DOUBLE_EQ(energy.l2, 2000 * 8 * 15.48e-12);
  EXPECT_DOUBLE_EQ(energy.smem, 3000 * 8 * 5.32e-12);
  EXPECT_DOUBLE_EQ(energy.joules(), energy.hbm + energy.l2 + energy.smem);
}

} // namespace
