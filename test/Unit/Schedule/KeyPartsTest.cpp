//===- KeyPartsTest.cpp - Are walks dealt out, and parts priced? ----------===//

#include "RandomProblem.h"

#include "attn/Schedule/KeyParts.h"
#include "attn/Schedule/Packing.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Traffic.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

Problem decoding(int64_t batch, int64_t keys, int64_t queries = 1) {
  Problem p;
  p.batch = batch;
  p.heads = 32;
  p.kvHeads = 8;
  p.queries = queries;
  p.keys = keys;
  p.headDim = p.headDimV = 128;
  return packing(p).problem;
}

Plan planned(const Problem &p, const Tiles &tiles) {
  std::string error;
  std::optional<Plan> plan = planFor(p, h100(), "flash", tiles, error);
  EXPECT_TRUE(plan) << error;
  return plan ? *plan : Plan();
}

const Tiles kWarps = {{"query", 16}, {"key", 32}, {"stages", 2}, {"warps", 1}};
const Tiles kWarpgroups = {{"query", 64}, {"key", 128},   {"stages", 3},
                           {"parts", 16}, {"overlap", 1}, {"persistent", 1}};

Tiles inParts(Tiles tiles, int64_t parts) {
  tiles.set("parts", parts);
  return tiles;
}

} // namespace

TEST(KeyParts, StepsAreDealtOutOnce) {
  for (int64_t steps = 0; steps < 40; ++steps)
    for (int64_t parts = 1; parts < 20; ++parts) {
      int64_t next = 0;
      for (int64_t part = 0; part < parts; ++part) {
        Span own = stepsOfPart(steps, parts, part);
        EXPECT_EQ(own.begin, next);
        EXPECT_GE(own.size(), steps / parts);
        EXPECT_LE(own.size(), (steps + parts - 1) / parts);
        next = own.end;
      }
      EXPECT_EQ(next, steps);
    }
}

/// Of tiles of 16 queries each has some steps, of which a part has a whole
/// number; Q is read by those that have some.
TEST(KeyParts, VisitsAreThoseOfAllParts) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(200);
    int64_t parts = random.number(2, 9), query = 16, key = 32;
    Visits whole = visits(p, Axis::Query, query, key),
           dealt = dealtOut(whole, p, query, key, parts);
    int64_t visited = 0, rows = 0, most = 0;
    for (int64_t row = 0; row < p.queries; row += query) {
      int64_t end = std::min(row + query, p.queries);
      Span seen = visible(p).seenBySome({row, end}, p.keys);
      int64_t steps =
          seen.isEmpty() ? 0 : (seen.end + key - 1) / key - seen.begin / key;
      for (int64_t part = 0; part < parts; ++part) {
        int64_t own = stepsOfPart(steps, parts, part).size();
        visited += own > 0;
        rows += own > 0 ? end - row : 0;
        most = std::max(most, own);
      }
    }
    EXPECT_EQ(dealt.visitedTiles, visited) << p;
    EXPECT_EQ(dealt.visitedRows, rows) << p;
    EXPECT_EQ(dealt.mostPairs, most) << p;
    EXPECT_EQ(dealt.outerTiles, whole.outerTiles * parts) << p;
    EXPECT_EQ(dealt.wholePairs, whole.wholePairs) << p;
    EXPECT_EQ(dealt.raggedPairs, whole.raggedPairs) << p;
  }
}

/// S G N_q d + N_k (d + e) words of a key head come in, and of each part G N_q
/// (e + 1) go out and come back in f32, of which each LSE is read for every 32
/// columns (sparse.md, 5.2).
TEST(KeyParts, WordsHaveAClosedForm) {
  for (int64_t parts : {2, 3, 8, 40}) {
    Problem p = decoding(2, 5000);
    int64_t rows = p.queries, d = p.headDim, e = p.headDimV, words = 4;
    int64_t reads = 2 * (parts * rows * d + p.keys * (d + e));
    int64_t left = words * parts * rows * (e + 1);
    int64_t taken = words * parts * rows * (e + e / kMergedColumns);
    int64_t results = rows * (2 * e + words);
    EXPECT_EQ(planned(p, inParts(kWarps, parts)).bytes.l2,
              p.batch * p.heads * (reads + left + taken + results));
  }
}

TEST(KeyParts, FewTilesAreDealtOut) {
  for (auto [batch, keys] :
       {std::pair<int64_t, int64_t>{1, 8192}, {1, 32768}, {1, 131072}}) {
    PlanReport report = plans(decoding(batch, keys), h100());
    const Plan &best = *report.best();
    ASSERT_TRUE(best.tiles.has("parts")) << keys;
    int64_t blocks = batch * 8 * best.tiles.get("parts");
    EXPECT_GE(blocks, 96) << best.tiles.str();
    EXPECT_EQ(best.launches.size(), 2u);
    // What parts leave stays in L2.
    EXPECT_LE(double(best.bytes.hbm), 1.02 * double(report.lowerBounds.hbm));
    auto whole =
        std::find_if(report.plans.begin(), report.plans.end(),
                     [](const Plan &plan) { return !plan.tiles.has("parts"); });
    ASSERT_NE(whole, report.plans.end());
    EXPECT_LT(best.seconds, 0.8 * whole->seconds) << keys;
  }
}

/// Where tiles fill a machine, and where there is nothing to deal out.
TEST(KeyParts, ManyTilesAreNot) {
  EXPECT_FALSE(plans(decoding(128, 8192), h100()).best()->tiles.has("parts"));
  EXPECT_FALSE(plans(decoding(1, 100), h100()).best()->tiles.has("parts"));
  Problem square = decoding(4, 4096, 4096);
  EXPECT_FALSE(plans(square, h100()).best()->tiles.has("parts"));
}

/// Tiles that say everything are what they say; with less, parts may come.
TEST(KeyParts, WholeTilesHaveNone) {
  Problem p = decoding(1, 32768);
  EXPECT_EQ(planned(p, kWarps).tiles, kWarps);
  EXPECT_TRUE(planned(p, {{"query", 16}, {"warps", 1}}).tiles.has("parts"));
  EXPECT_TRUE(planned(p, {}).tiles.has("parts"));
}

TEST(KeyParts, NumbersToTryFillWaves) {
  Tiles tiles = {{"query", 64}, {"key", 128}};
  Problem p = decoding(1, 131072); // 8 tiles of 1024 steps on 132
  std::vector<int64_t> tried = partsToTry(p, h100(), tiles);
  EXPECT_NE(std::find(tried.begin(), tried.end(), 16), tried.end());
  EXPECT_TRUE(std::is_sorted(tried.begin(), tried.end()));
  for (int64_t parts : tried) {
    EXPECT_GE(parts, 2);
    EXPECT_LE(parts, kMostKeyParts);
  }
  EXPECT_TRUE(partsToTry(decoding(1, 128), h100(), tiles).empty());
  EXPECT_TRUE(partsToTry(decoding(128, 8192), h100(), tiles).empty());
}

/// A window is cut as the keys that it shows are.
TEST(KeyParts, OfWhatIsSeen) {
  Problem p;
  p.queries = 8;
  p.keys = 100000;
  p.headDim = p.headDimV = 64;
  p.mask = {MaskKind::window, 1000, 0};
  Tiles tiles = {{"query", 64}, {"key", 64}};
  for (int64_t parts : partsToTry(p, h100(), tiles))
    EXPECT_LE(parts, 17);
  Problem few = p;
  few.keys = 100000 - 98976; // of as many blocks of 32 less
  EXPECT_EQ(planned(p, inParts(kWarps, 4)).bytes.l2,
            planned(few, inParts(kWarps, 4)).bytes.l2);
}

TEST(KeyParts, WhatIsRefused) {
  auto refusal = [](const Problem &p, const Tiles &tiles) {
    std::string error;
    EXPECT_FALSE(planFor(p, h100(), "flash", tiles, error));
    return error;
  };
  Problem p = decoding(1, 8192);
  EXPECT_EQ(refusal(p, inParts(kWarps, 0)),
            "expects parts to be a multiple of 1 up to 256, but got 0");
  EXPECT_EQ(refusal(p, inParts(kWarps, 257)),
            "expects parts to be a multiple of 1 up to 256, but got 257");
  Problem low = p;
  low.lseLow = true;
  EXPECT_EQ(refusal(low, kWarpgroups),
            "expects one word of LSE where keys are in parts, but got two");
  Problem listed = p;
  listed.pattern.emplace(BlockSize{64, 128}, /*density=*/0.5);
  EXPECT_EQ(refusal(listed, kWarpgroups),
            "expects what a mask shows where keys are in parts, but got blocks "
            "that are listed");
  Problem many = p;
  many.queries = 70000;
  EXPECT_EQ(refusal(many, kWarpgroups),
            "expects at most 1024 tiles of queries where keys are in parts, "
            "but got 1094");
}
