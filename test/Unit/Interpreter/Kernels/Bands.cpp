//===- Bands.cpp - Do kernels walk the runs that unions of bands show? ----===//
//
// Random unions of bands, whole and in part, under every mask; ragged ends, and
// queries that see nothing.  What moved is what is counted in the IR, and what
// the schedule promises of the bands that are derived from the region.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltKernel.h"
#include "Harness/KernelDraws.h"
#include "Harness/RandomUnion.h"

#include "../../Seed.h"
#include "../../Share.h"

#include <limits>

using namespace mlir;
using namespace attn;

namespace {

class BandRuns : public BuiltKernel {
protected:
  Draws draw{31};
  int derived = 0;

  Problem drawProblem() {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 60), draw(0, 30)},
                          {MaskKind::prefix, 0, 0, draw(0, 100)}};
    Problem p = oneHead(draw(0, 3) ? draw(1, 260) : draw(1, 20),
                        draw(0, 3) ? draw(1, 400) : draw(1, 30), 32, 16,
                        masks[draw(0, 1) ? 0 : draw(0, 4)],
                        draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.batch = draw(1, 2);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.lse = draw(0, 2) != 0;
    return p;
  }
  Tiles drawWarps() {
    int64_t warps = draw(1, 2);
    return {{"query", 16 * warps},
            {"key", 16 * draw(1, 4)},
            {"stages", draw(1, 3)},
            {"warps", warps}};
  }
  Tiles drawWarpgroups() {
    int64_t query = 64 * draw(1, 3);
    return {{"query", query},        {"key", 16 * draw(1, 5)},
            {"stages", draw(1, 3)},  {"query_stages", draw(1, 2)},
            {"staging", 64},         {"ping_pong", 0},
            {"overlap", draw(0, 1)}, {"persistent", draw(0, 1)}};
  }
  void check(Problem p, const Tiles &tiles, const std::string &region,
             const std::vector<std::string> &captures = {}) {
    uint64_t seed = uint64_t(draw(0, 1 << 20));
    ClauseCase clauses(context, p, region, captures, seed);
    p.clauses = clauses.flags();
    p.bands = clauses.bandsFor(p);
    derived += !p.bands.isEmpty();
    FlashCase flash(p, tiles, seed);
    flash.use(clauses);
    OwningOpRef<ModuleOp> module =
        buildFlash(context, p, tiles, flash.scale, &clauses);
    tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
    SCOPED_TRACE(tiles.str() + "; queries " + std::to_string(p.queries) +
                 ", keys " + std::to_string(p.keys) + ", " + str(p.mask) +
                 ", " + str(p.bands) + "\n" + region);
    Outcome outcome = flash.run(kernel, drawOptions(draw));
    ASSERT_EQ(outcome.error, "");
    EXPECT_LT(outcome.relativeError, limitOf(flash));
    EXPECT_LT(outcome.lseError, limitOfLse(p));
    FailureOr<tile::Traffic> counted =
        tile::countTraffic(kernel, flash.grid(), flash.scalars(kernel));
    ASSERT_TRUE(succeeded(counted));
    EXPECT_EQ(counted->global, outcome.traffic.global);
    EXPECT_EQ(counted->smem, outcome.traffic.smem);
    Bytes promised = flash.promised("flash").front();
    EXPECT_EQ(promised.l2, outcome.traffic.global);
    EXPECT_EQ(promised.smem, outcome.traffic.smem);
  }
};

} // namespace

TEST_F(BandRuns, RandomUnionsOnWarps) {
  for (int i = 0; i < 25; ++i) {
    Problem p = drawProblem();
    check(p, drawWarps(), drawUnion(draw, p.keys));
  }
  EXPECT_GT(derived, 12);
}

TEST_F(BandRuns, RandomUnionsOnWarpgroups) {
  for (int i = 0; i < 20; ++i) {
    Problem p = drawProblem();
    check(p, drawWarpgroups(), drawUnion(draw, p.keys));
  }
  EXPECT_GT(derived, 10);
}

TEST_F(BandRuns, RandomUnionsInNumbers) {
  ATTN_LONG_TEST();
  Seed seed;
  draw = Draws(seed);
  for (int i = 0; i < 60; ++i) {
    Problem p = drawProblem();
    check(p, i % 2 ? drawWarps() : drawWarpgroups(), drawUnion(draw, p.keys));
  }
  EXPECT_GT(derived, 25);
}

// First keys and a window, with scores of functions that read beside them.
TEST_F(BandRuns, WithScoresAndSinks) {
  const std::string slopes = "tensor<4xf32>";
  const std::string region =
      "captures(%x0 : " + slopes + ") " +
      "sees (%b, %h, %i, %j, %nq, %nk, %s) {\n"
      "  %c = arith.constant 20 : index\n"
      "  %w = arith.constant 40 : index\n"
      "  %d = arith.subi %i, %j : index\n"
      "  %a = math.absi %d : index\n"
      "  %x = arith.cmpi slt, %j, %c : index\n"
      "  %y = arith.cmpi sle, %a, %w : index\n"
      "  %r = arith.ori %x, %y : i1\n"
      "  attn.yield %r : i1\n"
      "} score (%z : f32, %b, %h, %i, %j, %nq, %nk, %s) {\n"
      "  %f = attn.read %s[%h] : " +
      slopes +
      "\n"
      "  %t = arith.mulf %z, %f : f32\n"
      "  attn.yield %t : f32\n"
      "} sinks(%x1 : " +
      slopes + ")";
  for (int64_t queries : {70, 200})
    for (int64_t keys : {40, 330}) {
      Problem p = oneHead(queries, keys, 32, 16);
      p.heads = 4;
      p.kvHeads = 2;
      check(p, drawWarps(), region, {slopes, slopes});
      check(p, drawWarpgroups(), region, {slopes, slopes});
    }
  EXPECT_EQ(derived, 8);
}

// Keys that no query sees are not touched: they are poison.
TEST_F(BandRuns, HiddenTilesAreNotTouched) {
  const std::string region = "sees (%b, %h, %i, %j, %nq, %nk) {\n"
                             "  %c = arith.constant 32 : index\n"
                             "  %e = arith.constant 192 : index\n"
                             "  %x = arith.cmpi slt, %j, %c : index\n"
                             "  %y = arith.cmpi sge, %j, %e : index\n"
                             "  %r = arith.ori %x, %y : i1\n"
                             "  attn.yield %r : i1\n}";
  for (bool isWarpgroups : {false, true}) {
    Problem p = oneHead(100, 250, 32, 32);
    ClauseCase clauses(context, p, region, {}, 3);
    p.clauses = clauses.flags();
    p.bands = clauses.bandsFor(p);
    ASSERT_EQ(p.bands.all().size(), 2u);
    Tiles tiles = {{"query", 32}, {"key", 32}, {"stages", 2}, {"warps", 2}};
    if (isWarpgroups)
      tiles = {{"query", 128},      {"key", 32},      {"stages", 2},
               {"query_stages", 1}, {"staging", 64},  {"ping_pong", 0},
               {"overlap", 1},      {"persistent", 1}};
    FlashCase flash(p, tiles);
    flash.use(clauses);
    for (int64_t j = 32; j < 192; ++j)
      for (std::vector<float> *rows : {&flash.k, &flash.v})
        std::fill_n(rows->begin() + j * 32, 32,
                    std::numeric_limits<float>::quiet_NaN());
    OwningOpRef<ModuleOp> module =
        buildFlash(context, p, tiles, flash.scale, &clauses);
    Outcome outcome = flash.run(*module->getOps<tile::KernelOp>().begin());
    ASSERT_EQ(outcome.error, "");
    EXPECT_LT(outcome.relativeError, limitOf(flash));
  }
}
