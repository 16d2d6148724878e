//===- FlashBackward.cpp - Gradients in five products, byte for byte ------===//
//
// All three launches, in every order of warps and with every option of the
// schedule.
//
//===----------------------------------------------------------------------===//

#include "BuiltGradient.h"

#include <limits>
#include <random>

using namespace mlir;
using namespace attn;

namespace {

struct Choice {
  int64_t key = 128, queryBlock = 64, stages = 2, overlap = 1;

  operator Tiles() const {
    return {{"key", key},
            {"query_block", queryBlock},
            {"stages", stages},
            {"overlap", overlap},
            {"persistent", 1}};
  }
};

/// Strips whose sums are dealt out by columns, by rows, and not at all; by
/// columns they have two panels.
const Choice kChoices[] = {
    {128, 64, 2}, {128, 64, 3, 0}, {128, 128, 2, 0}, {64, 64, 2}, {64, 64, 3}};
int64_t headDimOf(const Choice &choice) {
  return choice.key != choice.queryBlock ? 80 : 32;
}

class FlashBackward : public BuiltGradient {
protected:
  FlashBackward() : BuiltGradient("flash_backward", "wgmma") {}
};

} // namespace

TEST_F(FlashBackward, MasksAndRows) {
  for (const Mask &mask : kMasks)
    for (const Choice &c : kChoices)
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{200, 300},
                                   {300, 200},
                                   {1, 130},
                                   {130, 1},
                                   {128, 128}})
        check(problem(queries, keys, headDimOf(c), 16, mask), c);
}

TEST_F(FlashBackward, HeadDimensions) {
  for (auto [d, dv] :
       {std::pair<int64_t, int64_t>{72, 8}, {128, 128}, {96, 128}, {128, 64}})
    check(problem(90, 140, d, dv, {MaskKind::causal}, DataType::f16),
          Choice{128, 64, 2});
  for (auto [d, dv] :
       {std::pair<int64_t, int64_t>{8, 64}, {64, 64}, {40, 72}, {64, 128}})
    for (int64_t rows : {64, 128})
      check(problem(90, 140, d, dv, {MaskKind::causal}, DataType::f16),
            Choice{rows, rows, 2});
}

TEST_F(FlashBackward, HeadsShareKeys) {
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {6, 2}, {4, 1}})
    for (const Choice &c : kChoices) {
      Problem p = problem(145, 167, headDimOf(c), 32, {MaskKind::causal});
      p.batch = 2;
      p.heads = heads;
      p.kvHeads = kvHeads;
      check(p, c);
    }
}

TEST_F(FlashBackward, AllWarpOrders) {
  for (const Choice &c : kChoices)
    for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                            WarpOrder::shuffled, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      options.seed += 17;
      Problem p = problem(300, 420, headDimOf(c), 32, {MaskKind::causal});
      p.heads = 2;
      check(p, c, options);
    }
}

TEST_F(FlashBackward, RowsThatSeeNothingHaveNoGradient) {
  for (const Choice &c : kChoices) {
    int64_t d = headDimOf(c);
    // The first 160 of 180 queries see none of the 20 keys; and the other way.
    check(problem(180, 20, d, 32, {MaskKind::causalBottomRight}), c);
    check(problem(20, 180, d, 32, {MaskKind::causal}), c);
    check(problem(0, 40, d, 32), c);
    check(problem(40, 0, d, 32), c);
  }
}

TEST_F(FlashBackward, GradientOfTheLse) {
  Problem p = problem(70, 150, 32, 32, {MaskKind::causal});
  p.heads = 2;
  p.dlse = true;
  check(p, Choice{128, 128, 2});
}

TEST_F(FlashBackward, Scales) {
  for (double scale : {-0.3, 0.0, 2.0}) {
    GradientCase truth(problem(160, 170, 80, 32, {MaskKind::causal}));
    truth.scale = scale;
    truth.consultOracle();
    check(truth, Choice());
  }
}

/// Scores of about -200 everywhere: weights of keys that do not exist, with a
/// score of 0, would be beyond all numbers.
TEST_F(FlashBackward, KeysBehindTheEnd) {
  for (const Choice &c : kChoices) {
    int64_t d = headDimOf(c);
    GradientCase truth(problem(90, 100, d, 32));
    for (size_t i = 0; i < truth.q.size(); i += d)
      truth.q[i] = 2048;
    for (size_t i = 0; i < truth.k.size(); i += d)
      truth.k[i] = -1;
    truth.consultOracle();
    check(truth, c);
  }
}

/// A key whose value is NaN spoils the gradients of all queries that see it,
/// but of none before: what is hidden has no dS, whatever dP is there.
TEST_F(FlashBackward, NotANumberInAValue) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  GradientCase truth(problem(180, 180, 80, 32, {MaskKind::causal}));
  truth.v[137 * 32 + 5] = nan;
  truth.consultOracle();
  check(truth, Choice());
}

/// Other draws: --gtest_shuffle --gtest_random_seed=1 --gtest_repeat=100.
TEST_F(FlashBackward, RandomProblems) {
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed());
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int i = 0; i < 40; ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 200), draw(0, 100)}};
    Choice c = kChoices[draw(0, 4)];
    c.stages = draw(2, 3);
    c.overlap = draw(0, 1);
    bool splitsColumns = c.key != c.queryBlock;
    Problem p =
        problem(draw(1, 300), draw(1, 400),
                8 * (splitsColumns ? draw(9, 16) : draw(1, 8)), 8 * draw(1, 16),
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
