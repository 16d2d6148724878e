//===- TrafficTest.cpp - Bytes against element-wise enumeration -----------===//

#include "attn/Schedule/Traffic.h"
#include "RandomProblem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

/// What a kernel of that shape does, step by step, looking at every pair.
struct Kernel {
  const Problem &p;
  int64_t s = bytesOf(p.dtype);
  int64_t so = 2; ///< of O
  int64_t l2 = 0, smem = 0;

  void flash(int64_t br, int64_t bc, int64_t warps) {
    int64_t dp = roundUp(p.headDim, 16), ep = roundUp(p.headDimV, 16);
    for (int64_t r0 = 0; r0 < p.queries; r0 += br) {
      int64_t rows = std::min(br, p.queries - r0);
      bool isFirst = true;
      for (int64_t k0 = 0; k0 < p.keys; k0 += bc) {
        if (!sees(p, r0, br, k0, bc))
          continue;
        if (isFirst) {
          l2 += rows * p.headDim * s;
          smem += br * dp * s;
          isFirst = false;
        }
        int64_t keys = std::min(bc, p.keys - k0);
        l2 += keys * (p.headDim + p.headDimV) * s;
        smem += bc * dp * s + bc * ep * s;         // fills
        smem += br * dp * s + warps * bc * dp * s; // fragments for S
        smem += warps * bc * ep * s;               // fragments for O
      }
      l2 += rows * p.headDimV * s + rows * 4 * (p.lse + p.lseLow);
      smem += br * ep * s + rows * p.headDimV * s;
    }
  }

  /// One warp loads for warpgroups of 64 rows, `groups` of them.
  void pipeline(int64_t groups, int64_t bc) {
    int64_t dp = roundUp(p.headDim, 32 / s), ep = roundUp(p.headDimV, 16);
    auto panels = [&](int64_t rows, int64_t cols) {
      return roundUp(cols * s, 128) * rows;
    };
    int64_t tiles = ceilDiv(p.queries, 64 * groups);
    for (int64_t r0 = 0; r0 < tiles * 64 * groups; r0 += 64 * groups) {
      int64_t rows = std::min(64 * groups, p.queries - r0);
      l2 += rows * p.headDim * s;
      smem += panels(64 * groups, dp);
      // Blocks that the tile loads, and those that its warpgroups multiply.
      int64_t loaded = 0;
      std::vector<int64_t> multiplied(groups, 0);
      for (int64_t k0 = 0; k0 < p.keys; k0 += bc) {
        for (int64_t g = 0; g < groups; ++g)
          multiplied[g] += sees(p, r0 + 64 * g, 64, k0, bc);
        if (!sees(p, r0, 64 * groups, k0, bc))
          continue;
        ++loaded;
        l2 += std::min(bc, p.keys - k0) * (p.headDim + p.headDimV) * s;
      }
      if (loaded == 0) { // the first block, in vain
        ++loaded;
        l2 += std::min(bc, p.keys) * (p.headDim + p.headDimV) * s;
      }
      smem += loaded * (panels(bc, dp) + panels(bc, ep));
      if (s == 1) // each tile of V is read and written by columns
        smem += loaded * 2 * bc * ep;
      for (int64_t blocks : multiplied)
        smem +=
            std::max<int64_t>(blocks, 1) * (64 * dp + bc * dp + bc * ep) * s;
      l2 += rows * p.headDimV * so + rows * 4 * (p.lse + p.lseLow);
      smem += 64 * groups * ep * so + rows * p.headDimV * so;
    }
  }

  void scoreSpill(int64_t b1, int64_t b2, int64_t c1, int64_t c2, int64_t slice,
                  int64_t warps) {
    for (int64_t r0 = 0; r0 < p.queries; r0 += b1) {
      int64_t rows = std::min(b1, p.queries - r0);
      bool isVisited = false;
      for (int64_t k0 = 0; k0 < p.keys; k0 += b2) {
        if (!sees(p, r0, b1, k0, b2))
          continue;
        isVisited = true;
        int64_t keys = std::min(b2, p.keys - k0);
        l2 += (rows + keys) * p.headDim * s + rows * keys * s + rows * 4;
        for (int64_t c = 0; c < p.headDim; c += slice) {
          int64_t depth = roundUp(std::min(slice, p.headDim), 16);
          smem += (b1 + b2) * depth * s;         // fills
          smem += (b1 + warps * b2) * depth * s; // fragments
        }
      }
      l2 += isVisited ? rows * 8 : 0;
    }
    for (int64_t r0 = 0; r0 < p.queries; r0 += c1) {
      int64_t rows = std::min(c1, p.queries - r0);
      bool isVisited = false;
      for (int64_t c = 0; c < p.headDimV; c += c2) {
        int64_t cols = std::min(c2, p.headDimV - c);
        int64_t colsPadded = roundUp(std::min(c2, p.headDimV), 16);
        for (int64_t k0 = 0; k0 < p.keys; k0 += b2) {
          if (!sees(p, r0, c1, k0, b2))
            continue;
          isVisited = true;
          int64_t keys = std::min(b2, p.keys - k0);
          l2 += rows * 4 + rows * keys * s + keys * cols * s;
          for (int64_t k = 0; k < keys; k += slice) {
            smem += (c1 * slice + slice * colsPadded) * s;
            smem += (c1 * slice + warps * slice * colsPadded) * s;
          }
        }
        l2 += rows * cols * s;
        smem += c1 * colsPadded * s + rows * cols * s;
      }
      l2 += (isVisited ? rows * 8 : 0) + rows * 4 * (p.lse + p.lseLow);
    }
  }
};

const Machine &h100() { return *findMachine("h100_sxm"); }

TEST(Traffic, FlashMovesWhatTheKernelMoves) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(200);
    int64_t br = 16 * random.number(1, 4), bc = 16 * random.number(1, 4);
    int64_t warps = random.number(1, 4);
    Kernel kernel{p};
    kernel.flash(br, bc, warps);
    Schedule schedule = findScheduleKind("flash")->build(
        {{"query", br}, {"key", bc}, {"stages", 2}, {"warps", warps}});
    Bytes bytes = traffic(schedule, p, h100());
    int64_t heads = p.batch * p.heads;
    EXPECT_EQ(bytes.l2, kernel.l2 * heads) << p << " " << br << "x" << bc;
    EXPECT_EQ(bytes.smem, kernel.smem * heads) << p << " " << br << "x" << bc;
  }
}

TEST(Traffic, PipelineMovesWhatTheKernelMoves) {
  Random random(9);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(300);
    int64_t groups = random.number(1, 3), bc = 16 * random.number(1, 8);
    if (round % 2)
      p.dtype = DataType::f8e4m3;
    Kernel kernel{p};
    kernel.pipeline(groups, bc);
    Schedule schedule =
        findScheduleKind("flash")->build({{"query", 64 * groups},
                                          {"key", bc},
                                          {"stages", 2},
                                          {"query_stages", random.number(1, 2)},
                                          {"staging", 64},
                                          {"ping_pong", random.number(0, 1)},
                                          {"overlap", random.number(0, 1)},
                                          {"persistent", random.number(0, 1)}});
    Bytes bytes = traffic(schedule, p, h100());
    int64_t heads = p.batch * p.heads;
    EXPECT_EQ(bytes.l2, kernel.l2 * heads) << p << " " << groups << "x" << bc;
    EXPECT_EQ(bytes.smem, kernel.smem * heads)
        << p << " " << groups << "x" << bc;
    EXPECT_LE(bytes.hbm, bytes.l2);
  }
}

/// One head, 64 queries and 40 keys of 32 columns, V of 16, in two steps of 32
/// keys.
Bytes bytesOfTwoSteps(DataType dtype, int64_t stages, int64_t staging,
                      std::optional<DataType> kvDtype = std::nullopt) {
  Problem p;
  p.dtype = dtype;
  p.kvDtype = kvDtype;
  p.queries = 64;
  p.keys = 40;
  p.headDim = 32;
  p.headDimV = 16;
  Schedule schedule = findScheduleKind("flash")->build({{"query", 64},
                                                        {"key", 32},
                                                        {"stages", stages},
                                                        {"query_stages", 1},
                                                        {"staging", staging},
                                                        {"ping_pong", 0},
                                                        {"overlap", 1},
                                                        {"persistent", 1}});
  return traffic(schedule, p, h100());
}

TEST(Traffic, PipelineOf8BitsByHand) {
  Bytes bytes = bytesOfTwoSteps(DataType::f8e4m3, 2, 64);
  // Q, K, V of one byte, O of two, LSE of four.
  EXPECT_EQ(bytes.l2, 64 * 32 + 40 * 32 + 40 * 16 + 64 * 16 * 2 + 64 * 4);
  int64_t fills = 64 * 128 + 2 * (32 * 128 + 32 * 128);
  int64_t transposes = 2 * (2 * 32 * 16);
  int64_t products = 2 * (64 * 32 + 32 * 32 + 32 * 16);
  int64_t staging = 2 * (64 * 16 * 2);
  EXPECT_EQ(bytes.smem, fills + transposes + products + staging);
}

/// K and V of one byte, which are read once more and written in two bytes; Q
/// and what products read have two.
TEST(Traffic, PipelineThatWidens) {
  Bytes bytes = bytesOfTwoSteps(DataType::bf16, 2, 64, DataType::f8e4m3);
  EXPECT_EQ(bytes.l2, 64 * 32 * 2 + 40 * 32 + 40 * 16 + 64 * 16 * 2 + 64 * 4);
  int64_t fills = 64 * 128 + 2 * (32 * 128 + 32 * 128);
  int64_t widened = 2 * (1 + 2) * (32 * 32 + 32 * 16);
  int64_t products = 2 * 2 * (64 * 32 + 32 * 32 + 32 * 16);
  int64_t staging = 2 * (64 * 16 * 2);
  EXPECT_EQ(bytes.smem, fills + widened + products + staging);
}

/// f32 in three parts: it is read once more and written in 6 bytes, each of six
/// products reads 2 bytes of what it did 4, and O leaves from registers.
TEST(Traffic, PipelineThatSplits) {
  Bytes bytes = bytesOfTwoSteps(DataType::f32, 1, 0);
  EXPECT_EQ(bytes.l2, 4 * (64 * 32 + 40 * 32 + 40 * 16 + 64 * 16) + 64 * 4);
  int64_t fills = 64 * 128 + 2 * (32 * 128 + 32 * 128);
  int64_t splits = (4 + 6) * (64 * 32 + 2 * (32 * 32 + 32 * 16));
  int64_t products = 2 * (6 * 2) * (64 * 32 + 32 * 32 + 32 * 16);
  EXPECT_EQ(bytes.smem, fills + splits + products);
}

TEST(Traffic, ScoreSpillMovesWhatAKernelWould) {
  Random random(6);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(200);
    int64_t c1 = 16 * random.number(1, 3), b1 = c1 * random.number(1, 2);
    int64_t b2 = 16 * random.number(1, 4), c2 = 16 * random.number(1, 3);
    int64_t slice = 16, warps = random.number(1, 4);
    Kernel kernel{p};
    kernel.scoreSpill(b1, b2, c1, c2, slice, warps);
    Schedule schedule = findScheduleKind("score_spill")
                            ->build({{"query", b1},
                                     {"key", b2},
                                     {"out_query", c1},
                                     {"column", c2},
                                     {"slice", slice},
                                     {"stages", 2},
                                     {"warps", warps}});
    Bytes bytes = traffic(schedule, p, h100());
    int64_t heads = p.batch * p.heads;
    EXPECT_EQ(bytes.l2, kernel.l2 * heads) << p;
    EXPECT_EQ(bytes.smem, kernel.smem * heads) << p;
  }
}

TEST(Traffic, DeviceMemoryIsReadOnceWhenItFits) {
  Problem p;
  p.heads = p.kvHeads = 4;
  p.queries = p.keys = 1024;
  p.headDim = p.headDimV = 64;
  Schedule schedule = findScheduleKind("flash")->build(
      {{"query", 128}, {"key", 64}, {"warps", 4}});
  int64_t compulsory = 4 * (4 * 1024 * 64 * 2 + 1024 * 4);
  EXPECT_EQ(traffic(schedule, p, h100()).hbm, compulsory);
  // Without an L2, every read goes to memory.
  Machine small = h100();
  small.l2Bytes = 0;
  small.sms = 1;
  Bytes bytes = traffic(schedule, p, small);
  EXPECT_GT(bytes.hbm, compulsory);
  EXPECT_LE(bytes.hbm, bytes.l2);
}

} // namespace
