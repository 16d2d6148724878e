//===- WordsTest.cpp - Closed forms of the literature, ragged too ---------===//

#include "RandomProblem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

Schedule flash(int64_t br, int64_t bc) {
  return findScheduleKind("flash")->build(
      {{"query", br}, {"key", bc}, {"slice", 1}});
}

Schedule scoreSpill(int64_t b1, int64_t b2, int64_t c1, int64_t c2) {
  return findScheduleKind("score_spill")
      ->build({{"query", b1},
               {"key", b2},
               {"out_query", c1},
               {"column", c2},
               {"slice", 1}});
}

Schedule splitBackward(int64_t br, int64_t bc, bool isSeparate = false) {
  return findScheduleKind("split_backward")
      ->build({{"query", br},
               {"key_block", 8},
               {"key", bc},
               {"query_block", 8},
               {"separate", isSeparate}});
}

/// N = 32, d = 16, one head.
Problem golden(bool lse) {
  Problem p;
  p.queries = p.keys = 32;
  p.headDim = p.headDimV = 16;
  p.lse = lse;
  return p;
}

TEST(Words, GoldenFlash) {
  EXPECT_EQ(trafficWords(flash(8, 1), golden(true)), 5152);
  EXPECT_EQ(peakWords(flash(8, 1), golden(true)), 281);
  EXPECT_EQ(trafficWords(flash(8, 8), golden(true)), 5152);
  EXPECT_EQ(peakWords(flash(8, 8), golden(true)), 344);
}

TEST(Words, GoldenScoreSpill) {
  EXPECT_EQ(trafficWords(scoreSpill(8, 8, 8, 8), golden(false)), 10240);
  EXPECT_EQ(peakWords(scoreSpill(8, 8, 8, 8), golden(false)), 96);
  EXPECT_EQ(trafficWords(scoreSpill(16, 4, 8, 8), golden(false)), 11648);
  EXPECT_EQ(peakWords(scoreSpill(16, 4, 8, 8), golden(false)), 116);
}

// The literature's count of two launches, 13152, has a launch more for D, and
// so reads D once more than here.
TEST(Words, GoldenSplitBackward) {
  Problem p = golden(true);
  p.direction = Direction::backward;
  EXPECT_EQ(trafficWords(splitBackward(8, 8), p), 13152 - p.queries);
}

TEST(Words, FlashClosedForm) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(300);
    p.mask = {};
    int64_t br = random.number(1, 40), bc = random.number(1, 40);
    int64_t nq = p.queries, nk = p.keys, d = p.headDim, e = p.headDimV;
    // 2Nd + N + 2N²d/Br
    int64_t words = nq * d + nq * e + nq * (p.lse + p.lseLow) +
                    ceilDiv(nq, br) * nk * (d + e);
    EXPECT_EQ(trafficWords(flash(br, bc), p), words * p.batch * p.heads) << p;
  }
}

TEST(Words, ScoreSpillClosedForm) {
  Random random(4);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(300);
    p.mask = {};
    int64_t b1 = random.number(1, 40), b2 = random.number(1, 40);
    int64_t c1 = random.number(1, 40), c2 = random.number(1, 40);
    int64_t nq = p.queries, nk = p.keys, d = p.headDim, e = p.headDimV;
    // N²d (1/b1 + 1/b2 + 1/c1 + 1/c2) + N² + N²/b2 (1 + d/c2) + Nd + 4N
    int64_t words = ceilDiv(nq, b1) * nk * d + ceilDiv(nk, b2) * nq * d +
                    ceilDiv(nq, c1) * nk * e + ceilDiv(e, c2) * nq * nk +
                    nq * nk + nq * ceilDiv(nk, b2) * (1 + ceilDiv(e, c2)) +
                    nq * e + 4 * nq + nq * (p.lse + p.lseLow);
    EXPECT_EQ(trafficWords(scoreSpill(b1, b2, c1, c2), p),
              words * p.batch * p.heads)
        << p;
  }
}

TEST(Words, SplitBackwardClosedForm) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(300);
    p.mask = {};
    p.direction = Direction::backward;
    p.dlse = random.number(0, 1) != 0;
    int64_t br = random.number(1, 40), bc = random.number(1, 40);
    int64_t nq = p.queries, nk = p.keys, d = p.headDim, e = p.headDimV;
    int64_t lse = 1 + p.lseLow;
    // For a head of queries: Q, dO, O, dO, dQ, LSE, D, dLSE; all K and V.
    int64_t byQuery = nq * (2 * d + 3 * e + lse + 1 + p.dlse) +
                      ceilDiv(nq, br) * nk * (d + e);
    // For a head of keys: K, V, dK, dV; for each of its heads of queries all Q,
    // dO, LSE and D.
    int64_t group = p.heads / p.kvHeads;
    int64_t own = nk * 2 * (d + e);
    int64_t past = ceilDiv(nk, bc) * group * nq * (d + e + lse + 1);
    EXPECT_EQ(trafficWords(splitBackward(br, bc), p),
              p.batch * (p.heads * byQuery + p.kvHeads * (own + past)))
        << p;
    // dK by itself needs V, but not to hold dV; dV by itself neither V nor D.
    int64_t ownTwice = nk * (2 * d + e) + nk * (d + e);
    int64_t pastTwice = past + past / (d + e + lse + 1) * (d + e + lse);
    EXPECT_EQ(trafficWords(splitBackward(br, bc, true), p),
              p.batch *
                  (p.heads * byQuery + p.kvHeads * (ownTwice + pastTwice)))
        << p;
  }
}

} // namespace
