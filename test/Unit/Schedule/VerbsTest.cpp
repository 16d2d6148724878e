//===- VerbsTest.cpp - The worked table, fields of verbs, fused grids -----===//

#include "attn/Schedule/Calibration.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

/// The schedule at the head of Schedule.h.
Schedule flashOfTheHeader() {
  return {
      "flash",
      {grid(
          Axis::Query, 128, 8,
          {hold(Tensor::O), hold(Tensor::Stats), load(Tensor::Q, Level::Smem),
           loop(Axis::Key, 64, 1,
                {stream(Tensor::K, Level::Smem), stream(Tensor::V, Level::Smem),
                 hold(Tensor::S), multiply(Tensor::S, Tensor::Q, Tensor::K),
                 softmax(Tensor::S), rescale(Tensor::O),
                 multiply(Tensor::O, Tensor::P, Tensor::V)}),
           store(Tensor::O), store(Tensor::Lse)})}};
}

Problem problemOfTheHeader() {
  Problem problem;
  problem.queries = problem.keys = 4096;
  problem.headDim = problem.headDimV = 128;
  problem.lse = true;
  return problem;
}

TEST(Verbs, TheTableOfTheHeader) {
  Schedule flash = flashOfTheHeader();
  Problem problem = problemOfTheHeader();
  Census counted = census(flash, problem);
  constexpr int64_t kibi = 1024, mebi = 1024 * kibi;
  struct Row {
    Tensor tensor;
    int64_t times, bytes;
  };
  const Row table[] = {
      {Tensor::O, 32, 0},           {Tensor::Stats, 32, 0},
      {Tensor::Q, 32, mebi},        {Tensor::K, 2048, 32 * mebi},
      {Tensor::V, 2048, 32 * mebi}, {Tensor::S, 2048, 0},
      {Tensor::S, 2048, 0},         {Tensor::S, 2048, 0},
      {Tensor::O, 2048, 0},         {Tensor::O, 2048, 0},
      {Tensor::O, 32, mebi},        {Tensor::Lse, 32, 16 * kibi}};
  ASSERT_EQ(counted.uses.size(), std::size(table));
  int64_t all = 0;
  for (size_t i = 0; i < std::size(table); ++i) {
    const Use &use = counted.uses[i];
    EXPECT_EQ(tensorOf(*use.node), table[i].tensor) << i;
    EXPECT_EQ(use.count, table[i].times) << i;
    if (table[i].bytes > 0) {
      EXPECT_EQ(use.moved * bytesMoved(*use.node, problem), table[i].bytes)
          << i;
    }
    all += table[i].bytes;
  }
  const Machine &machine = *findMachine("a100_80g");
  EXPECT_EQ(traffic(flash, problem, machine).l2, all);
  Footprint space = footprint(flash, problem, machine);
  EXPECT_EQ(space.smemBytes, 36 * kibi + 18 * kibi + 18 * kibi);
  EXPECT_EQ(space.registersPerThread,
            kBaseRegisters + kColumnsInFlight / 4 + 64 + 4 + 32 + 16);
}

TEST(Verbs, HaveTheirOwnFields) {
  Node spilled = between(inTilesOf(64, spill(Tensor::GradQ)));
  ASSERT_NE(spilled.as<verb::Spill>(), nullptr);
  EXPECT_EQ(spilled.as<verb::Load>(), nullptr);
  EXPECT_TRUE(isBetween(spilled));
  EXPECT_FALSE(isAlways(spilled));
  EXPECT_EQ(scratchOf(spilled).wholeRows, 64);
  EXPECT_EQ(scratchOf(multiply(Tensor::S, Tensor::Q, Tensor::K)).wholeRows, 0);
  // Columns that are dealt out: of what is held, and of what is spilled.
  EXPECT_EQ(columnGroupsOf(byColumns(2, hold(Tensor::GradQ))), 2);
  EXPECT_EQ(columnGroupsOf(byColumns(2, spill(Tensor::GradQ))), 2);
  EXPECT_EQ(columnGroupsOf(hold(Tensor::GradQ)), 0);
  // Of 100 columns those behind 64, and of those eight.
  EXPECT_EQ(columnsOf(stream(Tensor::K, Level::Smem)).of(100), 100);
  EXPECT_EQ(columnsOf(columnsOf(stream(Tensor::K, Level::Smem), 64, 0)).of(100),
            36);
  EXPECT_EQ(columnsOf(columnsOf(load(Tensor::K, Level::Smem), 64, 8)).of(100),
            8);
  EXPECT_EQ(columnsOf(columnsOf(hold(Tensor::P), 64, 8)).of(32), 0);
  EXPECT_TRUE(bodyOf(spilled).empty());
  EXPECT_EQ(bodyOf(loop(Axis::Key, 64, 1, {spilled})).size(), 1u);
}

TEST(Verbs, MatchFindsTheVerbOfACase) {
  auto wordFor = [](const Node &node) {
    return node.match(
        [](const verb::Loop &loop) { return loop.seeks ? "seek" : "loop"; },
        [](verb::OneOf<verb::Load, verb::Stream, verb::Absorb>) {
          return "read";
        },
        [](const auto &) { return "other"; });
  };
  EXPECT_STREQ(wordFor(seek(Axis::Key, 64, 1, {})), "seek");
  EXPECT_STREQ(wordFor(loop(Axis::Key, 64, 1, {})), "loop");
  EXPECT_STREQ(wordFor(store(Tensor::O)), "other");
}

// Folds number the grids of all launches in order, those before and beside the
// main one with it.
TEST(Launches, NumberFusedGridsInOrder) {
  auto one = [](int64_t step) {
    return grid(Axis::Query, step, 4, {store(Tensor::O)});
  };
  Schedule schedule = {
      "fused", {one(16), Schedule::Launch({one(32)}, one(64), {one(128)})}};
  std::vector<int64_t> steps;
  for (const Grid *grid : schedule.grids())
    steps.push_back(grid->step);
  EXPECT_EQ(steps, (std::vector<int64_t>{16, 32, 64, 128}));

  Census counted = census(schedule, problemOfTheHeader());
  ASSERT_EQ(counted.grids.size(), 4u);
  EXPECT_TRUE(counted.grids[1].isBefore);
  EXPECT_TRUE(counted.grids[3].isBeside);
  for (size_t grid : {0u, 1u, 3u}) {
    EXPECT_FALSE(counted.hasBefore(grid)) << grid;
    EXPECT_FALSE(counted.hasBeside(grid)) << grid;
  }
  EXPECT_TRUE(counted.hasBefore(2));
  EXPECT_TRUE(counted.hasBeside(2));
}

} // namespace
