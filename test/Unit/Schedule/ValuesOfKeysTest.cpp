//===- ValuesOfKeysTest.cpp - Keys that are values, within a block --------===//

#include "attn/Schedule/Plan.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

/// One query of 128 heads on one latent vector for each key.
Problem latent(int64_t keys = 8192) {
  Problem p;
  p.dtype = DataType::bf16;
  p.batch = 3;
  p.heads = p.kvHeads = 1;
  p.queries = 128;
  p.keys = keys;
  p.headDim = 576;
  p.headDimV = 512;
  p.lse = false;
  p.valuesOfKeys = true;
  return p;
}

/// All tiles, so that no other form has them.
Tiles within(int64_t stages = 1) {
  return {{"query", 64},      {"key", 128}, {"warpgroups", 2},
          {"stages", stages}, {"late", 1},  {"prefetch", 1}};
}

std::optional<Plan> planOf(const Problem &p, std::string &error,
                           const Tiles &tiles = within()) {
  return planFor(p, h100(), "column_split", tiles, error);
}

std::string refusal(const Problem &p, const Tiles &tiles = within()) {
  std::string error;
  EXPECT_FALSE(planOf(p, error, tiles));
  return error;
}

} // namespace

/// By hand: two tiles of 64 rows, of 64 strips of 128 keys, of which the last
/// has 57.
TEST(ValuesOfKeys, BytesByHand) {
  std::string error;
  Problem p = latent(63 * 128 + 57);
  std::optional<Plan> plan = planOf(p, error);
  ASSERT_TRUE(plan) << error;
  int64_t tiles = 2, strips = 64, rowK = 576 * 2, rowV = 512 * 2;
  EXPECT_EQ(plan->bytes.l2,
            3 * (tiles * p.keys * rowK + 128 * rowK + 128 * rowV));
  EXPECT_EQ(plan->bytes.hbm, 3 * (p.keys * rowK + 128 * rowK + 128 * rowV));
  int64_t keys = 128 * rowK;             // come once
  int64_t scores = 2 * 64 * rowK + keys; // Q twice, each half of the keys
  int64_t weights = 2 * 64 * 128 * 2;    // written once, read by the other
  int64_t rows = 2 * 2 * 64 * 4 * 2 * 4; // two numbers in four lanes
  int64_t output = 128 * rowV;           // half of the columns each
  EXPECT_EQ(
      plan->bytes.smem,
      3 * tiles *
          (strips * (keys + scores + weights + rows + output) + 64 * rowK));
}

/// Q, a strip of keys and what is handed over; two rings of two tiles in halves
/// and one of two, Q's barriers, two that tell, and the queue.
TEST(ValuesOfKeys, RoomByHand) {
  std::string error;
  std::optional<Plan> plan = planOf(latent(), error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->footprint.smemBytes,
            64 * 1152 + 128 * 1152 + (64 * 64 * 2 + 64 * 32) + 2 * 2 * 32 +
                2 * 16 + 2 * 16 + 16 + 64);
  EXPECT_EQ(plan->footprint.scratchBytes, 0);
  EXPECT_EQ(refusal(latent(), within(/*stages=*/2)),
            "needs 379312 bytes of shared memory, but a block on h100_sxm has "
            "232448");
}

/// Keys come once for both products, and no block waits for others: it is what
/// many caches of latent vectors are given.
TEST(ValuesOfKeys, IsChosenForLatentVectors) {
  for (int64_t batch : {64, 128}) {
    Problem p = latent();
    p.batch = batch;
    const PlanReport report = plans(p, h100());
    ASSERT_TRUE(report.best());
    EXPECT_TRUE(report.best()->tiles.has("warpgroups"))
        << batch << ": " << report.best()->tiles.str();
  }
}

TEST(ValuesOfKeys, RefusalsNameNumberAndLimit) {
  // Of other problems the form is none.
  Problem own = latent();
  own.valuesOfKeys = false;
  EXPECT_NE(refusal(own), "");
  Problem narrow = latent();
  narrow.headDimV = 448;
  EXPECT_EQ(refusal(narrow),
            "expects a head dim of v in multiples of 128, whole panels for "
            "each of two warpgroups, up to 512, but got 448");
  Tiles three = within(), high = within();
  three.set("warpgroups", 3);
  high.set("query", 128);
  EXPECT_EQ(refusal(latent(), three),
            "expects 2 warpgroups on the same rows, but got 3");
  EXPECT_EQ(refusal(latent(), high),
            "expects query to be 64 and key to be 128, but got 128 and 128");
  Problem listed = latent();
  listed.pattern = Pattern({64, 128}, /*density=*/0.5);
  EXPECT_EQ(refusal(listed),
            "expects no listed blocks where warpgroups of a block share the "
            "rows, but got some");
}
