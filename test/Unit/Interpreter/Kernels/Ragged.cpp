//===- Ragged.cpp - Are sequences of any length right, each alone? --------===//
//
// Random sequences one behind the other: none, of a row, without keys, without
// queries, of several tiles, under every mask, of heads that share keys.  O and
// LSE are compared with the oracle of each sequence; what moves with what the
// IR says and what the schedule promises.  A sequence of NaNs reaches no other.
//
//===----------------------------------------------------------------------===//

#include "Harness/KernelDraws.h"
#include "Harness/KernelTest.h"
#include "Harness/RaggedCase.h"

#include "../../Share.h"

#include <limits>

using namespace mlir;
using namespace attn;

namespace {

class RaggedKernels : public ::testing::Test {
protected:
  RaggedKernels() { loadDialects(context); }

  /// With head dimensions that are multiples of so many columns.
  Problem drawProblem(int64_t most, int64_t columns, DataType type) {
    Mask mask = drawRaggedMask(draw);
    Problem p = oneHead(0, 0, columns * draw(1, 80 / columns),
                        columns * draw(1, 80 / columns), mask, type);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 3);
    p.lse = draw(0, 2) != 0;
    p.alignment = alignmentOfRows(columns, type);
    Problem all = raggedProblem(
        p, drawLengths(draw, 6, most,
                       mask.kind == MaskKind::causal || draw(0, 1)));
    return all;
  }

  void check(const Problem &problem, const Tiles &tiles) {
    InterpreterOptions options = drawOptions(draw);
    RaggedCase ragged(problem, tiles, uint64_t(draw(0, 1 << 20)));
    SCOPED_TRACE(textOf(problem, tiles));
    ragged.check(context, options, draw(1, 4));
  }

  Tiles drawPipeline(int64_t key) {
    int64_t query = 64 * draw(1, 2);
    return {{"query", query},        {"key", key},
            {"stages", draw(2, 3)},  {"query_stages", draw(1, 2)},
            {"staging", 64},         {"ping_pong", query > 64 ? draw(0, 1) : 0},
            {"overlap", draw(0, 1)}, {"persistent", 1}};
  }

  MLIRContext context;
  Draws draw{23};
};

} // namespace

TEST_F(RaggedKernels, EachSequenceIsAloneOnMmaSync) {
  for (int i = 0; i < 30; ++i)
    check(drawProblem(100, draw(0, 1) ? 8 : 1, draw16Bit(draw)),
          {{"query", 32 * draw(1, 2)},
           {"key", 16 * draw(1, 4)},
           {"stages", draw(1, 3)},
           {"warps", 2}});
}

TEST_F(RaggedKernels, EachSequenceIsAloneOnWgmma) {
  for (int i = 0; i < 16; ++i)
    check(drawProblem(220, 8, draw16Bit(draw)), drawPipeline(16 * draw(2, 6)));
}

/// Under windows, which want low tiles.
TEST_F(RaggedKernels, TilesInPairs) {
  for (int i = 0; i < 8; ++i) {
    Problem p = drawProblem(220, 8, draw16Bit(draw));
    p.mask = {MaskKind::window, draw(0, 90), draw(0, 90)};
    Tiles tiles = drawPipeline(32);
    tiles.set("query", 128);
    tiles.set("query_stages", 1);
    tiles.set("pairs", 2);
    check(p, tiles);
  }
}

TEST_F(RaggedKernels, BlocksMayHaveOneTileEach) {
  for (int i = 0; i < 4; ++i) {
    Tiles tiles = drawPipeline(48);
    tiles.set("persistent", 0);
    tiles.set("query_stages", 1);
    check(drawProblem(150, 8, draw16Bit(draw)), tiles);
  }
}

TEST_F(RaggedKernels, NarrowKeysAreWidened) {
  for (int i = 0; i < 6; ++i)
    check(withKvType(drawProblem(150, 16, draw16Bit(draw)), DataType::f8e4m3),
          drawPipeline(16 * draw(2, 5)));
}

TEST_F(RaggedKernels, F32IsSplit) {
  for (int i = 0; i < 2; ++i)
    check(drawProblem(90, 4, DataType::f32), {{"query", 64},
                                              {"key", 32},
                                              {"stages", 1},
                                              {"query_stages", 1},
                                              {"staging", 0},
                                              {"ping_pong", 0},
                                              {"overlap", 1},
                                              {"persistent", 1}});
}

/// Not even where its rows come with those of another.
TEST_F(RaggedKernels, NaNsStayInTheirSequence) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tiles pipeline = {{"query", 64},   {"key", 64},
                          {"stages", 2},   {"query_stages", 1},
                          {"staging", 64}, {"ping_pong", 0},
                          {"overlap", 1},  {"persistent", 1}},
              portable = {
                  {"query", 32}, {"key", 32}, {"stages", 2}, {"warps", 2}};
  for (const Tiles &tiles : {pipeline, portable})
    for (MaskKind mask : {MaskKind::none, MaskKind::causalBottomRight}) {
      Problem p = raggedProblem(oneHead(0, 0, 64, 64, {mask}),
                                {{20, 70}, {30, 41}, {77, 33}, {5, 0}, {9, 9}});
      RaggedCase ragged(p, tiles);
      ragged.isIgnored[1] = true;
      auto spoil = [&](std::vector<float> &array,
                       const std::vector<int64_t> &first) {
        for (int64_t i = 64 * first[1]; i < 64 * first[2]; ++i)
          array[i] = nan;
      };
      spoil(ragged.q, ragged.firstQuery);
      spoil(ragged.k, ragged.firstKey);
      spoil(ragged.v, ragged.firstKey);
      ragged.check(context, {}, /*blocks=*/2);
    }
}
