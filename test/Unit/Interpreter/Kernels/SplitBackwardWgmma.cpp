//===- SplitBackwardWgmma.cpp - Gradients in one order, byte for byte -----===//
//
// All launches of the pipelines of split_backward, in every order of warps and
// with every option of the schedule.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/SplitBackwardTiles.h"
#include "Harness/GradientChecks.h"

using namespace mlir;
using namespace attn;

namespace {

using SplitBackwardWgmmaChoice = SplitBackwardTiles;

const SplitBackwardWgmmaChoice kSplitBackwardWgmmaChoices[] = {
    {128, 64, 128, 64, 0, 2, 1},
    {128, 64, 128, 64, 1, 2, 1},
    {64, 128, 128, 128, 0, 3, 2},
    {128, 128, 64, 128, 1, 1, 3},
    {64, 64, 64, 64, 0, 4, 4}};

class SplitBackwardWgmma : public GradientChecks {
protected:
  SplitBackwardWgmma() : GradientChecks("split_backward", "wgmma") {}
};

} // namespace

TEST_F(SplitBackwardWgmma, MasksAndRows) {
  ATTN_LONG_TEST();
  for (const SplitBackwardWgmmaChoice &c : kSplitBackwardWgmmaChoices)
    checkMasks({200, 300, 128}, 32, c);
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
      SplitBackwardWgmmaChoice c;
      c.separate = separate;
      check(problem(90, 140, d, dv, {MaskKind::causal}, DataType::f16), c);
    }
  for (auto [d, dv] :
       {std::pair<int64_t, int64_t>{256, 256}, {136, 256}, {192, 128}}) {
    SplitBackwardWgmmaChoice c;
    c.separate = 1;
    check(problem(150, 140, d, dv, {MaskKind::causal}), c);
  }
}

TEST_F(SplitBackwardWgmma, HeadsShareKeys) {
  ATTN_LONG_TEST();
  for (const SplitBackwardWgmmaChoice &c : kSplitBackwardWgmmaChoices)
    checkHeads(problem(145, 167, 24, 32, {MaskKind::causal}), c);
}

TEST_F(SplitBackwardWgmma, AllWarpOrders) {
  Problem p = problem(300, 420, 48, 32, {MaskKind::causal});
  p.heads = 2;
  for (const SplitBackwardWgmmaChoice &c : kSplitBackwardWgmmaChoices)
    checkWarpOrders(p, c);
}

TEST_F(SplitBackwardWgmma, RowsThatSeeNothingHaveNoGradient) {
  for (const SplitBackwardWgmmaChoice &c : kSplitBackwardWgmmaChoices)
    checkBlindRows(180, 48, c);
}

TEST_F(SplitBackwardWgmma, GradientOfTheLse) {
  checkGradientOfTheLse(problem(70, 150, 32, 32, {MaskKind::causal}),
                        SplitBackwardWgmmaChoice());
}

TEST_F(SplitBackwardWgmma, Scales) {
  checkScales(problem(160, 170, 32, 32, {MaskKind::causal}),
              SplitBackwardWgmmaChoice());
}

TEST_F(SplitBackwardWgmma, LargeScores) {
  for (const SplitBackwardWgmmaChoice &c : kSplitBackwardWgmmaChoices)
    for (DataType type : {DataType::bf16, DataType::f16})
      checkLargeScores(
          problem(180, 150, 32, 32, {MaskKind::causalBottomRight}, type), c);
}

TEST_F(SplitBackwardWgmma, RowsBehindTheEnd) {
  for (const SplitBackwardWgmmaChoice &c : kSplitBackwardWgmmaChoices)
    checkRowsBehindTheEnd(32, c);
}

TEST_F(SplitBackwardWgmma, NotANumberInAValue) {
  checkNotANumber(137, problem(180, 180, 48, 32, {MaskKind::causal}),
                  SplitBackwardWgmmaChoice());
}

TEST_F(SplitBackwardWgmma, RandomProblems) {
  checkRandom(40, [](Random &random) -> Drawn {
    auto draw = [&](int64_t least, int64_t most) {
      return random.number(least, most);
    };
    SplitBackwardWgmmaChoice c;
    c.query = 64 * draw(1, 2);
    c.keyBlock = 64 * draw(1, 2);
    c.key = 64 * draw(1, 2);
    c.queryBlock = 64 * draw(1, 2);
    c.separate = draw(0, 1);
    c.stages = draw(1, 3);
    c.valueStages = draw(1, 3);
    return {draw(1, 300), draw(1, 400), 8 * draw(1, 12), 8 * draw(1, 12), c};
  });
}
