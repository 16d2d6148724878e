//===- SpillBackward.cpp - Gradients through scratch, byte for byte -------===//
//
// All launches of spill_backward, in rounds of one and of several key heads and
// strips of keys, in every order of warps.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/SpillBackwardTiles.h"
#include "Harness/BuiltGradient.h"
#include "Harness/Draws.h"

#include <limits>

using namespace mlir;
using namespace attn;

namespace {

/// Small enough for several strips and rounds of a few rows, apart and merged.
const SpillBackwardTiles kSmall = {256, 128, 256, 2, 3},
                         kSmallMerged = {256, 128, 256, 2, 3, true};

/// One strip and several, of one block of keys and of several; tiles of a
/// gradient narrower than its rows, and wider.  All of them also merged.
const SpillBackwardTiles kSpillBackwardChoices[] = {
    {256, 256, 512, 2, 3},      {256, 64, 256, 1, 2},
    {128, 128, 128, 3, 4},      {256, 256, 512, 2, 3, true},
    {256, 64, 256, 1, 2, true}, {128, 128, 128, 3, 4, true}};

class SpillBackward : public BuiltGradient {
protected:
  SpillBackward() : BuiltGradient("spill_backward", "wgmma") {}
};

} // namespace

TEST_F(SpillBackward, MasksAndRows) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks)
    for (const SpillBackwardTiles &c : kSpillBackwardChoices)
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{200, 300},
                                   {300, 200},
                                   {1, 130},
                                   {130, 1},
                                   {128, 256}})
        check(problem(queries, keys, 32, 16, mask), c);
}

/// Of one and of several tiles of columns, for one gradient or for both.
TEST_F(SpillBackward, HeadDimensions) {
  ATTN_LONG_TEST();
  for (const SpillBackwardTiles &c : kSpillBackwardChoices)
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{72, 8},
                         {8, 136},
                         {200, 64},
                         {64, 256},
                         {320, 264}})
      check(problem(140, 270, d, dv, {MaskKind::causal}, DataType::f16), c);
}

TEST_F(SpillBackward, HeadsShareKeys) {
  ATTN_LONG_TEST();
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {6, 2}, {4, 1}})
    for (const SpillBackwardTiles &c : kSpillBackwardChoices) {
      Problem p = problem(145, 267, 24, 32, {MaskKind::causal});
      p.batch = 2;
      p.heads = heads;
      p.kvHeads = kvHeads;
      check(p, c);
    }
}

TEST_F(SpillBackward, AllWarpOrders) {
  ATTN_LONG_TEST();
  for (const SpillBackwardTiles &c : kSpillBackwardChoices)
    for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                            WarpOrder::shuffled, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      options.seed += 17;
      Problem p = problem(300, 520, 136, 72, {MaskKind::causal});
      p.heads = 2;
      check(p, c, options);
    }
}

/// Four stages of 256 columns leave room for half of a tile.
TEST_F(SpillBackward, LeavesInPieces) {
  ATTN_LONG_TEST();
  const SpillBackwardTiles apart = {256, 256, 512, 2, 4};
  // Tiles of sums have fewer pieces than those of scores, or an odd one.
  const SpillBackwardTiles merged[] = {{256, 256, 512, 2, 4, true},
                                       {256, 192, 512, 2, 4, true},
                                       {256, 64, 512, 2, 4, true}};
  for (WarpOrder order :
       {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled})
    for (const SpillBackwardTiles &c :
         {apart, merged[0], merged[1], merged[2]}) {
      InterpreterOptions options;
      options.order = order;
      for (const Mask &mask : kMasks)
        check(problem(300, 700, 328, 72, mask), c, options);
      Problem p = problem(150, 520, 72, 264, {MaskKind::causal}, DataType::f16);
      p.heads = 4;
      p.kvHeads = 2;
      check(p, c, options);
    }
}

/// Sums of dQ wait between the strips that its rows see, and only between them.
TEST_F(SpillBackward, StripsThatRowsSee) {
  ATTN_LONG_TEST();
  for (const SpillBackwardTiles &c : kSpillBackwardChoices) {
    check(problem(700, 900, 40, 24, {MaskKind::window, 150, 10}), c);
    check(problem(140, 1100, 40, 24, {MaskKind::causalBottomRight}), c);
    check(problem(140, 1100, 40, 24, {MaskKind::causal}), c);
  }
}

TEST_F(SpillBackward, RowsThatSeeNothingHaveNoGradient) {
  for (const SpillBackwardTiles &c : kSpillBackwardChoices) {
    // The first 360 of 380 queries see none of the 20 keys; and the other way.
    check(problem(380, 20, 48, 32, {MaskKind::causalBottomRight}), c);
    check(problem(20, 380, 48, 32, {MaskKind::causal}), c);
    check(problem(0, 40, 48, 32), c);
    check(problem(40, 0, 48, 32), c);
    check(problem(0, 600, 48, 32), c);
  }
}

TEST_F(SpillBackward, GradientOfTheLse) {
  Problem p = problem(170, 350, 32, 32, {MaskKind::causal});
  p.heads = 2;
  p.dlse = true;
  check(p, kSmall);
  check(p, kSmallMerged);
}

TEST_F(SpillBackward, Scales) {
  for (double scale : {-0.3, 0.0, 2.0}) {
    GradientCase truth(problem(160, 270, 32, 32, {MaskKind::causal}));
    truth.scale = scale;
    truth.consultOracle();
    check(truth, kSmall);
    check(truth, kSmallMerged);
  }
}

TEST_F(SpillBackward, LargeScores) {
  ATTN_LONG_TEST();
  for (const SpillBackwardTiles &c : kSpillBackwardChoices)
    for (DataType type : {DataType::bf16, DataType::f16})
      checkLargeScores(
          problem(180, 150, 32, 32, {MaskKind::causalBottomRight}, type), c);
}

/// Scores of about -200 everywhere: weights of keys that do not exist, with a
/// score of 0, would be beyond all numbers.
TEST_F(SpillBackward, RowsBehindTheEnd) {
  for (const SpillBackwardTiles &c : kSpillBackwardChoices) {
    GradientCase truth(problem(90, 300, 32, 32));
    for (size_t i = 0; i < truth.q.size(); i += 32)
      truth.q[i] = 2048;
    for (size_t i = 0; i < truth.k.size(); i += 32)
      truth.k[i] = -1;
    truth.consultOracle();
    check(truth, c);
  }
}

/// A key whose value is NaN spoils the gradients of all queries that see it,
/// but of none before: what is hidden has no dS, whatever dP is there.
TEST_F(SpillBackward, NotANumberInAValue) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const SpillBackwardTiles &c : kSpillBackwardChoices) {
    GradientCase truth(problem(380, 380, 48, 32, {MaskKind::causal}));
    truth.v[337 * 32 + 5] = nan;
    truth.consultOracle();
    check(truth, c);
  }
}

TEST_F(SpillBackward, RandomProblems) {
  Seed seed;
  Draws draw(seed);
  for (int i = 0; i < drawsOf(30); ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 400), draw(0, 200)},
                          {MaskKind::prefix, 0, 0, draw(0, 400)}};
    SpillBackwardTiles c = kSmall;
    c.keyBlock = 128 * draw(1, 2);
    c.column = 64 * draw(1, 4);
    c.strip = c.keyBlock * draw(1, 3);
    c.heads = draw(1, 3);
    c.stages = draw(2, 3);
    c.merged = draw(0, 1) && c.column <= c.keyBlock;
    Problem p =
        problem(draw(1, 400), draw(1, 700), 8 * draw(1, 24), 8 * draw(1, 24),
                masks[draw(0, 4)], draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.batch = draw(1, 2);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.dlse = draw(0, 3) == 0;
    p.lseLow = draw(0, 3) == 0;
    multiprocessors = draw(1, 7);
    InterpreterOptions options;
    options.order = WarpOrder(draw(0, 2));
    options.seed = uint64_t(i);
    check(GradientCase(p, /*seed=*/i), c, options);
  }
}
