//===- GradientTimeTest.cpp - Gradients by like warps, as measured --------===//
//
// What one H100 80GB SXM took for gradients on mma.sync, and what the model
// says: bf16 on 2026-11-21 and f32 on 2026-11-22, 16384 tokens of 2048 columns
// (tools/bench/results has their rates in mma-sync-h100.json, f32-h100.json).
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"
#include "TokenProblem.h"
#include "attn/Schedule/Plan.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace attn;

namespace {

/// TFLOP/s count five products for each visible pair.
double secondsOf(const Problem &p, double tflops) {
  double n = double(p.queries);
  double pairs = p.mask.kind == MaskKind::causal ? n * (n + 1) / 2 : n * n;
  return 10 * pairs * double(p.headDim * p.heads * p.batch) / tflops * 1e-12;
}

Plan planOf(const Problem &p, const char *schedule, const Tiles &tiles) {
  std::string error;
  auto plan = planFor(p, *findMachine("h100_sxm"), schedule, tiles, error);
  EXPECT_TRUE(plan) << error;
  return plan.value_or(Plan());
}

struct Split {
  DataType type;
  int64_t d, n;
  bool isCausal;
  int64_t tile[8];
  double tflops;

  Plan plan(Problem &p) const {
    p = tokenGradients(d, n, isCausal);
    p.dtype = type;
    return planOf(p, "split_backward",
                  {{"query", tile[0]},
                   {"key_block", tile[1]},
                   {"query_warps", tile[2]},
                   {"key", tile[3]},
                   {"query_block", tile[4]},
                   {"key_warps", tile[5]},
                   {"stages", tile[6]},
                   {"separate", tile[7]}});
  }
};

const Split splits[] = {
    {DataType::f32, 64, 1024, false, {64, 32, 4, 64, 32, 4, 2, 0}, 42},
    {DataType::f32, 64, 1024, true, {64, 32, 4, 64, 32, 4, 2, 0}, 37},
    {DataType::f32, 64, 4096, false, {64, 32, 4, 64, 32, 4, 2, 0}, 43},
    {DataType::f32, 64, 4096, true, {64, 32, 4, 64, 32, 4, 2, 0}, 41},
    {DataType::f32, 128, 1024, false, {64, 16, 4, 64, 32, 4, 1, 1}, 35},
    {DataType::f32, 128, 1024, true, {64, 16, 4, 64, 32, 4, 1, 1}, 29},
    {DataType::f32, 128, 4096, false, {64, 16, 4, 64, 32, 4, 1, 1}, 36},
    {DataType::f32, 128, 4096, true, {64, 16, 4, 64, 32, 4, 1, 1}, 34},
    {DataType::bf16, 64, 1024, false, {128, 32, 4, 128, 16, 4, 2, 0}, 226.3},
    {DataType::bf16, 64, 1024, true, {128, 32, 4, 128, 16, 4, 2, 0}, 183.8},
    {DataType::bf16, 64, 4096, false, {128, 32, 4, 128, 16, 4, 2, 0}, 249.6},
    {DataType::bf16, 64, 4096, true, {128, 32, 4, 128, 16, 4, 2, 0}, 223.2},
    {DataType::bf16, 64, 16384, false, {128, 32, 4, 128, 16, 4, 2, 0}, 256.6},
    {DataType::bf16, 64, 16384, true, {128, 32, 4, 128, 16, 4, 2, 0}, 241.6},
    {DataType::bf16, 128, 1024, false, {128, 64, 8, 128, 32, 8, 2, 0}, 191.9},
    {DataType::bf16, 128, 1024, true, {64, 64, 4, 64, 32, 4, 2, 0}, 173.7},
    {DataType::bf16, 128, 4096, false, {128, 64, 8, 128, 32, 8, 2, 0}, 210.3},
    {DataType::bf16, 128, 4096, true, {64, 64, 4, 64, 32, 4, 2, 0}, 204.9},
    {DataType::bf16, 128, 16384, false, {128, 64, 8, 128, 32, 8, 2, 0}, 218.5},
    {DataType::bf16, 128, 16384, true, {128, 64, 8, 128, 32, 8, 2, 0}, 220.1},
    {DataType::bf16, 256, 1024, false, {128, 32, 8, 128, 32, 8, 2, 1}, 152.3},
    {DataType::bf16, 256, 1024, true, {128, 32, 8, 128, 32, 8, 2, 1}, 117.6},
    {DataType::bf16, 256, 4096, false, {128, 32, 8, 128, 32, 8, 2, 1}, 168.3},
    {DataType::bf16, 256, 4096, true, {128, 32, 8, 128, 32, 8, 2, 1}, 145.1},
    {DataType::bf16, 256, 16384, false, {128, 32, 8, 128, 32, 8, 2, 1}, 176.4},
    {DataType::bf16, 256, 16384, true, {128, 32, 8, 128, 32, 8, 2, 1}, 176.1}};

/// In f32.
struct Spill {
  int64_t d, n;
  bool isCausal;
  int64_t column, strip, heads;
  double tflops;

  Plan plan(Problem &p) const {
    p = tokenGradients(d, n, isCausal);
    p.dtype = DataType::f32;
    return planOf(p, "spill_backward",
                  {{"column", column},
                   {"strip", strip},
                   {"heads", heads},
                   {"slice", 16},
                   {"warps", 8},
                   {"stages", 3}});
  }
};

const Spill spills[] = {
    {64, 1024, false, 64, 4096, 4, 18},    {64, 1024, true, 64, 2048, 8, 16},
    {64, 4096, false, 64, 4096, 4, 35},    {64, 4096, true, 64, 2048, 8, 31},
    {128, 1024, false, 128, 4096, 4, 21},  {128, 1024, true, 128, 2048, 8, 19},
    {128, 4096, false, 128, 4096, 4, 43},  {128, 4096, true, 128, 2048, 8, 36},
    {256, 1024, false, 128, 4096, 4, 36},  {256, 1024, true, 128, 4096, 4, 18},
    {256, 1024, false, 128, 1024, 64, 44}, {256, 1024, true, 128, 1024, 64, 37},
    {256, 4096, false, 128, 4096, 4, 46},  {256, 4096, true, 128, 4096, 4, 40},
    {512, 1024, false, 128, 4096, 4, 44},  {512, 1024, true, 128, 4096, 4, 23},
    {512, 1024, false, 128, 1024, 64, 45}, {512, 1024, true, 128, 1024, 64, 39},
    {512, 4096, false, 128, 4096, 4, 48},  {512, 4096, true, 128, 4096, 4, 47}};

/// How far predictions are from what was measured, in the middle and at most.
template <typename Measured>
void expectErrors(const Measured &measured, double median, double most) {
  std::vector<double> errors;
  for (const auto &m : measured) {
    Problem p;
    Plan plan = m.plan(p);
    double error = plan.seconds / secondsOf(p, m.tflops) - 1;
    EXPECT_LT(std::fabs(error), most) << p << " " << plan.tiles.str();
    errors.push_back(std::fabs(error));
  }
  std::nth_element(errors.begin(), errors.begin() + errors.size() / 2,
                   errors.end());
  EXPECT_LT(errors[errors.size() / 2], median);
}

TEST(GradientTime, OfStripsIsAsMeasured) { expectErrors(splits, 0.11, 0.23); }

// Whatever part of a machine a round fills.
TEST(GradientTime, OfRoundsIsAsMeasured) { expectErrors(spills, 0.09, 0.19); }

// What multiplies scores again and what writes them down: at d = 128 f32 took
// 36 and 43 TFLOP/s, under a mask 34 and 36; at d = 64 43 and 35, 41 and 31.
// In bf16, of which d = 256 was measured at 168 and 229, 128 at 210 and 197.
TEST(GradientTime, TheFasterOneIsChosen) {
  auto chosen = [](DataType type, int64_t d, bool isCausal) {
    Problem p = tokenGradients(d, 4096, isCausal);
    p.dtype = type;
    p.alignment = 8; // without a copy engine
    return plans(p, *findMachine("h100_sxm")).best()->schedule;
  };
  for (bool isCausal : {false, true}) {
    EXPECT_EQ(chosen(DataType::f32, 64, isCausal), "split_backward");
    EXPECT_EQ(chosen(DataType::f32, 128, isCausal), "spill_backward");
  }
  EXPECT_EQ(chosen(DataType::bf16, 128, false), "split_backward");
  EXPECT_EQ(chosen(DataType::bf16, 256, false), "spill_backward");
}

} // namespace
