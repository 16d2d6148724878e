//===- SharedTiles.cpp - Do tiles with rows of several heads add up? ------===//
//
// Random problems whose tiles have rows of 2, 4 or 8 heads of a group: few
// queries and many, under every mask, whole walks and walks in parts, keys in
// order, with lengths and in pages, some of eight bits.  O and LSE are compared
// with the oracle, and bytes that moved with those that are counted in the IR
// and those that the schedule promised.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltKernel.h"
#include "Harness/KernelDraws.h"

#include "attn/Schedule/Plan.h"
#include "attn/Schedule/SharedTiles.h"
#include "attn/Tile/SharedMemory.h"

#include "../../Share.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

namespace {

class TilesOfHeads : public BuiltKernel {
protected:
  static constexpr int64_t kPieceBytes = 16;
  Draws draw{31};
  uint64_t seed = 1;

  Mask drawMask() {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 100), draw(0, 50)},
                          {MaskKind::prefix, 0, 0, draw(0, 200)}};
    return masks[draw(0, 4)];
  }

  Tiles drawTiles() {
    int64_t query = 64 * draw(1, 3);
    int64_t most = query == 128 ? 3 : 2;
    Tiles tiles = {{"query", query},
                   {"key", 16 * draw(1, query > 128 ? 5 : 8)}, // in registers
                   {"stages", draw(2, 3)},
                   {"packed", int64_t(1) << draw(1, most)}};
    if (draw(0, 1))
      tiles.set("parts", draw(2, 8));
    tiles.set("overlap", draw(0, 1));
    tiles.set("persistent", draw(0, 1));
    return tiles;
  }

  /// With heads that fill tiles of so many.
  Problem drawProblem(const Tiles &tiles, int64_t mostQueries) {
    Problem p =
        oneHead(draw(1, mostQueries), draw(0, 3) ? draw(1, 400) : draw(1, 40),
                8 * draw(1, 10), 8 * draw(1, 10), drawMask(),
                draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.batch = draw(1, 2);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * headsOfTile(tiles) * draw(1, 2);
    p.lse = draw(0, 2) != 0;
    p.lseLow = p.lse && !tiles.has("parts") && draw(0, 3) == 0;
    if (draw(0, 2))
      return p;
    // Rows of eight bits are whole pieces of 16 bytes.
    p.headDim = roundUp(p.headDim, kPieceBytes);
    p.headDimV = roundUp(p.headDimV, kPieceBytes);
    return withKvType(p, DataType::f8e4m3);
  }

  /// Beside what every kernel is checked for, what its plan promised.
  void checkPlanned(FlashCase &flash) {
    const Problem &problem = flash.problem;
    const Tiles &tiles = flash.tiles;
    std::string error;
    std::optional<Plan> plan =
        planFor(problem, *findMachine("h100_sxm"), "flash", tiles, error);
    ASSERT_TRUE(plan) << error;
    EXPECT_EQ(plan->kernel, "flash_wgmma");
    check(flash, drawOptions(draw));
    OwningOpRef<ModuleOp> module = buildFlash(context, problem, tiles);
    tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
    Outcome outcome = flash.run(kernel);
    EXPECT_EQ(outcome.traffic.global, plan->bytes.l2)
        << tiles.str() << ", " << str(problem.mask) << ", queries "
        << problem.queries;
    EXPECT_EQ(outcome.traffic.smem, plan->bytes.smem) << tiles.str();
    EXPECT_EQ(tile::SharedMemory(kernel).totalBytes(),
              plan->footprint.smemBytes)
        << tiles.str();
  }

  void checkProblem(int64_t mostQueries) {
    Tiles tiles = drawTiles();
    Problem p = drawProblem(tiles, mostQueries);
    FlashCase flash(p, tiles, ++seed);
    checkPlanned(flash);
  }

  /// Keys of a cache, some of which are used, or all.
  void checkCache(bool isPaged, bool usesAll) {
    Tiles tiles = drawTiles();
    Problem p = drawProblem(tiles, draw(0, 2) ? 8 : 90);
    p.lseLow = false;
    p.place.usedKeysBits = draw(0, 1) ? 32 : 64;
    if (p.mask.kind == MaskKind::causal)
      p.mask = {MaskKind::causalBottomRight};
    if (isPaged) {
      // Which blocks of powers of two divide, or the reverse.
      tiles.set("key", 16 << draw(0, tiles.get("query") > 128 ? 2 : 3));
      p.place.pageRows = 8 << draw(0, 4);
      p.keys = roundUp(p.keys, p.place.pageRows);
    }
    FlashCase flash(p, tiles, ++seed);
    flash.place(seed, usesAll);
    SCOPED_TRACE(str(p.place) + ", seed " + std::to_string(seed));
    if (usesAll)
      checkPlanned(flash);
    else
      check(flash, drawOptions(draw));
  }
};

} // namespace

TEST_F(TilesOfHeads, UnderMasks) {
  for (int i = 0; i < 14; ++i)
    checkProblem(i % 3 ? 8 : 150);
}

TEST_F(TilesOfHeads, OfCaches) {
  for (int i = 0; i < 12; ++i)
    checkCache(/*isPaged=*/i % 2, /*usesAll=*/i % 4 == 3);
}

TEST_F(TilesOfHeads, OfMoreProblems) {
  ATTN_LONG_TEST();
  for (int i = 0; i < 40; ++i) {
    checkProblem(i % 3 ? 8 : 150);
    checkCache(/*isPaged=*/i % 2, /*usesAll=*/i % 4 > 1);
  }
}

/// Rows that see nothing, and no keys at all.
TEST_F(TilesOfHeads, ThatSeeNothing) {
  for (int64_t parts : {1, 3})
    for (int64_t keys : {1, 30}) {
      Problem p = oneHead(70, keys, 32, 16, {MaskKind::causalBottomRight});
      p.heads = 4;
      Tiles tiles = {{"query", 64}, {"key", 64}, {"stages", 2}, {"packed", 4}};
      if (parts > 1)
        tiles.set("parts", parts);
      tiles.set("overlap", 1);
      tiles.set("persistent", 1);
      check(p, tiles);
    }
}

/// A row whose query is NaN is NaN, and none of the other heads is.
TEST_F(TilesOfHeads, NaNStaysInItsRows) {
  Problem p = oneHead(3, 200, 32, 32, {MaskKind::causalBottomRight});
  p.heads = 4;
  FlashCase flash(p, {{"query", 64},
                      {"key", 64},
                      {"stages", 2},
                      {"packed", 4},
                      {"overlap", 1},
                      {"persistent", 0}});
  size_t row = size_t(p.queries + 1); // of the second head
  flash.q[row * size_t(p.headDim)] = std::numeric_limits<float>::quiet_NaN();
  flash.consultOracle();
  OwningOpRef<ModuleOp> module = buildFlash(context, p, flash.tiles);
  Outcome outcome = flash.run(*module->getOps<tile::KernelOp>().begin());
  ASSERT_EQ(outcome.error, "");
  EXPECT_LT(outcome.relativeError, limitOf(flash));
  for (size_t other = 0; other < size_t(4 * p.queries); ++other)
    EXPECT_EQ(std::isnan(outcome.o[other * size_t(p.headDimV)]), other == row);
}
