//===- KeyParts.cpp - Do parts of the keys make the whole? ----------------===//
//
// Random problems whose walks over keys are dealt out: few queries and many, of
// heads that share keys, under every mask, more parts than blocks that are
// seen, rows and tiles that see nothing.  Both launches are run; O and LSE are
// compared with the oracle, and bytes that moved with those that are counted
// in the IR and those that the schedule promised.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltKernel.h"
#include "Harness/KernelDraws.h"

#include "attn/Schedule/Plan.h"
#include "attn/Tile/SharedMemory.h"

#include "../../Share.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

namespace {

class KeyPartsOfKernels : public BuiltKernel {
protected:
  Draws draw{11};

  Mask drawMask() {
    switch (draw(0, 4)) {
    case 0:
      return {};
    case 1:
      return {MaskKind::causal};
    case 2:
      return {MaskKind::causalBottomRight};
    case 3:
      return {MaskKind::prefix, 0, 0, draw(0, 200)};
    default:
      return {MaskKind::window, draw(0, 100), draw(0, 50)};
    }
  }

  /// With head dimensions of so many columns, or several times as many.
  Problem drawProblem(int64_t mostQueries, int64_t columns = 1) {
    Problem p =
        oneHead(draw(1, mostQueries), draw(0, 3) ? draw(1, 500) : draw(1, 40),
                columns * draw(8 / columns, 80 / columns),
                columns * draw(8 / columns, 80 / columns), drawMask(),
                draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 3);
    p.lse = draw(0, 2) != 0;
    return p;
  }

  Tiles drawWarps() {
    int64_t warps = draw(1, 2);
    return {{"query", 16 * warps},
            {"key", 16 * draw(1, 4)},
            {"stages", draw(1, 3)},
            {"warps", warps},
            {"parts", draw(2, 20)}};
  }
  Tiles drawWarpgroups() {
    return {{"query", 64 * draw(1, 2)}, {"key", 64 * draw(1, 2)},
            {"stages", draw(2, 3)},     {"parts", draw(2, 20)},
            {"overlap", draw(0, 1)},    {"persistent", draw(0, 1)}};
  }

  /// Beside what every kernel is checked for, what its plan promised.
  void checkPlanned(const Problem &problem, const Tiles &tiles) {
    check(problem, tiles, drawOptions(draw));
    std::string error;
    std::optional<Plan> plan =
        planFor(problem, *findMachine("h100_sxm"), "flash", tiles, error);
    ASSERT_TRUE(plan) << error;
    FlashCase flash(problem, tiles);
    OwningOpRef<ModuleOp> module = buildFlash(context, problem, tiles);
    Outcome outcome = flash.run(*module->getOps<tile::KernelOp>().begin());
    EXPECT_EQ(outcome.traffic.global, plan->bytes.l2) << tiles.str();
    EXPECT_EQ(outcome.traffic.smem, plan->bytes.smem) << tiles.str();
    EXPECT_EQ(tile::SharedMemory(*module->getOps<tile::KernelOp>().begin())
                  .totalBytes(),
              plan->footprint.smemBytes)
        << tiles.str();
  }

  /// A row whose query is NaN is NaN, and no other one.
  void checkNaN(const Tiles &tiles) {
    Problem p = oneHead(3, 200, 32, 32, {MaskKind::causalBottomRight});
    FlashCase flash(p, tiles);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    flash.q[size_t(p.headDim)] = nan;
    flash.consultOracle();
    OwningOpRef<ModuleOp> module = buildFlash(context, p, tiles);
    Outcome outcome = flash.run(*module->getOps<tile::KernelOp>().begin());
    ASSERT_EQ(outcome.error, "");
    EXPECT_LT(outcome.relativeError, limitOf(flash));
    EXPECT_FALSE(std::isnan(outcome.o[0]));
    EXPECT_TRUE(std::isnan(outcome.o[size_t(p.headDimV)]));
  }
};

} // namespace

TEST_F(KeyPartsOfKernels, OfWarps) {
  for (int i = 0; i < 30; ++i)
    checkPlanned(drawProblem(i % 3 ? 8 : 90), drawWarps());
}

TEST_F(KeyPartsOfKernels, OfWarpgroups) {
  for (int i = 0; i < 14; ++i)
    checkPlanned(drawProblem(i % 3 ? 8 : 150, 8), drawWarpgroups());
}

TEST_F(KeyPartsOfKernels, OfMoreProblems) {
  ATTN_LONG_TEST();
  for (int i = 0; i < 40; ++i) {
    checkPlanned(drawProblem(i % 3 ? 8 : 90), drawWarps());
    checkPlanned(drawProblem(i % 3 ? 8 : 150, 8), drawWarpgroups());
  }
}

TEST_F(KeyPartsOfKernels, OfRowsThatSeeNothing) {
  Problem p = oneHead(70, 30, 32, 16, {MaskKind::causalBottomRight});
  check(
      p,
      {{"query", 16}, {"key", 16}, {"stages", 2}, {"warps", 1}, {"parts", 3}});
  check(p, {{"query", 64},
            {"key", 64},
            {"stages", 2},
            {"parts", 3},
            {"overlap", 1},
            {"persistent", 1}});
}

TEST_F(KeyPartsOfKernels, OfF32AndEightBits) {
  Tiles tiles = {{"query", 64}, {"key", 64},    {"stages", 1},
                 {"parts", 3},  {"overlap", 1}, {"persistent", 1}};
  Problem p =
      oneHead(5, 300, 64, 48, {MaskKind::causalBottomRight}, DataType::f32);
  check(p, tiles);
  tiles = {
      {"query", 16}, {"key", 32}, {"stages", 2}, {"warps", 1}, {"parts", 5}};
  check(p, tiles);
  p.precision = Precision::tf32;
  check(p, tiles);
}

TEST_F(KeyPartsOfKernels, NaNStaysInItsRows) {
  checkNaN(
      {{"query", 16}, {"key", 16}, {"stages", 2}, {"warps", 1}, {"parts", 4}});
  checkNaN({{"query", 64},
            {"key", 64},
            {"stages", 2},
            {"parts", 3},
            {"overlap", 1},
            {"persistent", 0}});
}
