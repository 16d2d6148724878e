//===- RegionPriceTest.cpp - What regions of scores cost a plan -----------===//

#include "attn/Schedule/Plan.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

/// What costOf counts of 50 tanh(z / 50), and of z + table[min(i - j, 4095)].
const RegionCost kSoftcap = {2, 1, 0, 4, 0}, kTable = {3.2, 0, 0.55, 0, 2};

Problem problem(int64_t headDim, Direction direction) {
  Problem p;
  p.batch = 1;
  p.heads = p.kvHeads = 16;
  p.queries = p.keys = 8192;
  p.headDim = p.headDimV = headDim;
  p.mask.kind = MaskKind::causal;
  p.direction = direction;
  return p;
}

Problem scored(Problem p, const RegionCost &cost) {
  p.clauses.score = true;
  p.clauses.scoreCost = cost;
  return p;
}

/// Of a schedule with all or some of its tiles; nothing if it is refused.
std::optional<double> seconds(const Problem &p, const char *schedule,
                              const Tiles &tiles) {
  std::string error;
  std::optional<Plan> plan =
      planFor(p, *findMachine("h100_sxm"), schedule, tiles, error);
  return plan ? std::optional(plan->seconds) : std::nullopt;
}

/// As they were measured.
Tiles flashTiles() { return {{"query", 192}, {"key", 80}, {"ping_pong", 0}}; }

} // namespace

// Measured on an H200: 1.24, and 1.1 to 1.3.
TEST(RegionPrice, EveryScoreCosts) {
  Problem p = problem(128, Direction::forward);
  double plain = *seconds(p, "flash", flashTiles());
  double capped = *seconds(scored(p, kSoftcap), "flash", flashTiles());
  double table = *seconds(scored(p, kTable), "flash", flashTiles());
  EXPECT_GT(capped, 1.08 * plain);
  EXPECT_LT(capped, 1.45 * plain);
  EXPECT_GT(table, 1.05 * plain);
  EXPECT_LT(table, 1.45 * plain);
}

TEST(RegionPrice, FullBlocksAskNoRegion) {
  Problem p = problem(128, Direction::forward);
  p.pattern = Pattern({128, 128}, 0.25);
  Problem sees = p;
  sees.clauses.sees = true;
  sees.clauses.seesCost = {20, 0, 2, 0, 0};
  const Tiles tiles = {{"query", 128}, {"key", 128}};
  EXPECT_EQ(*seconds(p, "flash", tiles), *seconds(sees, "flash", tiles));
}

// P in 16 bits waits beside what slopes make of it: at d = 64 registers for 128
// queries a block are too few, at d = 128 nothing changes for 64.
TEST(RegionPrice, SlopesTakeRegisters) {
  const Tiles large = {{"key", 128}, {"query_block", 128}},
              small = {{"key", 128}, {"query_block", 64}};
  Problem p = problem(64, Direction::backward);
  EXPECT_TRUE(seconds(p, "flash_backward", large));
  EXPECT_FALSE(seconds(scored(p, kSoftcap), "flash_backward", large));
  EXPECT_TRUE(seconds(scored(p, kTable), "flash_backward", large));
  p = problem(128, Direction::backward);
  EXPECT_TRUE(seconds(scored(p, kSoftcap), "flash_backward", small));
}

// What is held for a tile counts against its registers.
TEST(RegionPrice, WhatIsHeldTakesRegisters) {
  Problem p = problem(128, Direction::forward);
  RegionCost large = kTable;
  large.held = 40;
  EXPECT_TRUE(seconds(scored(p, kTable), "flash", flashTiles()));
  EXPECT_FALSE(seconds(scored(p, large), "flash", flashTiles()));
}
