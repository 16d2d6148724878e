//===- ScoreSpillParts.cpp - Plain products of f32, byte for byte ---------===//
//
// score_spill for f32 on wgmma: two parts of f16 of every factor.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltRounds.h"
#include "Harness/Draws.h"
#include "Harness/DroppedFences.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

namespace {
class ScoreSpillParts : public BuiltRounds {
protected:
  ScoreSpillParts() : BuiltRounds("score_spill", "score_spill_wgmma") {}

  static Problem problem(int64_t queries, int64_t keys, int64_t headDim,
                         int64_t headDimV, Mask mask = {}) {
    return oneHead(queries, keys, headDim, headDimV, mask, DataType::f32);
  }
};

struct ScoreSpillPartsChoice {
  int64_t column = 64, strip = 128, heads = 1;
  bool merged = false;

  operator Tiles() const {
    return {{"query", 128},   {"key_block", 128}, {"column", column},
            {"strip", strip}, {"heads", heads},   {"parts", 2},
            {"stages", 6},    {"merged", merged}, {"persistent", 1}};
  }
};
} // namespace

TEST_F(ScoreSpillParts, MasksAndRows) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks)
    for (auto [queries, keys] : {std::pair<int64_t, int64_t>{300, 290},
                                 {90, 470},
                                 {1, 130},
                                 {270, 1},
                                 {128, 256}}) {
      for (bool merged : {false, true}) {
        ScoreSpillPartsChoice c;
        c.merged = merged;
        check(problem(queries, keys, 72, 64, mask), c);
        c.strip = 256;
        c.column = 128;
        check(problem(queries, keys, 64, 136, mask), c);
      }
    }
}

/// Rows of any length, of one slice, two, and an odd number; outputs of one
/// tile of columns and of several, whole and not.
TEST_F(ScoreSpillParts, HeadDimensions) {
  for (auto [d, dv] : {std::pair<int64_t, int64_t>{1, 1},
                       {17, 65},
                       {64, 64},
                       {66, 130},
                       {190, 33},
                       {256, 192},
                       {321, 257}})
    for (int64_t column : {64, 128})
      for (bool merged : {false, true}) {
        ScoreSpillPartsChoice c;
        c.column = column;
        c.merged = merged;
        check(problem(140, 150, d, dv, {MaskKind::causal}), c);
      }
}

TEST_F(ScoreSpillParts, HeadsAndBatches) {
  ATTN_LONG_TEST();
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {4, 1}})
    for (int64_t atOnce : {1, 2, 64}) {
      Problem p = problem(140, 150, 40, 72, {MaskKind::causalBottomRight});
      p.batch = 2;
      p.heads = heads;
      p.kvHeads = kvHeads;
      ScoreSpillPartsChoice c;
      c.heads = atOnce;
      check(p, c);
      p.lse = false;
      check(p, c);
      c.merged = true;
      check(p, c);
    }
}

/// In every order of warps, with few multiprocessors and many.
TEST_F(ScoreSpillParts, OrdersOfWarps) {
  ATTN_LONG_TEST();
  for (int order = 0; order < 3; ++order)
    for (int64_t multiprocessors : {1, 2, 50}) {
      InterpreterOptions options;
      options.order = WarpOrder(order);
      Problem p = problem(300, 300, 130, 130, {MaskKind::window, 90, 20});
      p.heads = p.kvHeads = 2;
      ScoreSpillPartsChoice c;
      c.heads = 2;
      c.strip = 256;
      for (bool merged : {false, true}) {
        c.merged = merged;
        FlashCase flash(p, c);
        flash.multiprocessors = multiprocessors;
        check(flash, options);
      }
    }
}

TEST_F(ScoreSpillParts, MergedFences) {
  FlashCase flash(problem(300, 420, 72, 136),
                  ScoreSpillPartsChoice{64, 512, 1, true});
  flash.multiprocessors = 7;
  expectFencesNeeded(context, change, [&] { check(flash); });
}

TEST_F(ScoreSpillParts, RandomProblems) {
  Seed seed;
  Draws draw(seed);
  for (int i = 0; i < 12; ++i) {
    Problem p = problem(draw(0, 400), draw(0, 400), draw(1, 200), draw(1, 200),
                        kMasks[draw(0, std::size(kMasks) - 1)]);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.batch = draw(1, 2);
    p.lse = draw(0, 1);
    ScoreSpillPartsChoice c;
    c.column = 64 * draw(1, 2);
    c.strip = 128 * draw(1, 3);
    c.heads = draw(1, 3);
    c.merged = draw(0, 1);
    check(p, c);
    if (HasFailure())
      return;
  }
}

TEST_F(ScoreSpillParts, NotANumberStaysInTheRowsThatSeeIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (float value : {nan, infinity, -infinity}) {
    SCOPED_TRACE(value);
    FlashCase keys(problem(80, 80, 48, 48, {MaskKind::causal}),
                   ScoreSpillPartsChoice());
    keys.k[37 * 48 + 5] = value;
    keys.consultOracle();
    check(keys);
    FlashCase queries(problem(80, 80, 48, 48), ScoreSpillPartsChoice());
    queries.q[37 * 48 + 5] = value;
    queries.consultOracle();
    check(queries);
    // A weight of 0 times an infinite value is NaN, so all rows see it here.
    FlashCase values(problem(80, 80, 48, 48), ScoreSpillPartsChoice());
    values.v[37 * 48 + 5] = value;
    values.consultOracle();
    check(values);
  }
}

/// Scores are the same of factors that are far apart, whichever is the large
/// one: both ends of what rows are multiplied by.
TEST_F(ScoreSpillParts, FactorsFarApart) {
  for (int exponent : {40, 95})
    for (int sign : {-1, 1}) {
      SCOPED_TRACE(sign * exponent);
      FlashCase flash(problem(140, 150, 64, 64, {MaskKind::causal}),
                      ScoreSpillPartsChoice());
      for (float &number : flash.q)
        number = std::ldexp(number, sign * exponent);
      for (float &number : flash.k)
        number = std::ldexp(number, -sign * exponent);
      flash.consultOracle();
      check(flash);
    }
}

/// Scores of minus infinity hide their keys and nothing else.
TEST_F(ScoreSpillParts, InfiniteKey) {
  FlashCase flash(problem(64, 64, 64, 64), ScoreSpillPartsChoice());
  for (float &number : flash.q)
    number = std::fabs(number);
  // As exact as may be: a part that nothing is left for.
  flash.q[3] = 1;
  flash.k[7 * 64 + 3] = -std::numeric_limits<float>::infinity();
  flash.consultOracle();
  check(flash);
}

/// Scores so far apart that a row's reference moves.
TEST_F(ScoreSpillParts, LargeScores) {
  FlashCase flash(problem(200, 500, 64, 64, {MaskKind::causalBottomRight}),
                  ScoreSpillPartsChoice());
  for (size_t i = 0; i < flash.k.size(); ++i) {
    size_t tile = i / (64 * 128);
    flash.k[i] *= float(1 + tile * 8);
  }
  flash.consultOracle();
  check(flash);
}
