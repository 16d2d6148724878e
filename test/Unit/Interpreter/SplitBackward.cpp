//===- SplitBackward.cpp - Gradients, byte for byte -----------------------===//
//
// Every sum in one order, on all machines with tensor cores.
//
//===----------------------------------------------------------------------===//

#include "BuiltGradient.h"

#include <limits>
#include <random>

using namespace mlir;
using namespace attn;

namespace {

struct Choice {
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

class SplitBackward : public BuiltGradient {
protected:
  SplitBackward() : BuiltGradient("split_backward", "mma_sync") {}
};

} // namespace

TEST_F(SplitBackward, MasksRowsAndStages) {
  for (const Mask &mask : kMasks)
    for (int64_t stages : {1, 2, 3})
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{70, 90},
                                   {90, 70},
                                   {1, 130},
                                   {130, 1},
                                   {32, 32}}) {
        Choice c;
        c.stages = stages;
        check(problem(queries, keys, 32, 16, mask), c);
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
      Choice c;
      c.separate = separate;
      check(problem(50, 60, d, dv, {MaskKind::causal}, DataType::f16), c);
    }
}

TEST_F(SplitBackward, HeadsShareKeys) {
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {6, 2}, {4, 1}})
    for (int64_t stages : {1, 2, 3}) {
      Problem p = problem(45, 67, 24, 32, {MaskKind::causal});
      p.batch = 2;
      p.heads = heads;
      p.kvHeads = kvHeads;
      Choice c;
      c.stages = stages;
      check(p, c);
    }
}

TEST_F(SplitBackward, TilesAndWarps) {
  for (int64_t rows : {16, 32})
    for (int64_t warps : {1, 2, 4})
      for (int64_t block : {16, 48, 64}) {
        Choice c;
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
  for (int64_t stages : {1, 2, 3})
    for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                            WarpOrder::shuffled, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      options.seed += 17;
      Choice c;
      c.stages = stages;
      c.query = c.key = 64;
      c.queryWarps = c.keyWarps = 4;
      Problem p = problem(100, 120, 48, 32, {MaskKind::causal});
      p.heads = 2;
      check(p, c, options);
    }
}

TEST_F(SplitBackward, RowsThatSeeNothingHaveNoGradient) {
  for (int64_t stages : {1, 2}) {
    Choice c;
    c.stages = stages;
    // The first 60 of 80 queries see none of the 20 keys; and the other way.
    check(problem(80, 20, 48, 32, {MaskKind::causalBottomRight}), c);
    check(problem(20, 80, 48, 32, {MaskKind::causal}), c);
    check(problem(0, 40, 48, 32), c);
    check(problem(40, 0, 48, 32), c);
  }
}

TEST_F(SplitBackward, GradientOfTheLse) {
  Problem p = problem(70, 50, 32, 32, {MaskKind::causal});
  p.heads = 2;
  p.dlse = true;
  check(p, Choice());
}

TEST_F(SplitBackward, Scales) {
  for (double scale : {-0.3, 0.0, 2.0}) {
    GradientCase truth(problem(60, 70, 32, 32, {MaskKind::causal}));
    truth.scale = scale;
    truth.consultOracle();
    check(truth, Choice());
  }
}

/// A key whose value is NaN spoils the gradients of all queries that see it,
/// but of none before: what is hidden has no dS, whatever dP is there.
TEST_F(SplitBackward, NotANumberInAValue) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  GradientCase truth(problem(80, 80, 48, 32, {MaskKind::causal}));
  truth.v[37 * 32 + 5] = nan;
  truth.consultOracle();
  check(truth, Choice());
}

/// Other draws: --gtest_shuffle --gtest_random_seed=1 --gtest_repeat=100.
TEST_F(SplitBackward, RandomProblems) {
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed());
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int i = 0; i < 60; ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 100), draw(0, 50)}};
    Choice c;
    c.queryWarps = draw(1, 4);
    c.query = c.queryWarps * 16 * draw(1, 2);
    c.keyWarps = draw(1, 4);
    c.key = c.keyWarps * 16 * draw(1, 2);
    c.keyBlock = 16 * draw(1, 4);
    c.queryBlock = 16 * draw(1, 4);
    c.stages = draw(1, 3);
    c.separate = draw(0, 1);
    Problem p =
        problem(draw(1, 150), draw(0, 200), draw(1, 80), draw(1, 80),
                masks[draw(0, 3)], draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 3);
    p.dlse = draw(0, 3) == 0;
    InterpreterOptions options;
    options.order = WarpOrder(draw(0, 2));
    options.seed = uint64_t(i);
    check(GradientCase(p, /*seed=*/i), c, options);
  }
}
