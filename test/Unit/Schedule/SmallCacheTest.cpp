//===- SmallCacheTest.cpp - Schedules for M < d², enumerated --------------===//
//
// Each against a machine that looks at every pair and counts every byte, and,
// in words, against the counts of the literature.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

/// A block per tile of rows, and what it does for every tile of keys.
struct Machinery {
  const Problem &p;
  int64_t br, bc;
  int64_t s = 2;
  int64_t l2 = 0, smem = 0;
  int64_t dp = roundUp(p.headDim, 16), ep = roundUp(p.headDimV, 16);

  int64_t rowsOf(int64_t r0) const { return std::min(br, p.queries - r0); }
  int64_t keysOf(int64_t k0) const { return std::min(bc, p.keys - k0); }
  int64_t tileOf(int64_t step, int64_t whole) const {
    return roundUp(std::min(step, whole), 16);
  }

  template <typename F> void forRows(F f) {
    for (int64_t r0 = 0; r0 < p.queries; r0 += br)
      f(r0);
  }
  /// Visited key tiles of a tile of rows, and how many there were before.
  template <typename F> int64_t forKeys(int64_t r0, F f) {
    int64_t count = 0;
    for (int64_t k0 = 0; k0 < p.keys; k0 += bc)
      if (sees(p, r0, br, k0, bc))
        f(k0, count++);
    return count;
  }

  /// Q and K in slices; `across` warps read the same rows of Q.
  void scores(int64_t r0, int64_t k0, int64_t slice, int64_t warps,
              int64_t across) {
    l2 += (rowsOf(r0) + keysOf(k0)) * p.headDim * s;
    for (int64_t c = 0; c < p.headDim; c += slice) {
      int64_t depth = tileOf(slice, p.headDim);
      smem += (br + bc) * depth * s;
      smem += (across * br + warps / across * bc) * depth * s;
    }
  }
  /// V in pieces of keys, the columns of O from c0 on.
  void output(int64_t k0, int64_t piece, int64_t warps, int64_t c0,
              int64_t columns) {
    l2 += keysOf(k0) * std::min(columns, p.headDimV - c0) * s;
    for (int64_t k = 0; k < keysOf(k0); k += piece)
      smem += (1 + warps) * piece * tileOf(columns, p.headDimV) * s;
  }
  /// Through shared memory, or straight from registers.
  void store(int64_t r0, int64_t c0, int64_t columns) {
    l2 += rowsOf(r0) * std::min(columns, p.headDimV - c0) * s;
  }
  void lse(int64_t r0) { l2 += rowsOf(r0) * 4 * (p.lse + p.lseLow); }
  template <typename F> void forColumns(int64_t columns, F f) {
    for (int64_t c0 = 0; c0 < p.headDimV; c0 += columns)
      f(c0);
  }

  void streamedQuery(int64_t slice, int64_t piece, int64_t warps,
                     int64_t across) {
    forRows([&](int64_t r0) {
      forKeys(r0, [&](int64_t k0, int64_t) {
        scores(r0, k0, slice, warps, across);
        if (across > 1)
          smem += br * bc * s; // P is written
        for (int64_t k = 0; across > 1 && k < keysOf(k0); k += piece)
          smem += across * br * piece * s; // and read by every warp of its rows
        agree(across);                     // on the maxima
        // The pieces of V are filled once, whoever reads them; every warp of
        // a row has as many columns.
        l2 += keysOf(k0) * p.headDimV * s;
        for (int64_t k = 0; k < keysOf(k0); k += piece)
          smem += (1 + warps / across) * piece *
                  roundUp(p.headDimV, 16 * across) * s;
      });
      agree(across); // on the sums
      l2 += rowsOf(r0) * p.headDimV * s;
      lse(r0);
    });
  }
  /// Each of the warps of a row writes its f32 and reads those of all.
  void agree(int64_t across) {
    if (across > 1)
      smem += br * 4 * across * (1 + across);
  }

  /// O as accumulators in a place: whole tiles of f32.
  void accumulators(int64_t columns) {
    l2 += br * tileOf(columns, p.headDimV) * 4;
  }

  void outputSpill(int64_t columns, int64_t slice, int64_t warps) {
    forRows([&](int64_t r0) {
      forKeys(r0, [&](int64_t k0, int64_t before) {
        scores(r0, k0, slice, warps, 1);
        forColumns(columns, [&](int64_t c0) {
          if (before > 0) { // written by the step before, read by this one
            accumulators(columns);
            accumulators(columns);
          }
          output(k0, 32, warps, c0, columns);
        });
      });
      forColumns(columns, [&](int64_t c0) { store(r0, c0, columns); });
      lse(r0);
    });
  }

  /// P of so many keys.
  void weights(int64_t keys) { l2 += br * keys * s; }
  /// One maximum a row, from each of four threads.
  void maxima() { l2 += br * 4 * 4; }

  void strips(int64_t strip, int64_t columns, int64_t slice, int64_t warps) {
    forRows([&](int64_t r0) {
      int64_t visited = 0;
      for (int64_t w0 = 0; w0 < p.keys; w0 += strip) {
        if (!sees(p, r0, br, w0, strip))
          continue;
        auto inStrip = [&](auto f) {
          forKeys(r0, [&](int64_t k0, int64_t) {
            if (k0 >= w0 && k0 < w0 + strip)
              f(k0);
          });
        };
        inStrip([&](int64_t k0) {
          scores(r0, k0, slice, warps, 1);
          weights(bc);
          maxima();
        });
        forColumns(columns, [&](int64_t c0) {
          if (visited > 0) {
            accumulators(columns);
            accumulators(columns);
          }
          inStrip([&](int64_t k0) {
            maxima();
            for (int64_t k = 0; k < keysOf(k0); k += slice)
              weights(slice);
            output(k0, slice, warps, c0, columns);
          });
        });
        ++visited;
      }
      l2 += rowsOf(r0) * p.headDimV * s; // straight from registers
      lse(r0);
    });
  }
};

void expectBytes(const Tiles &tiles, const char *kind, const Machinery &counted,
                 const Problem &p) {
  Schedule schedule = findScheduleKind(kind)->build(tiles);
  Bytes bytes = traffic(schedule, p, h100());
  int64_t heads = p.batch * p.heads;
  EXPECT_EQ(bytes.l2, counted.l2 * heads) << p << " " << tiles.str();
  EXPECT_EQ(bytes.smem, counted.smem * heads) << p << " " << tiles.str();
}

TEST(SmallCache, StreamedQueryMovesWhatAKernelWould) {
  Random random(21);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(200);
    int64_t across = 1 << random.number(0, 2), warps = 4 * across;
    Machinery counted{p, 16 * random.number(1, 4), 64};
    int64_t slice = 16 * random.number(1, 4), piece = 16 << random.number(0, 1);
    counted.streamedQuery(slice, piece, warps, across);
    expectBytes({{"query", counted.br},
                 {"key", counted.bc},
                 {"slice", slice},
                 {"piece", piece},
                 {"stages", 2},
                 {"warps", warps},
                 {"column_warps", across}},
                "streamed_query", counted, p);
  }
}

TEST(SmallCache, OutputSpillMovesWhatAKernelWould) {
  Random random(22);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(300);
    Machinery counted{p, 16 * random.number(1, 4), 32 * random.number(1, 3)};
    int64_t slice = 16 * random.number(1, 4),
            columns = 16 * random.number(1, 4);
    int64_t warps = random.number(1, 4);
    counted.outputSpill(columns, slice, warps);
    expectBytes({{"query", counted.br},
                 {"key", counted.bc},
                 {"column", columns},
                 {"slice", slice},
                 {"stages", 2},
                 {"warps", warps}},
                "output_spill", counted, p);
  }
}

TEST(SmallCache, StripsMoveWhatAKernelWould) {
  Random random(23);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(400);
    int64_t slice = 16 * random.number(1, 2),
            columns = 16 * random.number(1, 4);
    Machinery counted{p, 16 * random.number(1, 4), slice * random.number(1, 3)};
    int64_t strip = counted.bc * random.number(1, 4);
    int64_t warps = random.number(1, 4);
    counted.strips(strip, columns, slice, warps);
    expectBytes({{"query", counted.br},
                 {"key", counted.bc},
                 {"out_query", counted.br},
                 {"column", columns},
                 {"slice", slice},
                 {"stages", 2},
                 {"warps", warps},
                 {"strip", strip}},
                "score_spill", counted, p);
  }
}

//===----------------------------------------------------------------------===//
// Words: N = 32, d = 16, counted by hand and by a two-level simulator
//===----------------------------------------------------------------------===//

Problem small() {
  Problem p;
  p.queries = p.keys = 32;
  p.headDim = p.headDimV = 16;
  p.lse = false;
  return p;
}

int64_t words(const char *kind, const Tiles &tiles, bool lse = false) {
  Problem p = small();
  p.lse = lse;
  return trafficWords(findScheduleKind(kind)->build(tiles), p);
}

TEST(SmallCache, WordsOfTheLiterature) {
  // F1.
  EXPECT_EQ(words("streamed_query",
                  {{"query", 8}, {"key", 8}, {"slice", 1}, {"piece", 1}}, true),
            6688);
  // E, the output read, rescaled and written: 2N²d/8 + 3N²d/8 - Nd.
  EXPECT_EQ(words("output_spill", {{"query", 8},
                                   {"key", 8},
                                   {"column", 1},
                                   {"slice", 1},
                                   {"piece", 1}}),
            9728);
  // D'_W with 16 keys a strip, and with one strip of all.
  for (int64_t strip : {16, 32})
    EXPECT_EQ(words("score_spill", {{"query", 8},
                                    {"key", 8},
                                    {"out_query", 8},
                                    {"column", 8},
                                    {"slice", 1},
                                    {"strip", strip}}),
              strip == 16 ? 11136 : 10112);
}

/// Peaks of the same, in words of fast memory.
TEST(SmallCache, PeaksOfTheLiterature) {
  Problem p = small();
  auto peak = [&](const char *kind, const Tiles &tiles) {
    return peakWords(findScheduleKind(kind)->build(tiles), p);
  };
  // O, two statistics a row, S, and a column of V.
  EXPECT_EQ(peak("streamed_query",
                 {{"query", 8}, {"key", 8}, {"slice", 1}, {"piece", 1}}),
            8 * 16 + 16 + 64 + 16);
  // Two statistics a row, and S with a column of Q and of K, or O.
  EXPECT_EQ(peak("score_spill", {{"query", 8},
                                 {"key", 8},
                                 {"out_query", 8},
                                 {"column", 8},
                                 {"slice", 1},
                                 {"strip", 16}}),
            16 + 64 + 16);
}

TEST(SmallCache, AllOfPIsSpilledOnlyWhenAskedFor) {
  Problem p = small();
  p.heads = p.kvHeads = 16;
  p.queries = p.keys = 4096;
  p.headDim = p.headDimV = 1024;
  for (const Plan &plan : plans(p, *findMachine("a100_80g")).plans)
    if (plan.schedule == "score_spill")
      EXPECT_GT(plan.tiles.get("strip"), 0);
  std::string error;
  auto all = planFor(p, *findMachine("a100_80g"), "score_spill",
                     {{"out_query", 128}}, error);
  ASSERT_TRUE(all) << error;
  EXPECT_GE(all->footprint.scratchBytes, int64_t(16) * 4096 * 4096 * 2);
}

TEST(SmallCache, PseudocodeReadsAsAPersonWouldWriteIt) {
  Problem p = small();
  p.queries = p.keys = 1000;
  p.headDim = p.headDimV = 320;
  p.mask = {MaskKind::causal};
  Schedule strips = findScheduleKind("score_spill")
                        ->build({{"query", 64},
                                 {"key", 128},
                                 {"out_query", 0},
                                 {"column", 160},
                                 {"slice", 64},
                                 {"stages", 2},
                                 {"warps", 4},
                                 {"strip", 512}});
  EXPECT_EQ(
      pseudocode(strips, p),
      "parallel for every batch, head and query tile of 64 (16 of them), 4 "
      "warps:\n"
      "  keep stats[64] in registers\n"
      "  for every key tile of 512 (2 of them) that causal lets see, 2 in "
      "flight:\n"
      "    for every key tile of 128 (4 of them) that causal lets see, 2 in "
      "flight:\n"
      "      keep S[64 x 128] in registers\n"
      "      for every head dim tile of 64 (5 of them), 2 in flight:\n"
      "        stream Q[64 x 64] through smem\n"
      "        stream K[128 x 64] through smem\n"
      "        S += Q . K^T\n"
      "      P = exp(S - running max), update running max and sum\n"
      "      spill P[64 x 128] to scratch, in 4 slots in turn\n"
      "      spill tile max[64] to scratch, in 4 slots in turn\n"
      "    for every head dim of V tile of 160 (2 of them):\n"
      "      keep O[64 x 160] in registers\n"
      "      read O[64 x 160] back and fold it in, except in the first step\n"
      "      rescale O to the new max\n"
      "      for every key tile of 128 (4 of them) that causal lets see, 2 in "
      "flight:\n"
      "        read tile max[64] back and fold it in\n"
      "        for every key tile of 64 (2 of them), 2 in flight:\n"
      "          read P[64 x 64] back and fold it in\n"
      "          rescale P to the new max\n"
      "          stream V[64 x 160] through smem\n"
      "          O += P . V\n"
      "      spill O[64 x 160] to scratch, in 1 slot in turn, except in the "
      "last "
      "step\n"
      "  for every head dim of V tile of 160 (2 of them):\n"
      "    store O[64 x 160]\n");
  Schedule rows = findScheduleKind("streamed_query")
                      ->build({{"query", 32},
                               {"key", 64},
                               {"slice", 64},
                               {"piece", 32},
                               {"stages", 2},
                               {"warps", 4},
                               {"column_warps", 2}});
  EXPECT_EQ(
      pseudocode(rows, p),
      "parallel for every batch, head and query tile of 32 (32 of them), 4 "
      "warps, 2 warps on the same rows:\n"
      "  keep O[32 x 320] in registers\n"
      "  keep stats[32] in registers\n"
      "  for every key tile of 64 (16 of them) that causal lets see, 2 in "
      "flight:\n"
      "    keep P[32 x 64] in smem\n"
      "    keep S[32 x 64] in registers\n"
      "    for every head dim tile of 64 (5 of them), 2 in flight:\n"
      "      stream Q[32 x 64] through smem\n"
      "      stream K[64 x 64] through smem\n"
      "      S += Q . K^T\n"
      "    P = exp(S - running max), update running max and sum\n"
      "    rescale O to the new max\n"
      "    for every key tile of 32 (2 of them), 2 in flight:\n"
      "      stream V[32 x 320] through smem\n"
      "      O += P . V\n"
      "  store O[32 x 320]\n");
}

/// By hand, an A100 at d = 512: rows of 96 bytes of 32 columns (Q and K in two
/// stages), of P, four maxima for each of 64 rows, 16 keys of V in two stages.
TEST(SmallCache, FootprintByHand) {
  Problem p = small();
  p.queries = p.keys = 4096;
  p.headDim = p.headDimV = 512;
  std::string error;
  auto plan = planFor(p, *findMachine("a100_80g"), "streamed_query",
                      {{"query", 64},
                       {"key", 128},
                       {"slice", 32},
                       {"piece", 16},
                       {"stages", 2},
                       {"warps", 8},
                       {"column_warps", 4}},
                      error);
  ASSERT_TRUE(plan) << error;
  int64_t weights = 64 * 288, maxima = 4 * 272;
  int64_t slices = 2 * (64 + 128) * 96, pieces = 2 * 16 * 1056;
  EXPECT_EQ(plan->footprint.smemBytes,
            weights + slices + roundUp(maxima, 128) + pieces);
  // 32 rows and 128 columns of O, 32 keys of S, statistics; in flight 128
  // columns of b and 32 rows of a; the rest.
  EXPECT_EQ(plan->footprint.registersPerThread, 128 + 32 + 8 + 32 + 8 + 36);
  EXPECT_EQ(plan->footprint.scratchBytes, 0);

  // Strips: 16 warps' places of P with one maximum from each of four threads,
  // and a place for all columns of O.
  auto strips = planFor(p, *findMachine("a100_80g"), "score_spill",
                        {{"query", 64},
                         {"key", 128},
                         {"column", 128},
                         {"slice", 16},
                         {"stages", 2},
                         {"warps", 4},
                         {"strip", 512}},
                        error);
  ASSERT_TRUE(strips) << error;
  int64_t blocks = 108 * strips->footprint.blocksPerSm;
  EXPECT_EQ(strips->footprint.scratchBytes,
            blocks * (64 * 512 * 2 + 4 * 64 * 4 * 4 + 64 * 512 * 4));
}

/// What has no kernel is planned, shown, and never the one to build.
TEST(SmallCache, OnlyKernelsAreBest) {
  for (const Machine &machine : machines())
    for (int64_t d : {64, 320, 512, 1024}) {
      Problem p = small();
      p.dtype = machine.hasBf16 ? DataType::bf16 : DataType::f16;
      p.heads = p.kvHeads = 16;
      p.queries = p.keys = 2048;
      p.headDim = p.headDimV = d;
      PlanReport report = plans(p, machine);
      EXPECT_FALSE(report.plans.empty()) << machine.name << " " << d;
      if (const Plan *best = report.best()) {
        std::vector<std::string> kernels = kernelNames();
        EXPECT_NE(std::find(kernels.begin(), kernels.end(), best->kernel),
                  kernels.end());
      }
    }
}

} // namespace
