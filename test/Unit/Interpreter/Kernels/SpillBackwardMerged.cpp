//===- SpillBackwardMerged.cpp - P, dS and their sums in one launch -------===//
//
// Blocks of spill_backward, merged, wait for what others have made of scores:
// in every order of blocks, and without any of what keeps them in order.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/SpillBackwardTiles.h"
#include "Harness/BuiltGradient.h"
#include "Harness/DroppedFences.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "gtest/gtest-spi.h"

using namespace mlir;
using namespace attn;

namespace {

constexpr BlockOrder kBlockOrders[] = {
    BlockOrder::inTurn, BlockOrder::oldestFirst, BlockOrder::newestFirst,
    BlockOrder::oneStarved, BlockOrder::shuffled};

class SpillBackwardMerged : public BuiltGradient {
protected:
  SpillBackwardMerged() : BuiltGradient("spill_backward", "wgmma") {}

  static InterpreterOptions optionsOf(BlockOrder order, uint64_t seed) {
    InterpreterOptions options;
    options.order = seed % 2 ? WarpOrder::shuffled : WarpOrder::reverse;
    options.blocks = order;
    options.seed = seed;
    return options;
  }

  static Problem ofHeads(Problem p, int64_t heads, int64_t kvHeads) {
    p.heads = heads;
    p.kvHeads = kvHeads;
    return p;
  }

  /// Whether something goes wrong, in some order, when the kernel is changed
  /// so.
  template <typename Change> bool isSeen(Change change) {
    const GradientCase truth(
        ofHeads(problem(260, 420, 72, 136, {MaskKind::causal}), 3, 3));
    const SpillBackwardTiles c = {128, 128, 512, 3, 2, true};
    for (int64_t blocks : {3, 7, 24})
      for (BlockOrder order : kBlockOrders) {
        testing::TestPartResultArray failures;
        testing::ScopedFakeTestPartResultReporter reporter(
            testing::ScopedFakeTestPartResultReporter::
                INTERCEPT_ONLY_CURRENT_THREAD,
            &failures);
        multiprocessors = blocks;
        this->change = change;
        check(truth, c, optionsOf(order, /*seed=*/5));
        this->change = {};
        if (failures.size() > 0)
          return true;
      }
    return false;
  }
};

} // namespace

TEST_F(SpillBackwardMerged, InAllBlockOrders) {
  ATTN_LONG_TEST();
  for (int64_t blocks : {1, 2, 5})
    for (BlockOrder order : kBlockOrders) {
      multiprocessors = blocks;
      check(ofHeads(problem(300, 420, 72, 136, {MaskKind::causal}), 4, 2),
            SpillBackwardTiles{256, 128, 256, 2, 2, true},
            optionsOf(order, uint64_t(blocks)));
      check(ofHeads(problem(300, 420, 72, 136), 4, 2),
            SpillBackwardTiles{128, 64, 512, 2, 3, true},
            optionsOf(order, uint64_t(blocks)));
    }
}

/// Turns of one head and of several, of which the last has fewer; one turn, and
/// more than are ahead.
TEST_F(SpillBackwardMerged, Turns) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks)
    for (int64_t heads : {1, 3, 8})
      for (int64_t blocks : {2, 5, 7, 30}) {
        multiprocessors = blocks;
        SpillBackwardTiles c = {128, 64, 256, 8, 2, true};
        check(ofHeads(problem(100, 120, 64, 64, mask), heads, heads), c);
        c.heads = 3;
        check(ofHeads(problem(150, 330, 64, 64, mask), 2 * heads, heads), c);
      }
}

/// Every sum is one block's, in one order, however tiles are drawn.  Those that
/// D has no part in are what launches of their own give.
TEST_F(SpillBackwardMerged, RepeatsItsBits) {
  ATTN_LONG_TEST();
  const GradientCase truth(
      ofHeads(problem(300, 700, 136, 72, {MaskKind::causal}), 4, 2));
  const SpillBackwardTiles apart = {256, 128, 256, 2, 3};
  SpillBackwardTiles merged = apart;
  merged.merged = true;
  auto expected = run(truth, merged);
  EXPECT_EQ(expected["dv"], run(truth, apart)["dv"]);
  for (int64_t blocks : {3, 11})
    for (BlockOrder order : kBlockOrders) {
      multiprocessors = blocks;
      auto left = run(truth, merged, optionsOf(order, uint64_t(blocks)));
      for (const char *gradient : {"dq", "dk", "dv"})
        EXPECT_EQ(left[gradient], expected[gradient]) << gradient;
    }
}

//===----------------------------------------------------------------------===//
// What keeps it in order
//===----------------------------------------------------------------------===//

static bool isInRole(Operation *op, StringRef name) {
  return op->getParentOfType<tile::RoleOp>().getName() == name;
}

/// Who waits for flags: sums of keys, or of queries, and scores, for D.
enum Waiting { keySums, querySums, scores };

static void changeAwaits(ModuleOp module, Waiting which,
                         function_ref<void(tile::AwaitOp)> change) {
  int number = 0;
  module.walk([&](tile::AwaitOp op) {
    if (isInRole(op, "consumer") ? which == scores : number++ % 2 == which)
      change(op);
  });
}

/// Moves an op, and what it takes its operands from, to where its block begins.
static void moveUp(Operation *op) {
  Operation *front = &op->getBlock()->front();
  for (Operation &before : llvm::make_early_inc_range(*op->getBlock())) {
    if (&before == op)
      break;
    if (&before != front && isMemoryEffectFree(&before))
      before.moveBefore(front);
  }
  op->moveBefore(front);
}

TEST_F(SpillBackwardMerged, Fences) {
  multiprocessors = 7;
  const GradientCase truth(problem(260, 420, 72, 136));
  expectFencesNeeded(context, change, [&] {
    check(truth, SpillBackwardTiles{128, 128, 512, 3, 2, true},
          InterpreterOptions());
  });
}

TEST_F(SpillBackwardMerged, KeepsItsOrder) {
  ATTN_LONG_TEST();
  using tile::AwaitOp, tile::CountOp;
  EXPECT_FALSE(isSeen([](ModuleOp) {})) << "the kernel itself";
  for (Waiting which : {keySums, querySums, scores}) {
    EXPECT_TRUE(isSeen([&](ModuleOp module) {
      changeAwaits(module, which, [](AwaitOp op) {
        OpBuilder b(op);
        op.getValueMutable().assign(
            arith::ConstantIntOp::create(b, op.getLoc(), 0, 32));
      });
    })) << "who does not wait";
    EXPECT_TRUE(isSeen([&](ModuleOp module) {
      changeAwaits(module, which, [](AwaitOp op) {
        OpBuilder b(op);
        auto one = arith::ConstantIntOp::create(b, op.getLoc(), 1, 32);
        op.getValueMutable().assign(
            arith::SubIOp::create(b, op.getLoc(), op.getValue(), one));
      });
    })) << "who waits for all but one";
  }
  // All but that of a block's first tile.
  for (int which : {1, 2, 3})
    EXPECT_TRUE(isSeen([&](ModuleOp module) {
      int number = 0;
      module.walk([&](CountOp op) {
        if (isInRole(op, "producer") && number++ == which)
          op.erase();
      });
    })) << "flags that do not come back to 0, or do not tell of a row";
  EXPECT_TRUE(isSeen([](ModuleOp module) {
    module.walk([](CountOp op) {
      if (isInRole(op, "writer"))
        moveUp(op);
    });
  })) << "scores that are told of before they are stored";
  EXPECT_TRUE(isSeen([](ModuleOp module) {
    module.walk([](tile::StoreRowOp op) {
      auto branch = op->getParentOfType<scf::IfOp>();
      if (branch && op->getParentOfType<tile::RoleOp>())
        branch->moveBefore(branch->getBlock()->getTerminator());
    });
  })) << "D that is told of before it is stored";
  EXPECT_TRUE(isSeen([](ModuleOp module) {
    module.walk([](CountOp op) {
      if (isInRole(op, "consumer"))
        op.erase();
    });
  })) << "D that nobody tells of";
}
