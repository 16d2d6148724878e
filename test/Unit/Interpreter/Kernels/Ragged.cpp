//===- Ragged.cpp - Are sequences of any length right, each alone? --------===//
//
// Random sequences one behind the other: none, of a row, without keys, without
// queries, of several tiles, under every mask, of heads that share keys.  O and
// LSE are compared with the oracle of each sequence; what moves with what the
// IR says and what the schedule promises.  A sequence of NaNs reaches no other.
//
//===----------------------------------------------------------------------===//

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

  Mask drawMask() {
    switch (draw(0, 4)) {
    case 0:
      return {};
    case 1:
      return {MaskKind::causalBottomRight};
    case 2:
      return {MaskKind::window, draw(0, 100), draw(0, 1) ? 0 : draw(0, 50)};
    case 3:
      return {MaskKind::prefix, 0, 0, draw(0, 200)};
    default:
      return {MaskKind::causal};
    }
  }

  std::vector<Lengths> drawLengths(bool areSame, int64_t most) {
    std::vector<Lengths> all;
    for (int64_t n = 0, count = draw(1, 6); n < count; ++n) {
      Lengths one{draw(0, 3) ? draw(1, most) : draw(0, 3),
                  draw(0, 3) ? draw(1, most) : draw(0, 2)};
      if (areSame)
        one.keys = one.queries;
      all.push_back(one);
    }
    return all;
  }

  /// With head dimensions that are multiples of so many columns.
  Problem drawProblem(int64_t most, int64_t columns, DataType type) {
    Mask mask = drawMask();
    Problem p = oneHead(0, 0, columns * draw(1, 80 / columns),
                        columns * draw(1, 80 / columns), mask, type);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 3);
    p.lse = draw(0, 2) != 0;
    p.alignment = alignmentOfRows(columns, type);
    Problem all = raggedProblem(
        p, drawLengths(mask.kind == MaskKind::causal || draw(0, 1), most));
    return all;
  }

  DataType draw16Bit() { return draw(0, 1) ? DataType::bf16 : DataType::f16; }

  void check(const Problem &problem, const Tiles &tiles) {
    InterpreterOptions options;
    options.order = WarpOrder(draw(0, 2));
    options.seed = uint64_t(draw(0, 1000));
    RaggedCase ragged(problem, tiles, uint64_t(draw(0, 1 << 20)));
    std::string text = tiles.str() + "; " + str(problem.mask) + ", heads " +
                       std::to_string(problem.heads) + "/" +
                       std::to_string(problem.kvHeads) + ", d " +
                       std::to_string(problem.headDim) + ", e " +
                       std::to_string(problem.headDimV) + ", lengths";
    for (const Lengths &each : problem.ragged->lengths)
      text +=
          " " + std::to_string(each.queries) + "x" + std::to_string(each.keys);
    SCOPED_TRACE(text);
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
    check(drawProblem(100, draw(0, 1) ? 8 : 1, draw16Bit()),
          {{"query", 32 * draw(1, 2)},
           {"key", 16 * draw(1, 4)},
           {"stages", draw(1, 3)},
           {"warps", 2}});
}

TEST_F(RaggedKernels, EachSequenceIsAloneOnWgmma) {
  for (int i = 0; i < 16; ++i)
    check(drawProblem(220, 8, draw16Bit()), drawPipeline(16 * draw(2, 6)));
}

TEST_F(RaggedKernels, BlocksMayHaveOneTileEach) {
  for (int i = 0; i < 4; ++i) {
    Tiles tiles = drawPipeline(48);
    tiles.set("persistent", 0);
    tiles.set("query_stages", 1);
    check(drawProblem(150, 8, draw16Bit()), tiles);
  }
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
