//===- RaggedBackward.cpp - Are gradients of sequences right, each alone? -===//
//
// Random sequences one behind the other, as in Ragged.cpp, and the gradients
// of each beside those of the oracle: sequences without keys have dQ = 0, those
// without queries dK = dV = 0.  What moves is compared with what the IR says
// and what the schedule promises.
//
//===----------------------------------------------------------------------===//

#include "Harness/KernelDraws.h"
#include "Harness/KernelTest.h"
#include "Harness/RaggedGradients.h"

#include "../../Seed.h"

using namespace mlir;
using namespace attn;

namespace {

class RaggedBackward : public ::testing::Test {
protected:
  RaggedBackward() { loadDialects(context); }

  Problem drawProblem(int64_t most, int64_t columns, int64_t widest,
                      DataType type) {
    Mask mask = drawRaggedMask(draw);
    Problem p = oneHead(0, 0, columns * draw(1, widest / columns),
                        columns * draw(1, widest / columns), mask, type);
    p.direction = Direction::backward;
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 3);
    p.dlse = draw(0, 1) != 0;
    p.lseLow = draw(0, 1) != 0;
    p.alignment = alignmentOfRows(columns, type);
    Problem all = raggedProblem(
        p, drawLengths(draw, 5, most,
                       mask.kind == MaskKind::causal || draw(0, 1)));
    all.ragged->isWide = draw(0, 1) != 0;
    return all;
  }

  void check(const Problem &problem, llvm::StringRef schedule,
             const Tiles &tiles) {
    InterpreterOptions options = drawOptions(draw);
    SCOPED_TRACE(textOf(problem, tiles));
    RaggedGradients ragged(problem, schedule, tiles,
                           uint64_t(draw(0, 1 << 20)));
    ragged.check(context, options, draw(1, 4));
  }

  /// Of twice as many rows too, or not: f32 has registers for few.
  Tiles drawPortable(int64_t separate, int64_t most = 2) {
    return {{"query", 32 * draw(1, most)},
            {"key_block", 16 * draw(1, most)},
            {"query_warps", 2},
            {"key", 32 * draw(1, most)},
            {"query_block", 16 * draw(1, most)},
            {"key_warps", 2},
            {"stages", draw(1, 3)},
            {"separate", separate}};
  }

  /// Of flash_backward, in whole blocks or in halves.
  Tiles drawPipeline(int64_t overlap) {
    int64_t rows = overlap == 2 ? 128 : 64;
    return {{"key", rows},        {"query_block", rows}, {"beside", 0},
            {"overlap", overlap}, {"stages", 2},         {"ordered", 0},
            {"short_first", 0},   {"first_stores", 0},   {"persistent", 1}};
  }

  MLIRContext context;
  Seed seed;
  Draws draw{seed};
};

} // namespace

TEST_F(RaggedBackward, EachSequenceIsAloneOnMmaSync) {
  for (int i = 0; i < 16; ++i)
    check(drawProblem(100, draw(0, 1) ? 8 : 1, 48, draw16Bit(draw)),
          "split_backward", drawPortable(draw(0, 1)));
}

TEST_F(RaggedBackward, OfSinglePrecisionToo) {
  for (int i = 0; i < 3; ++i)
    check(drawProblem(60, 4, 32, DataType::f32), "split_backward",
          drawPortable(draw(0, 1), /*most=*/1));
}

TEST_F(RaggedBackward, EachSequenceIsAloneOnWgmma) {
  for (int i = 0; i < 8; ++i)
    check(drawProblem(200, 8, 64, draw16Bit(draw)), "flash_backward",
          drawPipeline(draw(0, 2)));
}

/// In one order, also of heads for which dK and dV have a launch each.
TEST_F(RaggedBackward, SumsInOneOrderAreAloneOnWgmma) {
  for (int i = 0; i < 6; ++i)
    check(drawProblem(200, 8, 64, draw16Bit(draw)), "split_backward",
          {{"query", 64 * draw(1, 2)},
           {"key_block", 64 * draw(1, 2)},
           {"key", 64 * draw(1, 2)},
           {"query_block", 64 * draw(1, 2)},
           {"separate", draw(0, 1)},
           {"stages", 2},
           {"value_stages", draw(1, 2)},
           {"persistent", 1}});
}

TEST_F(RaggedBackward, WideHeadsShareColumns) {
  for (int i = 0; i < 2; ++i) {
    Problem p = drawProblem(160, 8, 128, draw16Bit(draw));
    p.headDim = 128;
    Tiles tiles = drawPipeline(1);
    tiles.set("key", 128);
    tiles.set("query_block", 64);
    check(p, "flash_backward", tiles);
  }
}

/// Not even where its rows come with those of another.
TEST_F(RaggedBackward, NaNsStayInTheirSequence) {
  const std::pair<const char *, Tiles> forms[] = {
      {"split_backward", drawPortable(0)}, {"flash_backward", drawPipeline(1)}};
  for (const auto &[schedule, tiles] : forms)
    for (MaskKind mask : {MaskKind::none, MaskKind::causalBottomRight}) {
      SCOPED_TRACE(tiles.str());
      Problem p = oneHead(0, 0, 32, 32, {mask});
      p.direction = Direction::backward;
      RaggedGradients ragged(
          raggedProblem(p, {{20, 70}, {30, 41}, {77, 33}, {5, 0}, {9, 9}}),
          schedule, tiles);
      ragged.spoil(1);
      ragged.check(context, {}, /*blocks=*/2);
    }
}
