//===- DecisionTest.cpp - Does a decision mean what its plan promised? ----===//

#include "../Seed.h"
#include "RandomProblem.h"

#include "attn/Schedule/Decision.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Plan.h"

#include "gtest/gtest.h"

using namespace attn;

static const Machine &h100() { return *findMachine("h100_sxm"); }

/// What is read from the text of a plan is what was planned.
TEST(Decision, IsThatOfItsPlan) {
  Seed seed;
  Random random{seed};
  for (int i = 0; i < 12; ++i) {
    Problem problem = random.anyProblem();
    for (const Plan &plan : plans(problem, h100()).plans) {
      if (plan.kernel.empty())
        continue;
      std::ostringstream where;
      where << problem << ": " << decision(plan.schedule, plan.tiles);
      SCOPED_TRACE(where.str());
      std::string error;
      std::optional<Decision> decided =
          decide(problem, h100(), plan.schedule, plan.tiles, error);
      ASSERT_TRUE(decided) << error;
      EXPECT_EQ(decided->kernel, plan.kernel);
      EXPECT_EQ(decided->tiles.str(), plan.tiles.str());
      ASSERT_EQ(decided->launches.shapes.size(), plan.launches.size());
      ASSERT_EQ(decided->footprints.size(), plan.launches.size());
      std::vector<Bytes> bytes =
          promisedBytes(*decided, atLeastOne(problem), h100());
      for (size_t launch = 0; launch < plan.launches.size(); ++launch) {
        const LaunchPlan &planned = plan.launches[launch];
        EXPECT_EQ(bytes[launch].l2, planned.bytes.l2);
        EXPECT_EQ(bytes[launch].smem, planned.bytes.smem);
        EXPECT_EQ(decided->footprints[launch].smemBytes,
                  planned.footprint.smemBytes);
        EXPECT_EQ(decided->footprints[launch].blocksPerSm,
                  planned.footprint.blocksPerSm);
      }
    }
  }
}

/// Tiles left out are those of the best plan that agrees with the rest.
TEST(Decision, CompletesTiles) {
  Problem problem;
  problem.queries = problem.keys = 4096;
  problem.headDim = problem.headDimV = 128;
  std::string error;
  Tiles some = {{"query", 128}};
  std::optional<Plan> plan = planFor(problem, h100(), "flash", some, error);
  ASSERT_TRUE(plan) << error;
  std::optional<Decision> decided =
      decide(problem, h100(), "flash", some, error);
  ASSERT_TRUE(decided) << error;
  EXPECT_EQ(decided->tiles.str(), plan->tiles.str());
}

TEST(Decision, SaysWhyThereIsNone) {
  Problem problem;
  problem.queries = problem.keys = 4096;
  problem.headDim = problem.headDimV = 128;
  auto reason = [&](std::string_view schedule, const Tiles &tiles) {
    std::string error;
    EXPECT_FALSE(decide(problem, h100(), schedule, tiles, error));
    return error;
  };
  auto has = [](const std::string &text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(reason("flsh", {}), "expects a schedule out of"));
  EXPECT_TRUE(has(reason("split_backward", {}), "which is backward"));
  // Whole, and each for another reason.
  Tiles warps = {{"query", 64}, {"key", 64}, {"stages", 2}, {"warps", 3}};
  EXPECT_TRUE(has(reason("flash", warps), "warps"));
  Tiles large = {{"query", 256}, {"key", 128}, {"stages", 32}, {"warps", 8}};
  EXPECT_TRUE(has(reason("flash", large), "bytes of shared memory"));
}
