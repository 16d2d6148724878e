//===- HeldTest.cpp - Pipelines that hold P against enumeration -----------===//

#include "RandomProblem.h"
#include "TokenProblem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

Tiles held(int64_t part, int64_t slots) {
  return {{"query", 128},
          {"key", 512},
          {"column", 128},
          {"part", part},
          {"slots", slots}};
}

/// What a block does, tile by tile, looking at every pair.
struct Block {
  const Problem &p;
  int64_t part;
  int64_t l2 = 0, smem = 0;

  int64_t depth = roundUp(p.headDim, 64);
  int64_t column = std::min<int64_t>(128, roundUp(p.headDimV, 16));
  int64_t columnTiles = ceilDiv(p.headDimV, column);

  void run() {
    for (int64_t r0 = 0; r0 < p.queries; r0 += 128) {
      int64_t strips = 0;
      for (int64_t k0 = 0; k0 < p.keys; k0 += 512)
        if (sees(p, r0, 128, k0, 512)) {
          strip(r0, k0);
          ++strips;
        }
      if (strips == 0) { // half a part
        scores(r0, 0, 1);
        values(0);
      }
      // O, as f32 accumulators, to its place and back.
      l2 += std::max<int64_t>(0, strips - 1) * 2 * 128 * columnTiles *
            roundUp(column, 16) * 4;
      int64_t rows = clipped(r0, 128, p.queries);
      l2 += rows * (p.headDimV * 2 + 4 * (p.lse + p.lseLow));
      smem += 128 * columnTiles * column * 2 + rows * p.headDimV * 2;
    }
  }

  void strip(int64_t r0, int64_t k0) {
    for (int64_t k1 = k0; k1 < std::min(k0 + 512, p.keys); k1 += part) {
      int64_t halves = 0;
      for (int64_t k2 = k1; k2 < std::min(k1 + part, p.keys); k2 += 128)
        if (sees(p, r0, 128, k2, 128)) {
          ++halves;
          l2 += clipped(k2, 128, p.keys) * p.headDim * 2;
          values(k2);
        }
      if (halves > 0)
        scores(r0, -1, halves);
    }
  }

  /// Queries, and products of two warpgroups; keys of the first half if told
  /// so.
  void scores(int64_t r0, int64_t key, int64_t halves) {
    l2 += clipped(r0, 128, p.queries) * p.headDim * 2;
    if (key >= 0)
      l2 += clipped(key, 128, p.keys) * p.headDim * 2;
    smem += (128 + halves * 128) * depth * 2;
    smem += 2 * (64 + halves * 128) * depth * 2;
  }

  void values(int64_t key) {
    l2 += clipped(key, 128, p.keys) * p.headDimV * 2;
    smem += columnTiles * 128 * roundUp(column, 64) * 2;
    smem += columnTiles * 2 * 128 * column * 2;
  }
};

} // namespace

TEST(Held, MovesWhatItsBlocksMove) {
  Random random(17);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(1300);
    p.headDim = 8 * random.number(1, 60);
    p.headDimV = 8 * random.number(1, 60);
    if (random.number(0, 1) && p.mask.kind == MaskKind::window)
      p.mask = {MaskKind::window, random.number(0, 700), random.number(0, 700)};
    int64_t part = 128 * random.number(1, 2);
    Block block{p, part};
    block.run();
    Bytes bytes = traffic(
        findScheduleKind("output_spill")->build(held(part, 6)), p, h100());
    int64_t heads = p.batch * p.heads;
    EXPECT_EQ(bytes.l2, block.l2 * heads) << p << " part " << part;
    EXPECT_EQ(bytes.smem, block.smem * heads) << p << " part " << part;
    EXPECT_LE(bytes.hbm, bytes.l2);
  }
}

TEST(Held, FootprintByHand) {
  std::string error;
  Problem p = tokenProblem(1024, 512);
  std::optional<Plan> plan =
      planFor(p, h100(), "output_spill", {{"part", 256}}, error);
  ASSERT_TRUE(plan) << error;
  // Twelve units, two panels of O; a pair of barriers per unit, the queue.
  EXPECT_EQ(plan->footprint.smemBytes, 14 * 16384 + 12 * 16 + 64);
  // S of 256 keys beside P of as many.
  EXPECT_EQ(plan->footprint.registersPerThread, 28 + 256 / 2 + 256 / 4);
  EXPECT_EQ(plan->footprint.threads, 384);
  EXPECT_EQ(plan->footprint.blocksPerSm, 1);
  // With one strip nothing waits; with several O does, of every block.
  EXPECT_EQ(plan->footprint.scratchBytes, 0);
  plan = planFor(tokenProblem(1024, 1024), h100(), "output_spill",
                 {{"part", 256}}, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->footprint.scratchBytes, int64_t(132) * 128 * 1024 * 4);
}

/// Parts are as large as the ring has room for.
TEST(Held, SmallMachinesHaveSmallerParts) {
  for (auto [kib, tiles] :
       {std::pair<int64_t, const char *>{227, "part = 256, slots = 12"},
        {163, "part = 256, slots = 8"},
        {99, "part = 128, slots = 4"}}) {
    Machine machine = h100();
    machine.smemBytesPerBlock = kib << 10;
    PlanReport report = plans(tokenProblem(512, 512), machine);
    auto found = std::find_if(
        report.plans.begin(), report.plans.end(),
        [](const Plan &plan) { return plan.kernel == "output_spill_wgmma"; });
    ASSERT_NE(found, report.plans.end()) << kib;
    EXPECT_EQ(found->tiles.str(),
              "query = 128, key = 512, column = 128, " + std::string(tiles));
  }
}

TEST(Held, RefusesOtherTiles) {
  std::string error;
  Problem p = tokenProblem(512, 512);
  EXPECT_FALSE(planFor(p, h100(), "output_spill", held(256, 4), error));
  EXPECT_NE(error.find("expects an even number of slots, 6 or more with parts "
                       "of 256 keys, but got 4"),
            std::string::npos)
      << error;
  EXPECT_FALSE(planFor(p, h100(), "output_spill", held(192, 6), error));
  EXPECT_NE(error.find("expects parts of 128 or 256 keys, but got 192"),
            std::string::npos)
      << error;
}

/// Few keys of wide heads are its own.
TEST(Held, IsForFewKeys) {
  for (int64_t d : {440, 512, 768})
    for (int64_t rows : {128, 256}) {
      PlanReport report = plans(tokenProblem(d, rows), h100());
      ASSERT_TRUE(report.best());
      EXPECT_EQ(report.best()->kernel, "output_spill_wgmma")
          << d << " " << rows;
      report = plans(tokenProblem(d, 4096), h100());
      EXPECT_NE(report.best()->kernel, "output_spill_wgmma") << d;
    }
}
