//===- RaggedTest.cpp - Words, slots and plans of ragged sequences --------===//

#include "RandomProblem.h"

#include "attn/Schedule/Decision.h"
#include "attn/Schedule/Launches.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/RaggedQueries.h"
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

/// Queries of so many sequences on a cache in pages.
static Problem onCache(int64_t sequences, int64_t tokens, int64_t longest,
                       int64_t keys) {
  Problem problem = oneHead(128, {MaskKind::causalBottomRight});
  problem.batch = sequences;
  problem.heads = 32;
  problem.kvHeads = 8;
  problem.queries = tokens;
  problem.keys = keys;
  problem.place = {/*usedKeysBits=*/32, /*pageRows=*/16};
  problem.ragged = Ragged{{longest, keys}};
  return problem;
}

// 8 prefills of 512 and 120 decoding steps, of which the host knows tokens,
// sequences and the longest.
TEST(Ragged, OnACacheMostHaveOneQuery) {
  Problem problem = onCache(128, 8 * 512 + 120, 512, 32768);
  EXPECT_FALSE(check(problem));
  std::vector<Sequences> all = sequencesOf(problem);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].count, 8);
  EXPECT_EQ(all[0].lengths, (Lengths{512, 32768}));
  EXPECT_EQ(all[1].count, 120);
  EXPECT_EQ(all[1].lengths, (Lengths{1, 32768}));
  EXPECT_EQ(offsetsOf(problem), 129);
  EXPECT_EQ(sizesOf(Role::k, problem), (std::vector<int64_t>{-1, 8, 16, 128}));
  EXPECT_EQ(sizesOf(Role::q, problem), (std::vector<int64_t>{4216, 32, 128}));
  Problem planned = standIn(problem);
  EXPECT_EQ(planned.batch, 8);
  ASSERT_TRUE(ofOneQuery(planned));
  EXPECT_EQ(ofOneQuery(planned)->batch, 120);
  EXPECT_EQ(ofOneQuery(planned)->queries, 1);
  EXPECT_EQ(offsetsOf(planned), 129);
  EXPECT_DOUBLE_EQ(allVisiblePairs(planned), allVisiblePairs(problem));
  // The same if all lengths are known.
  std::vector<Lengths> lengths(8, {512, 32768});
  lengths.resize(128, {1, 32768});
  Problem known = raggedProblem(problem, lengths);
  EXPECT_EQ(standIn(known).batch, 8);
  EXPECT_EQ(ofOneQuery(standIn(known))->batch, 120);
  // All may have one.
  EXPECT_EQ(sequencesOf(onCache(7, 7, 512, 64)).size(), 1U);
  EXPECT_EQ(standIn(onCache(7, 7, 1, 64)).batch, 7);
  EXPECT_FALSE(ofOneQuery(standIn(onCache(7, 7, 1, 64))));
  EXPECT_FALSE(ofOneQuery(standIn(onCache(1, 1, 512, 64))));
  problem.mask = {MaskKind::causal};
  EXPECT_NE(check(problem).value_or("").find("causal_bottom_right"),
            std::string::npos);
}

// Tiles with rows of several heads cost prefills nothing, and read keys of
// decoding steps once for all.
TEST(Ragged, AMixtureSharesTiles) {
  const Machine &machine = *findMachine("h100_sxm");
  Problem problem = onCache(128, 8 * 512 + 120, 512, 32768);
  PlanReport report = plans(problem, machine);
  ASSERT_TRUE(report.best());
  EXPECT_EQ(report.best()->schedule, "flash");
  EXPECT_EQ(report.best()->kernel, "flash_wgmma");
  EXPECT_EQ(report.best()->tiles.get("packed", 1), 4);
  // K and V of decoding steps once, and of prefills 16 times, as tiles of 128
  // rows of one head do.
  std::string error;
  Tiles tiles = report.best()->tiles;
  Tiles own = {{"query", 128},      {"key", 128},     {"stages", 2},
               {"query_stages", 1}, {"staging", 64},  {"ping_pong", 0},
               {"overlap", 1},      {"persistent", 1}};
  std::optional<Plan> alone = planFor(problem, machine, "flash", own, error);
  ASSERT_TRUE(alone) << error;
  EXPECT_GT(alone->bytes.l2, report.best()->bytes.l2);
  EXPECT_GT(alone->seconds, report.best()->seconds);
}

// Two long walks are dealt out to many blocks.
TEST(Ragged, FewWalksOnACacheAreDealtOut) {
  PlanReport report = plans(onCache(2, 2, 1, 32768), *findMachine("h100_sxm"));
  ASSERT_TRUE(report.best());
  EXPECT_GT(report.best()->tiles.get("parts", 1), 3);
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
