//===- SpillBackwardMmaSync.cpp - Gradients through scratch, on sm_80 -----===//
//
// The launches of spill_backward by like warps, of 16 bits and of f32, in
// rounds of one and of several key heads and strips of keys.
//
//===----------------------------------------------------------------------===//

#include "Harness/GradientChecks.h"

using namespace mlir;
using namespace attn;

namespace {

struct SpillBackwardMmaSyncChoice {
  int64_t column = 128, strip = 256, heads = 2, bytes = 64, warps = 8,
          stages = 3;

  Tiles of(DataType type) const {
    return {{"query", 128},      {"key_block", 128},
            {"key", 128},        {"column", column},
            {"query_block", 64}, {"strip", strip},
            {"heads", heads},    {"slice", bytes / bytesOf(type)},
            {"warps", warps},    {"stages", stages}};
  }
  operator Tiles() const { return of(DataType::bf16); }
};

/// Of one strip and several; tiles of a gradient narrower than its rows, and
/// wider, in whole parts and not; warps of 16 and of 32 rows.
const SpillBackwardMmaSyncChoice kSpillBackwardMmaSyncChoices[] = {
    {128, 512, 2, 64, 8, 3}, {64, 128, 1, 128, 4, 2}, {80, 256, 3, 64, 8, 4}};

class SpillBackwardMmaSync : public GradientChecks {
protected:
  SpillBackwardMmaSync() : GradientChecks("spill_backward", "mma_sync") {}

  void checkAll(const Problem &p) {
    GradientCase truth(p);
    for (const SpillBackwardMmaSyncChoice &choice :
         kSpillBackwardMmaSyncChoices)
      check(truth, choice.of(p.dtype));
  }
};

} // namespace

TEST_F(SpillBackwardMmaSync, MasksAndRows) {
  ATTN_LONG_TEST();
  for (const SpillBackwardMmaSyncChoice &c : kSpillBackwardMmaSyncChoices)
    checkMasks({200, 300, 128}, 32, c);
}

TEST_F(SpillBackwardMmaSync, SinglePrecision) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks)
    for (auto [queries, keys] :
         {std::pair<int64_t, int64_t>{200, 300}, {300, 200}, {70, 410}})
      checkAll(problem(queries, keys, 32, 16, mask, DataType::f32));
  checkAll(problem(20, 380, 48, 32, {MaskKind::causal}, DataType::f32));
  Problem p = problem(145, 267, 24, 40, {MaskKind::causal}, DataType::f32);
  p.batch = p.kvHeads = 2;
  p.heads = 4;
  p.dlse = true;
  checkAll(p);
}

/// Of rows at any address too.
TEST_F(SpillBackwardMmaSync, HeadDimensions) {
  ATTN_LONG_TEST();
  for (DataType type : {DataType::f16, DataType::f32})
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{72, 8},
                         {8, 136},
                         {37, 129},
                         {200, 64},
                         {320, 264}})
      checkAll(problem(140, 170, d, dv, {MaskKind::causal}, type));
}

TEST_F(SpillBackwardMmaSync, HeadsShareKeys) {
  ATTN_LONG_TEST();
  for (const SpillBackwardMmaSyncChoice &c : kSpillBackwardMmaSyncChoices)
    checkHeads(problem(145, 267, 24, 32, {MaskKind::causal}), c);
}

TEST_F(SpillBackwardMmaSync, AllWarpOrders) {
  ATTN_LONG_TEST();
  for (const SpillBackwardMmaSyncChoice &c : kSpillBackwardMmaSyncChoices)
    checkWarpOrders(problem(300, 390, 136, 72, {MaskKind::causal}), c);
}

/// Sums of dQ wait between the strips that its rows see, and only between them.
TEST_F(SpillBackwardMmaSync, StripsThatRowsSee) {
  checkAll(problem(460, 700, 40, 24, {MaskKind::window, 150, 10}));
  checkAll(problem(140, 900, 40, 24, {MaskKind::causalBottomRight}));
  checkAll(problem(140, 900, 40, 24, {MaskKind::causal}));
}

TEST_F(SpillBackwardMmaSync, RowsThatSeeNothingHaveNoGradient) {
  for (const SpillBackwardMmaSyncChoice &c : kSpillBackwardMmaSyncChoices)
    checkBlindRows(380, 48, c);
  checkAll(problem(0, 600, 48, 32));
}

TEST_F(SpillBackwardMmaSync, GradientOfTheLse) {
  checkGradientOfTheLse(problem(170, 350, 32, 32, {MaskKind::causal}),
                        SpillBackwardMmaSyncChoice());
}

TEST_F(SpillBackwardMmaSync, Scales) {
  checkScales(problem(160, 270, 32, 32, {MaskKind::causal}),
              SpillBackwardMmaSyncChoice());
}

TEST_F(SpillBackwardMmaSync, LargeScores) {
  ATTN_LONG_TEST();
  for (const SpillBackwardMmaSyncChoice &c : kSpillBackwardMmaSyncChoices)
    for (DataType type : {DataType::bf16, DataType::f16, DataType::f32})
      checkLargeScores(
          problem(170, 150, 32, 32, {MaskKind::causalBottomRight}, type),
          c.of(type));
}

TEST_F(SpillBackwardMmaSync, RowsBehindTheEnd) {
  for (const SpillBackwardMmaSyncChoice &c : kSpillBackwardMmaSyncChoices)
    checkRowsBehindTheEnd(32, c);
}

TEST_F(SpillBackwardMmaSync, NotANumberInAValue) {
  for (const SpillBackwardMmaSyncChoice &c : kSpillBackwardMmaSyncChoices)
    for (DataType type : {DataType::bf16, DataType::f32})
      checkNotANumber(337, problem(380, 380, 48, 32, {MaskKind::causal}, type),
                      c.of(type));
}

TEST_F(SpillBackwardMmaSync, RandomProblems) {
  checkRandom(20, [](Random &random) -> Drawn {
    auto draw = [&](int64_t least, int64_t most) {
      return random.number(least, most);
    };
    SpillBackwardMmaSyncChoice c = {16 * draw(1, 16), 128 * draw(1, 4),
                                    draw(1, 3),       64 * draw(1, 2),
                                    4 * draw(1, 2),   draw(2, 4)};
    return {draw(1, 300), draw(1, 500), draw(1, 150), draw(1, 150), c};
  });
}
