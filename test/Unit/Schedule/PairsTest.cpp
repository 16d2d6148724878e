//===- PairsTest.cpp - Does a block work on two tiles at once? ------------===//
//
// Tiles of two consumer warpgroups leave the tensor cores idle for half of the
// time.  Lists, which keep tiles low, therefore have two tiles of a block where
// registers suffice.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Plan.h"
#include <gtest/gtest.h>

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

Problem dense(int64_t headDim) {
  Problem p;
  p.heads = p.kvHeads = 32;
  p.queries = p.keys = 16384;
  p.headDim = p.headDimV = headDim;
  return p;
}

Problem listed(int64_t headDim, double density) {
  Problem p = dense(headDim);
  p.pattern = Pattern({128, 128}, density);
  return p;
}

Plan best(const Problem &p) { return plans(p, h100()).plans.front(); }

const Tiles kPairs = {{"query", 128}, {"key", 64}, {"pairs", 2}};

std::string refusal(const Problem &p, const Tiles &more) {
  Tiles tiles = kPairs;
  for (const auto &[name, value] : more)
    tiles.set(name, value);
  std::string error;
  EXPECT_FALSE(planFor(p, h100(), "flash", tiles, error)) << tiles.str();
  return error;
}

} // namespace

TEST(Pairs, ShareABlock) {
  std::string error;
  for (int64_t d : {32, 64, 80}) {
    auto plan = planFor(listed(d, 0.25), h100(), "flash", kPairs, error);
    ASSERT_TRUE(plan) << error;
    const Footprint &space = plan->footprint;
    EXPECT_EQ(space.blocksPerSm, 1);
    EXPECT_EQ(space.threads, 640);
    EXPECT_LE(space.registersPerThread, 112);
    EXPECT_LE(space.smemBytes, h100().smemBytesPerBlock);
    EXPECT_EQ(plan->tiles.get("overlap"), d <= 64) << d;
  }
}

/// A visible block takes 1.08 to 1.13 times as long as a dense one (measured on
/// an H200), and 1.3 times with one tile.
TEST(Pairs, AreTakenByLists) {
  double half = best(listed(64, 0.5)).seconds;
  double eighth = best(listed(64, 0.125)).seconds;
  double ofAll = (half - eighth) / (0.5 - 0.125);
  EXPECT_LT(ofAll, 1.15 * best(dense(64)).seconds);
  for (double density : {0.5, 0.25, 0.125}) {
    Problem p = listed(64, density);
    Plan plan = best(p);
    EXPECT_EQ(plan.tiles.get("pairs"), 2) << density;
    std::string error;
    auto one = planFor(p, h100(), "flash",
                       {{"query", 128}, {"key", 128}, {"stages", 4}}, error);
    ASSERT_TRUE(one) << error;
    EXPECT_GT(one->seconds, 1.1 * plan.seconds) << density;
  }
}

TEST(Pairs, AreNoChoiceElsewhere) {
  for (int64_t d : {32, 48, 64, 96, 128})
    EXPECT_FALSE(best(dense(d)).tiles.has("pairs")) << d;
  EXPECT_FALSE(best(listed(128, 0.25)).tiles.has("pairs"));
}

/// At d = 128 there is one tile of a block.  Its output leaves from registers,
/// and nobody takes turns: 673 TFLOP/s, and 641 as dense tiles of 128 queries
/// do (half of 32768 x 32768, H200).  At d = 256 a softmax is short, and turns
/// gain.
TEST(Pairs, OneTileStoresStraight) {
  for (double density : {0.5, 0.25, 0.125}) {
    Plan plan = best(listed(128, density));
    EXPECT_EQ(plan.tiles.get("staging", -1), 0) << density;
    EXPECT_EQ(plan.tiles.get("ping_pong", -1), 0) << density;
    EXPECT_EQ(best(listed(256, density)).tiles.get("ping_pong", -1), 1);
    std::string error;
    auto inTurns =
        planFor(listed(128, density), h100(), "flash",
                {{"query", 128}, {"key", 128}, {"ping_pong", 1}}, error);
    ASSERT_TRUE(inTurns) << error;
    EXPECT_GT(inTurns->seconds, plan.seconds) << density;
  }
  std::string error;
  EXPECT_FALSE(planFor(dense(128), h100(), "flash",
                       {{"query", 128}, {"key", 128}, {"staging", 0}}, error));
  EXPECT_NE(error.find("expects 64 columns of staging or more where no lists "
                       "say what is seen, but got 0"),
            std::string::npos)
      << error;
}

TEST(Pairs, RefusalsNameTheLimit) {
  EXPECT_EQ(refusal(listed(80, 0.25),
                    {{"stages", 2}, {"query_stages", 1}, {"overlap", 1}}),
            "needs 116 registers per thread, but each of 4 warpgroups has 112");
  EXPECT_EQ(refusal(listed(64, 0.25), {{"stages", 6}}),
            "needs 295488 bytes of shared memory, but a block on h100_sxm has "
            "232448");
}
