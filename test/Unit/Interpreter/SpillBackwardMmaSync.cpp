//===- SpillBackwardMmaSync.cpp - Gradients through scratch, on sm_80 -----===//
//
// The launches of spill_backward by like warps, of 16 bits and of f32: every
// problem here has ragged tiles, and the others of SpillBackward.cpp apply.
//
//===----------------------------------------------------------------------===//

#include "BuiltGradient.h"

#include <limits>
#include <random>

using namespace mlir;
using namespace attn;

namespace {

struct Choice {
  int64_t column = 128, strip = 256, heads = 2, bytes = 64, warps = 8,
          stages = 3;

  Tiles of(DataType type) const {
    return {{"query", 128},      {"key_block", 128},
            {"key", 128},        {"column", column},
            {"query_block", 64}, {"strip", strip},
            {"heads", heads},    {"slice", bytes / bytesOf(type)},
            {"warps", warps},    {"stages", stages}};
  }
};

/// Of one strip and several; tiles of a gradient narrower than its rows, and
/// wider, in whole parts and not; warps of 16 and of 32 rows.
const Choice kChoices[] = {
    {128, 512, 2, 64, 8, 3}, {64, 128, 1, 128, 4, 2}, {80, 256, 3, 64, 8, 4}};

class SpillBackwardMmaSync : public BuiltGradient {
protected:
  SpillBackwardMmaSync() : BuiltGradient("spill_backward", "mma_sync") {}

  void checkOne(const GradientCase &truth, const Choice &choice,
                InterpreterOptions options = {}) {
    check(truth, choice.of(truth.problem.dtype), options);
  }
  void checkOne(const Problem &p, const Choice &choice) {
    checkOne(GradientCase(p), choice);
  }
  void checkAll(const Problem &p) {
    GradientCase truth(p);
    for (const Choice &choice : kChoices)
      checkOne(truth, choice);
  }
};

} // namespace

/// A query of one key has gradients of 0, of which f32 is off by a rounding.
TEST_F(SpillBackwardMmaSync, MasksAndRows) {
  for (const Mask &mask : kMasks) {
    for (DataType type : {DataType::bf16, DataType::f32})
      for (auto [queries, keys] :
           {std::pair<int64_t, int64_t>{200, 300}, {300, 200}})
        checkAll(problem(queries, keys, 32, 16, mask, type));
    checkAll(problem(1, 130, 32, 16, mask));
    checkAll(problem(130, 1, 32, 16, mask));
  }
}

/// Of rows at any address too.
TEST_F(SpillBackwardMmaSync, HeadDimensions) {
  for (DataType type : {DataType::f16, DataType::f32})
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{72, 8},
                         {8, 136},
                         {37, 129},
                         {200, 64},
                         {320, 264}})
      checkAll(problem(140, 170, d, dv, {MaskKind::causal}, type));
}

TEST_F(SpillBackwardMmaSync, HeadsShareKeys) {
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {4, 1}}) {
    Problem p = problem(145, 267, 24, 32, {MaskKind::causal}, DataType::f16);
    p.batch = 2;
    p.heads = heads;
    p.kvHeads = kvHeads;
    checkAll(p);
  }
}

TEST_F(SpillBackwardMmaSync, AllWarpOrders) {
  GradientCase truth(problem(300, 390, 136, 72, {MaskKind::causal}));
  for (const Choice &c : kChoices)
    for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                            WarpOrder::shuffled, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      options.seed += 17;
      checkOne(truth, c, options);
    }
}

TEST_F(SpillBackwardMmaSync, StripsThatRowsSee) {
  for (const Mask &mask : {Mask{MaskKind::window, 150, 10},
                           Mask{MaskKind::causalBottomRight},
                           Mask{MaskKind::causal}})
    checkAll(problem(460, 700, 40, 24, mask));
}

TEST_F(SpillBackwardMmaSync, RowsThatSeeNothingHaveNoGradient) {
  // The first 360 of 380 queries see none of the 20 keys; and the other way.
  checkAll(problem(380, 20, 48, 32, {MaskKind::causalBottomRight}));
  checkAll(problem(20, 380, 48, 32, {MaskKind::causal}, DataType::f32));
  checkAll(problem(0, 40, 48, 32));
  checkAll(problem(40, 0, 48, 32));
  checkAll(problem(0, 600, 48, 32));
}

TEST_F(SpillBackwardMmaSync, GradientOfTheLse) {
  for (DataType type : {DataType::bf16, DataType::f32}) {
    Problem p = problem(170, 350, 32, 32, {MaskKind::causal}, type);
    p.heads = 2;
    p.dlse = true;
    checkAll(p);
  }
}

TEST_F(SpillBackwardMmaSync, Scales) {
  for (double scale : {-0.3, 0.0, 2.0}) {
    GradientCase truth(problem(160, 270, 32, 32, {MaskKind::causal}));
    truth.scale = scale;
    truth.consultOracle();
    checkOne(truth, Choice());
  }
}

/// A key whose value is NaN spoils the gradients of all queries that see it,
/// but of none before: what is hidden has no dS, whatever dP is there.
TEST_F(SpillBackwardMmaSync, NotANumberInAValue) {
  for (DataType type : {DataType::bf16, DataType::f32}) {
    GradientCase truth(problem(380, 380, 48, 32, {MaskKind::causal}, type));
    truth.v[337 * 32 + 5] = std::numeric_limits<float>::quiet_NaN();
    truth.consultOracle();
    for (const Choice &c : kChoices)
      checkOne(truth, c);
  }
}

/// Other draws: --gtest_shuffle --gtest_random_seed=1 --gtest_repeat=100.
TEST_F(SpillBackwardMmaSync, RandomProblems) {
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed());
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int i = 0; i < 20; ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 300), draw(0, 200)}};
    const DataType types[] = {DataType::bf16, DataType::f16, DataType::f32};
    Choice c = {16 * draw(1, 16), 128 * draw(1, 4), draw(1, 3),
                64 * draw(1, 2),  4 * draw(1, 2),   draw(2, 4)};
    Problem p = problem(draw(1, 300), draw(1, 500), draw(1, 150), draw(1, 150),
                        masks[draw(0, 3)], types[draw(0, 2)]);
    p.batch = draw(1, 2);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.dlse = draw(0, 3) == 0;
    InterpreterOptions options;
    options.order = WarpOrder(draw(0, 2));
    options.seed = uint64_t(i);
    checkOne(GradientCase(p, /*seed=*/i), c, options);
  }
}
