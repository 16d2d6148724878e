//===- KeptTest.cpp - Weights that are kept, priced -----------------------===//

#include "RandomProblem.h"
#include "SpillBackwardTiles.h"
#include "TokenProblem.h"
#include "attn/Schedule/Plan.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

std::optional<Plan> planOf(std::string_view schedule, const Problem &p,
                           const Tiles &tiles, std::string &error) {
  return planFor(p, h100(), schedule, tiles, error);
}

// The same products; no scratch, and weights go to device memory.
TEST(KeptWeights, Forward) {
  std::string error;
  Tiles made = {{"query", 128},  {"key_block", 256}, {"column", 256},
                {"strip", 1024}, {"heads", 16},      {"stages", 3},
                {"merged", 1},   {"persistent", 1}};
  Tiles kept = made;
  kept.set("kept", 1);
  Problem p = tokenProblem(1024, 1000);
  p.batch = 1; // P of all heads stays in L2
  auto without = planOf("score_spill", p, made, error);
  p.keepsWeights = true;
  auto with = planOf("score_spill", p, kept, error);
  ASSERT_TRUE(with && without) << error;
  EXPECT_EQ(with->kernel, "score_spill_wgmma");
  EXPECT_EQ(with->flops, without->flops);
  EXPECT_EQ(with->footprint.scratchBytes, 0);
  EXPECT_EQ(with->footprint.smemBytes, without->footprint.smemBytes);
  int64_t rows = p.batch * p.heads * p.queries;
  EXPECT_GE(with->bytes.hbm, without->bytes.hbm + rows * (2 * p.keys + 8 * 4));
  for (const Plan &plan : plans(p, h100()).plans)
    EXPECT_TRUE(plan.tiles.has("kept"));
  p.keepsWeights = false;
  for (const Plan &plan : plans(p, h100()).plans)
    EXPECT_FALSE(plan.tiles.has("kept"));
}

// Where nothing keeps them there is a sentence about who does.
TEST(KeptWeights, Elsewhere) {
  Problem p = tokenProblem(1024, 1000);
  p.keepsWeights = true;
  PlanReport report = plans(p, *findMachine("a100_80g"));
  EXPECT_TRUE(report.plans.empty());
  EXPECT_TRUE(std::any_of(
      report.refused.begin(), report.refused.end(), [](const Refused &refused) {
        return refused.reason.find("score_spill keeps no weights with") !=
               std::string::npos;
      }));
  std::string error;
  EXPECT_FALSE(planFor(p, h100(), "flash", {}, error));
  EXPECT_NE(error.find("flash keeps no weights"), std::string::npos) << error;
  p.dtype = DataType::f32;
  EXPECT_EQ(check(p), "expects bf16 or f16 to keep weights, but got f32");
  p.dtype = DataType::bf16;
  p.lse = false;
  EXPECT_EQ(check(p), "expects the LSE beside weights that are kept, but got "
                      "none");
}

// Four products of five, and scratch for the same arrays.
TEST(KeptWeights, Backward) {
  std::string error;
  SpillBackwardTiles made, kept;
  kept.kept = true;
  for (bool isMerged : {false, true})
    for (int64_t rows : {1024, 16384}) {
      made.merged = kept.merged = isMerged;
      Problem p = tokenGradients(512, rows);
      auto five = planOf("spill_backward", p, made, error);
      p.keepsWeights = true;
      auto four = planOf("spill_backward", p, kept, error);
      ASSERT_TRUE(five && four) << error;
      EXPECT_EQ(four->kernel, "spill_backward_wgmma");
      // S, of 16384 tokens of 2048 columns.
      EXPECT_EQ(five->flops - four->flops, 2 * double(rows) * 16384 * 2048);
      EXPECT_EQ(four->footprint.scratchBytes, five->footprint.scratchBytes);
      EXPECT_EQ(four->footprint.smemBytes, five->footprint.smemBytes);
      EXPECT_EQ(four->launches[1].footprint.registersPerThread,
                five->launches[1].footprint.registersPerThread);
      EXPECT_LT(four->seconds, five->seconds);
      EXPECT_GT(four->seconds, five->seconds * 0.75);
    }
  // Nobody gets them unasked, nor other blocks than those that are kept.
  Problem p = tokenGradients(512, 1024);
  EXPECT_FALSE(planOf("spill_backward", p, kept, error));
  for (const Plan &plan : plans(p, h100()).plans)
    EXPECT_FALSE(plan.tiles.has("kept"));
  p.keepsWeights = true;
  ASSERT_FALSE(plans(p, h100()).plans.empty());
  for (const Plan &plan : plans(p, h100()).plans)
    EXPECT_TRUE(plan.tiles.has("kept"));
  kept.keyBlock = 128;
  EXPECT_FALSE(planOf("spill_backward", p, kept, error));
  EXPECT_EQ(error, "expects blocks of 256 keys to keep weights, but got "
                   "key_block = 128");
}

// Heads of any width get them under any mask.
TEST(KeptWeights, AnyHead) {
  for (int64_t headDim : {8, 64, 128, 136, 1024})
    for (const Mask &mask :
         {Mask{}, Mask{MaskKind::causal}, Mask{MaskKind::causalBottomRight},
          Mask{MaskKind::window, 40, 9}}) {
      Problem p = tokenGradients(512, 1024);
      p.headDim = p.headDimV = headDim;
      p.mask = mask;
      p.keepsWeights = true;
      EXPECT_FALSE(plans(p, h100()).plans.empty()) << p;
      p.direction = Direction::forward;
      p.lse = true;
      EXPECT_FALSE(plans(p, h100()).plans.empty()) << p;
    }
}

} // namespace
