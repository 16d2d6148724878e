//===- FlashWgmma.cpp - Are the kernels on wgmma right, byte for byte? ----===//
//
// In every order of warps, with every option of the schedule.
//
//===----------------------------------------------------------------------===//

#include "FlashCase.h"
#include "KernelTest.h"

using namespace mlir;
using namespace attn;

namespace {
class FlashWgmma : public ::testing::Test {
protected:
  FlashWgmma() { loadDialects(context); }

  void check(const Problem &problem, const Tiles &tiles) {
    FlashCase flash(problem, tiles);
    OwningOpRef<ModuleOp> module = buildFlash(context, problem, tiles);
    tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
    SCOPED_TRACE(tiles.str() + "; queries " + std::to_string(problem.queries) +
                 ", keys " + std::to_string(problem.keys) + ", d " +
                 std::to_string(problem.headDim) + ", " + str(problem.mask));
    FailureOr<tile::Traffic> counted =
        tile::countTraffic(kernel, flash.grid(), flash.scalars(kernel));
    ASSERT_TRUE(succeeded(counted));
    for (WarpOrder order :
         {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      Outcome outcome = flash.run(kernel, options);
      ASSERT_EQ(outcome.error, "");
      EXPECT_LT(outcome.relativeError, 4e-3);
      EXPECT_LT(outcome.lseError, 1e-4);
      EXPECT_EQ(counted->global, outcome.traffic.global);
      EXPECT_EQ(counted->smem, outcome.traffic.smem);
    }
  }

  static Problem problem(int64_t queries, int64_t keys, int64_t headDim,
                         int64_t headDimV, Mask mask = {}) {
    Problem p;
    p.queries = queries;
    p.keys = keys;
    p.headDim = headDim;
    p.headDimV = headDimV;
    p.mask = mask;
    p.heads = 2;
    p.kvHeads = 1;
    return p;
  }

  MLIRContext context;
};
} // namespace

static Tiles tiles(int64_t query, int64_t key, int64_t stages,
                   int64_t queryStages, int64_t staging, bool pingPong,
                   bool persistent) {
  return {{"query", query},     {"key", key},
          {"stages", stages},   {"query_stages", queryStages},
          {"staging", staging}, {"ping_pong", pingPong},
          {"overlap", 1},       {"persistent", persistent}};
}

TEST_F(FlashWgmma, MasksAndOptions) {
  const Mask masks[] = {{},
                        {MaskKind::causal},
                        {MaskKind::causalBottomRight},
                        {MaskKind::window, 40, 0},
                        {MaskKind::window, 7, 90}};
  for (const Mask &mask : masks)
    for (int64_t groups : {1, 2, 3})
      for (int option = 0; option < 4; ++option)
        check(problem(200, 330, 32, 32, mask),
              tiles(64 * groups, 32, 2 + option % 2, 1 + option / 2, 64,
                    groups > 1 && option % 2 == 0, option != 3));
}
