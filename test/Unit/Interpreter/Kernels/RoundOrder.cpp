//===- RoundOrder.cpp - In which order do launches go in rounds? ----------===//

#include "attn/Kernels/Kernels.h"
#include "attn/Schedule/Registry.h"

#include "gtest/gtest.h"

using namespace attn;

namespace {

const Tiles kTiles = {{"query", 128},  {"key_block", 256},  {"key", 128},
                      {"column", 256}, {"query_block", 64}, {"strip", 4096},
                      {"heads", 4},    {"stages", 3},       {"persistent", 1}};

/// 2 x 3 key heads, each of 2 query heads.
Problem problem(int64_t queries, int64_t keys) {
  Problem p;
  p.direction = Direction::backward;
  p.batch = 2, p.heads = 6, p.kvHeads = 3;
  p.queries = queries, p.keys = keys;
  p.headDim = 512, p.headDimV = 320;
  return p;
}

const Launches kLaunches = launchesOf("spill_backward", kTiles);

Launches with(Tiles tiles, std::string_view name, int64_t value) {
  tiles.set(name, value);
  return launchesOf("spill_backward", tiles);
}

} // namespace

TEST(RoundOrder, KeyHeadsAndStripsOfTheirKeys) {
  Problem p = problem(1000, 5000);
  RoundOrder rounds(kLaunches, p);
  ASSERT_EQ(rounds.count(), 4);
  const int64_t want[4][3] = {{0, 4, 0}, {0, 4, 4096}, {4, 2, 0}, {4, 2, 4096}};
  for (int64_t n = 0; n < 4; ++n) {
    Round round = rounds.at(n);
    EXPECT_EQ(round.firstHead, want[n][0]);
    EXPECT_EQ(round.heads, want[n][1]);
    EXPECT_EQ(round.firstKey, want[n][2]);
    EXPECT_EQ(roleValue(Role::firstHead, p, round), want[n][0]);
    EXPECT_EQ(roleValue(Role::roundHeads, p, round), want[n][1]);
    EXPECT_EQ(roleValue(Role::firstKey, p, round), want[n][2]);
    EXPECT_EQ(roleValue({Role::scratchP, Facet::map}, p, round), 1024);
    EXPECT_EQ(roleValue({Role::q, Facet::map}, p, round), 1000);
  }
  EXPECT_EQ(rounds.columns, 4096);
}

TEST(RoundOrder, ArraysAreNoLargerThanTheProblem) {
  RoundOrder rounds(kLaunches, problem(1100, 300));
  EXPECT_EQ(rounds.count(), 2);
  EXPECT_EQ(rounds.rows, 1152);
  EXPECT_EQ(rounds.columns, 512);
  RoundOrder all(with(kTiles, "heads", 64), problem(1, 4096));
  EXPECT_EQ(all.count(), 1);
  EXPECT_EQ(all.heads, 6);
}

TEST(RoundOrder, OfEmptyProblems) {
  EXPECT_EQ(RoundOrder(kLaunches, problem(10, 0)).count(), 2) << "dQ is 0";
  EXPECT_EQ(RoundOrder(kLaunches, problem(0, 10)).count(), 2)
      << "dK and dV are 0";
  Problem none = problem(10, 10);
  none.batch = 0;
  EXPECT_EQ(RoundOrder(kLaunches, none).count(), 0);
}

/// Of four key heads and eight query heads: tiles of rows, and of two times
/// columns of dQ or of two of dK and of dV.
TEST(RoundOrder, GridsAreThoseOfAFullRound) {
  Problem p = problem(1000, 5000);
  using Grid = std::array<int64_t, 3>;
  constexpr int64_t many = 10000;
  EXPECT_EQ(gridOf(kLaunches, p, {many}, 0), (Grid{16 * 6 * 2, 1, 1}));
  EXPECT_EQ(gridOf(kLaunches, p, {many}, 1), (Grid{8 * 8 * 16, 1, 1}));
  EXPECT_EQ(gridOf(kLaunches, p, {many}, 2), (Grid{32 * 4 * 4, 1, 1}));
  EXPECT_EQ(gridOf(kLaunches, p, {many}, 3), (Grid{8 * 8 * 2, 1, 1}));
  EXPECT_EQ(gridOf(kLaunches, p, {132}, 2), (Grid{132, 1, 1}));
  Launches alone = with(kTiles, "persistent", 0);
  EXPECT_EQ(gridOf(alone, problem(1100, 300), {132}, 1),
            (Grid{9 * 8 * 16, 1, 1}));
  EXPECT_EQ(gridOf(alone, problem(1100, 300), {132}, 2),
            (Grid{3 * 4 * 4, 1, 1}));
}

/// Forward: all keys, in blocks, of a strip of queries.
TEST(RoundOrder, KeyHeadsAndStripsOfQueries) {
  const Tiles tiles = {{"query", 128},   {"key_block", 256}, {"column", 256},
                       {"strip", 512},   {"heads", 3},       {"stages", 3},
                       {"persistent", 1}};
  const Launches launches = launchesOf("score_spill", tiles);
  Problem p;
  p.batch = 2, p.heads = 8, p.kvHeads = 2;
  p.queries = 1000, p.keys = 3000;
  p.headDim = 512, p.headDimV = 320;
  RoundOrder rounds(launches, p);
  ASSERT_EQ(rounds.count(), 4);
  const int64_t want[][3] = {{0, 3, 0}, {0, 3, 512}, {3, 1, 0}, {3, 1, 512}};
  for (int64_t n = 0; n < 4; ++n) {
    Round round = rounds.at(n);
    EXPECT_EQ(round.firstHead, want[n][0]);
    EXPECT_EQ(round.heads, want[n][1]);
    EXPECT_EQ(round.firstKey, 0);
    EXPECT_EQ(round.firstQuery, want[n][2]);
    EXPECT_EQ(roleValue(Role::firstQuery, p, round), want[n][2]);
    EXPECT_EQ(roleValue({Role::scratchP, Facet::map}, p, round), 512);
  }
  EXPECT_EQ(rounds.blocks, 12);
  EXPECT_EQ(rounds.rows, 512);
  EXPECT_EQ(rounds.columns, 256);
  // Four tiles of rows of 12 heads: 12 blocks, and 2 runs of columns.
  using Grid = std::array<int64_t, 3>;
  EXPECT_EQ(gridOf(launches, p, {132}, 0), (Grid{132, 1, 1}));
  EXPECT_EQ(gridOf(launches, p, {1000}, 0), (Grid{576, 1, 1}));
  EXPECT_EQ(gridOf(launches, p, {132}, 1), (Grid{96, 1, 1}));
  // A round without keys: the output is 0 then.
  p.keys = 0;
  EXPECT_EQ(RoundOrder(launches, p).count(), 4);
  EXPECT_EQ(RoundOrder(launches, p).blocks, 1);
}

TEST(RoundOrder, NothingElseGoesInRounds) {
  Problem p = problem(1000, 5000);
  Tiles flash = {{"key", 128}, {"query_block", 64}, {"persistent", 1}};
  RoundOrder one(launchesOf("flash_backward", flash), p);
  EXPECT_EQ(one.count(), 1);
  EXPECT_EQ(one.at(0).heads, 6);
  Tiles strips = {{"query", 64}, {"key", 64}, {"strip", 512}};
  Launches ofStrips = launchesOf("score_spill", strips);
  EXPECT_EQ(RoundOrder(ofStrips, p).count(), 1);
  EXPECT_EQ(ofStrips.shapes[0].form, GridForm::resident);
}
