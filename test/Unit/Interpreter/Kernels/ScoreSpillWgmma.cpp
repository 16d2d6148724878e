//===- ScoreSpillWgmma.cpp - Two plain products, byte for byte ------------===//
//
// score_spill on wgmma: rounds of one and of several key heads and strips of
// queries.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltRounds.h"
#include "Harness/Draws.h"
#include "Harness/DroppedFences.h"

#include "gtest/gtest-spi.h"

#include <limits>

using namespace mlir;
using namespace attn;

namespace {
class ScoreSpillWgmma : public BuiltRounds {
protected:
  ScoreSpillWgmma() : BuiltRounds("score_spill", "score_spill_wgmma") {}

public:
  /// A merged kernel on so many blocks, changed.
  void runMerged(int64_t blocks, BlockOrder order,
                 std::function<void(ModuleOp)> change);
};

struct ScoreSpillWgmmaChoice {
  int64_t keyBlock = 128, column = 64, strip = 128, heads = 1, stages = 2;
  bool merged = false;

  operator Tiles() const {
    return {{"query", 128},     {"key_block", keyBlock}, {"column", column},
            {"strip", strip},   {"heads", heads},        {"stages", stages},
            {"merged", merged}, {"persistent", 1}};
  }
};
} // namespace

void ScoreSpillWgmma::runMerged(int64_t blocks, BlockOrder order,
                                std::function<void(ModuleOp)> change) {
  Problem p = oneHead(300, 420, 72, 136, {MaskKind::causal});
  p.heads = p.kvHeads = 2;
  ScoreSpillWgmmaChoice c;
  c.merged = true;
  c.strip = 512, c.heads = 2;
  InterpreterOptions options;
  options.order = WarpOrder::shuffled;
  options.blocks = order;
  options.seed = 5;
  FlashCase flash(p, c);
  flash.multiprocessors = blocks;
  this->change = std::move(change);
  check(flash, options);
  this->change = {};
}

TEST_F(ScoreSpillWgmma, MasksAndRows) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks)
    for (int64_t keyBlock : {128, 256})
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{300, 290},
                                   {90, 470},
                                   {9, 130},
                                   {270, 1},
                                   {128, 256}}) {
        for (bool merged : {false, true}) {
          ScoreSpillWgmmaChoice c;
          c.keyBlock = keyBlock;
          c.merged = merged;
          check(oneHead(queries, keys, 72, 64, mask), c);
          c.strip = 256;
          c.stages = 3;
          check(oneHead(queries, keys, 64, 136, mask, DataType::f16), c);
        }
      }
}

TEST_F(ScoreSpillWgmma, HeadDimensions) {
  for (auto [d, dv] : {std::pair<int64_t, int64_t>{8, 64},
                       {16, 8},
                       {40, 72},
                       {64, 64},
                       {200, 136},
                       {96, 328},
                       {520, 256}}) {
    for (int64_t column : {64, 192, 256}) {
      ScoreSpillWgmmaChoice c;
      c.column = column;
      c.strip = 256;
      check(oneHead(150, 200, d, dv, {MaskKind::causal}, DataType::f16), c);
    }
  }
}

/// Scores in a loop over slices, with and without some that are left.
TEST_F(ScoreSpillWgmma, WideHeads) {
  ScoreSpillWgmmaChoice c;
  c.keyBlock = c.column = 256;
  c.stages = 3;
  for (int64_t d : {512, 576, 640, 1000, 2048})
    check(oneHead(40, 300, d, 320, {MaskKind::causal}), c);
  check(oneHead(20, 70, 1000, 4096, {}, DataType::f16), c);
}

/// Rounds of one and of several key heads, the last ones with fewer.
TEST_F(ScoreSpillWgmma, HeadsBatchesAndRounds) {
  ATTN_LONG_TEST();
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {4, 1}})
    for (int64_t atOnce : {1, 2, 4, 64})
      for (bool hasLse : {false, true}) {
        Problem p = oneHead(270, 200, 72, 72, {MaskKind::causalBottomRight});
        p.batch = 2;
        p.heads = heads, p.kvHeads = kvHeads;
        p.lse = hasLse;
        ScoreSpillWgmmaChoice c;
        c.heads = atOnce;
        for (bool merged : {false, true}) {
          c.merged = merged;
          check(p, c);
        }
      }
}

/// A block works off no tile, one, and several.
TEST_F(ScoreSpillWgmma, TilesOfABlock) {
  ATTN_LONG_TEST();
  for (int64_t multiprocessors : {1, 2, 5, 50})
    for (int64_t queries : {0, 20, 400, 900})
      for (const Mask &mask :
           {Mask(), Mask{MaskKind::causal}, Mask{MaskKind::window, 70, 30}}) {
        Problem p = oneHead(queries, 500, 64, 64, mask);
        p.heads = p.kvHeads = 2;
        ScoreSpillWgmmaChoice c;
        c.strip = 512;
        c.heads = 2;
        for (bool merged : {false, true}) {
          c.merged = merged;
          FlashCase flash(p, c);
          flash.multiprocessors = multiprocessors;
          check(flash);
        }
      }
}

/// Four stages of 256 columns leave room for half of a tile.
TEST_F(ScoreSpillWgmma, LeavesInPieces) {
  ATTN_LONG_TEST();
  ScoreSpillWgmmaChoice c;
  c.keyBlock = c.column = 256;
  c.stages = 4;
  c.strip = 256;
  for (const Mask &mask : kMasks)
    for (WarpOrder order :
         {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      for (auto [d, dv] :
           {std::pair<int64_t, int64_t>{72, 8}, {256, 320}, {640, 200}})
        check(oneHead(300, 420, d, dv, mask), c, options);
      // Pieces of outputs that are fewer than those of scores: also an odd one.
      ScoreSpillWgmmaChoice merged = c;
      merged.merged = true;
      for (int64_t column : {64, 128, 192, 256}) {
        merged.column = column;
        check(oneHead(300, 420, 72, 264, mask), merged, options);
      }
    }
}

TEST_F(ScoreSpillWgmma, AllWarpOrders) {
  for (int64_t stages : {2, 3, 4})
    for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                            WarpOrder::shuffled, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      options.seed += 17;
      ScoreSpillWgmmaChoice c;
      c.stages = stages;
      c.strip = 256;
      for (bool merged : {false, true}) {
        c.merged = merged;
        check(oneHead(300, 420, 136, 136, {MaskKind::causal}), c, options);
      }
    }
}

// Outputs wait for scores of other blocks, whichever of them goes on.
TEST_F(ScoreSpillWgmma, MergedInAllBlockOrders) {
  ATTN_LONG_TEST();
  for (int64_t blocks : {1, 2, 5})
    for (BlockOrder order :
         {BlockOrder::inTurn, BlockOrder::oldestFirst, BlockOrder::newestFirst,
          BlockOrder::oneStarved, BlockOrder::shuffled}) {
      Problem p = oneHead(300, 420, 72, 136, {MaskKind::causal});
      p.heads = 4, p.kvHeads = 2;
      ScoreSpillWgmmaChoice c;
      c.merged = true;
      c.strip = 256, c.heads = 2;
      InterpreterOptions options;
      options.order = blocks == 2 ? WarpOrder::reverse : WarpOrder::shuffled;
      options.blocks = order;
      options.seed = uint64_t(blocks);
      FlashCase flash(p, c);
      flash.multiprocessors = blocks;
      check(flash, options);
    }
}

/// What goes wrong when a merged kernel is changed so, in some order.
template <typename Change>
static bool isSeen(ScoreSpillWgmma &test, Change change) {
  for (int64_t blocks : {3, 7, 24})
    for (BlockOrder order :
         {BlockOrder::inTurn, BlockOrder::oldestFirst, BlockOrder::newestFirst,
          BlockOrder::oneStarved, BlockOrder::shuffled}) {
      testing::TestPartResultArray failures;
      testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::
              INTERCEPT_ONLY_CURRENT_THREAD,
          &failures);
      test.runMerged(blocks, order, change);
      if (failures.size() > 0)
        return true;
    }
  return false;
}

/// Whoever reads P and its numbers does so behind those who wrote them.
TEST_F(ScoreSpillWgmma, MergedKeepsItsOrder) {
  ATTN_LONG_TEST();
  using tile::AwaitOp, tile::CountOp;
  EXPECT_FALSE(isSeen(*this, [](ModuleOp) {})) << "the kernel itself";
  EXPECT_TRUE(isSeen(*this, [](ModuleOp module) {
    module.walk([](AwaitOp op) {
      OpBuilder b(op);
      op.getValueMutable().assign(
          arith::ConstantIntOp::create(b, op.getLoc(), 0, 32));
    });
  })) << "outputs that do not wait";
  EXPECT_TRUE(isSeen(*this, [](ModuleOp module) {
    module.walk([](AwaitOp op) {
      OpBuilder b(op);
      auto one = arith::ConstantIntOp::create(b, op.getLoc(), 1, 32);
      op.getValueMutable().assign(
          arith::SubIOp::create(b, op.getLoc(), op.getValue(), one));
    });
  })) << "outputs that wait for all scores but one";
  EXPECT_TRUE(isSeen(*this, [](ModuleOp module) {
    module.walk([](CountOp op) {
      if (!op->getBlock()->getOps<AwaitOp>().empty())
        op.erase();
    });
  })) << "flags that do not come back to 0";
  EXPECT_TRUE(isSeen(*this, [](ModuleOp module) {
    module.walk([](CountOp op) {
      if (op->getBlock()->getOps<AwaitOp>().empty())
        op->moveBefore(&op->getBlock()->front());
    });
  })) << "scores that are told of before they are stored";
}

TEST_F(ScoreSpillWgmma, MergedFences) {
  FlashCase flash(oneHead(300, 420, 72, 136),
                  ScoreSpillWgmmaChoice{128, 64, 512, 1, 2, true});
  flash.multiprocessors = 7;
  expectFencesNeeded(context, change, [&] { check(flash); });
}

TEST_F(ScoreSpillWgmma, RowsThatSeeNoKeyAreZero) {
  for (int64_t strip : {128, 512})
    for (bool merged : {false, true}) {
      ScoreSpillWgmmaChoice c;
      c.strip = strip;
      c.merged = merged;
      // Bottom-right: the first 380 of 400 queries see none of the 20 keys.
      check(oneHead(400, 20, 72, 64, {MaskKind::causalBottomRight}), c);
      check(oneHead(200, 50, 72, 64, {MaskKind::window, 10, 0}), c);
      check(oneHead(40, 0, 72, 64), c);
    }
}

TEST_F(ScoreSpillWgmma, NotANumberStaysInTheRowsThatSeeIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (int64_t key : {3, 137, 299})
    for (float value : {nan, infinity, -infinity}) {
      FlashCase flash(oneHead(300, 300, 72, 64, {MaskKind::causal}),
                      ScoreSpillWgmmaChoice());
      flash.k[key * 72 + 5] = value;
      flash.consultOracle();
      check(flash);
    }
}

/// Maxima that grow or shrink from block to block, so that weights are brought
/// to others' by large powers, or to nothing in f16.
TEST_F(ScoreSpillWgmma, GrowingScores) {
  for (DataType type : {DataType::bf16, DataType::f16})
    for (float growth : {1.0f, 20.0f, -1.0f, -20.0f}) {
      FlashCase flash(oneHead(40, 600, 32, 32, {}, type),
                      ScoreSpillWgmmaChoice());
      flash.growScores(growth, /*every=*/32);
      check(flash);
    }
}

TEST_F(ScoreSpillWgmma, RandomProblems) {
  ATTN_LONG_TEST();
  Seed seed;
  Draws draw(seed);
  for (int i = 0; i < drawsOf(60); ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 300), draw(0, 150)},
                          {MaskKind::prefix, 0, 0, draw(0, 300)}};
    ScoreSpillWgmmaChoice c;
    c.keyBlock = 128 * draw(1, 2);
    c.column = 64 * draw(1, 4);
    c.strip = 128 * draw(1, 4);
    c.heads = draw(1, 4);
    c.stages = draw(2, 4);
    c.merged = draw(0, 1) && c.column <= c.keyBlock;
    Problem p =
        oneHead(draw(1, 500), draw(0, 600), 8 * draw(1, 30), 8 * draw(1, 30),
                masks[draw(0, 4)], draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.batch = draw(1, 2);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.lse = draw(0, 3) != 0;
    FlashCase flash(p, c, /*seed=*/i);
    flash.multiprocessors = draw(1, 9);
    InterpreterOptions options;
    options.order = WarpOrder(draw(0, 2));
    options.seed = uint64_t(i);
    check(flash, options);
  }
}
