//===- SplitBackwardWgmma.cpp - Gradients in one order, byte for byte -----===//
//
// All launches of the pipelines of split_backward, in every order of warps and
// with every option of the schedule.
//
//===----------------------------------------------------------------------===//

#include "BuiltGradient.h"

#include <limits>
#include <random>

using namespace mlir;
using namespace attn;

namespace {

struct Choice {
  int64_t query = 128, keyBlock = 64, key = 128, queryBlock = 64, separate = 0,
          stages = 2, valueStages = 1;

  operator Tiles() const {
    return {{"query", query},
            {"key_block", keyBlock},
            {"key", key},
            {"query_block", queryBlock},
            {"separate", separate},
            {"stages", stages},
            {"value_stages", valueStages},
            {"persistent", 1}};
  }
};

const Choice kChoices[] = {{128, 64, 128, 64, 0, 2, 1},
                           {128, 64, 128, 64, 1, 2, 1},
                           {64, 128, 128, 128, 0, 3, 2},
                           {128, 128, 64, 128, 1, 1, 3},
                           {64, 64, 64, 64, 0, 4, 4}};

class SplitBackwardWgmma : public BuiltGradient {
protected:
  SplitBackwardWgmma() : BuiltGradient("split_backward", "wgmma") {}
};

} // namespace

TEST_F(SplitBackwardWgmma, MasksAndRows) {
  for (const Mask &mask : kMasks)
    for (const Choice &c : kChoices)
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{200, 300},
                                   {300, 200},
                                   {1, 130},
                                   {130, 1},
                                   {128, 128}})
        check(problem(queries, keys, 32, 16, mask), c);
}

/// With more columns of V than of K the place of K grows.
TEST_F(SplitBackwardWgmma, HeadDimensions) {
  for (int64_t separate : {0, 1})
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{72, 8},
                         {8, 64},
                         {40, 72},
                         {96, 128},
                         {128, 64},
                         {128, 128}}) {
      Choice c;
      c.separate = separate;
      check(problem(90, 140, d, dv, {MaskKind::causal}, DataType::f16), c);
    }
  for (auto [d, dv] :
       {std::pair<int64_t, int64_t>{256, 256}, {136, 256}, {192, 128}}) {
    Choice c;
    c.separate = 1;
    check(problem(150, 140, d, dv, {MaskKind::causal}), c);
  }
}

TEST_F(SplitBackwardWgmma, HeadsShareKeys) {
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {6, 2}, {4, 1}})
    for (const Choice &c : kChoices) {
      Problem p = problem(145, 167, 24, 32, {MaskKind::causal});
      p.batch = 2;
      p.heads = heads;
      p.kvHeads = kvHeads;
      check(p, c);
    }
}

TEST_F(SplitBackwardWgmma, AllWarpOrders) {
  for (const Choice &c : kChoices)
    for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                            WarpOrder::shuffled, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      options.seed += 17;
      Problem p = problem(300, 420, 48, 32, {MaskKind::causal});
      p.heads = 2;
      check(p, c, options);
    }
}

TEST_F(SplitBackwardWgmma, RowsThatSeeNothingHaveNoGradient) {
  for (const Choice &c : kChoices) {
    // The first 160 of 180 queries see none of the 20 keys; and the other way.
    check(problem(180, 20, 48, 32, {MaskKind::causalBottomRight}), c);
    check(problem(20, 180, 48, 32, {MaskKind::causal}), c);
    check(problem(0, 40, 48, 32), c);
    check(problem(40, 0, 48, 32), c);
  }
}

TEST_F(SplitBackwardWgmma, GradientOfTheLse) {
  Problem p = problem(70, 150, 32, 32, {MaskKind::causal});
  p.heads = 2;
  p.dlse = true;
  check(p, Choice());
}

TEST_F(SplitBackwardWgmma, Scales) {
  for (double scale : {-0.3, 0.0, 2.0}) {
    GradientCase truth(problem(160, 170, 32, 32, {MaskKind::causal}));
    truth.scale = scale;
    truth.consultOracle();
    check(truth, Choice());
  }
}

/// Scores of about -200 everywhere: weights of keys that do not exist, with a
/// score of 0, would be beyond all numbers.
TEST_F(SplitBackwardWgmma, RowsBehindTheEnd) {
  for (const Choice &c : kChoices) {
    GradientCase truth(problem(90, 100, 32, 32));
    for (size_t i = 0; i < truth.q.size(); i += 32)
      truth.q[i] = 2048;
    for (size_t i = 0; i < truth.k.size(); i += 32)
      truth.k[i] = -1;
    truth.consultOracle();
    check(truth, c);
  }
}

/// A key whose value is NaN spoils the gradients of all queries that see it,
/// but of none before: what is hidden has no dS, whatever dP is there.
TEST_F(SplitBackwardWgmma, NotANumberInAValue) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  GradientCase truth(problem(180, 180, 48, 32, {MaskKind::causal}));
  truth.v[137 * 32 + 5] = nan;
  truth.consultOracle();
  check(truth, Choice());
}

/// Other draws: --gtest_shuffle --gtest_random_seed=1 --gtest_repeat=100.
TEST_F(SplitBackwardWgmma, RandomProblems) {
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed());
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int i = 0; i < 40; ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 200), draw(0, 100)}};
    Choice c;
    c.query = 64 * draw(1, 2);
    c.keyBlock = 64 * draw(1, 2);
    c.key = 64 * draw(1, 2);
    c.queryBlock = 64 * draw(1, 2);
    c.separate = draw(0, 1);
    c.stages = draw(1, 3);
    c.valueStages = draw(1, 3);
    Problem p =
        problem(draw(1, 300), draw(1, 400), 8 * draw(1, 12), 8 * draw(1, 12),
                masks[draw(0, 3)], draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 3);
    p.dlse = draw(0, 3) == 0;
    multiprocessors = draw(1, 7);
    InterpreterOptions options;
    options.order = WarpOrder(draw(0, 2));
    options.seed = uint64_t(i);
    check(GradientCase(p, /*seed=*/i), c, options);
  }
}
