//===- SharedTilesTest.cpp - Are tiles with rows of several heads priced? -===//

#include "RandomProblem.h"

#include "attn/Schedule/Census.h"
#include "attn/Schedule/KeyParts.h"
#include "attn/Schedule/Packing.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/SharedTiles.h"
#include <gtest/gtest.h>

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

/// So many queries behind a cache.
Problem speculating(int64_t batch, int64_t queries, int64_t keys,
                    int64_t heads = 64) {
  Problem p;
  p.batch = batch;
  p.heads = heads;
  p.kvHeads = 8;
  p.queries = queries;
  p.keys = keys;
  p.headDim = p.headDimV = 128;
  p.mask = {MaskKind::causalBottomRight};
  return p;
}

std::string refusal(const Problem &p, const Tiles &tiles) {
  std::string error;
  EXPECT_FALSE(planFor(p, h100(), "flash", tiles, error)) << tiles.str();
  return error;
}

} // namespace

/// A tile sees what its queries do, and of every query it has a row of each
/// head.
TEST(SharedTiles, VisitsAreThoseOfQueries) {
  Random random(9);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(200);
    if (p.pattern)
      continue;
    int64_t heads = int64_t(1) << random.number(1, 3), query = 16, key = 32;
    p.heads *= heads;
    Problem rows = withSharedRows(p, heads);
    EXPECT_EQ(rows.batch * rows.heads * rows.queries,
              p.batch * p.heads * p.queries);
    EXPECT_EQ(queriesOf(rows).queries, p.queries);
    EXPECT_EQ(allVisiblePairs(rows), allVisiblePairs(p)) << p;
    Visits shared = visits(rows, Axis::Query, heads * query, key),
           own = visits(p, Axis::Query, query, key);
    EXPECT_EQ(shared.outerTiles, own.outerTiles) << p;
    EXPECT_EQ(shared.visitedTiles, own.visitedTiles) << p;
    EXPECT_EQ(shared.visitedRows, heads * own.visitedRows) << p;
    EXPECT_EQ(shared.wholePairs, own.wholePairs) << p;
    EXPECT_EQ(shared.raggedPairs, own.raggedPairs) << p;
    EXPECT_EQ(shared.wholePairRows, heads * own.wholePairRows) << p;
    EXPECT_EQ(shared.raggedPairRows, heads * own.raggedPairRows) << p;
    EXPECT_EQ(shared.innerSpan, own.innerSpan) << p;
  }
}

/// Rows of close tiles keep as few warpgroups busy as hold 16 of each head.
TEST(SharedTiles, CloseTilesLeaveWarpgroupsIdle) {
  EXPECT_EQ(rowsOfClose(1, 192), 192);
  EXPECT_EQ(rowsOfClose(2, 128), 64);
  EXPECT_EQ(rowsOfClose(4, 128), 64);
  EXPECT_EQ(rowsOfClose(4, 192), 64);
  EXPECT_EQ(rowsOfClose(8, 128), 128);
  Sharing sharing;
  sharing.rowHeads = 4;
  Random random(10);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(200);
    if (p.pattern)
      continue;
    p.heads *= 4;
    int64_t query = 64 * random.number(1, 3), key = 32;
    sharing.keyParts = random.number(1, 4);
    Problem rows = withSharedRows(p, 4);
    int64_t ofHead = query / 4, resting = 0, tile = 0;
    int64_t idle = (query - rowsOfClose(4, query)) / 64;
    for (int64_t steps : pairsOfTiles(rows, Axis::Query, query, key)) {
      bool isClose = p.queries - ofHead * tile++ <= 16;
      for (int64_t part = 0; isClose && part < sharing.keyParts; ++part) {
        Span own = stepsOfPart(steps, sharing.keyParts, part);
        resting += idle * std::max<int64_t>(own.size() - 1, 0);
      }
    }
    EXPECT_EQ(stepsOfResting(rows, sharing, query, key), resting) << p;
  }
}

/// A decoding step reads as much of shared memory as in a tile of one
/// warpgroup, but for a step of each of the others.
TEST(SharedTiles, DecodingStepsCostOneWarpgroup) {
  Problem p = speculating(64, 1, 8192, 32);
  auto smem = [&](int64_t query) {
    Tiles tiles = {{"query", query}, {"key", 64},    {"stages", 2},
                   {"packed", 4},    {"overlap", 1}, {"persistent", 1}};
    std::string error;
    std::optional<Plan> plan = planFor(p, h100(), "flash", tiles, error);
    EXPECT_TRUE(plan) << error;
    return plan ? double(plan->bytes.smem) : 0;
  };
  double least = smem(64);
  EXPECT_LT(smem(128), 1.03 * least);
}

/// Of few queries keys are read once for a key head, and that is chosen.
TEST(SharedTiles, KeysAreReadOnce) {
  for (int64_t page : {0, 16})
    for (auto [batch, keys] :
         {std::pair<int64_t, int64_t>{64, 8192}, {8, 32768}, {1, 131072}}) {
      Problem p = speculating(batch, 4, keys);
      p.place = {/*usedKeysBits=*/32, page};
      ASSERT_FALSE(packing(p));
      PlanReport report = plans(p, h100());
      const Plan &best = *report.best();
      EXPECT_EQ(headsOfTile(best.tiles), 8) << best.tiles.str();
      int64_t ofCache = p.batch * p.kvHeads * p.keys * 2 * p.headDim * 2;
      EXPECT_LE(double(best.bytes.l2), 1.1 * double(ofCache));
      EXPECT_LE(double(best.bytes.hbm), 1.02 * double(report.lowerBounds.hbm));
    }
}

/// Where no reading is saved nothing is shared, and nobody is asked.
TEST(SharedTiles, ManyQueriesShareNone) {
  for (int64_t queries : {4096, 384}) {
    PlanReport report = plans(speculating(1, queries, 4096), h100());
    for (const Plan &plan : report.plans)
      EXPECT_FALSE(plan.tiles.has("packed")) << plan.tiles.str();
  }
  // Of these groups no number of heads fills tiles.
  for (int64_t heads : {8, 24, 56})
    for (const Plan &plan :
         plans(speculating(64, 4, 8192, heads), h100()).plans)
      EXPECT_FALSE(plan.tiles.has("packed")) << plan.tiles.str();
  // With one query and no mask rows are those of one head (Packing.h).
  Problem p = speculating(64, 1, 8192);
  for (const Plan &plan : plans(packing(p).problem, h100()).plans)
    EXPECT_FALSE(plan.tiles.has("packed")) << plan.tiles.str();
}

TEST(SharedTiles, WrongOnesAreRefused) {
  Problem p = speculating(64, 4, 8192);
  Tiles tiles = {{"query", 64}, {"key", 64},    {"stages", 2},
                 {"packed", 8}, {"overlap", 1}, {"persistent", 0}};
  EXPECT_EQ(refusal(p, tiles), "expects a multiple of 16 rows of each head of "
                               "a tile, but got 64 rows of 8 heads");
  tiles.set("packed", 3);
  EXPECT_EQ(refusal(p, tiles),
            "expects rows of 2, 4 or 8 heads in a tile, but got 3");
  tiles.set("packed", 4);
  p.heads = 16;
  EXPECT_EQ(refusal(p, tiles),
            "expects tiles with rows of a number of heads that divides the 2 "
            "query heads of a key head, but got 4");
  p.heads = 64;
  p.clauses.sinks = true;
  EXPECT_EQ(refusal(p, tiles),
            "expects no sinks where a tile has rows of several heads");
  p.clauses = {};
  p.pattern = Pattern({64, 64}, 0.5);
  EXPECT_EQ(refusal(p, tiles),
            "expects what a mask shows where a tile has rows of several heads, "
            "but got blocks that are listed");
  p.pattern.reset();
  p.dtype = DataType::f32;
  EXPECT_EQ(refusal(p, tiles), "expects bf16 or f16 where a tile has rows of "
                               "several heads, but got f32");
}
