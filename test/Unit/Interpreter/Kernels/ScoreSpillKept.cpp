//===- ScoreSpillKept.cpp - Weights that a forward call keeps -------------===//
//
// score_spill on wgmma where P and its statistics leave for arrays of the
// caller: these arrays, the output and the bytes, in rounds, apart and merged.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltRounds.h"
#include "Harness/Draws.h"

using namespace mlir;
using namespace attn;

namespace {
class ScoreSpillKept : public BuiltRounds {
protected:
  ScoreSpillKept() : BuiltRounds("score_spill", "score_spill_wgmma") {}
};

struct ScoreSpillKeptChoice {
  int64_t column = 64, strip = 128, heads = 1, stages = 2;
  bool merged = false;

  operator Tiles() const {
    return {{"query", 128},     {"key_block", 256}, {"column", column},
            {"strip", strip},   {"heads", heads},   {"kept", 1},
            {"stages", stages}, {"merged", merged}, {"persistent", 1}};
  }
};

const ScoreSpillKeptChoice kScoreSpillKeptChoices[] = {{64, 128, 1, 2, false},
                                                       {256, 256, 2, 3, false},
                                                       {64, 128, 1, 2, true},
                                                       {128, 512, 3, 3, true}};

Problem keeping(Problem p) {
  p.keepsWeights = true;
  return p;
}
} // namespace

TEST_F(ScoreSpillKept, MasksAndRows) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks)
    for (const ScoreSpillKeptChoice &c : kScoreSpillKeptChoices)
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{300, 290},
                                   {90, 523},
                                   {9, 130},
                                   {270, 1},
                                   {128, 256}}) {
        check(keeping(oneHead(queries, keys, 72, 64, mask)), c);
        check(keeping(oneHead(queries, keys, 64, 136, mask, DataType::f16)), c);
      }
}

TEST_F(ScoreSpillKept, HeadsBatchesAndRounds) {
  ATTN_LONG_TEST();
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {4, 1}})
    for (ScoreSpillKeptChoice c : kScoreSpillKeptChoices)
      for (int64_t atOnce : {1, 2, 4}) {
        Problem p = oneHead(270, 301, 72, 72, {MaskKind::causalBottomRight});
        p.batch = 2;
        p.heads = heads, p.kvHeads = kvHeads;
        c.heads = atOnce;
        check(keeping(p), c);
      }
}

TEST_F(ScoreSpillKept, LeavesInPieces) {
  ATTN_LONG_TEST();
  for (bool merged : {false, true})
    for (WarpOrder order :
         {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      check(keeping(oneHead(300, 421, 72, 264, {MaskKind::causal})),
            ScoreSpillKeptChoice{256, 256, 1, 4, merged}, options);
    }
}

TEST_F(ScoreSpillKept, RowsThatSeeNoKey) {
  for (const ScoreSpillKeptChoice &c : kScoreSpillKeptChoices) {
    check(keeping(oneHead(400, 20, 72, 64, {MaskKind::causalBottomRight})), c);
    check(keeping(oneHead(200, 50, 72, 64, {MaskKind::window, 10, 0})), c);
    check(keeping(oneHead(40, 0, 72, 64)), c);
    check(keeping(oneHead(0, 40, 72, 64)), c);
  }
}

TEST_F(ScoreSpillKept, MergedInAllBlockOrders) {
  ATTN_LONG_TEST();
  for (int64_t blocks : {1, 2, 5})
    for (BlockOrder order :
         {BlockOrder::inTurn, BlockOrder::oldestFirst, BlockOrder::newestFirst,
          BlockOrder::oneStarved, BlockOrder::shuffled}) {
      Problem p = oneHead(300, 420, 72, 136, {MaskKind::causal});
      p.heads = 4, p.kvHeads = 2;
      InterpreterOptions options;
      options.order = blocks == 2 ? WarpOrder::reverse : WarpOrder::shuffled;
      options.blocks = order;
      options.seed = uint64_t(blocks);
      FlashCase flash(keeping(p), ScoreSpillKeptChoice{64, 256, 2, 2, true});
      flash.multiprocessors = blocks;
      check(flash, options);
    }
}

TEST_F(ScoreSpillKept, RandomProblems) {
  Seed seed;
  Draws draw(seed);
  for (int i = 0; i < drawsOf(40); ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 300), draw(0, 150)},
                          {MaskKind::prefix, 0, 0, draw(0, 300)}};
    ScoreSpillKeptChoice c{64 * draw(1, 4), 128 * draw(1, 4), draw(1, 4),
                           draw(2, 4), draw(0, 1) != 0};
    Problem p =
        oneHead(draw(1, 500), draw(0, 600), 8 * draw(1, 30), 8 * draw(1, 30),
                masks[draw(0, 4)], draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.batch = draw(1, 2);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    FlashCase flash(keeping(p), c, /*seed=*/i);
    flash.multiprocessors = draw(1, 9);
    InterpreterOptions options;
    options.order = WarpOrder(draw(0, 2));
    options.seed = uint64_t(i);
    check(flash, options);
  }
}
