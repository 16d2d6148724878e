//===- ScoreSpillRoundsTest.cpp - Two plain products, priced --------------===//
//
// score_spill on wgmma: launches of plain products in rounds.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"
#include "TokenProblem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Staging.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

struct Choice {
  int64_t keyBlock = 256, column = 256, strip = 1024, heads = 16, stages = 3;
  bool merged = false, kept = false;

  operator Tiles() const {
    Tiles tiles = {{"query", 128},
                   {"key_block", keyBlock},
                   {"column", column},
                   {"strip", strip},
                   {"heads", heads}};
    if (kept)
      tiles.set("kept", 1);
    tiles.set("stages", stages);
    tiles.set("merged", merged);
    tiles.set("persistent", 1);
    return tiles;
  }
};

Schedule scheduleOf(const Tiles &tiles) {
  return findScheduleKind("score_spill")->build(tiles);
}

std::optional<Plan> planOf(const Problem &p, const Tiles &tiles,
                           std::string &error) {
  return planFor(p, h100(), "score_spill", tiles, error);
}

//===----------------------------------------------------------------------===//
// What moves
//===----------------------------------------------------------------------===//

// Tiles of b x b, of as many queries as keys: 2N²d/b for each product, P once
// and d/b times back, likewise two numbers of a row for every block.
TEST(ScoreSpillRounds, Words) {
  for (int64_t n : {64, 256, 1024})
    for (int64_t d : {64, 512})
      for (int64_t b : {64, 128}) {
        if (n % b != 0 || d % b != 0)
          continue;
        Problem p;
        p.queries = p.keys = n;
        p.headDim = p.headDimV = d;
        Tiles tiles{{"query", b},     {"key_block", b}, {"column", b},
                    {"strip", n},     {"heads", 1},     {"stages", 2},
                    {"persistent", 1}};
        EXPECT_EQ(trafficWords(scheduleOf(tiles), p),
                  3 * n * n * d / b + n * n + n * n * d / b +
                      2 * n * n / b * (1 + d / b) + n * d + n);
      }
}

/// What both launches do for a head, tile by tile, looking at every pair.
struct Kernel {
  const Problem &p;
  const Choice &c;
  struct {
    int64_t l2 = 0, smem = 0;
  } scores, outputs;

  Kernel(const Problem &p, const Choice &c) : p(p), c(c) {
    for (int64_t i = 0; i < p.queries; i += own) {
      scoresTiles(i);
      for (int64_t first = 0; first < p.headDimV; first += c.column)
        outputsTile(i, std::min(c.column, p.headDimV - first));
    }
    outputs.l2 += 4 * (p.lse + p.lseLow) * p.queries;
  }

private:
  static constexpr int64_t own = 128; ///< rows of a tile

  /// A pair of factors comes to every block, and some warpgroups read them.
  int64_t smemOf(int64_t right, int64_t groups = 2) const {
    return 2 * 64 * (128 + right) + groups * 2 * 64 * (64 + right);
  }

  void scoresTiles(int64_t i) {
    int64_t rows = std::min(own, p.queries - i);
    for (int64_t j = 0; j < p.keys; j += c.keyBlock) {
      if (!sees(p, i, own, j, c.keyBlock))
        continue;
      // Of a wide block the half that is seen, if it is one.
      int64_t first = j, width = c.keyBlock;
      if (int64_t half = width / 2; half == own) {
        bool isLower = sees(p, i, own, j, half),
             isUpper = sees(p, i, own, j + half, half);
        first += isLower ? 0 : half;
        width = isLower && isUpper ? width : half;
      }
      int64_t cols = std::min(width, p.keys - first);
      // Arrays of the caller end where they end.
      int64_t left = 2 * (c.kept ? rows * std::min(c.keyBlock, p.keys - j)
                                 : own * c.keyBlock);
      scores.l2 += 2 * (rows + cols) * p.headDim + left;
      scores.l2 += 8 * rows; // statistics
      scores.smem += ceilDiv(p.headDim, 64) * smemOf(width);
      scores.smem += 2 * own * c.keyBlock + left; // staged
    }
  }

  void outputsTile(int64_t i, int64_t cols) {
    int64_t rows = std::min(own, p.queries - i);
    for (int64_t j = 0; j < p.keys; j += c.keyBlock)
      outputs.l2 += sees(p, i, own, j, c.keyBlock) ? 8 * rows : 0;
    for (int64_t j = 0; j < p.keys; j += 64)
      if (sees(p, i, own, j, 64)) {
        int64_t some = std::min<int64_t>(64, p.keys - j);
        outputs.l2 += 2 * (c.kept ? rows * some : own * 64) + 2 * some * cols;
        int64_t groups = 0; // who does not see them passes over them
        for (int64_t group = i; group < i + own; group += own / 2)
          groups += sees(p, group, own / 2, j, 64);
        outputs.smem += smemOf(c.column, groups);
      }
    outputs.l2 += 2 * rows * cols;
    outputs.smem += 2 * (own * c.column + rows * cols);
  }
};

TEST(ScoreSpillRounds, MovesWhatTheKernelMoves) {
  Random random(33);
  for (int round = 0; round < 120; ++round) {
    Problem p = random.problem(700);
    p.dtype = DataType::bf16;
    p.headDim = 8 * random.number(1, 80);
    p.headDimV = 8 * random.number(1, 80);
    p.lse = random.number(0, 1) != 0;
    Choice c;
    c.keyBlock = 128 * random.number(1, 2);
    c.column = 64 * random.number(1, 4);
    c.strip = 128 * random.number(1, 3);
    c.heads = random.number(1, 8);
    c.kept = c.keyBlock == 256 && random.number(0, 1);
    p.keepsWeights = c.kept;
    p.lse |= c.kept;
    p.lseLow &= p.lse;
    Schedule schedule = scheduleOf(c);
    Census counted = census(schedule, p);
    auto bytes = [&](size_t launch) {
      return gridTraffic(counted, launch, p, h100(), 132);
    };
    int64_t heads = p.batch * p.heads;
    Kernel kernel(p, c);
    EXPECT_EQ(bytes(0).l2, heads * kernel.scores.l2) << p;
    EXPECT_EQ(bytes(0).smem, heads * kernel.scores.smem) << p;
    EXPECT_EQ(bytes(1).l2, heads * kernel.outputs.l2) << p;
    EXPECT_EQ(bytes(1).smem, heads * kernel.outputs.smem) << p;
    for (size_t launch = 0; launch < 2; ++launch)
      EXPECT_LE(bytes(launch).hbm, bytes(launch).l2) << p;
  }
}

//===----------------------------------------------------------------------===//
// Space
//===----------------------------------------------------------------------===//

TEST(ScoreSpillRounds, Space) {
  std::string error;
  auto plan = planOf(tokenProblem(2048, 1024), Choice(), error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->kernel, "score_spill_wgmma");
  ASSERT_EQ(plan->launches.size(), 2u);
  for (const LaunchPlan &launch : plan->launches) {
    // Pairs of 16 and 32 KiB, 64 KiB of staging; barriers of three pairs and of
    // two warpgroups, the queue.
    EXPECT_EQ(launch.footprint.smemBytes,
              (3 * 48 + 64) * 1024 + 2 * 32 + 2 * 16 + 64);
    EXPECT_EQ(launch.footprint.threads, 384);
  }
  EXPECT_EQ(plan->launches[0].footprint.registersPerThread, 28 + 128);
  // P as it came and as it is multiplied.
  EXPECT_EQ(plan->launches[1].footprint.registersPerThread, 28 + 128 + 2 * 16);
  // Of the staging buffer a stage more leaves half: for each warpgroup two
  // slots of 64 columns, and as many pairs of barriers.
  Choice deeper;
  deeper.stages = 4;
  auto inPieces = planOf(tokenProblem(2048, 1024), deeper, error);
  ASSERT_TRUE(inPieces) << error;
  for (const LaunchPlan &launch : inPieces->launches)
    EXPECT_EQ(launch.footprint.smemBytes,
              (4 * 48 + 32) * 1024 + 2 * 32 + 2 * 32 + 64);
  EXPECT_LT(inPieces->seconds, plan->seconds);
  deeper.stages = 5;
  EXPECT_FALSE(planOf(tokenProblem(2048, 1024), deeper, error));
  // P, and two numbers of a row for each of four blocks.
  int64_t waiting = int64_t(16) * 1024 * (1024 * 2 + 4 * 8);
  EXPECT_EQ(plan->footprint.stripScratchBytes, waiting);
  EXPECT_EQ(plan->footprint.scratchBytes, waiting);
  EXPECT_EQ(plan->footprint.rowScratchBytes, waiting);

  // Whole tiles, of all heads that share one of keys.
  Problem ragged = tokenProblem(72, 300);
  ragged.batch = 1;
  ragged.heads = 6, ragged.kvHeads = 2;
  Choice one;
  one.heads = 1, one.strip = 256;
  plan = planOf(ragged, one, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->footprint.scratchBytes, 3 * 256 * (512 * 2 + 2 * 8));
  one.strip = 512;
  plan = planOf(ragged, one, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->footprint.scratchBytes, 3 * 384 * (512 * 2 + 2 * 8));
}

// One launch instead of two, of the same tiles.
TEST(ScoreSpillRounds, Merged) {
  std::string error;
  Choice apart, merged;
  merged.merged = true;
  for (bool isCausal : {false, true}) {
    Problem p = tokenProblem(2048, 1024, isCausal);
    auto two = planOf(p, apart, error), one = planOf(p, merged, error);
    ASSERT_TRUE(one && two) << error;
    ASSERT_EQ(one->launches.size(), 1u);
    EXPECT_EQ(one->bytes.l2, two->bytes.l2);
    EXPECT_EQ(one->bytes.smem, two->bytes.smem);
    EXPECT_EQ(one->flops, two->flops);
    EXPECT_EQ(one->footprint.scratchBytes, two->footprint.scratchBytes);
    EXPECT_EQ(one->footprint.smemBytes, two->footprint.smemBytes);
    EXPECT_EQ(one->launches[0].footprint.registersPerThread,
              two->launches[1].footprint.registersPerThread);
    // Of scores 320 tiles, if causal, take 3 waves and not 2.4.
    EXPECT_LT(one->seconds, two->seconds * (isCausal ? 0.94 : 0.99));
  }
}

// Unasked, memory grows as rows do; all of P has to be asked for.
TEST(ScoreSpillRounds, ScratchHasALimit) {
  std::string error;
  for (int64_t d : {512, 2048})
    for (int64_t rows : {1024, 4096, 16384, 65536})
      for (const Plan &plan : plans(tokenProblem(d, rows), h100()).plans)
        if (plan.kernel == "score_spill_wgmma")
          EXPECT_LE(plan.footprint.stripScratchBytes, kMostWeightScratchBytes)
              << plan.tiles.str();
  Choice all;
  all.strip = 16384, all.heads = 4;
  auto plan = planOf(tokenProblem(512, 16384), all, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->footprint.stripScratchBytes,
            int64_t(4) * 16384 * (16384 * 2 + 64 * 8));
  EXPECT_FALSE(planOf(tokenProblem(512, 16384),
                      {{"key_block", 256}, {"strip", 16384}}, error));
  EXPECT_NE(error.find("unless its strip and heads are asked for"),
            std::string::npos)
      << error;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

TEST(ScoreSpillRounds, Refusals) {
  Problem p = tokenProblem(512, 1024);
  auto refusal = [&](const char *name, int64_t value) {
    std::string error;
    Tiles tiles = Choice();
    tiles.set(name, value);
    EXPECT_FALSE(planOf(p, tiles, error)) << tiles.str();
    return error;
  };
  EXPECT_EQ(refusal("query", 64), "expects query to be 128, but got 64");
  EXPECT_EQ(refusal("key_block", 192),
            "expects blocks of 128 or 256 keys, but got 192");
  EXPECT_EQ(refusal("column", 320),
            "expects whole panels of 64 columns, at most 256, but got 320");
  EXPECT_EQ(refusal("strip", 192),
            "expects strips of whole tiles of 128 queries, but got strip = "
            "192");
  EXPECT_EQ(refusal("heads", 1025),
            "expects heads to be a multiple of 1 up to 1024, but got 1025");
  EXPECT_EQ(refusal("stages", 1), "expects two to six stages, but got 1");
  EXPECT_EQ(refusal("merged", 2), "expects merged to be 0 or 1, but got 2");
  EXPECT_EQ(refusal("persistent", 0),
            "expects persistent = 1, but got persistent = 0");
  p.dtype = DataType::f8e4m3;
  EXPECT_NE(refusal("stages", 3), "");
}

TEST(ScoreSpillRounds, RefusalsMerged) {
  std::string error;
  Choice c;
  c.merged = true;
  c.keyBlock = 128;
  EXPECT_FALSE(planOf(tokenProblem(512, 1024), c, error));
  EXPECT_EQ(error, "expects tiles of outputs, in one launch with scores, to "
                   "have at most their columns, 128, but got column = 256");
  c.column = 128;
  EXPECT_TRUE(planOf(tokenProblem(512, 1024), c, error)) << error;
  c.heads = 1001;
  EXPECT_FALSE(planOf(tokenProblem(512, 1024), c, error));
  EXPECT_EQ(error, "expects at most 8000 tiles of queries in one launch of "
                   "scores and outputs, but got 8008");
}

// Heads that fit a multiprocessor stay with flash.
TEST(ScoreSpillRounds, IsNotForNarrowHeads) {
  for (bool isCausal : {false, true})
    for (int64_t rows : {1024, 4096, 16384})
      for (int64_t d : {64, 128, 256}) {
        PlanReport report = plans(tokenProblem(d, rows, isCausal), h100());
        ASSERT_TRUE(report.best());
        EXPECT_EQ(report.best()->schedule, "flash") << d << " " << rows;
      }
}

// Few keys of heads that are very wide are its own: a group would exchange P
// for every part of O, and multiply a few steps between two tiles.
TEST(ScoreSpillRounds, IsForFewKeysOfWideHeads) {
  for (bool isCausal : {false, true})
    for (int64_t d : {1024, 2048}) {
      PlanReport report = plans(tokenProblem(d, 1024, isCausal), h100());
      ASSERT_TRUE(report.best());
      EXPECT_EQ(report.best()->kernel, "score_spill_wgmma") << d;
      // All in one round.
      EXPECT_EQ(report.best()->tiles.get("heads"), 16 * 2048 / d);
      EXPECT_EQ(report.best()->tiles.get("strip"), 1024);
    }
}

// However wide, as long as TMA takes the rows.
TEST(ScoreSpillRounds, AnyWidth) {
  std::string error;
  for (int64_t d : {8, 72, 4096, 65536})
    for (int64_t dv : {8, 136, 65536}) {
      Problem p = tokenProblem(d, 1024);
      p.headDimV = dv;
      auto plan = planOf(p, Choice(), error);
      EXPECT_TRUE(plan && plan->kernel == "score_spill_wgmma") << error;
    }
}

TEST(ScoreSpillRounds, Pseudocode) {
  std::string text = pseudocode(scheduleOf(Choice()), tokenProblem(512, 4096));
  for (const char *line :
       {"for every 16 key heads (1 times) and then every strip of 1024 queries "
        "(4 of them), one launch after the other:\n",
        "  parallel for every batch, head and query tile of 128 (32 of them), "
        "2 warpgroups and a producer, factors of 128 and 256 in one "
        "ring, persistent:\n",
        "    at once for every key tile of 256 (16 of them), or the half of it "
        "that is seen:\n",
        "spill P[128 x 256] to scratch\n", "O += P . V\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

} // namespace

/// A tile leaves whole if the block's shared memory has room for that beside
/// the ring, on whatever machine: 128 x 256 in 16 bits are 64 KiB, a stage 48.
TEST(Staging, IsWhatTheBlockHasRoomFor) {
  auto isWhole = [](int64_t stages, int64_t kibibytes) {
    Staging staging = stagingOf(stages, 256, kibibytes * 1024);
    EXPECT_EQ(staging.slots * staging.columns, staging.slots == 1 ? 256 : 128);
    return staging.slots == 1;
  };
  EXPECT_TRUE(isWhole(3, 227));
  EXPECT_FALSE(isWhole(4, 227));
  EXPECT_TRUE(isWhole(3, 209)) << "208 KiB, and one for barriers";
  EXPECT_FALSE(isWhole(3, 208));
  EXPECT_TRUE(isWhole(1, 128));
  EXPECT_FALSE(isWhole(1, 112));
}
