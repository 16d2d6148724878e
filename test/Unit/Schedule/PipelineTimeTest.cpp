//===- PipelineTimeTest.cpp - Predicted and measured times of pipelines ---===//
//
// Measured on an H100 80GB SXM, 2026-11-21: bf16, batch x rows = 16384, heads x
// head dim = 2048 (10 heads of 192), with LSE; medians of rounds in which all
// kernels took turns.  What changes without overlap or persistence was measured
// on kernels written by hand with the same structure.  ChoiceTest.cpp has many
// more kernels, those that are built here.
//
//===----------------------------------------------------------------------===//

#include "TokenProblem.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Time.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace attn;

namespace {

constexpr int64_t rowCounts[] = {1024, 4096, 16384};

/// The tiles of a measured kernel.
struct Kernel {
  int64_t query, key, queryStages = 2, staging = 64, pingPong = 0, overlap = 1,
                      persistent = 1;
  Tiles tiles() const {
    return {{"query", query},     {"key", key},
            {"stages", 2},        {"query_stages", queryStages},
            {"staging", staging}, {"ping_pong", pingPong},
            {"overlap", overlap}, {"persistent", persistent}};
  }
};

double rate(const Kernel &kernel, const Problem &p) {
  std::string error;
  auto plan =
      planFor(p, *findMachine("h100_sxm"), "flash", kernel.tiles(), error);
  EXPECT_TRUE(plan) << error;
  return plan ? usefulFlops(p) / plan->seconds / 1e12 : 0;
}

/// A narrow window works little on every byte: its ring must hold what arrives
/// from device memory meanwhile.  Two stages of 64 keys are enough at d = 128.
TEST(PipelineTime, NarrowWindowsTakeDeepRings) {
  for (int64_t d : {64, 128}) {
    Problem p = tokenProblem(d, 16384, false);
    p.mask = {MaskKind::window, 127, 0};
    PlanReport report = plans(p, *findMachine("h100_sxm"));
    EXPECT_GE(report.plans.front().tiles.get("stages"), d == 64 ? 3 : 2) << d;
    EXPECT_NEAR(report.plans.front().seconds * 1e6, 98, 15) << d;
  }
}

/// A few tiles more than multiprocessors take as long as two waves of them,
/// though those of a window are not all equal: 166 took 88 us (d = 168).
TEST(PipelineTime, FewTilesOfAMaskAreFollowed) {
  Problem p = tokenProblem(168, 12672, false);
  p.batch = 1;
  p.heads = p.kvHeads = 2;
  p.mask = {MaskKind::window, 1609, 0};
  Machine machine = *findMachine("h100_sxm");
  Tiles tiles{{"query", 192}, {"key", 48}, {"stages", 3}};
  auto secondsOf = [&](int64_t rows) {
    p.queries = p.keys = rows;
    std::string error;
    auto plan = planFor(p, machine, "flash", tiles, error);
    EXPECT_TRUE(plan) << error;
    return plan ? plan->seconds : 0;
  };
  double oneWave = secondsOf(12672); // 132 tiles
  EXPECT_GT(secondsOf(15916), 1.55 * oneWave);
  EXPECT_NEAR(secondsOf(15916) * 1e6, 88, 12);
}

/// What changed when one thing was changed.  Full attention, ratio of the first
/// to the second.
TEST(PipelineTime, ChangesGoTheMeasuredWay) {
  Kernel wide{128, 128, 2, 128}, tall{192, 128};
  struct {
    const char *what;
    int64_t d;
    Kernel changed, unchanged;
    double least[3], most[3]; // about the measured ratios
  } rows[] = {
      // Measured with 144 keys: 0.87 and 0.80 for more rows.
      {"no overlap",
       128,
       {128, 128, 2, 128, 0, 0},
       wide,
       {0.85, 0.83, 0.82},
       {0.93, 0.93, 0.93}},
      // Measured 0.86, 0.94, 0.94.
      {"a block per tile",
       128,
       {128, 128, 1, 128, 0, 1, 0},
       wide,
       {0.8, 0.9, 0.93},
       {0.92, 0.98, 1}},
      // Measured 0.95, 0.98, 1.00, with the boundary not pipelined at all.
      {"one query stage",
       128,
       {128, 128, 1, 128},
       wide,
       {0.93, 0.97, 0.985},
       {1, 1, 1}},
      // Measured 0.92, 0.98, 1.02.
      {"176 keys",
       128,
       {128, 176, 1, 64},
       wide,
       {0.88, 0.94, 0.98},
       {0.99, 1, 1.03}},
      // Measured: worse.
      {"96 keys", 128, {128, 96}, wide, {0.9, 0.9, 0.9}, {1, 0.99, 0.99}},
      // Measured 1.03, 1.13, 1.26.
      {"three warpgroups",
       64,
       tall,
       {128, 128},
       {1, 1.08, 1.1},
       {1.28, 1.3, 1.32}},
      // Measured 1.05, 1.03, 1.00; at d = 128 0.99, 0.99, 0.98.
      {"turns",
       64,
       {192, 128, 2, 64, 1},
       tall,
       {1, 1, 0.99},
       {1.08, 1.08, 1.08}},
      {"turns",
       128,
       {128, 128, 2, 128, 1},
       wide,
       {0.97, 0.97, 0.97},
       {1.04, 1.04, 1.04}},
      // Measured with tighter buffers for more keys: 0.97, 1.00, 1.00.
      {"96 keys",
       192,
       {128, 96, 1, 128},
       {128, 64},
       {0.93, 0.97, 0.97},
       {1.01, 1.03, 1.03}}};
  for (auto &row : rows)
    for (int i = 0; i < 3; ++i) {
      Problem p = tokenProblem(row.d, rowCounts[i], false);
      double ratio = rate(row.changed, p) / rate(row.unchanged, p);
      EXPECT_GT(ratio, row.least[i]) << row.what << " " << rowCounts[i];
      EXPECT_LT(ratio, row.most[i]) << row.what << " " << rowCounts[i];
    }
}

TEST(PipelineTime, SlowerResourceTakesLongerAndBinds) {
  Problem p = tokenProblem(128, 4096, false);
  auto timeOn = [&](const Machine &m) {
    std::string error;
    auto plan = planFor(p, m, "flash", Kernel{128, 128, 2, 128}.tiles(), error);
    EXPECT_TRUE(plan) << error;
    return plan ? plan->time : Time();
  };
  const Machine &h100 = *findMachine("h100_sxm");
  double before = timeOn(h100).seconds;
  struct {
    const char *field;
    double value;
    const char *binds;
  } cases[] = {{"hbm_bytes_per_second", 1e10, "hbm"},
               {"l2_bytes_per_second", 1e11, "l2"},
               {"smem_bytes_per_clock_per_sm", 4, "smem"},
               {"exp_per_clock_per_sm", 1, "exp"},
               {"tensor16_flops_per_clock_per_sm", 64, "tensor"}};
  for (auto &one : cases) {
    Machine slow = h100;
    ASSERT_EQ(overrideField(slow, one.field, one.value), std::nullopt);
    Time t = timeOn(slow);
    EXPECT_GT(t.seconds, before) << one.field;
    // A slow shared memory also slows the products that read it.
    if (std::string(one.binds) != "smem")
      EXPECT_STREQ(binding(t, TensorCoreFamily::wgmma).name, one.binds);
  }
}

/// Twice the rate, but the exponentials stay: less than twice as fast.
TEST(PipelineTime, EightBits) {
  Problem p = tokenProblem(128, 16384, false);
  Kernel kernel{128, 128};
  double of16 = rate(kernel, p);
  p.dtype = DataType::f8e4m3;
  double of8 = rate(kernel, p);
  EXPECT_GT(of8, 1.3 * of16);
  EXPECT_LT(of8, 1.9 * of16);
}

/// A tile alone takes as long as its longest warpgroup, however few rows: half
/// the warpgroups save at most what the others do in step with them.
TEST(PipelineTime, OneTileTakesItsWholeLength) {
  Problem p = tokenProblem(128, 4096, false);
  p.batch = p.heads = p.kvHeads = 1;
  p.queries = 128;
  double full = usefulFlops(p) / rate({128, 128, 2, 128}, p);
  p.queries = 1;
  double single = usefulFlops(p) / rate({128, 128, 2, 128}, p);
  EXPECT_GT(single / full, 0.5);
  EXPECT_LT(single / full, 1);
}

} // namespace
