//===- ClusterWgmma.cpp - Flash in clusters, byte for byte ----------------===//
//
// Blocks that load keys and values for each other: in every order of warps and
// of blocks, with every option of the schedule; the bytes are the plan's.
//
//===----------------------------------------------------------------------===//

#include "Harness/FlashWgmmaTest.h"
#include "Harness/GroupsTest.h"

#include "attn/Schedule/Plan.h"

using namespace mlir;
using namespace attn;

namespace {
class ClusterWgmma : public FlashWgmmaTest {
protected:
  /// The bytes are the plan's as well.
  void check(FlashCase &flash, ArrayRef<InterpreterOptions> runs) {
    FlashWgmmaTest::check(flash, runs);
    std::string error;
    std::optional<Plan> plan = planFor(flash.problem, *findMachine("h100_sxm"),
                                       "cluster", flash.tiles, error);
    ASSERT_TRUE(plan) << error;
    EXPECT_EQ(plan->kernel, "cluster_wgmma");
    EXPECT_EQ(counted.global, plan->bytes.l2);
    EXPECT_EQ(counted.smem, plan->bytes.smem);
  }
};

struct Choice {
  int64_t query = 64, key = 32, cluster = 2, stages = 2, queryStages = 1;
  bool pingPong = false, overlap = true, persistent = true;
  int64_t staging = 64;

  operator Tiles() const {
    return {{"query", query},          {"key", key},
            {"stages", stages},        {"query_stages", queryStages},
            {"cluster", cluster},      {"staging", staging},
            {"ping_pong", pingPong},   {"overlap", overlap},
            {"persistent", persistent}};
  }
};
} // namespace

static const Mask kSome[] = {{},
                             {MaskKind::causal},
                             {MaskKind::causalBottomRight},
                             {MaskKind::window, 40, 0},
                             {MaskKind::window, 7, 90}};

static InterpreterOptions ordered(WarpOrder warps, BlockOrder blocks,
                                  uint64_t seed = 0) {
  InterpreterOptions options;
  options.order = warps;
  options.blocks = blocks;
  options.seed = seed;
  return options;
}

TEST_F(ClusterWgmma, MasksAndOptions) {
  int number = 0;
  for (const Mask &mask : kSome)
    for (int64_t groups : {1, 2})
      for (int option = 0; option < 4; ++option) {
        Choice c;
        c.query = 64 * groups;
        c.cluster = number++ % 3 == 2 ? 4 : 2;
        c.stages = 2 + option % 2;
        c.queryStages = 1 + option / 2;
        c.pingPong = groups > 1 && option % 2 == 0;
        c.persistent = option != 3;
        if (!c.persistent)
          c.queryStages = 1;
        FlashCase flash(problem(200, 330, 32, 48, mask), c);
        flash.multiprocessors = 5;
        check(flash, {ordered(WarpOrder::forward, BlockOrder::sameAsWarps),
                      ordered(WarpOrder::reverse, BlockOrder::inTurn),
                      ordered(WarpOrder::shuffled, BlockOrder::shuffled)});
      }
}

/// Every order of blocks, with rows and without for the last ones: 65 rows are
/// two tiles, 300 are a cluster of four and one with a last block that has
/// none.
TEST_F(ClusterWgmma, BlocksInEveryOrder) {
  for (auto [queries, cluster] :
       {std::pair<int64_t, int64_t>{65, 2}, {129, 2}, {300, 4}, {20, 4}})
    for (bool persistent : {true, false}) {
      Choice c;
      c.cluster = cluster;
      c.persistent = persistent;
      FlashCase flash(problem(queries, 150, 32, 32, {MaskKind::causal}), c);
      flash.multiprocessors = 4;
      check(flash, schedules());
    }
}

/// Rows that see nothing: O is 0 and LSE minus infinity.
TEST_F(ClusterWgmma, RowsThatSeeNothing) {
  for (int64_t key : {32, 64}) {
    Choice c;
    c.key = key;
    FlashCase flash(problem(300, 100, 32, 32, {MaskKind::causalBottomRight}),
                    c);
    flash.multiprocessors = 2;
    check(flash, {ordered(WarpOrder::forward, BlockOrder::oldestFirst),
                  ordered(WarpOrder::shuffled, BlockOrder::newestFirst)});
  }
}

/// Blocks of keys that are dealt out by panels and by rows, ragged panels, all
/// sizes of clusters, f16 and f8.
TEST_F(ClusterWgmma, Shapes) {
  struct Shape {
    int64_t d, dV, key, cluster;
    DataType type;
  };
  for (const Shape &shape : {Shape{128, 64, 64, 2, DataType::bf16},
                             {96, 200, 64, 2, DataType::f16},
                             {256, 128, 64, 4, DataType::bf16},
                             {72, 320, 64, 4, DataType::f16},
                             {512, 64, 64, 8, DataType::bf16},
                             {64, 48, 32, 2, DataType::f8e4m3},
                             {256, 144, 64, 2, DataType::f8e4m3},
                             {128, 128, 96, 4, DataType::f8e4m3}}) {
    Problem p = problem(150, 170, shape.d, shape.dV, {MaskKind::causal});
    p.dtype = shape.type;
    p.heads = 3;
    p.kvHeads = shape.cluster == 4 ? 3 : 1;
    p.batch = 2;
    p.lse = shape.cluster != 2;
    Choice c;
    c.key = shape.key;
    c.cluster = shape.cluster;
    FlashCase flash(p, c);
    flash.multiprocessors = 2 * shape.cluster;
    check(flash, {ordered(WarpOrder::shuffled, BlockOrder::shuffled)});
  }
}

TEST_F(ClusterWgmma, RandomBoundaries) {
  Seed seed;
  BoundaryDraws draw(seed);
  for (int i = 0; i < 150; ++i) {
    Choice c;
    c.query = 64 * draw(1, 3);
    c.cluster = 1 << draw(1, 2);
    c.key = 32 * draw(1, 3);
    c.stages = draw(2, 4);
    c.persistent = draw(0, 5) != 0;
    c.queryStages = c.persistent ? draw(1, 2) : 1;
    c.pingPong = c.query > 64 && draw(0, 1);
    c.overlap = draw(0, 5) != 0;
    FlashCase flash(
        draw.problem(problem(1, 1, 16, 16), c.query * c.cluster, 500), c,
        /*seed=*/i);
    flash.multiprocessors = c.cluster * draw(1, 3);
    check(flash, ordered(WarpOrder(draw(0, 2)), BlockOrder(draw(0, 5)), i));
    if (HasFatalFailure())
      return;
  }
}

/// Kernels that hand a slot back to their own block only are found out.
TEST_F(ClusterWgmma, MutantsAreKilled) {
  Choice c;
  FlashCase flash(problem(300, 400, 32, 32, {MaskKind::causal}), c);
  flash.multiprocessors = 2;
  std::string survivors;
  auto killed = [&](function_ref<bool(Operation *)> change) {
    OwningOpRef<ModuleOp> module =
        buildFlash(context, flash.problem, flash.tiles);
    bool isChanged = false;
    module->walk([&](Operation *op) { isChanged |= change(op); });
    EXPECT_TRUE(isChanged);
    tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
    for (const InterpreterOptions &options : schedules())
      if (Outcome outcome = flash.run(kernel, options); !outcome.error.empty())
        return outcome.error;
    return std::string();
  };
  // All arrivals, and each by itself.
  int64_t arrivals = 0;
  EXPECT_NE(killed([&](Operation *op) {
              auto arrive = dyn_cast<tile::MbarrierArriveOp>(op);
              if (!arrive || !arrive.getCluster())
                return false;
              arrive.setCluster(false);
              ++arrivals;
              return true;
            }),
            "");
  ASSERT_GT(arrivals, 4);
  for (int64_t wrong = 0; wrong < arrivals; ++wrong) {
    int64_t number = 0;
    std::string error = killed([&](Operation *op) {
      auto arrive = dyn_cast<tile::MbarrierArriveOp>(op);
      if (!arrive || !arrive.getCluster() || number++ != wrong)
        return false;
      arrive.setCluster(false);
      return true;
    });
    survivors += error.empty() ? " " + std::to_string(wrong) : "";
  }
  // The last values of a launch: nobody loads over them.
  EXPECT_EQ(survivors, " 7");
}
