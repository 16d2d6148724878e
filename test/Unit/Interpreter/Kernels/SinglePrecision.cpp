//===- SinglePrecision.cpp - f32 as tf32: right, and how precise? ---------===//

#include "Harness/BuiltKernel.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

namespace {
class SinglePrecision : public BuiltKernel {
protected:
  static Problem problem(int64_t queries, int64_t keys, int64_t headDim,
                         int64_t headDimV, Mask mask = {},
                         Precision precision = Precision::tf32x3) {
    Problem p = oneHead(queries, keys, headDim, headDimV, mask, DataType::f32);
    p.precision = precision;
    return p;
  }

  /// What the kernel of a case gives, against the oracle.
  double errorOf(FlashCase &flash) {
    OwningOpRef<ModuleOp> module =
        buildFlash(context, flash.problem, flash.tiles);
    Outcome outcome = flash.run(*module->getOps<tile::KernelOp>().begin());
    EXPECT_EQ(outcome.error, "");
    return outcome.relativeError;
  }
};
} // namespace

static constexpr Precision kPrecisions[] = {Precision::tf32x3, Precision::tf32};

static Tiles wideTiles(int64_t query, int64_t key, int64_t across,
                       int64_t stages = 2) {
  return {{"query", query},        {"key", key},
          {"slice", 32},           {"piece", 16},
          {"stages", stages},      {"warps", query / 16 * across},
          {"column_warps", across}};
}

TEST_F(SinglePrecision, MasksRowsAndStages) {
  for (const Mask &mask : kMasks)
    for (Precision precision : kPrecisions)
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{70, 90},
                                   {90, 70},
                                   {1, 130},
                                   {130, 1}}) {
        Problem p = problem(queries, keys, 48, 80, mask, precision);
        check(p, mmaSyncTiles(32, 32, 1, 2));
        check(p, mmaSyncTiles(64, 48, 2, 2));
        check(p, wideTiles(32, 32, 1));
        check(p, wideTiles(32, 64, 4, 3));
      }
}

TEST_F(SinglePrecision, HeadDimensions) {
  for (Precision precision : kPrecisions)
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{8, 8},
                         {64, 64},
                         {17, 33},
                         {40, 200},
                         {96, 128},
                         {256, 256}}) {
      Problem p = problem(50, 60, d, dv, {MaskKind::causal}, precision);
      check(p, mmaSyncTiles(32, 32, 2, 2));
      check(p, wideTiles(32, 32, 2));
    }
}

TEST_F(SinglePrecision, WideHeads) {
  for (Precision precision : kPrecisions) {
    check(problem(20, 70, 1024, 1024, {}, precision), wideTiles(16, 128, 8));
    check(problem(20, 70, 513, 640, {MaskKind::causal}, precision),
          wideTiles(32, 64, 4));
  }
}

TEST_F(SinglePrecision, HeadsAndBatches) {
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {4, 1}}) {
    Problem p = problem(33, 47, 40, 32, {MaskKind::causal});
    p.batch = 2;
    p.heads = heads;
    p.kvHeads = kvHeads;
    check(p, mmaSyncTiles(32, 32, 2, 1));
    p.lse = false;
    check(p, wideTiles(32, 32, 2));
  }
}

TEST_F(SinglePrecision, AllWarpOrders) {
  for (WarpOrder order :
       {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
    InterpreterOptions options;
    options.order = order;
    check(problem(100, 120, 96, 80, {MaskKind::causal}),
          mmaSyncTiles(64, 32, 2, 4), options);
    check(problem(100, 120, 96, 80, {MaskKind::causal}), wideTiles(32, 64, 2),
          options);
  }
}

/// An infinite factor has a low part that is NaN, which must not make a NaN of
/// its products.
TEST_F(SinglePrecision, NotANumberStaysInTheRowsThatSeeIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (float value : {nan, infinity, -infinity}) {
    SCOPED_TRACE(value);
    FlashCase keys(problem(80, 80, 48, 48, {MaskKind::causal}),
                   mmaSyncTiles(32, 32, 2, 2));
    keys.k[37 * 48 + 5] = value;
    keys.consultOracle();
    check(keys);
    // A weight of 0 times an infinite value is NaN, so all rows see it here.
    FlashCase values(problem(80, 80, 48, 48), mmaSyncTiles(32, 32, 2, 2));
    values.v[37 * 48 + 5] = value;
    values.consultOracle();
    check(values);
  }
}

//===----------------------------------------------------------------------===//
// How precise
//===----------------------------------------------------------------------===//

/// Attention as the FMA pipes compute it, term by term, one head, no mask.
static std::vector<float> inSinglePrecision(const FlashCase &flash) {
  const Problem &p = flash.problem;
  const float factor = float(flash.scale * 1.4426950408889634);
  std::vector<float> o(p.queries * p.headDimV), scores(p.keys);
  for (int64_t i = 0; i < p.queries; ++i) {
    float max = -std::numeric_limits<float>::infinity(), sum = 0;
    for (int64_t j = 0; j < p.keys; ++j) {
      scores[j] = 0;
      for (int64_t c = 0; c < p.headDim; ++c)
        scores[j] = std::fmaf(flash.q[i * p.headDim + c],
                              flash.k[j * p.headDim + c], scores[j]);
      max = std::fmax(max, scores[j]);
    }
    float *row = &o[i * p.headDimV];
    for (int64_t j = 0; j < p.keys; ++j) {
      float weight = std::exp2f(std::fmaf(scores[j], factor, -max * factor));
      sum += weight;
      for (int64_t c = 0; c < p.headDimV; ++c)
        row[c] = std::fmaf(weight, flash.v[j * p.headDimV + c], row[c]);
    }
    for (int64_t c = 0; c < p.headDimV; ++c)
      row[c] /= sum;
  }
  return o;
}

/// The interpreter cuts sums off as tensor cores do, so that a kernel which let
/// them run on would fail here; so would one in which what was summed changes
/// by a rounding in each of many steps.
TEST_F(SinglePrecision, SplitProductsAreAsPreciseAsArithmeticInF32) {
  struct {
    int64_t keys, headDim, headDimV;
    Tiles tiles;
  } cases[] = {{2048, 64, 64, mmaSyncTiles(32, 64, 1, 2)},
               {1024, 128, 128, mmaSyncTiles(32, 64, 1, 2)},
               {1024, 256, 64, mmaSyncTiles(32, 32, 1, 2)},
               {512, 512, 64, wideTiles(32, 64, 2)},
               {512, 1024, 64, wideTiles(32, 64, 2)},
               {8192, 16, 16, mmaSyncTiles(32, 16, 2, 2)}};
  for (const auto &each : cases) {
    FlashCase flash(problem(32, each.keys, each.headDim, each.headDimV),
                    each.tiles);
    double single = flash.errorOf(inSinglePrecision(flash));
    double split = errorOf(flash);
    EXPECT_LT(split, 2 * single)
        << each.headDim << ": " << split << " and " << single;
    // ... and f32 with its products in tf32 is not.
    FlashCase rounded(problem(32, each.keys, each.headDim, each.headDimV, {},
                              Precision::tf32),
                      each.tiles);
    EXPECT_GT(errorOf(rounded), 20 * single);
  }
}
