//===- BlocksInHalvesTest.cpp - flash_backward with halves of blocks ------===//
//
// What a step of flash_backward moves and holds that weighs its block of
// queries in two halves, beside one that weighs it whole.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"
#include "TokenProblem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"

using namespace attn;

static Tiles tilesOf(int64_t rows, int64_t overlap, int64_t firstStores) {
  return {{"key", rows},        {"query_block", rows},
          {"beside", 0},        {"stages", 2},
          {"overlap", overlap}, {"first_stores", firstStores},
          {"persistent", 1}};
}

static std::optional<Plan> planOf(const Problem &p, const Tiles &tiles,
                                  std::string &error) {
  return planFor(p, *findMachine("h100_sxm"), "flash_backward", tiles, error);
}

// Of blocks in halves warpgroups read their rows of K for each half, and those
// of V once for a tile that makes a step; all else is the same.
TEST(BlocksInHalves, ReadLeftFactors) {
  Random random(23);
  constexpr int64_t key = 128;
  for (int round = 0; round < 40; ++round) {
    Problem p = random.problem(300);
    p.direction = Direction::backward;
    p.headDim = 8 * random.number(1, 8);
    p.headDimV = 8 * random.number(1, 8);
    int64_t firstStores = round % 2, heads = p.batch * p.kvHeads;
    auto bytes = [&](int64_t overlap) {
      Schedule schedule = findScheduleKind("flash_backward")
                              ->build(tilesOf(key, overlap, firstStores));
      return gridTraffic(census(schedule, p), 1, p, *findMachine("h100_sxm"),
                         132);
    };
    int64_t steps = 0, tiles = 0;
    for (int64_t j = 0; j < p.keys; j += key) {
      int64_t seen = 0;
      for (int64_t i = 0; i < p.queries; i += key)
        seen += sees(p, i, key, j, key);
      if (!firstStores)
        seen = std::max<int64_t>(seen, 1);
      steps += seen * p.heads / p.kvHeads;
      tiles += seen > 0;
    }
    auto factor = [](int64_t columns) {
      return 2 * key * roundUp(columns, 16);
    };
    Bytes whole = bytes(1), halves = bytes(2);
    EXPECT_EQ(halves.l2, whole.l2) << p;
    EXPECT_EQ(halves.hbm, whole.hbm) << p;
    EXPECT_EQ(halves.smem,
              whole.smem + heads * (steps * factor(p.headDim) -
                                    (steps - tiles) * factor(p.headDimV)))
        << p;
  }
}

// K, V, two of Q and dO, statistics, two of dS, staging; dK and dV beside S and
// dP of a half, the next S, P and dS in 16 bits, and V.
TEST(BlocksInHalves, Space) {
  std::string error;
  auto whole =
      planOf(tokenGradients(64, 4096, false), tilesOf(128, 0, 1), error);
  ASSERT_TRUE(whole) << error;
  auto plan =
      planOf(tokenGradients(64, 4096, false), tilesOf(128, 2, 1), error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->footprint.smemBytes, whole->footprint.smemBytes);
  EXPECT_EQ(plan->launches[1].footprint.registersPerThread,
            16 + 32 + 32 + 2 * 32 + 32 + 16 + 16 + 16);
}

TEST(BlocksInHalves, Refusals) {
  Problem p = tokenGradients(64, 1024, false);
  auto halvesRefusal = [&](int64_t key) {
    std::string error;
    EXPECT_FALSE(planOf(p, tilesOf(key, 2, 0), error));
    return error;
  };
  EXPECT_EQ(halvesRefusal(64), "expects 128 queries of 64 columns at most for "
                               "blocks in halves, but got 64 of 64");
  p.clauses.score = true;
  EXPECT_EQ(halvesRefusal(128), "expects scores as they are multiplied for "
                                "blocks in halves, but got a function of them");
  p.clauses = {};
  p.headDimV = 72;
  EXPECT_EQ(halvesRefusal(128), "expects 128 queries of 64 columns at most for "
                                "blocks in halves, but got 128 of 72");
}
