//===- OutputSpillWgmma.cpp - P of a strip stays, byte for byte -----------===//

#include "Harness/BuiltKernel.h"
#include "Harness/Draws.h"

#include <limits>

using namespace mlir;
using namespace attn;

namespace {
class OutputSpillWgmma : public BuiltKernel {};

struct OutputSpillWgmmaChoice {
  int64_t part = 256, slots = 6;

  operator Tiles() const {
    return {{"query", 128},
            {"key", 512},
            {"column", 128},
            {"part", part},
            {"slots", slots}};
  }
};

/// The least slots and more, and both parts.
const OutputSpillWgmmaChoice kOutputSpillWgmmaChoices[] = {
    {256, 6}, {256, 12}, {128, 4}, {128, 10}};
} // namespace

/// One half of a part, both, and parts that are not seen; one strip and
/// several.
TEST_F(OutputSpillWgmma, MasksRowsAndStrips) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks)
    for (const OutputSpillWgmmaChoice &c : kOutputSpillWgmmaChoices)
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{300, 290},
                                   {140, 1100},
                                   {9, 130},
                                   {270, 1},
                                   {128, 512}})
        check(oneHead(queries, keys, 72, 136, mask), c);
}

/// Rows that see no first half, no first part, no first strip.
TEST_F(OutputSpillWgmma, WindowsFromWithinAStrip) {
  ATTN_LONG_TEST();
  for (int64_t last : {0, 60, 200, 400})
    for (int64_t first : {30, 150, 300})
      for (const OutputSpillWgmmaChoice &c : kOutputSpillWgmmaChoices)
        check(oneHead(300, 1300, 64, 64, {MaskKind::window, first, last}), c);
}

TEST_F(OutputSpillWgmma, HeadDimensions) {
  for (const OutputSpillWgmmaChoice &c : kOutputSpillWgmmaChoices)
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{8, 64},
                         {16, 8},
                         {40, 72},
                         {64, 128},
                         {200, 136},
                         {96, 328},
                         {520, 256}})
      check(oneHead(150, 260, d, dv, {MaskKind::causal}, DataType::f16), c);
}

/// Panels in pairs and in a loop, with and without some that are left.
TEST_F(OutputSpillWgmma, WideHeads) {
  for (const OutputSpillWgmmaChoice &c : kOutputSpillWgmmaChoices)
    for (int64_t d : {320, 384, 512, 576, 640, 1000})
      check(oneHead(40, 300, d, 64, {MaskKind::causal}), c);
  check(oneHead(20, 270, 2048, 320, {}), kOutputSpillWgmmaChoices[1]);
  check(oneHead(20, 70, 1000, 4096, {}, DataType::f16),
        kOutputSpillWgmmaChoices[0]);
}

TEST_F(OutputSpillWgmma, HeadsBatchesAndTypes) {
  checkHeads(72, 136, kOutputSpillWgmmaChoices[0], kOutputSpillWgmmaChoices[3]);
}

/// A block works off no tile, one, and several.
TEST_F(OutputSpillWgmma, TilesOfABlock) {
  ATTN_LONG_TEST();
  for (int64_t multiprocessors : {1, 2, 5, 50})
    for (int64_t queries : {0, 20, 400})
      for (const Mask &mask :
           {Mask(), Mask{MaskKind::causal}, Mask{MaskKind::window, 70, 30}})
        for (const OutputSpillWgmmaChoice &c : kOutputSpillWgmmaChoices) {
          Problem p = oneHead(queries, 600, 72, 64, mask);
          p.heads = p.kvHeads = 2;
          FlashCase flash(p, c);
          flash.multiprocessors = multiprocessors;
          check(flash);
        }
}

TEST_F(OutputSpillWgmma, AllWarpOrders) {
  for (const OutputSpillWgmmaChoice &c : kOutputSpillWgmmaChoices)
    for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                            WarpOrder::shuffled, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      options.seed += 17;
      check(oneHead(200, 700, 136, 200, {MaskKind::causal}), c, options);
    }
}

TEST_F(OutputSpillWgmma, RowsThatSeeNoKeyAreZero) {
  for (const OutputSpillWgmmaChoice &c : kOutputSpillWgmmaChoices) {
    // Bottom-right: the first 280 of 300 queries see none of the 20 keys.
    check(oneHead(300, 20, 48, 32, {MaskKind::causalBottomRight}), c);
    check(oneHead(40, 0, 48, 80), c);
  }
}

TEST_F(OutputSpillWgmma, NotANumberStaysInTheRowsThatSeeIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (const OutputSpillWgmmaChoice &c : kOutputSpillWgmmaChoices)
    for (int64_t key : {3, 130, 290})
      for (float value : {nan, infinity}) {
        FlashCase flash(oneHead(300, 300, 48, 32, {MaskKind::causal}), c);
        flash.k[key * 48 + 5] = value;
        flash.consultOracle();
        check(flash);
      }
}

/// Maxima that grow from part to part and from strip to strip, so that what was
/// made before must shrink, to nothing in f16.
TEST_F(OutputSpillWgmma, GrowingScores) {
  for (const OutputSpillWgmmaChoice &c : kOutputSpillWgmmaChoices)
    for (DataType type : {DataType::bf16, DataType::f16})
      for (float growth : {1.0f, 20.0f}) {
        FlashCase flash(oneHead(40, 1200, 32, 32, {}, type), c);
        flash.growScores(growth, /*every=*/100);
        check(flash);
      }
}

/// Two panels of Q and both halves of K for each need six slots: with fewer
/// nobody goes on, which is why a plan refuses them.
TEST_F(OutputSpillWgmma, RingsThatAreTooShort) {
  FlashCase flash(oneHead(130, 300, 512, 64), OutputSpillWgmmaChoice{256, 4});
  OwningOpRef<ModuleOp> module =
      buildFlash(context, flash.problem, flash.tiles);
  Outcome outcome = flash.run(*module->getOps<tile::KernelOp>().begin(),
                              InterpreterOptions());
  EXPECT_NE(outcome.error.find("expects some warp to go on"), std::string::npos)
      << outcome.error;
}

TEST_F(OutputSpillWgmma, RandomProblems) {
  ATTN_LONG_TEST();
  Seed seed;
  Draws draw(seed);
  const DataType types[] = {DataType::bf16, DataType::f16};
  for (int i = 0; i < drawsOf(60); ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 400), draw(0, 300)},
                          {MaskKind::prefix, 0, 0, draw(0, 400)}};
    OutputSpillWgmmaChoice c;
    c.part = 128 * draw(1, 2);
    c.slots = 2 * draw(c.part == 256 ? 3 : 2, 6);
    Problem p = oneHead(draw(1, 300), draw(0, 1200), 8 * draw(1, 40),
                        8 * draw(1, 40), masks[draw(0, 4)], types[draw(0, 1)]);
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
