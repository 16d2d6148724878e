//===- SpillBackwardKept.cpp - Gradients from weights that were kept ------===//
//
// spill_backward where P is read instead of multiplied: gradients and bytes, in
// rounds, apart and merged.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/SpillBackwardTiles.h"
#include "Harness/BuiltGradient.h"
#include "Harness/Draws.h"

using namespace mlir;
using namespace attn;

namespace {

constexpr bool kKept = true;
/// One strip and several, and tiles of a gradient that are narrower than its
/// rows, and wider.
const SpillBackwardTiles kSpillBackwardKeptChoices[] = {
    {256, 256, 512, 2, 3, false, kKept},
    {256, 64, 256, 1, 2, false, kKept},
    {256, 256, 512, 2, 3, true, kKept},
    {256, 64, 256, 1, 2, true, kKept}};

class SpillBackwardKept : public BuiltGradient {
protected:
  SpillBackwardKept() : BuiltGradient("spill_backward", "wgmma") {}

  static Problem kept(int64_t queries, int64_t keys, int64_t headDim,
                      int64_t headDimV, Mask mask = {},
                      DataType type = DataType::bf16) {
    Problem p = problem(queries, keys, headDim, headDimV, mask, type);
    p.keepsWeights = true;
    return p;
  }
};

} // namespace

TEST_F(SpillBackwardKept, MasksAndRows) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks)
    for (const SpillBackwardTiles &c : kSpillBackwardKeptChoices)
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{200, 301},
                                   {300, 200},
                                   {1, 130},
                                   {130, 1},
                                   {128, 256}})
        check(kept(queries, keys, 32, 16, mask), c);
}

TEST_F(SpillBackwardKept, HeadDimensions) {
  for (const SpillBackwardTiles &c : kSpillBackwardKeptChoices)
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{72, 8},
                         {8, 136},
                         {200, 64},
                         {64, 256},
                         {320, 264}})
      check(kept(140, 270, d, dv, {MaskKind::causal}, DataType::f16), c);
}

TEST_F(SpillBackwardKept, HeadsShareKeys) {
  ATTN_LONG_TEST();
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {4, 1}})
    for (const SpillBackwardTiles &c : kSpillBackwardKeptChoices) {
      Problem p = kept(145, 267, 24, 32, {MaskKind::causal});
      p.batch = 2;
      p.heads = heads;
      p.kvHeads = kvHeads;
      check(p, c);
    }
}

/// Four stages leave room for half of a tile.
TEST_F(SpillBackwardKept, AllWarpOrdersInPieces) {
  ATTN_LONG_TEST();
  for (bool merged : {false, true})
    for (int64_t stages : {2, 4})
      for (WarpOrder order :
           {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
        InterpreterOptions options;
        options.order = order;
        Problem p = kept(300, 521, 136, 72, {MaskKind::causal});
        p.heads = p.kvHeads = 2;
        check(p, SpillBackwardTiles{256, 192, 512, 2, stages, merged, kKept},
              options);
      }
}

TEST_F(SpillBackwardKept, RowsThatSeeNothingHaveNoGradient) {
  for (const SpillBackwardTiles &c : kSpillBackwardKeptChoices) {
    check(kept(380, 20, 48, 32, {MaskKind::causalBottomRight}), c);
    check(kept(20, 380, 48, 32, {MaskKind::causal}), c);
    check(kept(0, 40, 48, 32), c);
    check(kept(40, 0, 48, 32), c);
    check(kept(140, 1100, 40, 24, {MaskKind::causal}), c);
  }
}

TEST_F(SpillBackwardKept, GradientOfTheLseAndScales) {
  for (double scale : {-0.3, 0.0, 2.0})
    for (const SpillBackwardTiles &c : kSpillBackwardKeptChoices) {
      Problem p = kept(170, 350, 32, 32, {MaskKind::causal});
      p.dlse = true;
      GradientCase truth(p);
      truth.scale = scale;
      truth.consultOracle();
      check(truth, c);
    }
}

/// As far as maxima are whole numbers (GroupSoftmax.h).
TEST_F(SpillBackwardKept, LargeScores) {
  ATTN_LONG_TEST();
  for (const SpillBackwardTiles &c : kSpillBackwardKeptChoices)
    for (DataType type : {DataType::bf16, DataType::f16})
      checkLargeScores(
          kept(180, 150, 32, 32, {MaskKind::causalBottomRight}, type), c,
          /*largestScale=*/1e5F);
}

/// Scores of about -200 everywhere: rows behind the end have none of those.
TEST_F(SpillBackwardKept, RowsBehindTheEnd) {
  for (const SpillBackwardTiles &c : kSpillBackwardKeptChoices) {
    GradientCase truth(kept(90, 300, 32, 32));
    for (size_t i = 0; i < truth.q.size(); i += 32)
      truth.q[i] = 2048;
    for (size_t i = 0; i < truth.k.size(); i += 32)
      truth.k[i] = -1;
    truth.consultOracle();
    check(truth, c);
  }
}

TEST_F(SpillBackwardKept, MergedInAllBlockOrders) {
  ATTN_LONG_TEST();
  for (int64_t blocks : {1, 2, 5})
    for (BlockOrder order :
         {BlockOrder::inTurn, BlockOrder::oldestFirst, BlockOrder::newestFirst,
          BlockOrder::oneStarved, BlockOrder::shuffled}) {
      InterpreterOptions options;
      options.order = blocks == 2 ? WarpOrder::reverse : WarpOrder::shuffled;
      options.blocks = order;
      options.seed = uint64_t(blocks);
      multiprocessors = blocks;
      Problem p = kept(300, 420, 72, 136, {MaskKind::causal});
      p.heads = 4, p.kvHeads = 2;
      check(p, SpillBackwardTiles{256, 128, 256, 2, 2, true, kKept}, options);
    }
}

TEST_F(SpillBackwardKept, RandomProblems) {
  Seed seed;
  Draws draw(seed);
  for (int i = 0; i < drawsOf(30); ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 400), draw(0, 200)},
                          {MaskKind::prefix, 0, 0, draw(0, 400)}};
    SpillBackwardTiles c = {256,        64 * draw(1, 4), 256 * draw(1, 3),
                            draw(1, 3), draw(2, 3),      draw(0, 1) != 0,
                            kKept};
    Problem p =
        kept(draw(1, 400), draw(1, 700), 8 * draw(1, 24), 8 * draw(1, 24),
             masks[draw(0, 4)], draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.batch = draw(1, 2);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.lseLow = draw(0, 3) == 0;
    multiprocessors = draw(1, 7);
    InterpreterOptions options;
    options.order = WarpOrder(draw(0, 2));
    options.seed = uint64_t(i);
    check(GradientCase(p, /*seed=*/i), c, options);
  }
}
