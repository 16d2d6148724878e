//===- SplitBackward.cpp - Gradients, byte for byte -----------------------===//
//
// Every sum in one order, on all machines with tensor cores.
//
//===----------------------------------------------------------------------===//

#include "Harness/GradientChecks.h"

using namespace mlir;
using namespace attn;

namespace {

struct SplitBackwardChoice {
  int64_t query = 32, keyBlock = 32, queryWarps = 2, key = 32, queryBlock = 32,
          keyWarps = 2, stages = 2, separate = 0;

  operator Tiles() const {
    return {{"query", query},
            {"key_block", keyBlock},
            {"query_warps", queryWarps},
            {"key", key},
            {"query_block", queryBlock},
            {"key_warps", keyWarps},
            {"stages", stages},
            {"separate", separate}};
  }
};

SplitBackwardChoice withStages(int64_t stages) {
  SplitBackwardChoice c;
  c.stages = stages;
  return c;
}

class SplitBackward : public GradientChecks {
protected:
  SplitBackward() : GradientChecks("split_backward", "mma_sync") {}
};

} // namespace

TEST_F(SplitBackward, MasksRowsAndStages) {
  for (int64_t stages : {1, 2, 3})
    checkMasks({70, 90, 32}, 32, withStages(stages));
}

/// Of a query that sees one key all of dP goes away, and what rounds O does
/// not: with few queries that is much of dQ.
TEST_F(SplitBackward, FewQueriesWhoseGradientCancels) {
  for (DataType type : {DataType::bf16, DataType::f16})
    for (int64_t rows : {1, 2, 4})
      for (uint64_t seed = 0; seed < 25; ++seed) {
        Problem p = problem(rows, rows, 16, 24, {MaskKind::causal}, type);
        check(GradientCase(p, seed), SplitBackwardChoice());
      }
}

TEST_F(SplitBackward, HeadDimensions) {
  for (int64_t separate : {0, 1})
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{8, 64},
                         {64, 64},
                         {40, 72},
                         {17, 65},
                         {96, 128},
                         {128, 96}}) {
      SplitBackwardChoice c;
      c.separate = separate;
      check(problem(50, 60, d, dv, {MaskKind::causal}, DataType::f16), c);
    }
}

TEST_F(SplitBackward, HeadsShareKeys) {
  for (int64_t stages : {1, 2, 3})
    checkHeads(problem(45, 67, 24, 32, {MaskKind::causal}), withStages(stages));
}

TEST_F(SplitBackward, TilesAndWarps) {
  for (int64_t rows : {16, 32})
    for (int64_t warps : {1, 2, 4})
      for (int64_t block : {16, 48, 64}) {
        SplitBackwardChoice c;
        c.query = c.key = rows * warps;
        c.queryWarps = c.keyWarps = warps;
        c.keyBlock = block;
        c.queryBlock = 80 - block;
        if (c.queryBlock < 16)
          c.queryBlock = 16;
        check(problem(100, 120, 32, 48, {MaskKind::window, 30, 5}), c);
      }
}

TEST_F(SplitBackward, AllWarpOrders) {
  for (int64_t stages : {1, 2, 3}) {
    SplitBackwardChoice c = withStages(stages);
    c.query = c.key = 64;
    c.queryWarps = c.keyWarps = 4;
    Problem p = problem(100, 120, 48, 32, {MaskKind::causal});
    p.heads = 2;
    checkWarpOrders(p, c);
  }
}

TEST_F(SplitBackward, RowsThatSeeNothingHaveNoGradient) {
  for (int64_t stages : {1, 2})
    checkBlindRows(80, 48, withStages(stages));
}

TEST_F(SplitBackward, GradientOfTheLse) {
  checkGradientOfTheLse(problem(70, 50, 32, 32, {MaskKind::causal}),
                        SplitBackwardChoice());
}

TEST_F(SplitBackward, Scales) {
  checkScales(problem(60, 70, 32, 32, {MaskKind::causal}),
              SplitBackwardChoice());
}

TEST_F(SplitBackward, LargeScores) {
  for (int64_t stages : {1, 2, 3})
    for (DataType type : {DataType::bf16, DataType::f16, DataType::f32})
      checkLargeScores(
          problem(80, 70, 32, 32, {MaskKind::causalBottomRight}, type),
          withStages(stages));
}

TEST_F(SplitBackward, NotANumberInAValue) {
  checkNotANumber(37, problem(80, 80, 48, 32, {MaskKind::causal}),
                  SplitBackwardChoice());
}

TEST_F(SplitBackward, RandomProblems) {
  checkRandom(60, [](Random &random) -> Drawn {
    auto draw = [&](int64_t least, int64_t most) {
      return random.number(least, most);
    };
    SplitBackwardChoice c;
    c.queryWarps = draw(1, 4);
    c.query = c.queryWarps * 16 * draw(1, 2);
    c.keyWarps = draw(1, 4);
    c.key = c.keyWarps * 16 * draw(1, 2);
    c.keyBlock = 16 * draw(1, 4);
    c.queryBlock = 16 * draw(1, 4);
    c.stages = draw(1, 3);
    c.separate = draw(0, 1);
    return {draw(1, 150), draw(0, 200), draw(1, 80), draw(1, 80), c};
  });
}
