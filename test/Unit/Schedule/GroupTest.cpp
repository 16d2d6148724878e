//===- GroupTest.cpp - Groups of blocks against enumeration ---------------===//

#include "../Share.h"
#include "RandomProblem.h"
#include "TokenProblem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

/// What the blocks of a group do, one after the other, looking at every pair.
struct Group {
  const Problem &p;
  int64_t blocks, cluster, resident;
  int64_t list = 0; ///< of a pattern, whose heads these are
  int64_t l2 = 0, smem = 0;

  int64_t panels = ceilDiv(p.headDim, 64);
  int64_t columns = roundUp(ceilDiv(p.headDimV, blocks), 64);
  int64_t strip = 128 * blocks;

  /// A unit of the ring that a cluster loads together: bytes by L2 once, into
  /// the memory of every block.
  void unit(int64_t row, int64_t rows, int64_t mostRows, int64_t column,
            int64_t cols, int64_t mostCols, int64_t copies) {
    l2 += clipped(row, rows, mostRows) * clipped(column, cols, mostCols) * 2;
    smem += copies * rows * cols * 2;
  }

  /// P of a share (128 x 128) and, for 256 threads, two values of two rows.
  void exchange(int64_t copies) { l2 += copies * (128 * 128 * 2 + 256 * 16); }

  void run() {
    for (int64_t r0 = 0; r0 < p.queries; r0 += 128 * cluster) {
      for (int64_t rank = 0; rank < cluster; ++rank)
        for (int64_t i = 0; i < blocks * std::min(resident, panels); ++i)
          unit(r0 + 128 * rank, 128, p.queries, i / blocks * 64, 64, p.headDim,
               1);
      std::vector<std::vector<int64_t>> strips = stripsOf(r0);
      for (const std::vector<int64_t> &keys : strips)
        oneStrip(r0, keys);
      // Maxima of the others, ahead of all strips' products but the last's.
      l2 += (int64_t(strips.size()) - 1) * cluster * blocks * (blocks - 1) *
            256 * 16;
      l2 += clipped(r0, 128 * cluster, p.queries) *
            (p.headDimV * 2 + 4 * (p.lse + p.lseLow));
    }
  }

  bool seesAny(int64_t r0, int64_t k0, int64_t keys) const {
    int64_t head = p.pattern ? list * p.heads / p.pattern->lists() : 0;
    for (int64_t i = r0; i < std::min(r0 + 128 * cluster, p.queries); ++i)
      for (int64_t j = k0; j < std::min(k0 + keys, end()); ++j)
        if (isVisible(p, head, i, j))
          return true;
    return false;
  }

  /// Blocks that are listed have all their tiles, those behind the last key
  /// too.
  int64_t end() const {
    return p.pattern ? roundUp(p.keys, p.pattern->size().keys) : p.keys;
  }

  /// The first keys of all shares of the strips that a tile has, one at least.
  std::vector<std::vector<int64_t>> stripsOf(int64_t r0) const {
    std::vector<std::vector<int64_t>> strips;
    auto add = [&](int64_t k0) {
      strips.emplace_back();
      for (int64_t share = 0; share < blocks; ++share)
        strips.back().push_back(k0 + 128 * share);
    };
    int64_t step = p.pattern ? 128 : strip;
    for (int64_t k0 = 0; k0 < end(); k0 += step) {
      if (!seesAny(r0, k0, step))
        continue;
      if (!p.pattern)
        add(k0);
      else if (strips.empty() || int64_t(strips.back().size()) == blocks)
        strips.push_back({k0});
      else
        strips.back().push_back(k0);
    }
    if (strips.empty())
      add(p.pattern ? p.keys : 0);
    for (std::vector<int64_t> &keys : strips)
      keys.resize(size_t(blocks), p.keys);
    return strips;
  }

  void oneStrip(int64_t r0, const std::vector<int64_t> &keys) {
    for (int64_t share = 0; share < blocks; ++share) { // scores, by one block
      int64_t key = keys[size_t(share)];
      for (int64_t i = 0; i < panels; ++i) {
        unit(key, 128, p.keys, 64 * i, 64, p.headDim, cluster);
        for (int64_t rank = 0; i >= resident && rank < cluster; ++rank)
          unit(r0 + 128 * rank, 128, p.queries, 64 * i, 64, p.headDim, 1);
      }
      // Two warpgroups, panel by panel: 64 rows of Q, 128 of K.
      smem += cluster * 2 * (64 + 128) * 64 * panels * 2;
      exchange(cluster);
    }
    for (int64_t part = 0; part < blocks; ++part) // output, of every block
      for (int64_t share = 0; share < blocks; ++share) {
        if (share != part) // its own P it still has
          exchange(cluster);
        for (int64_t key = 0; key < 128; key += 32)
          unit(keys[size_t(share)] + key, 32, p.keys, columns * part, columns,
               p.headDimV, cluster);
        smem += cluster * 2 * 128 * columns * 2;
      }
  }
};

TEST(Group, ColumnSplitMovesWhatItsBlocksMove) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(1300);
    if (round >= 200) // lists, in common or for each head
      p.pattern = random.pattern(p, 400);
    p.headDim = 8 * random.number(1, 100);
    p.headDimV = 8 * random.number(9, 100);
    int64_t group = random.number(ceilDiv(p.headDimV, 256), 4);
    if ((group - 1) * roundUp(ceilDiv(p.headDimV, group), 64) >= p.headDimV)
      continue;
    group = std::max<int64_t>(group, 2);
    int64_t cluster = random.number(1, 2), resident = random.number(1, 8);
    Group blocks{p, group, cluster, resident};
    int64_t lists = p.pattern ? p.pattern->lists() : 1;
    for (blocks.list = 0; blocks.list < lists; ++blocks.list)
      blocks.run();
    Schedule schedule = findScheduleKind("column_split")
                            ->build({{"query", 128},
                                     {"key", 128},
                                     {"group", group},
                                     {"cluster", cluster},
                                     {"slots", 6},
                                     {"resident", resident}});
    Bytes bytes = traffic(schedule, p, h100());
    int64_t heads = p.batch * p.heads / lists;
    EXPECT_EQ(bytes.l2, blocks.l2 * heads) << p << " group " << group;
    EXPECT_EQ(bytes.smem, blocks.smem * heads) << p << " group " << group;
    EXPECT_LE(bytes.hbm, bytes.l2);
  }
}

Plan columnSplit(const Problem &p, const Tiles &tiles = {}) {
  std::string error;
  std::optional<Plan> plan = planFor(p, h100(), "column_split", tiles, error);
  EXPECT_TRUE(plan) << error;
  return plan.value_or(Plan());
}

/// By hand: 16 tiles of 256 rows, of 16 strips of 256 keys; 16 heads.
TEST(Group, BytesByHand) {
  Plan plan = columnSplit(tokenProblem(512, 4096),
                          {{"cluster", 2}, {"slots", 6}, {"resident", 8}});
  int64_t heads = 16, mib = 1 << 20, pairs = 16 * 16;
  int64_t queries = 2 * 4 * mib;              // both blocks of a group
  int64_t keys = 16 * 2 * 4 * mib;            // K and V once per pair of tiles
  int64_t place = 32 * 1024 + 4096;           // of one share, once written and
  int64_t passed = pairs * 2 * 2 * 2 * place; // read by the other, in two tiles
  passed += 16 * 15 * 2 * 2 * 4096;           // maxima ahead
  int64_t results = 4 * mib + 4096 * 4;
  EXPECT_EQ(plan.bytes.l2, heads * (queries + keys + passed + results));
}

TEST(Group, FootprintByHand) {
  Plan plan = columnSplit(tokenProblem(1024, 16384),
                          {{"cluster", 2}, {"slots", 8}, {"resident", 6}});
  // Six panels of Q and eight units; a pair of barriers per unit and for Q, two
  // per warpgroup, the queue.
  EXPECT_EQ(plan.footprint.smemBytes,
            14 * 16384 + 2 * 64 + 2 * 16 + 2 * 16 + 64);
  EXPECT_EQ(plan.footprint.threads, 384);
  EXPECT_EQ(plan.footprint.registersPerThread, 28 + 256 / 2 + 128 / 2);
  EXPECT_EQ(plan.footprint.blocksPerSm, 1);
  // 16 teams of eight blocks, four places of a share each.
  EXPECT_EQ(plan.footprint.scratchBytes, 128 * 4 * (32768 + 4096));
}

/// Neither rows nor batch nor heads make the scratch larger.
TEST(Group, ScratchIsBounded) {
  for (int64_t d : {320, 512, 768, 1024, 2048, 4096})
    for (int64_t n : {1024, 16384}) {
      Problem p = tokenProblem(d, n);
      p.batch *= 3;
      EXPECT_LE(columnSplit(p).footprint.scratchBytes, 32 << 20) << d;
    }
}

/// Measured on an H100 80GB SXM, 2026-11-22: bf16, 16384 tokens, 2048 columns
/// in all heads, clusters of two, eight panels of Q and six units, TFLOP/s.
TEST(Group, PredictsWhatWasMeasured) {
  struct {
    int64_t d, n;
    double rate;
  } rows[] = {{512, 1024, 504},  {512, 4096, 665},  {512, 16384, 677},
              {1024, 1024, 525}, {1024, 4096, 641}, {1024, 16384, 708},
              {2048, 4096, 563}, {2048, 16384, 617}};
  for (auto &row : rows) {
    Problem p = tokenProblem(row.d, row.n);
    Plan plan = columnSplit(p, {{"cluster", 2}, {"slots", 6}, {"resident", 8}});
    double rate = usefulFlops(p) / plan.seconds / 1e12;
    EXPECT_NEAR(rate / row.rate, 1, 0.15) << p << " " << rate;
  }
}

/// Likewise with blocks by themselves and in clusters of two, which of them is
/// faster where one is by more than 3 %.
TEST(Group, PredictsClustersOfWideHeads) {
  struct {
    int64_t d, slots, n;
    MaskKind mask;
    double alone, inClusters;
  } rows[] = {{512, 6, 4096, MaskKind::none, 686, 659},
              {512, 6, 16384, MaskKind::none, 682, 653},
              {512, 6, 4096, MaskKind::causal, 574, 540},
              {768, 7, 4096, MaskKind::none, 640, 637},
              {768, 7, 16384, MaskKind::none, 642, 656},
              {768, 7, 4096, MaskKind::causal, 548, 521},
              {1024, 8, 4096, MaskKind::none, 669, 677},
              {1024, 8, 16384, MaskKind::none, 664, 668},
              {1024, 8, 4096, MaskKind::causal, 530, 516}};
  for (auto &row : rows) {
    Problem p = tokenProblem(row.d, row.n);
    p.mask.kind = row.mask;
    auto rate = [&](int64_t cluster) {
      Plan plan = columnSplit(p, {{"cluster", cluster},
                                  {"slots", row.slots},
                                  {"resident", 14 - row.slots}});
      return usefulFlops(p) / plan.seconds / 1e12;
    };
    EXPECT_NEAR(rate(1) / row.alone, 1, 0.15) << p << " " << rate(1);
    EXPECT_NEAR(rate(2) / row.inClusters, 1, 0.15) << p << " " << rate(2);
    if (std::abs(std::log(row.alone / row.inClusters)) > 0.03)
      EXPECT_EQ(rate(1) > rate(2), row.alone > row.inClusters) << p;
  }
}

/// Microseconds of one problem: of flash, of groups whose blocks are by
/// themselves and in clusters of two.
struct Narrow {
  Problem problem;
  int64_t group = 2;
  double flash = 0, alone = 0, inClusters = 0;
};

/// Of one H100 80GB SXM, 2026-11-22: bf16, batch 1, medians in turns; the best
/// flash by the model, and column_split with 128 rows and keys, ten units and
/// four panels of Q.
std::vector<Narrow> narrowProblems() {
  std::ifstream file(std::string(ATTN_RESULTS) + "/narrow-groups.tsv");
  std::vector<Narrow> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string mask;
    Narrow one;
    Problem &p = one.problem;
    if (!(words >> mask >> p.headDim >> p.heads >> p.queries >> one.group >>
          one.flash >> one.alone >> one.inClusters))
      continue; // the names of the columns
    p.dtype = DataType::bf16;
    p.mask.kind = mask == "none" ? MaskKind::none : MaskKind::causal;
    p.headDimV = p.headDim, p.keys = p.queries, p.kvHeads = p.heads;
    all.push_back(one);
  }
  return all;
}

/// Two panels of Q that stream, one behind the other, hold four slots.
TEST(Group, PanelsThatStreamNeedSlots) {
  Problem p = tokenProblem(440, 2048);
  std::string error;
  auto plan = [&](int64_t slots, int64_t resident) {
    return planFor(p, *findMachine("h100_sxm"), "column_split",
                   {{"group", 2},
                    {"cluster", 2},
                    {"slots", slots},
                    {"resident", resident}},
                   error)
        .has_value();
  };
  EXPECT_FALSE(plan(3, 3));
  EXPECT_EQ(error, "expects four slots or more where panels of Q that stream "
                   "follow one another, or at least 4 of 7 to be resident, but "
                   "got slots = 3 and resident = 3");
  EXPECT_TRUE(plan(4, 3)) << error;
  EXPECT_TRUE(plan(3, 4)) << error;
}

/// Where rows begin anywhere in a sector or a line, copies take longest, and
/// clusters save half of them; elsewhere their lock step costs more.
TEST(Group, PredictsNarrowHeads) {
  std::vector<Narrow> all = narrowProblems();
  EXPECT_EQ(all.size(), 80u);
  int wrong = 0;
  for (const Narrow &one : all) {
    const Problem &p = one.problem;
    auto seconds = [&](int64_t cluster) {
      return columnSplit(p, {{"group", one.group},
                             {"cluster", cluster},
                             {"slots", 10},
                             {"resident", 4}})
          .seconds;
    };
    double alone = seconds(1) * 1e6, inClusters = seconds(2) * 1e6;
    EXPECT_NEAR(alone / one.alone, 1, 0.21) << p;
    EXPECT_NEAR(inClusters / one.inClusters, 1, 0.21) << p;
    double measured = one.inClusters / one.alone;
    if (std::abs(std::log(measured)) > 0.06)
      wrong += (inClusters > alone) != (measured > 1);
  }
  EXPECT_LE(wrong, 3);
}

/// But with a single head, where a tile is left for each multiprocessor: there
/// flash is put at up to 1.4 times what it takes.
TEST(Group, NarrowHeadsTakeNoGroup) {
  ATTN_LONG_TEST();
  std::vector<Narrow> all = narrowProblems();
  EXPECT_EQ(all.size(), 80u);
  for (const Narrow &one : all) {
    if (one.problem.heads == 1 ||
        std::min(one.alone, one.inClusters) < 1.06 * one.flash)
      continue;
    EXPECT_NE(plans(one.problem, h100()).plans.front().schedule, "column_split")
        << one.problem;
  }
}

/// Panels of Q that stream beside those of K need a longer ring, not fewer
/// panels.
TEST(Group, RingIsAsLongAsItsStreamsNeed) {
  auto slots = [](int64_t d) {
    return columnSplit(tokenProblem(d, 16384)).tiles.get("slots");
  };
  EXPECT_LE(slots(512), 7);
  for (int64_t d : {768, 1024, 2048})
    EXPECT_GE(slots(d), 7) << d;
  EXPECT_GE(slots(2048), slots(512));
  auto seconds = [](int64_t slots) {
    return columnSplit(tokenProblem(2048, 16384),
                       {{"slots", slots}, {"resident", 5}})
        .seconds;
  };
  EXPECT_GT(seconds(6), 1.04 * seconds(8));
  EXPECT_LT(seconds(8), 1.1 * seconds(9));
}

/// Sixteen groups of eight blocks leave 4 of 132 multiprocessors idle, and a
/// group more than can run at once costs a whole wave.
TEST(Group, TeamsAreWhole) {
  auto lastWave = [](int64_t tiles) {
    Problem p = tokenProblem(1024, 256);
    p.keys = 4096;
    p.batch = tiles;
    p.heads = p.kvHeads = 1;
    Plan plan = columnSplit(p, {{"group", 4}, {"cluster", 2}});
    return plan.time.tail / plan.seconds;
  };
  EXPECT_NEAR(lastWave(16), 0, 1e-9);
  EXPECT_GT(lastWave(17), 0.4);
  EXPECT_NEAR(lastWave(32), 0, 1e-9);
}

/// What is passed on stays in L2, or all of it goes to memory.
TEST(Group, PlacesMustFitL2) {
  Problem p = tokenProblem(512, 4096);
  int64_t before = columnSplit(p).bytes.hbm;
  EXPECT_LT(before, 300 << 20);
  Machine small = h100();
  ASSERT_EQ(overrideField(small, "l2_bytes", 40 << 20), std::nullopt);
  std::string error;
  auto plan = planFor(p, small, "column_split", {}, error);
  ASSERT_TRUE(plan) << error;
  int64_t passed = 16 * 16 * 16 * 2 * 2 * 2 * int64_t(36 * 1024);
  EXPECT_GE(plan->bytes.hbm, before + passed);
}

TEST(Group, RefusalsNameNumberAndLimit) {
  auto refusal = [](const Problem &p, const Tiles &tiles,
                    const Machine &m = h100()) {
    std::string error;
    EXPECT_FALSE(planFor(p, m, "column_split", tiles, error));
    return error;
  };
  EXPECT_EQ(refusal(tokenProblem(1024, 4096), {{"group", 3}}),
            "expects a group in which each block owns a part of the 1024 "
            "columns, at most 256, in whole panels of 64, but got 3 blocks");
  EXPECT_EQ(refusal(tokenProblem(512, 4096), {{"resident", 9}}),
            "expects at most the 8 panels of Q to be resident, but got 9");
  EXPECT_EQ(refusal(tokenProblem(512, 4096), {{"query", 64}}),
            "expects query to be 128, but got 64");
  EXPECT_EQ(refusal(tokenProblem(4104, 4096), {}),
            "wgmma expects head dim up to 4096, but got 4104");
  EXPECT_EQ(refusal(tokenProblem(512, 4096), {}, *findMachine("a100_80g")),
            "wgmma expects a machine that has it, but a100_80g has mma_sync");
  Machine small = h100();
  small.sms = 3;
  EXPECT_EQ(refusal(tokenProblem(512, 4096), {{"cluster", 2}}, small),
            "needs 4 blocks at once, but h100_sxm has 3");
}

TEST(Group, PseudocodeReadsAsAPersonWouldWriteIt) {
  Problem p = tokenProblem(640, 1024);
  Schedule schedule = findScheduleKind("column_split")
                          ->build({{"query", 128},
                                   {"key", 128},
                                   {"group", 3},
                                   {"cluster", 2},
                                   {"slots", 6},
                                   {"resident", 8}});
  EXPECT_EQ(
      pseudocode(schedule, p),
      "parallel for every batch, head and query tile of 128 (8 of them), 2 "
      "warpgroups and a producer, in groups of 3 blocks, in "
      "clusters of 2 blocks that multicast keys and values, through a ring of "
      "6 units, "
      "persistent:\n"
      "  each block of the group, for its head dim of V tile of 256:\n"
      "    keep O[128 x 256] in registers\n"
      "    keep stats[128] in registers\n"
      "    load Q[128 x 640], columns 0 to 512, to smem, to stay\n"
      "    for every key tile of 384 (3 of them):\n"
      "      each block of the group, for its key tile of 128:\n"
      "        keep S[128 x 128] in registers\n"
      "        stream Q[128 x 640], columns 512 to 640, through smem\n"
      "        stream K[128 x 640] through smem\n"
      "        S += Q . K^T\n"
      "        P = exp(S - running max), update running max and sum\n"
      "        spill P[128 x 128] to scratch, in 4 slots in "
      "turn\n"
      "        spill stats[128] to scratch, in 4 slots in "
      "turn\n"
      "      for every key tile of 128 (3 of them):\n"
      "        read stats[128] back and fold it in, except in the first step\n"
      "        read P[128 x 128] back and fold it in\n"
      "        read stats[128] back and fold it in\n"
      "        stream V[128 x 256] through smem\n"
      "        O += P . V\n"
      "    store O[128 x 256]\n"
      "  store LSE[128]\n");
}

} // namespace
