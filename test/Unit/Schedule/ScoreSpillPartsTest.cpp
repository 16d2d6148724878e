//===- ScoreSpillPartsTest.cpp - Plain products of f32, priced ------------===//
//
// score_spill on wgmma for f32: launches that split inputs, and plain products
// of their parts in rounds.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"
#include "TokenProblem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

struct Choice {
  int64_t column = 128, strip = 1024, heads = 16;

  operator Tiles() const {
    return {{"query", 128},   {"key_block", 128}, {"column", column},
            {"strip", strip}, {"heads", heads},   {"parts", 2},
            {"stages", 6},    {"merged", 0},      {"persistent", 1}};
  }
};

Problem single(Problem p) {
  p.dtype = DataType::f32;
  return p;
}

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

constexpr int64_t kPart = 2, kNumber = 4;
constexpr int64_t kAll = 2 * kPart; ///< bytes of a number in parts

/// What the launches do for a query head, tile by tile, looking at every pair;
/// of those that split, for all heads.
struct Kernel {
  const Problem &p;
  const Choice &c;
  struct {
    int64_t l2 = 0, smem = 0;
  } queries, keys, scores, outputs;

  Kernel(const Problem &p, const Choice &c) : p(p), c(c) {
    queries.l2 = p.batch * p.heads * p.queries * split(p.headDim, 64);
    keys.l2 = p.batch * p.kvHeads * p.keys *
              (split(p.headDim, 64) + split(p.headDimV, c.column));
    for (int64_t i = 0; i < p.queries; i += own) {
      scoresTiles(i);
      for (int64_t first = 0; first < p.headDimV; first += c.column)
        outputsTile(i, std::min(c.column, p.headDimV - first));
    }
    outputs.l2 += 4 * (p.lse + p.lseLow) * p.queries;
  }

private:
  static constexpr int64_t own = 128; ///< rows of a tile, keys of a block

  static int64_t split(int64_t columns, int64_t unit) {
    return kNumber * columns + kAll * roundUp(columns, unit);
  }

  /// Of two parts of a slice of both factors, that come and of which two
  /// warpgroups read three pairs.
  int64_t smemOf(int64_t right) const {
    return kAll * 64 * (own + right) + 3 * kPart * 2 * 64 * (64 + right);
  }

  void scoresTiles(int64_t i) {
    int64_t rows = std::min(own, p.queries - i);
    for (int64_t j = 0; j < p.keys; j += own) {
      if (!sees(p, i, own, j, own))
        continue;
      int64_t cols = std::min(own, p.keys - j);
      scores.l2 +=
          kAll * (rows + cols) * roundUp(p.headDim, 64) + kAll * own * own;
      scores.l2 += 8 * rows; // statistics
      scores.smem += ceilDiv(p.headDim, 64) * smemOf(own);
      scores.smem += 2 * (kAll * own * own); // staged
    }
  }

  void outputsTile(int64_t i, int64_t cols) {
    int64_t rows = std::min(own, p.queries - i);
    for (int64_t j = 0; j < p.keys; j += own) {
      if (!sees(p, i, own, j, own))
        continue;
      outputs.l2 += 8 * rows + kAll * own * own;
      outputs.l2 += kAll * std::min(own, p.keys - j) * c.column;
      outputs.smem += 2 * smemOf(c.column);
    }
    outputs.l2 += kNumber * rows * cols;
  }
};

TEST(ScoreSpillParts, MovesWhatTheKernelMoves) {
  Random random(35);
  for (int round = 0; round < 120; ++round) {
    Problem p = random.problem(700);
    p.dtype = DataType::f32;
    p.headDim = random.number(1, 400);
    p.headDimV = random.number(1, 400);
    p.lse = random.number(0, 1) != 0;
    p.lseLow &= p.lse;
    Choice c;
    c.column = 64 * random.number(1, 2);
    c.strip = 128 * random.number(1, 3);
    c.heads = random.number(1, 8);
    Schedule schedule = scheduleOf(c);
    Census counted = census(schedule, p);
    auto bytes = [&](size_t launch) {
      return gridTraffic(counted, launch, p, h100(), 132);
    };
    int64_t heads = p.batch * p.heads;
    Kernel kernel(p, c);
    EXPECT_EQ(bytes(0).l2, kernel.queries.l2) << p;
    EXPECT_EQ(bytes(0).smem, 0) << p;
    EXPECT_EQ(bytes(1).l2, kernel.keys.l2) << p;
    EXPECT_EQ(bytes(1).smem, 0) << p;
    EXPECT_EQ(bytes(2).l2, heads * kernel.scores.l2) << p;
    EXPECT_EQ(bytes(2).smem, heads * kernel.scores.smem) << p;
    EXPECT_EQ(bytes(3).l2, heads * kernel.outputs.l2) << p;
    EXPECT_EQ(bytes(3).smem, heads * kernel.outputs.smem) << p;
    for (size_t launch = 0; launch < 4; ++launch)
      EXPECT_LE(bytes(launch).hbm, bytes(launch).l2) << p;
  }
}

//===----------------------------------------------------------------------===//
// Space
//===----------------------------------------------------------------------===//

TEST(ScoreSpillParts, Space) {
  std::string error;
  Problem p = single(tokenProblem(512, 1024));
  auto plan = planOf(p, Choice(), error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->kernel, "score_spill_wgmma");
  ASSERT_EQ(plan->launches.size(), 4u);
  // 16 numbers for each input, and 16 rows of 384 columns in a warp.
  EXPECT_EQ(plan->launches[0].footprint.smemBytes, 80);
  EXPECT_EQ(plan->launches[1].footprint.smemBytes, 128 + 80);
  for (size_t i : {0, 1}) {
    EXPECT_EQ(plan->launches[i].footprint.threads, 256);
    EXPECT_EQ(plan->launches[i].footprint.registersPerThread, 36 + 192 + 24);
  }
  // Three slices of pairs of 16 KiB, in two parts; barriers of six pairs, the
  // queue.  Scores have 32 KiB of staging and barriers of two warpgroups.
  EXPECT_EQ(plan->launches[2].footprint.smemBytes,
            (6 * 32 + 32) * 1024 + 2 * 48 + 2 * 16 + 64);
  EXPECT_EQ(plan->launches[3].footprint.smemBytes, 6 * 32 * 1024 + 2 * 48 + 64);
  // A sum beside the accumulator.
  for (size_t i : {2, 3}) {
    EXPECT_EQ(plan->launches[i].footprint.threads, 384);
    EXPECT_EQ(plan->launches[i].footprint.registersPerThread, 28 + 2 * 64);
  }
  // P, and two numbers of a row for each of eight blocks; parts of Q, K and V.
  int64_t waiting = int64_t(16) * 1024 * (1024 * kAll + 8 * 8);
  // And an exponent for every 128 rows.
  int64_t inputs = 3 * p.batch * p.heads * (kAll * 1024 * 512 + 4 * 8);
  EXPECT_EQ(plan->footprint.stripScratchBytes, waiting);
  EXPECT_EQ(plan->footprint.scratchBytes, waiting + inputs);
  EXPECT_EQ(plan->footprint.rowScratchBytes, waiting + inputs);

  // Whole tiles of parts, of the heads that there are.
  Problem ragged = p;
  ragged.batch = 2;
  ragged.heads = 6, ragged.kvHeads = 2;
  ragged.queries = 300, ragged.keys = 200;
  ragged.headDim = 70, ragged.headDimV = 130;
  Choice one;
  one.heads = 1, one.strip = 256;
  plan = planOf(ragged, one, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->footprint.scratchBytes,
            3 * 256 * (256 * kAll + 2 * 8) +
                kAll * (12 * 300 * 128 + 4 * 200 * (128 + 256)) +
                4 * (12 * 3 + 4 * 2 * 2));
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

TEST(ScoreSpillParts, Refusals) {
  Problem p = single(tokenProblem(512, 1024));
  auto refusal = [&](const char *name, int64_t value) {
    std::string error;
    Tiles tiles = Choice();
    tiles.set(name, value);
    EXPECT_FALSE(planOf(p, tiles, error)) << tiles.str();
    return error;
  };
  EXPECT_EQ(refusal("query", 64), "expects query to be 128, but got 64");
  EXPECT_EQ(refusal("key_block", 256),
            "expects blocks of 128 keys, but got 256");
  EXPECT_EQ(refusal("column", 192), "expects at most 128 columns, but got 192");
  EXPECT_EQ(refusal("parts", 3), "expects 2 parts, but got 3");
  EXPECT_EQ(refusal("stages", 4), "expects 6 stages, but got 4");
  p.precision = Precision::tf32;
  EXPECT_EQ(refusal("stages", 6),
            "wgmma expects f32 in precision tf32x3, but got tf32");
}

// What the launches before the others read may be of any length, anywhere; a
// problem gets the form for its type.
TEST(ScoreSpillParts, RowsOfAnyLength) {
  std::string error;
  Problem p = single(tokenProblem(512, 1024));
  p.headDim = 333, p.headDimV = 501;
  p.alignment = 4;
  auto plan = planOf(p, Choice(), error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->kernel, "score_spill_wgmma");
  p = tokenProblem(512, 1024);
  EXPECT_FALSE(planOf(p, Choice(), error));
  Tiles both = {{"query", 128},
                {"key_block", 128},
                {"column", 128},
                {"strip", 1024},
                {"heads", 16}};
  plan = planOf(p, both, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_FALSE(plan->tiles.has("parts"));
  plan = planOf(single(p), both, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_TRUE(plan->tiles.has("parts"));
}

// Heads of which a multiprocessor holds enough rows in parts stay with flash.
TEST(ScoreSpillParts, IsForWideHeads) {
  for (bool isCausal : {false, true})
    for (int64_t rows : {1024, 4096, 16384}) {
      auto chosen = [&](int64_t d) {
        return plans(single(tokenProblem(d, rows, isCausal)), h100())
            .best()
            ->kernel;
      };
      for (int64_t d : {32, 64})
        EXPECT_EQ(chosen(d), "flash_wgmma") << d << " " << rows;
      for (int64_t d : {192, 256, 512, 1024, 2048})
        EXPECT_EQ(chosen(d), "score_spill_wgmma") << d << " " << rows;
    }
}

// Unasked, P of a round takes twice what it may of 16 bits.
TEST(ScoreSpillParts, ScratchHasALimit) {
  for (int64_t rows : {1024, 4096, 16384})
    for (const Plan &plan :
         plans(single(tokenProblem(512, rows)), h100()).plans)
      if (plan.kernel == "score_spill_wgmma")
        EXPECT_LE(plan.footprint.stripScratchBytes, 2 * kMostWeightScratchBytes)
            << plan.tiles.str();
}

TEST(ScoreSpillParts, Pseudocode) {
  std::string text =
      pseudocode(scheduleOf(Choice()), single(tokenProblem(512, 4096)));
  for (const char *line : {"spill Q[128 x 512] to scratch, in 2 parts\n",
                           "spill V[128 x 512] to scratch, in 2 parts\n",
                           "stream K[128 x 64] through smem, in 2 parts\n",
                           "spill P[128 x 128] to scratch, in 2 parts\n",
                           "stream V[64 x 128] through smem, in 2 parts\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

} // namespace
