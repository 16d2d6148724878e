//===- RaggedTest.cpp - Words, slots and plans of ragged sequences --------===//

#include "RandomProblem.h"

#include "attn/Schedule/Decision.h"
#include "attn/Schedule/Launches.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"

#include <gtest/gtest.h>

#include <random>

using namespace attn;

static Problem oneHead(int64_t d, Mask mask = {}) {
  Problem problem;
  problem.headDim = problem.headDimV = d;
  problem.mask = mask;
  return problem;
}

static Problem self(const Problem &like, const std::vector<int64_t> &rows) {
  std::vector<Lengths> lengths;
  for (int64_t count : rows)
    lengths.push_back({count, count});
  return raggedProblem(like, lengths);
}

// 1497 words in 40 pairs of tiles, and an offset of either side for every
// sequence and where the last one ends.
TEST(Ragged, WordsAreThoseOfEachSequence) {
  Problem problem = self(oneHead(4), {3, 17, 8, 1, 12});
  const ScheduleKind *kind = findScheduleKind("flash");
  Tiles tiles = {{"query", 4}, {"key", 4}, {"stages", 1}, {"warps", 1}};
  Schedule schedule = kind->formOf(tiles).build(tiles);
  EXPECT_EQ(trafficWords(schedule, problem), 1497 + 2 * 6);
  int64_t pairs = 0;
  for (const Sequences &each : sequencesOf(problem)) {
    Visits seen = visits(denseOf(problem, each.lengths), Axis::Query, 4, 4);
    pairs += each.count * (seen.wholePairs + seen.raggedPairs);
  }
  EXPECT_EQ(pairs, 40);
}

// As a kernel finds them: whose slot it is by offsets, and which tile of its.
TEST(Ragged, EveryTileHasOneSlot) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    int64_t rows = 1 + int64_t(random() % 70);
    std::vector<int64_t> lengths(random() % 9);
    for (int64_t &length : lengths)
      length = random() % 3 ? int64_t(random() % 200) : 0;
    Problem problem = self(oneHead(64), lengths);
    int64_t slot = 0, first = 0;
    for (size_t n = 0; n < lengths.size(); ++n) {
      int64_t begin = first / rows + int64_t(n);
      first += lengths[n];
      int64_t end = first / rows + int64_t(n) + 1;
      EXPECT_EQ(begin, slot) << "slots leave no gap";
      int64_t tiles = (lengths[n] + rows - 1) / rows;
      EXPECT_GE(end - begin, tiles);
      EXPECT_LE(end - begin, tiles + 1);
      slot = end;
    }
    EXPECT_EQ(slot, slotsOf(problem, rows));
    Launches launches = oneLaunch(GridForm::tiles, rows);
    problem.heads = 3;
    EXPECT_EQ(gridOf(launches, problem, {132})[0], 3 * slot);
    // Of keys likewise, for the heads that have them.
    launches.shapes.front().ownsKeys = true;
    problem.heads = 6;
    problem.kvHeads = 2;
    problem.keys += 2 * rows; // behind the last sequence
    EXPECT_EQ(gridOf(launches, problem, {132})[0],
              lengths.empty() ? 0 : 2 * (slot + 2));
  }
}

// A launch that owns queries has nothing of a sequence without any, nor one
// that owns keys of a sequence without those.
TEST(Ragged, GradientsOfAnEmptySideAreTheOtherOnes) {
  Problem like = oneHead(64);
  like.direction = Direction::backward;
  like.batch = 1;
  Machine machine = *findMachine("a100_80g");
  Tiles tiles = {{"query", 64}, {"key_block", 32},   {"query_warps", 4},
                 {"key", 64},   {"query_block", 32}, {"key_warps", 4},
                 {"stages", 2}, {"separate", 0}};
  auto promised = [&](std::vector<Lengths> lengths) {
    std::string error;
    Problem problem = raggedProblem(like, std::move(lengths));
    std::optional<Decision> decided =
        decide(problem, machine, "split_backward", tiles, error);
    EXPECT_TRUE(decided) << error;
    std::vector<int64_t> bytes;
    for (const Bytes &launch : promisedBytes(*decided, problem, machine))
      bytes.push_back(launch.l2);
    return bytes;
  };
  std::vector<int64_t> both = promised({{100, 90}}),
                       noKeys = promised({{100, 0}}),
                       noQueries = promised({{0, 90}});
  ASSERT_EQ(both.size(), 2U);
  // O and dO give D and leave with it and LSE, and dQ is 0.
  EXPECT_EQ(noKeys, (std::vector<int64_t>{100 * (3 * 64 * 2 + 2 * 4), 0}));
  EXPECT_EQ(noQueries, (std::vector<int64_t>{0, 90 * 2 * 64 * 2}));
  std::vector<int64_t> all = promised({{100, 0}, {0, 90}, {100, 90}, {0, 0}});
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i], both[i] + noKeys[i] + noQueries[i]);
}

TEST(Ragged, SequencesOfOneLengthAreABatch) {
  Problem dense = oneHead(128, {MaskKind::causalBottomRight});
  dense.heads = 8;
  dense.kvHeads = 2;
  dense.batch = 6;
  dense.queries = 700;
  dense.keys = 900;
  Problem ragged = raggedProblem(dense, std::vector<Lengths>(6, {700, 900}));
  EXPECT_EQ(ragged.batch, 6);
  EXPECT_EQ(ragged.queries, 6 * 700);
  EXPECT_FALSE(check(ragged));
  EXPECT_EQ(allVisiblePairs(ragged), allVisiblePairs(dense));
  const Machine *machine = findMachine("h100_sxm");
  Problem planned = standIn(ragged);
  EXPECT_EQ(planned.batch, dense.batch);
  EXPECT_EQ(planned.keys, dense.keys);
  PlanReport ofRagged = plans(ragged, *machine),
             ofDense = plans(dense, *machine);
  ASSERT_TRUE(ofRagged.best() && ofDense.best());
  const Plan &one = *ofRagged.best();
  EXPECT_EQ(one.schedule, "flash");
  std::string error;
  std::optional<Plan> same =
      planFor(dense, *machine, "flash", one.tiles, error);
  ASSERT_TRUE(same) << error;
  EXPECT_EQ(one.bytes.l2, same->bytes.l2);
  EXPECT_EQ(one.bytes.smem, same->bytes.smem);
  EXPECT_DOUBLE_EQ(one.flops, same->flops);
  EXPECT_DOUBLE_EQ(one.seconds, same->seconds);
}

TEST(Ragged, NothingElseTakesThem) {
  Problem problem = self(oneHead(512), {100, 3000});
  for (Direction direction : {Direction::forward, Direction::backward}) {
    problem.direction = direction;
    PlanReport report = plans(problem, *findMachine("h100_sxm"));
    for (const Plan &plan : report.plans)
      EXPECT_TRUE(plan.kernel.empty() || takesRagged(plan.kernel))
          << plan.kernel;
    bool isTold = std::any_of(
        report.refused.begin(), report.refused.end(), [](const Refused &one) {
          return one.reason.find("does not take ragged sequences") !=
                 std::string::npos;
        });
    EXPECT_TRUE(isTold);
  }
}

TEST(Ragged, ManySequencesAreWithinLimits) {
  Problem problem =
      raggedProblem(oneHead(128), std::vector<Lengths>(70000, {3, 5}));
  problem.heads = 32;
  EXPECT_FALSE(check(problem));
  problem.ragged->longest.keys = -1;
  EXPECT_EQ(check(problem).value_or(""),
            "expects the longest keys between 0 and 1073741823, but got -1");
}
