//===- SpillBackwardMmaSyncTest.cpp - The same products by like warps -----===//

#include "../Share.h"
#include "RandomProblem.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

const Machine &a100() { return *findMachine("a100_80g"); }

/// Of 2048 columns in all heads.
Problem problem(int64_t headDim, int64_t rows, DataType type = DataType::bf16) {
  Problem p;
  p.direction = Direction::backward;
  p.dtype = type;
  p.heads = p.kvHeads = std::max<int64_t>(1, 2048 / headDim);
  p.queries = p.keys = rows;
  p.headDim = p.headDimV = headDim;
  return p;
}

Tiles tilesFor(const Problem &p, int64_t strip = 4096, int64_t warps = 8) {
  return {{"query", 128},      {"key_block", 128},
          {"key", 128},        {"column", 128},
          {"query_block", 64}, {"strip", strip},
          {"heads", 4},        {"slice", 64 / bytesOf(p.dtype)},
          {"warps", warps},    {"stages", 3}};
}

// As a pipeline, but for what lies in scratch and in shared memory: d = 512,
// 4096 rows, one head; 32 x 32 blocks of scores.
TEST(SpillBackwardMmaSync, BytesByHand) {
  for (DataType type : {DataType::bf16, DataType::f32}) {
    Problem p = problem(512, 4096);
    p.dtype = type;
    p.batch = p.heads = p.kvHeads = 1;
    Schedule schedule = findScheduleKind("spill_backward")->build(tilesFor(p));
    Census counted = census(schedule, p);
    int64_t mib = (int64_t(1) << 20) * bytesOf(type) / 2;
    auto bytes = [&](size_t launch) {
      return gridTraffic(counted, launch, p, a100(), 108);
    };
    EXPECT_EQ(bytes(1).l2,
              32 * 8 * mib + 32 * 8 * mib + 2 * 32 * mib + 32 * 4096 * 8);
    // P and dS for four tiles of columns each.
    EXPECT_EQ(bytes(2).l2, 2 * 4 * 32 * mib + 32 * 8 * mib + 8 * mib);
    EXPECT_EQ(bytes(3).l2, 4 * 32 * mib + 32 * 4 * mib + 4 * mib);
    // Every warp reads its rows of the left factor and all of the right one,
    // which are copied once: of 128 columns in each of 32 x 32 blocks, 512 deep
    // for S and for dP.
    int64_t left = 32 * 32 * 512 * 128 * int64_t(bytesOf(type));
    EXPECT_EQ(bytes(1).smem, 2 * (2 * left + left + 8 * left));
    EXPECT_EQ(bytes(3).smem, 2 * left + left + 8 * left);
  }
}

TEST(SpillBackwardMmaSync, Space) {
  std::string error;
  Problem p = problem(512, 16384);
  auto planWith = [&](const Tiles &tiles) {
    auto plan = planFor(p, a100(), "spill_backward", tiles, error);
    EXPECT_TRUE(plan) << error;
    return plan.value_or(Plan());
  };
  Plan plan = planWith(tilesFor(p, 4096, /*warps=*/4));
  ASSERT_EQ(plan.launches.size(), 4u);
  EXPECT_EQ(plan.kernel, "spill_backward_mma_sync");
  // Slices of 32 bf16 take 96 bytes a row, 128 columns 288.
  EXPECT_EQ(plan.launches[1].footprint.smemBytes, 3 * 2 * 128 * 96);
  EXPECT_EQ(plan.launches[2].footprint.smemBytes, 3 * 2 * 32 * 288);
  EXPECT_EQ(plan.launches[3].footprint.smemBytes, 3 * (128 * 96 + 32 * 288));
  EXPECT_EQ(plan.launches[1].footprint.threads, 256);
  EXPECT_EQ(plan.launches[2].footprint.threads, 128);
  EXPECT_EQ(plan.launches[2].footprint.blocksPerSm, 2);
  // P beside dP, statistics; operands of a step.
  EXPECT_EQ(plan.launches[1].footprint.registersPerThread,
            36 + 32 + 64 + 4 + 4 + 32);
  EXPECT_EQ(plan.launches[2].footprint.registersPerThread, 36 + 128 + 8 + 32);
  int64_t sixteen = plan.footprint.stripScratchBytes;
  EXPECT_EQ(sixteen, 2 * int64_t(4) * 16384 * 4096 * 2);
  // Sums of dQ are f32 in either case.
  int64_t sums = plan.footprint.scratchBytes - sixteen;
  p.dtype = DataType::f32;
  plan = planWith(tilesFor(p));
  EXPECT_EQ(plan.footprint.stripScratchBytes, 2 * sixteen);
  EXPECT_EQ(plan.footprint.scratchBytes - 2 * sixteen, sums);
  for (const LaunchPlan &launch : plan.launches)
    EXPECT_LE(launch.footprint.smemBytes, 64 << 10);
}

TEST(SpillBackwardMmaSync, Refusals) {
  Problem p = problem(512, 1024);
  auto refusal = [&](const Tiles &tiles) {
    std::string error;
    EXPECT_FALSE(planFor(p, a100(), "spill_backward", tiles, error))
        << tiles.str();
    return error;
  };
  EXPECT_EQ(refusal({{"key_block", 256}}),
            "expects blocks of 128 keys, but got 256");
  EXPECT_EQ(refusal({{"key", 64}}), "expects key to be 128, but got 64");
  EXPECT_EQ(refusal({{"column", 272}}),
            "expects at most 256 columns, but got 272");
  EXPECT_EQ(refusal({{"warps", 2}}), "expects four or eight warps, but got 2");
  EXPECT_EQ(refusal({{"slice", 16}}),
            "expects slices of 64 or 128 bytes, but got 16 elements of bf16");
  EXPECT_EQ(refusal({{"stages", 5}, {"slice", 32}}),
            "expects two to four stages, but got 5");
  p.dtype = DataType::f32;
  EXPECT_EQ(refusal({{"warps", 4}, {"slice", 16}}),
            "expects eight warps for products of split factors, but got 4");
  p.precision = Precision::tf32;
  std::string error;
  EXPECT_TRUE(planFor(p, a100(), "spill_backward",
                      {{"warps", 8}, {"slice", 32}}, error))
      << error;
}

// Where nothing else computes gradients, on every machine with mma.sync of bf16
// and on small ones that only might be.
TEST(SpillBackwardMmaSync, IsChosenWhereNothingElseFits) {
  ATTN_LONG_TEST();
  for (const char *name : {"a100_80g", "rtx_a6000", "l4", "h100_sxm"})
    for (int64_t smem : {0, 48 << 10})
      for (auto [type, d] : {std::pair<DataType, int64_t>{DataType::bf16, 512},
                             {DataType::f16, 4096},
                             {DataType::f32, 256},
                             {DataType::f32, 512},
                             {DataType::f32, 1024}}) {
        Machine machine = *findMachine(name);
        bool isWgmma =
            machine.family == TensorCoreFamily::wgmma && bytesOf(type) == 2;
        if (smem > 0)
          machine.smemBytesPerBlock = smem;
        Problem p = problem(d, 4096);
        p.dtype = type;
        for (const Mask &mask :
             {Mask(), Mask{MaskKind::causal}, Mask{MaskKind::window, 128, 0}}) {
          p.mask = mask;
          PlanReport report = plans(p, machine);
          ASSERT_TRUE(report.best()) << name << p;
          EXPECT_EQ(report.best()->schedule, "spill_backward") << name << p;
          EXPECT_EQ(report.best()->kernel, isWgmma && smem == 0
                                               ? "spill_backward_wgmma"
                                               : "spill_backward_mma_sync")
              << name << p;
        }
      }
}

} // namespace
