//===- NapkinTest.cpp - Two claims of FlashAttention on a Napkin ----------===//
//
// docs/napkin.md tells what is tested here.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Bounds.h"
#include "attn/Schedule/Calibration.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Sensitivity.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

Problem problemOf(DataType type, int64_t rows) {
  Problem p;
  p.dtype = type;
  p.batch = 4, p.heads = p.kvHeads = 32;
  p.queries = p.keys = rows;
  p.headDim = p.headDimV = 128;
  p.lse = false;
  return p;
}

const Machine &machineOf(const char *name) { return *findMachine(name); }

std::optional<Plan> flashOf(const Problem &problem, const Machine &machine,
                            int64_t query, int64_t key, int64_t warps,
                            std::string &why) {
  return planFor(
      problem, machine, "flash",
      {{"query", query}, {"key", key}, {"stages", 1}, {"warps", warps}}, why);
}

//===----------------------------------------------------------------------===//
// Ampere: 13 warps
//===----------------------------------------------------------------------===//

// What a warp of 16 rows has in registers at d = 128 with 64 keys, without what
// addresses and loops take: 148 of a thread.  The register file has room for 13
// such warps.
TEST(Napkin, VariablesAloneAllowThirteenWarps) {
  Schedule schedule = findScheduleKind("flash")->build(
      {{"query", 16}, {"key", 64}, {"stages", 1}, {"warps", 1}});
  int64_t registers =
      footprint(schedule, problemOf(DataType::f16, 4096), machineOf("a100_80g"))
          .registersPerThread;
  int64_t variables = registers - kBaseRegisters;
  EXPECT_EQ(variables, 148);
  EXPECT_EQ(machineOf("a100_80g").registersPerSm / (32 * variables), 13);
}

// But the file is in quarters, one for each scheduler: warps come in fours.
TEST(Napkin, RegistersAllowWarpsInFours) {
  const Machine &a100 = machineOf("a100_80g");
  for (int64_t registers = 16; registers <= 255; ++registers)
    EXPECT_EQ(warpsPerSm(registers, a100) % 4, 0) << registers;
  EXPECT_EQ(warpsPerSm(255, a100), 8);
  EXPECT_EQ(warpsPerSm(168, a100), 12);
  EXPECT_EQ(warpsPerSm(169, a100), 8);
  EXPECT_EQ(warpsPerSm(128, a100), 16);
}

// No tile of 13 warps fits an A100, and the reason says why.
TEST(Napkin, ThirteenWarpsDoNotFit) {
  Problem problem = problemOf(DataType::f16, 4096);
  for (int64_t key : {16, 32, 48, 64, 80, 96, 112, 128}) {
    std::string why;
    EXPECT_FALSE(flashOf(problem, machineOf("a100_80g"), 208, key, 13, why));
    EXPECT_NE(why.find("needs 13 warps of "), std::string::npos) << why;
    EXPECT_NE(why.find("a multiprocessor of a100_80g has room for "),
              std::string::npos)
        << why;
  }
}

// With a file that has room for them they are still slower than 8 warps of 32
// rows: each warp reads all keys and values, for half as many rows.
TEST(Napkin, MoreWarpsOfFewerRowsAreSlower) {
  Problem problem = problemOf(DataType::f16, 4096);
  Machine large = machineOf("a100_80g");
  ASSERT_FALSE(overrideField(large, "registers_per_sm", 131072));
  std::string why;
  auto many = flashOf(problem, large, 208, 32, 13, why);
  ASSERT_TRUE(many) << why;
  auto few = flashOf(problem, machineOf("a100_80g"), 128, 32, 4, why);
  ASSERT_TRUE(few) << why;
  EXPECT_EQ(few->footprint.blocksPerSm * few->footprint.threads / 32, 8);
  EXPECT_EQ(few->footprint.registersPerThread, 252);
  EXPECT_GT(many->seconds, 1.2 * few->seconds);
  EXPECT_EQ(many->boundBy, "smem");
  EXPECT_GT(double(many->bytes.smem), 1.5 * double(few->bytes.smem));
}

//===----------------------------------------------------------------------===//
// Hopper: 8-bit Q·K, 16-bit P·V
//===----------------------------------------------------------------------===//

double rateOf(const Problem &problem, const Plan &plan) {
  return usefulFlops(problem) / plan.seconds;
}

// Two halves of the work at two peak rates: the harmonic mean, 1.32 PFLOP/s.
// It is what tensor cores alone need, and no plan reaches it.
TEST(Napkin, HalvesAtTwoRatesAreBoundedByTheirHarmonicMean) {
  const Machine &h100 = machineOf("h100_sxm");
  double peak16 = h100.tensor16FlopsPerSecond();
  double peak8 = h100.tensor8FlopsPerSecond();
  double mean = 2 / (1 / peak16 + 1 / peak8);
  EXPECT_NEAR(mean, 1.32e15, 0.005e15);

  Problem mixed = problemOf(DataType::f16, 16384);
  mixed.precision = Precision::f8_qk;
  auto best = [&](const Problem &problem) {
    return plans(problem, h100).plans.front();
  };
  Problem half = problemOf(DataType::f16, 16384);
  Problem byte = problemOf(DataType::f8e4m3, 16384);
  Plan plan = best(mixed);
  EXPECT_LT(rateOf(mixed, plan), 0.9 * mean);
  // It lies between all of 16 bits and all of 8.
  EXPECT_GT(rateOf(mixed, plan), 1.05 * rateOf(half, best(half)));
  EXPECT_LT(plan.time.tensor, 0.8 * best(half).time.tensor);
  EXPECT_GT(plan.time.tensor, best(byte).time.tensor);
}

TEST(Napkin, EightBitScoresHalveTheBytesOfQueriesAndKeys) {
  Problem mixed = problemOf(DataType::f16, 4096);
  mixed.precision = Precision::f8_qk;
  std::string why;
  Tiles tiles = {{"query", 128}, {"key", 128}, {"stages", 2}};
  auto plan = planFor(mixed, machineOf("h100_sxm"), "flash", tiles, why);
  ASSERT_TRUE(plan) << why;
  // Of 128 heads: Q once and K 32 times in bytes, V 32 times and O in twos.
  int64_t rows = 4096 * 128, heads = 128;
  EXPECT_EQ(plan->bytes.l2, heads * rows * (1 + 32 + 2 * 32 + 2));
  Bytes least = plans(mixed, machineOf("h100_sxm")).lowerBounds;
  EXPECT_LE(least.l2, plan->bytes.l2);
  EXPECT_LE(least.hbm, plan->bytes.hbm);
}

// It is priced, never built.
TEST(Napkin, NoKernelHasEightBitScores) {
  Problem mixed = problemOf(DataType::bf16, 1024);
  mixed.precision = Precision::f8_qk;
  for (const Machine &machine : machines()) {
    PlanReport report = plans(mixed, machine);
    EXPECT_FALSE(report.best()) << machine.name;
    bool hasBytes = machine.tensor8FlopsPerClockPerSm > 0;
    EXPECT_EQ(report.plans.empty(), !hasBytes) << machine.name;
  }
  EXPECT_FALSE(parsePrecision("f8_qk"));
  mixed.dtype = DataType::f32;
  EXPECT_TRUE(check(mixed));
  mixed.dtype = DataType::bf16, mixed.direction = Direction::backward;
  EXPECT_TRUE(check(mixed));
}

} // namespace
