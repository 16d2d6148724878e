//===- SplitBackwardTest.cpp - Gradients in one order: bytes, space, choice ==//

#include "RandomProblem.h"
#include "SplitBackwardTiles.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

using Choice = SplitBackwardTiles;

Problem problem(int64_t headDim, int64_t rows) {
  Problem p;
  p.direction = Direction::backward;
  p.batch = 4;
  p.heads = p.kvHeads = 16;
  p.queries = p.keys = rows;
  p.headDim = p.headDimV = headDim;
  return p;
}

std::optional<Plan> planOf(const Problem &p, const Tiles &tiles,
                           std::string &error) {
  return planFor(p, *findMachine("h100_sxm"), "split_backward", tiles, error);
}

// At d = 256 own rows take 128 KiB, two blocks of one kind and one of the other
// 96 KiB, statistics of two blocks of 64 queries 2 x 528 bytes in whole KiB;
// six rings of 2, 1 and 2 slots and the queue.
TEST(SplitBackward, Footprint) {
  std::string error;
  Choice c;
  c.separate = 1;
  std::optional<Plan> plan = planOf(problem(256, 4096), c, error);
  ASSERT_TRUE(plan) << error;
  ASSERT_EQ(plan->launches.size(), 4u);
  int64_t barriers = 5 * 2 * 16, queue = 64;
  EXPECT_EQ(plan->launches[0].footprint.smemBytes, 0);
  EXPECT_EQ(plan->launches[1].footprint.smemBytes,
            (128 + 96) * 1024 + barriers + queue);
  EXPECT_EQ(plan->launches[2].footprint.smemBytes,
            (128 + 96 + 2) * 1024 + barriers + queue);
  // dV: rows of K, two blocks of Q and of dO.
  EXPECT_EQ(plan->launches[3].footprint.smemBytes,
            (64 + 128 + 2) * 1024 + 4 * 2 * 16 + queue);
  // Nothing but statistics is passed on.
  EXPECT_EQ(plan->footprint.scratchBytes, 4 * 16 * 4096 * 8);
}

// The place of K holds dV, which may be wider.
TEST(SplitBackward, PlacesGrow) {
  Choice c;
  c.separate = 1;
  Problem p = problem(64, 4096);
  std::string error;
  auto bytesOf = [&] {
    std::optional<Plan> plan = planOf(p, c, error);
    return plan ? plan->launches[3].footprint.smemBytes : -1;
  };
  int64_t narrow = bytesOf();
  p.headDimV = 192;
  // Two panels more of 128 rows, and in two blocks of 64.
  EXPECT_EQ(bytesOf() - narrow, 2 * 2 * 128 * 128);
}

TEST(SplitBackward, Refusals) {
  auto refusal = [&](const Problem &p, const Choice &c) {
    std::string error;
    EXPECT_FALSE(planOf(p, c, error)) << p;
    return error;
  };
  EXPECT_EQ(refusal(problem(128, 1024), {192}),
            "expects 64 or 128 rows in query, but got 192");
  EXPECT_EQ(refusal(problem(128, 1024), {128, 32}),
            "expects 64 or 128 rows in key_block, but got 32");
  EXPECT_EQ(refusal(problem(128, 1024), {128, 64, 128, 64, 0, 5}),
            "expects four buffers at most in stages, but got 5");
  // Sums of dK and dV beside S, dP, P and a statistic.
  EXPECT_EQ(refusal(problem(144, 1024), {}),
            "needs 256 registers per thread, but a thread has 255");
}

// Of all schedules that sum up in one order it is the fastest on Hopper where
// flash_backward, in order, has no registers for both sums, up to where
// products that it repeats cost more than scores that others spill.
TEST(SplitBackward, IsChosenWhereSumsHaveAnOrder) {
  for (int64_t d : {64, 128, 160})
    for (int64_t rows : {1024, 16384}) {
      Problem p = problem(d, rows);
      p.deterministic = true;
      Plan best = plans(p, *findMachine("h100_sxm")).plans.front();
      EXPECT_EQ(best.kernel,
                d > 128 ? "split_backward_wgmma" : "flash_backward_wgmma")
          << p;
      if (d > 128)
        EXPECT_EQ(best.tiles.get("separate"), 1) << p;
      best = plans(p, *findMachine("a100_80g")).plans.front();
      EXPECT_EQ(best.kernel, "split_backward_mma_sync") << p;
    }
}

} // namespace
