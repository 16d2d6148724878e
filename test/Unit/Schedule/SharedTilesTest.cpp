//===- SharedTilesTest.cpp - Are tiles with rows of several heads priced? -===//

#include "RandomProblem.h"

#include "attn/Schedule/Census.h"
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
