//===- PlacementTest.cpp - Keys that lie where the device says ------------===//
//
// What goes together with lengths and pages, how heads are packed beside them,
// and which kernels there are.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Packing.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Roles.h"

#include <gtest/gtest.h>

using namespace attn;

static Problem decoding(Mask mask = {}, int64_t queries = 1) {
  Problem p;
  p.batch = 4;
  p.heads = 8;
  p.kvHeads = 2;
  p.queries = queries;
  p.keys = 4096;
  p.headDim = p.headDimV = 128;
  p.mask = mask;
  p.place.usedKeysBits = 32;
  return p;
}

static std::string wrong(const Problem &problem) {
  return check(problem).value_or("");
}

TEST(Placement, GoesWithFewOtherThings) {
  EXPECT_EQ(wrong(decoding()), "");
  Problem p = decoding({MaskKind::causal}, 7);
  EXPECT_EQ(wrong(p),
            "expects the mask causal_bottom_right beside lengths(k), since "
            "causal counts from the first key, but got causal for 7 queries "
            "and 4096 keys");
  p.queries = p.keys;
  EXPECT_EQ(wrong(p), "");
  p = decoding();
  p.direction = Direction::backward;
  EXPECT_EQ(wrong(p), "expects no lengths(k) for gradients, but got some");
  p = decoding();
  p.pattern.emplace(BlockSize{128, 128}, 0.5);
  EXPECT_EQ(wrong(p),
            "expects no lists of blocks beside lengths(k), but got some");
  p = decoding();
  p.place.usedKeysBits = 16;
  EXPECT_EQ(wrong(p),
            "expects numbers of used keys of 32 or 64 bits, but got 16");
}

TEST(Placement, PagesAreOfEightKeys) {
  Problem p = decoding();
  for (int64_t rows : {8, 16, 24, 256}) {
    p.place.pageRows = rows;
    EXPECT_EQ(wrong(p), "");
  }
  p.place.pageRows = 20;
  EXPECT_EQ(wrong(p), "expects pages of a multiple of 8 keys, but got 20");
  p.place = {/*usedKeysBits=*/0, /*pageRows=*/16};
  EXPECT_EQ(wrong(p), "expects lengths(k) beside pages, but got none");
}

/// K and V are pools, of which a problem has no number of pages.
TEST(Placement, ShapesOfPages) {
  Problem p = decoding();
  p.place.pageRows = 16;
  EXPECT_EQ(sizesOf(Role::k, p), (std::vector<int64_t>{-1, 2, 16, 128}));
  EXPECT_EQ(sizesOf(Role::q, p), (std::vector<int64_t>{4, 8, 1, 128}));
  EXPECT_EQ(sizesOf(Role::usedKeys, p), (std::vector<int64_t>{4}));
  EXPECT_EQ(sizesOf(Role::pageTable, p), (std::vector<int64_t>{4, 256}));
}

/// A single query sees the used keys, as many as there are, but under a window,
/// which begins where they end.
TEST(Placement, HeadsArePacked) {
  for (const Mask &mask : {Mask{}, Mask{MaskKind::causalBottomRight},
                           Mask{MaskKind::prefix, 0, 0, 40}}) {
    Packing packed = packing(decoding(mask));
    EXPECT_EQ(packed.heads, 4) << str(mask);
    EXPECT_FALSE(packed.cutsKeys);
    EXPECT_TRUE(packed.problem.mask.isOpen());
    EXPECT_EQ(packed.problem.keys, 4096);
    EXPECT_TRUE(packed.problem.place.usesSome());
  }
  EXPECT_EQ(packing(decoding({MaskKind::window, 99, 0})).whyNot,
            "the mask window<99, 0> begins where the keys of each batch entry "
            "end");
}

TEST(Placement, KernelsThatThereAre) {
  Problem p = packing(decoding()).problem;
  for (const char *machine : {"h100_sxm", "a100_80g"})
    for (int64_t page : {0, 16, 64}) {
      p.place.pageRows = page;
      PlanReport report = plans(p, *findMachine(machine));
      const Plan *best = report.best();
      bool hasKernel = page == 0 || std::string(machine) == "h100_sxm";
      ASSERT_EQ(best != nullptr, hasKernel) << machine << " " << page;
      if (best)
        EXPECT_EQ(best->schedule, "flash");
    }
}

TEST(Placement, TilesOfPages) {
  Problem p = packing(decoding()).problem;
  p.place.pageRows = 64;
  std::string error;
  auto plan = [&](int64_t key) {
    return planFor(p, *findMachine("h100_sxm"), "flash",
                   {{"query", 64},
                    {"key", key},
                    {"stages", 2},
                    {"parts", 4},
                    {"overlap", 1},
                    {"persistent", 0}},
                   error);
  };
  EXPECT_TRUE(plan(128)) << error;
  EXPECT_FALSE(plan(96));
  EXPECT_EQ(error, "expects keys that divide pages of 64, or the reverse, but "
                   "got 96");
}

/// One part is the whole walk.
TEST(Placement, OnePart) {
  Problem p = packing(decoding()).problem;
  std::string error;
  std::optional<Plan> plan =
      planFor(p, *findMachine("h100_sxm"), "flash", {{"parts", 1}}, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_FALSE(plan->tiles.has("parts"));
  plan = planFor(p, *findMachine("h100_sxm"), "flash", {{"parts", 7}}, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->tiles.get("parts"), 7);
}
