//===- PackingTest.cpp - Are query heads rows where they can be? ----------===//

#include "../Share.h"
#include "RandomProblem.h"

#include "attn/Schedule/Packing.h"
#include "attn/Schedule/Plan.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

/// One query of several heads that share their keys, under any mask.
Problem oneQuery(Random &random, int64_t mostKeys) {
  Problem p = random.problem(mostKeys);
  p.heads = p.kvHeads * random.number(2, 16);
  p.queries = 1;
  return p;
}

/// The keys that a row of one problem sees.
std::vector<int64_t> seenBy(const Problem &p, int64_t row) {
  std::vector<int64_t> keys;
  for (int64_t j = 0; j < p.keys; ++j)
    if (isVisible(p, row, j))
      keys.push_back(j);
  return keys;
}

TEST(Packing, OneQuerySeesARangeOfKeys) {
  Random random(1);
  for (int round = 0; round < 400; ++round) {
    Problem p = oneQuery(random, 90);
    Packing packed = packing(p);
    ASSERT_TRUE(packed) << p << packed.whyNot;
    std::vector<int64_t> seen = seenBy(p, 0);
    EXPECT_EQ(packed.problem.mask.kind, MaskKind::none) << p;
    EXPECT_EQ(packed.problem.keys, int64_t(seen.size())) << p;
    EXPECT_EQ(packed.problem.heads, p.kvHeads) << p;
    EXPECT_EQ(packed.problem.kvHeads, p.kvHeads) << p;
    EXPECT_EQ(packed.problem.queries, p.heads / p.kvHeads) << p;
    EXPECT_EQ(check(packed.problem), std::nullopt) << p;
  }
}

/// What is computed is the same, and so is what must move.
TEST(Packing, KeepsArithmeticAndWords) {
  Random random(2);
  for (int round = 0; round < 400; ++round) {
    Problem p = round % 2 ? oneQuery(random, 90) : random.problem(90);
    if (round % 4 == 2)
      p.mask = {};
    if (round % 3 == 0) {
      p.direction = Direction::backward;
      p.lse = true;
    }
    Packing packed = packing(p);
    EXPECT_EQ(usefulFlops(packed.problem), usefulFlops(p)) << p;
    EXPECT_EQ(bounds(packed.problem, 1e6).compulsoryWords,
              bounds(p, 1e6).compulsoryWords)
        << p;
    // It is planned as it is.
    EXPECT_FALSE(packing(packed.problem) && packed) << p;
  }
}

/// Where there are heads enough to fill the machine.
TEST(Packing, ReadsTheKeysOnce) {
  ATTN_LONG_TEST();
  Random random(3);
  for (const char *name : {"h100_sxm", "a100_80g", "l4", "rtx_5090"})
    for (int round = 0; round < 12; ++round) {
      Problem p = oneQuery(random, 90);
      p.batch = random.number(300, 600);
      p.keys = random.number(1000, 20000);
      p.headDim = 8 * random.number(2, 32);
      p.headDimV = random.number(0, 1) ? p.headDim : 8 * random.number(2, 32);
      if (p.mask.kind == MaskKind::window)
        p.mask.left = random.number(1000, p.keys);
      if (p.mask.kind == MaskKind::causal)
        p.mask = {};
      PlanReport report = plans(packing(p).problem, *findMachine(name));
      const Plan *best = report.best();
      ASSERT_NE(best, nullptr) << name << " " << p;
      EXPECT_LE(best->bytes.hbm, 1.02 * report.lowerBounds.hbm)
          << name << " " << p << " " << best->schedule << best->tiles.str();
      // One that streams Q again and again asks L2 for more.
      if (best->schedule == "flash")
        EXPECT_LE(best->bytes.l2, 1.02 * report.lowerBounds.l2)
            << name << " " << p << " " << best->schedule << best->tiles.str();
    }
}

/// Fewer blocks walk over the keys, but each as far as before.
TEST(Packing, OneQueryIsNotSlower) {
  ATTN_LONG_TEST();
  Random random(4);
  for (const char *name : {"h100_sxm", "a100_80g", "l4"})
    for (int round = 0; round < 12; ++round) {
      Problem p = oneQuery(random, 90);
      p.batch = random.number(0, 1) ? random.number(1, 8) : 100;
      p.keys = random.number(100, 20000);
      p.headDim = p.headDimV = 16 * random.number(2, 16);
      if (round % 2) {
        p.direction = Direction::backward;
        p.mask = {};
      }
      const Machine &machine = *findMachine(name);
      PlanReport unpacked = plans(p, machine);
      PlanReport packed = plans(packing(p).problem, machine);
      ASSERT_NE(unpacked.best(), nullptr) << name << " " << p;
      ASSERT_NE(packed.best(), nullptr) << name << " " << p;
      EXPECT_LE(packed.best()->seconds, 1.02 * unpacked.best()->seconds)
          << name << " " << p << " " << attn::name(p.direction) << " "
          << packed.best()->schedule << " for " << unpacked.best()->schedule;
    }
}

std::string whyNot(void (*change)(Problem &), bool headsAreRows = true) {
  Problem p;
  p.heads = 8, p.kvHeads = 2;
  p.queries = 4, p.keys = 100;
  p.headDim = p.headDimV = 64;
  change(p);
  Packing packed = packing(p, headsAreRows);
  EXPECT_EQ(bool(packed), packed.whyNot.empty());
  return packed.whyNot;
}

TEST(Packing, SaysWhyNot) {
  EXPECT_EQ(whyNot([](Problem &) {}), "");
  EXPECT_EQ(whyNot([](Problem &) {}, false),
            "no one stride leads through the rows of all heads of every array");
  EXPECT_EQ(whyNot([](Problem &p) { p.mask = {MaskKind::causal}; }),
            "the mask causal moves with each of 4 queries");
  EXPECT_EQ(whyNot([](Problem &p) { p.keepsWeights = true; }),
            "what is kept of the weights has its rows in another order");
  EXPECT_EQ(whyNot([](Problem &p) { p.queries = kMaxRows / 4 + 1; }),
            "4 x 268435456 rows are more than 1073741823");
}

/// Keys that no query sees have gradients too, 0, which are written.
TEST(Packing, GradientsNeedAllKeys) {
  auto one = [](Problem &p) {
    p.direction = Direction::backward;
    p.queries = 1;
  };
  EXPECT_EQ(whyNot(one), "");
  static Mask mask;
  auto masked = [](Problem &p) {
    p.direction = Direction::backward;
    p.queries = 1;
    p.mask = mask;
  };
  mask = {MaskKind::causalBottomRight};
  EXPECT_EQ(whyNot(masked), "");
  mask = {MaskKind::window, kUnbounded, 0};
  EXPECT_EQ(whyNot(masked), "");
  mask = {MaskKind::causal};
  EXPECT_EQ(whyNot(masked), "the mask causal hides keys, whose gradients are "
                            "written too");
  // It sees all of 100 keys, but the same code serves 1000.
  mask = {MaskKind::window, 200, 0};
  EXPECT_EQ(whyNot(masked), "the mask window<200, 0> hides keys, whose "
                            "gradients are written too");
}

TEST(Packing, SpeaksOfHeadsThatShareKeys) {
  Problem p;
  p.heads = p.kvHeads = 8;
  p.queries = 1, p.keys = 4096;
  p.headDim = p.headDimV = 64;
  p.mask = {MaskKind::causal};
  EXPECT_FALSE(packing(p));
  EXPECT_EQ(packing(p).str(), "");
  EXPECT_EQ(packing(p).problem.mask.kind, MaskKind::causal);
  p.heads = 32;
  EXPECT_EQ(packing(p).str(), "4 query heads of a key head are rows of one: 8 "
                              "heads x 4 rows, which see 1 of 4096 keys");
  p.mask = {};
  EXPECT_EQ(packing(p).str(),
            "4 query heads of a key head are rows of one: 8 heads x 4 rows");
  p.queries = 2;
  p.mask = {MaskKind::causal};
  EXPECT_EQ(packing(p).str(),
            "the 4 query heads of a key head are not rows of one: the mask "
            "causal moves with each of 2 queries");
}

} // namespace
