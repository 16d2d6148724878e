//===- ScoreSpill.cpp - P between two products, byte for byte -------------===//

#include "Harness/BuiltKernel.h"
#include "Harness/Draws.h"

#include <limits>

using namespace mlir;
using namespace attn;

namespace {
class ScoreSpill : public BuiltKernel {};

struct ScoreSpillChoice {
  int64_t query = 32, key = 32, column = 32, slice = 16, warps = 2, strip = 64,
          stages = 2;

  operator Tiles() const {
    return {{"query", query},  {"key", key},     {"column", column},
            {"slice", slice},  {"warps", warps}, {"strip", strip},
            {"stages", stages}};
  }
};
} // namespace

/// One strip, several, and such that begin with a block that a mask cuts.
TEST_F(ScoreSpill, MasksRowsAndStrips) {
  for (const Mask &mask : kMasks)
    for (int64_t strip : {32, 64, 128})
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{70, 90},
                                   {90, 70},
                                   {1, 130},
                                   {130, 1},
                                   {32, 32}}) {
        ScoreSpillChoice c;
        c.strip = strip;
        check(oneHead(queries, keys, 64, 32, mask), c);
        c.warps = 1; // of 32 rows
        check(oneHead(queries, keys, 40, 72, mask), c);
      }
}

TEST_F(ScoreSpill, HeadDimensions) {
  for (int64_t slice : {16, 32})
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{8, 64},
                         {16, 16},
                         {64, 64},
                         {40, 72},
                         {17, 65},
                         {96, 128},
                         {328, 80},
                         {256, 256}}) {
      ScoreSpillChoice c;
      c.slice = slice;
      c.key = 64;
      c.strip = 128;
      check(oneHead(50, 160, d, dv, {MaskKind::causal}, DataType::f16), c);
    }
}

TEST_F(ScoreSpill, WideHeads) {
  ScoreSpillChoice c;
  c.query = 64;
  c.key = 64;
  c.column = 128;
  c.slice = 64;
  c.warps = 4;
  check(oneHead(40, 200, 640, 640, {MaskKind::causal}), c);
  c.stages = 3;
  check(oneHead(20, 150, 4096, 512), c);
  c.column = 256;
  check(oneHead(20, 70, 1000, 4096, {}, DataType::f16), c);
}

TEST_F(ScoreSpill, HeadsBatchesAndTypes) {
  ScoreSpillChoice withLse, without;
  without.stages = 3;
  without.strip = 32;
  checkHeads(40, 32, withLse, without);
}

/// Slots go round in every way: one unit of a kind, or several, fewer pieces
/// than copies run ahead, and as many units as there are stages or not.
TEST_F(ScoreSpill, UnitsAndStages) {
  for (int64_t stages : {2, 3})
    for (int64_t d : {16, 32, 48})
      for (int64_t dv : {32, 64, 96})
        for (int64_t pieces : {1, 2, 3})
          for (int64_t keys : {10, 90, 100, 300}) {
            ScoreSpillChoice c;
            c.stages = stages;
            c.slice = 32;
            c.key = 32 * pieces;
            c.strip = 2 * c.key;
            check(oneHead(40, keys, d, dv), c);
          }
}

/// A block works off no tile, one, and several; under a mask these go forth and
/// back.
TEST_F(ScoreSpill, TilesOfABlock) {
  for (int64_t multiprocessors : {1, 2, 3, 7, 50})
    for (int64_t queries : {0, 20, 200, 400}) {
      Problem p = oneHead(queries, 100, 32, 48, {MaskKind::causal});
      p.heads = p.kvHeads = 3;
      FlashCase flash(p, ScoreSpillChoice());
      flash.multiprocessors = multiprocessors;
      check(flash);
    }
}

TEST_F(ScoreSpill, AllWarpOrders) {
  for (int64_t stages : {2, 3})
    for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                            WarpOrder::shuffled, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      options.seed += 17;
      ScoreSpillChoice c;
      c.query = 64;
      c.warps = 4;
      c.stages = stages;
      check(oneHead(100, 220, 96, 80, {MaskKind::causal}), c, options);
    }
}

TEST_F(ScoreSpill, RowsThatSeeNoKeyAreZero) {
  for (int64_t stages : {2, 3}) {
    ScoreSpillChoice c;
    c.stages = stages;
    // Bottom-right: the first 60 of 80 queries see none of the 20 keys.
    check(oneHead(80, 20, 48, 32, {MaskKind::causalBottomRight}), c);
    check(oneHead(40, 0, 48, 32), c);
  }
}

TEST_F(ScoreSpill, NotANumberStaysInTheRowsThatSeeIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (int64_t key : {3, 37, 75})
    for (float value : {nan, infinity}) {
      FlashCase flash(oneHead(80, 80, 48, 32, {MaskKind::causal}),
                      ScoreSpillChoice());
      flash.k[key * 48 + 5] = value;
      flash.consultOracle();
      check(flash);
    }
}

/// Maxima that grow from strip to strip, and from block to block, so that what
/// was written before must shrink, to nothing in f16.
TEST_F(ScoreSpill, GrowingScores) {
  for (DataType type : {DataType::bf16, DataType::f16})
    for (float growth : {1.0f, 20.0f}) {
      FlashCase flash(oneHead(40, 200, 32, 32, {}, type), ScoreSpillChoice());
      flash.growScores(growth, /*every=*/16);
      check(flash);
    }
}

TEST_F(ScoreSpill, RandomProblems) {
  Seed seed;
  Draws draw(seed);
  for (int i = 0; i < drawsOf(80); ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 100), draw(0, 50)},
                          {MaskKind::prefix, 0, 0, draw(0, 100)}};
    ScoreSpillChoice c;
    c.warps = draw(1, 3);
    c.query = c.warps * 16 * draw(1, 2);
    c.slice = 16 * draw(1, 3);
    c.key = c.slice * draw(1, 3);
    c.strip = c.key * draw(1, 4);
    c.column = 16 * draw(1, 8);
    c.stages = draw(2, 3);
    Problem p =
        oneHead(draw(1, 150), draw(0, 250), draw(8, 200), draw(8, 200),
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
