//===- LargeScores.cpp - Is softmax right wherever scores lie? ------------===//
//
// Every forward kernel, with scores that f32 holds exactly: whole numbers, so
// that fp64 finds the same ones whatever they are multiplied by.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltRounds.h"
#include "Harness/WholeScores.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

namespace {
/// A kernel, and the types that it takes.
struct LargeForm {
  const char *name;
  Tiles tiles;
  std::vector<DataType> types;
  int64_t headDim = 32, headDimV = 32;
};

const DataType kBf16 = DataType::bf16, kF16 = DataType::f16,
               kF32 = DataType::f32, kF8 = DataType::f8e4m3;

Tiles flashTiles(bool overlap, bool pingPong, int64_t staging = 32) {
  return {{"query", 128},       {"key", 32},          {"stages", 2},
          {"query_stages", 1},  {"staging", staging}, {"ping_pong", pingPong},
          {"overlap", overlap}, {"persistent", 1}};
}

/// Those of one launch.
const LargeForm kForms[] = {
    {"flash_mma_sync",
     {{"query", 32}, {"key", 32}, {"stages", 2}, {"warps", 2}},
     {kBf16, kF16, kF32}},
    {"streamed_query_mma_sync",
     {{"query", 32},
      {"key", 32},
      {"slice", 32},
      {"piece", 16},
      {"stages", 2},
      {"warps", 4},
      {"column_warps", 2}},
     {kBf16, kF16, kF32}},
    {"output_spill_mma_sync",
     {{"query", 32},
      {"key", 32},
      {"column", 32},
      {"slice", 16},
      {"warps", 2},
      {"stages", 2}},
     {kBf16, kF16, kF32}},
    {"score_spill_mma_sync",
     {{"query", 32},
      {"key", 32},
      {"column", 32},
      {"slice", 16},
      {"warps", 2},
      {"strip", 64},
      {"stages", 2}},
     {kBf16, kF16}},
    {"flash_wgmma", flashTiles(true, false), {kBf16, kF16, kF8}},
    {"flash_wgmma, one after the other", flashTiles(false, true), {kBf16}},
    {"flash_wgmma, f32", flashTiles(true, false, 0), {kF32}},
    {"output_spill_wgmma",
     {{"query", 128},
      {"key", 512},
      {"column", 128},
      {"part", 128},
      {"slots", 6}},
     {kBf16, kF16}},
    {"column_split_wgmma",
     {{"query", 128},
      {"key", 128},
      {"group", 2},
      {"cluster", 1},
      {"slots", 6},
      {"resident", 1}},
     {kBf16, kF16},
     64,
     264}};

Tiles roundTiles(bool merged, bool parts) {
  Tiles tiles = {{"query", 128}, {"key_block", 128}, {"column", 64},
                 {"strip", 256}, {"heads", 1},       {"stages", parts ? 6 : 2}};
  if (parts)
    tiles.set("parts", 2);
  tiles.set("merged", merged);
  tiles.set("persistent", 1);
  return tiles;
}

/// Those of several launches.
const LargeForm kRounds[] = {
    {"score_spill_wgmma", roundTiles(false, false), {kBf16, kF16}},
    {"score_spill_wgmma, merged", roundTiles(true, false), {kBf16, kF16}},
    {"score_spill_wgmma, parts", roundTiles(false, true), {kF32}},
};

const Mask kSome[] = {{},
                      {MaskKind::causal},
                      {MaskKind::causalBottomRight},
                      {MaskKind::window, 7, 90},
                      {MaskKind::prefix, 0, 0, 50}};

Problem problemOf(const LargeForm &form, DataType type, int64_t queries,
                  int64_t keys, Mask mask) {
  return oneHead(queries, keys, form.headDim, form.headDimV, mask, type);
}

Problem withLow(Problem p, bool hasLow) {
  p.lseLow = hasLow;
  return p;
}

class LargeScores : public BuiltKernel {
protected:
  using Body = llvm::function_ref<void(const LargeForm &, DataType)>;
  void forEach(Body body) {
    for (const LargeForm &form : kForms)
      for (DataType type : form.types) {
        SCOPED_TRACE(std::string(form.name) + ", " + std::string(name(type)));
        body(form, type);
      }
  }
  Outcome run(FlashCase &flash) {
    OwningOpRef<ModuleOp> module =
        buildFlash(context, flash.problem, flash.tiles, flash.scale);
    flash.multiprocessors = 4;
    Outcome outcome = flash.run(*module->getOps<tile::KernelOp>().begin());
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.o.size(), shapeOfArray("o", flash.problem).elements());
    return outcome;
  }
};

class LargeScoresInRounds : public BuiltRounds {
protected:
  LargeScoresInRounds() : BuiltRounds("score_spill", "score_spill_wgmma") {}
};

/// A scale, of either sign, from 1e3 to 1e38.
float drawScale(Draws &draw) {
  float size = float(std::pow(10.0, double(draw(300, 3800)) / 100));
  return draw(0, 3) ? size : -size;
}

/// Scores of whole numbers, which such a scale moves so far apart that only
/// equal ones share a row.
void drawApart(FlashCase &flash, Draws &draw) {
  drawWhole(flash.q, draw, 2);
  drawWhole(flash.k, draw, 2);
  flash.scale = drawScale(draw);
  flash.consultOracle();
}

/// Scores far from 0 and near each other.
void drawFar(FlashCase &flash, Draws &draw) {
  int bitsOfQ = int(draw(5, 8)), bitsOfK = int(draw(5, 8));
  drawFar(flash.q, flash.k, flash.problem.headDim, draw, bitsOfQ, bitsOfK);
  flash.scale = std::ldexp(draw(0, 3) ? 1.0 : -1.0, int(draw(-4, 1)));
  flash.consultOracle();
}
} // namespace

TEST_F(LargeScores, FarApart) {
  Seed seed;
  Draws draw(seed);
  forEach([&](const LargeForm &form, DataType type) {
    for (int i = 0; i < 4; ++i) {
      FlashCase flash(withLow(problemOf(form, type, draw(1, 140), draw(1, 300),
                                        kSome[draw(0, 4)]),
                              draw(0, 1)),
                      form.tiles, draw(0, 1 << 30));
      drawApart(flash, draw);
      SCOPED_TRACE("scale " + std::to_string(flash.scale));
      Outcome outcome = run(flash);
      EXPECT_LT(outcome.relativeError, type == kF8 ? 6e-2 : 4e-3);
      EXPECT_LT(outcome.lseError, 1e-4);
      EXPECT_LT(outcome.lowError, 1e-5);
    }
  });
}

TEST_F(LargeScores, FarFromZero) {
  Seed seed;
  Draws draw(seed);
  forEach([&](const LargeForm &form, DataType type) {
    for (int i = 0; i < 4; ++i) {
      FlashCase flash(withLow(problemOf(form, type, draw(1, 140), draw(1, 300),
                                        kSome[draw(0, 4)]),
                              draw(0, 1)),
                      form.tiles, draw(0, 1 << 30));
      drawFar(flash, draw);
      SCOPED_TRACE("scale " + std::to_string(flash.scale));
      Outcome outcome = run(flash);
      EXPECT_LT(outcome.relativeError, type == kF8 ? 6e-2 : 8e-3);
      EXPECT_LT(outcome.lseError, 1e-4);
      EXPECT_LT(outcome.lowError, 1e-5);
    }
  });
}

TEST_F(LargeScoresInRounds, FarApartAndFarFromZero) {
  Seed seed;
  Draws draw(seed);
  for (const LargeForm &form : kRounds)
    for (DataType type : form.types)
      for (int i = 0; i < 4; ++i) {
        SCOPED_TRACE(form.name);
        FlashCase flash(withLow(problemOf(form, type, draw(1, 140),
                                          draw(100, 300), kSome[draw(0, 4)]),
                                draw(0, 1)),
                        form.tiles, draw(0, 1 << 30));
        if (i % 2)
          drawApart(flash, draw);
        else
          drawFar(flash, draw);
        SCOPED_TRACE("scale " + std::to_string(flash.scale));
        check(flash);
      }
}

/// One weight, which is 1.
TEST_F(LargeScores, OneKey) {
  forEach([&](const LargeForm &form, DataType type) {
    for (float scale : {1e8F, 1.5e7F, 1e11F, 3e38F, -1e11F}) {
      FlashCase flash(problemOf(form, type, 1, 1, {}), form.tiles);
      flash.scale = scale;
      SCOPED_TRACE("scale " + std::to_string(scale));
      Outcome outcome = run(flash);
      for (auto [got, value] : llvm::zip(outcome.o, flash.v))
        EXPECT_NEAR(got, value, type == kF32 ? 1e-6 : 0);
    }
    if (type != kBf16 && type != kF32)
      return;
    FlashCase flash(problemOf(form, type, 1, 1, {}), form.tiles);
    for (std::vector<float> *array : {&flash.q, &flash.k, &flash.v})
      llvm::fill(*array, 133120.0F);
    for (float value : run(flash).o)
      EXPECT_NEAR(value, 133120.0F, type == kF32 ? 0.02 : 0);
  });
}

/// O lies between the least and the largest value, to one ulp.
TEST_F(LargeScores, AveragesOfTheLargestHalf) {
  Seed seed;
  Draws draw(seed);
  forEach([&](const LargeForm &form, DataType type) {
    if (type != kF16)
      return;
    FlashCase flash(problemOf(form, type, 100, 300, {}), form.tiles,
                    draw(0, 1 << 30));
    const float largest = 65504, ulp = 32;
    for (size_t i = 0; i < flash.v.size(); ++i)
      flash.v[i] = i % 2 ? largest : -largest;
    std::vector<float> o = run(flash).o;
    for (size_t i = 0; i < o.size(); ++i)
      EXPECT_NEAR(o[i], i % 2 ? largest : -largest, ulp);
    // What is infinite stays so.
    const float infinity = std::numeric_limits<float>::infinity();
    setColumn(flash.v, form.headDimV, infinity);
    EXPECT_EQ(run(flash).o.front(), infinity);
  });
}

/// Scores below any that one expects are scores.
TEST_F(LargeScores, FarBelowZero) {
  ATTN_LONG_TEST();
  forEach([&](const LargeForm &form, DataType type) {
    if (type != kBf16 && type != kF32)
      return;
    for (float scale : {0.125F, 1.0F, 1e-33F})
      for (const Mask &mask : kSome) {
        FlashCase flash(problemOf(form, type, 70, 150, mask), form.tiles);
        llvm::fill(flash.q, 0x1p57F);
        llvm::fill(flash.k, -0x1p57F);
        flash.scale = scale;
        flash.consultOracle();
        Outcome outcome = run(flash);
        EXPECT_LT(outcome.relativeError, 4e-3);
        EXPECT_LT(outcome.lseError, 1e-4);
      }
  });
}

/// Scores that overflow with one sign: up they are the largest, down they are
/// no more than hidden ones, so that a row of such is like one that sees
/// nothing.
TEST_F(LargeScores, Overflow) {
  Seed seed;
  Draws draw(seed);
  forEach([&](const LargeForm &form, DataType type) {
    // Products of the parts that wgmma takes of f32 overflow with both.
    if (type != kBf16 && (type != kF32 || form.tiles.has("persistent")))
      return;
    for (float scale : {0.125F, 1e30F}) {
      FlashCase flash(problemOf(form, type, 70, 150, {}), form.tiles);
      llvm::fill(flash.q, 1e30F);
      llvm::fill(flash.k, 1.0F);
      int64_t columns = form.headDim, large = draw(0, 149);
      for (int64_t row = 0; row < 150; ++row)
        if (row == large || draw(0, 3) == 0)
          std::fill_n(flash.k.begin() + row * columns, columns, 1e30F);
      flash.scale = scale;
      flash.consultOracle();
      Outcome largest = run(flash);
      EXPECT_LT(largest.relativeError, 4e-3);
      // The tensor cores take tf32 that overflows for the largest number.
      if (type == kBf16)
        EXPECT_LT(largest.lseError, 1e-4);
      llvm::fill(flash.k, -1e30F);
      Outcome none = run(flash);
      for (float value : none.o)
        EXPECT_TRUE(type == kF32 ? std::isfinite(value) : value == 0);
      const float infinity = std::numeric_limits<float>::infinity();
      for (float value : none.lse)
        EXPECT_TRUE(type == kF32 ? value < -1e30F : value == -infinity);
    }
  });
}

/// In parts as well scores are right up to 2^126.
TEST_F(LargeScores, NearOverflow) {
  Seed seed;
  Draws draw(seed);
  forEach([&](const LargeForm &form, DataType type) {
    if (type != kF32)
      return;
    Problem problem =
        problemOf(form, type, draw(1, 140), draw(1, 300), kSome[draw(0, 4)]);
    problem.precision = Precision::tf32x3;
    FlashCase flash(problem, form.tiles, draw(0, 1 << 30));
    for (std::vector<float> *array : {&flash.q, &flash.k})
      for (float &x : *array)
        x = std::ldexp(float(draw(1 << 23, 1 << 24)), 60 - 24);
    for (size_t i = 0; i < flash.k.size(); ++i)
      if (i / form.headDim % 3 == 0)
        flash.k[i] = -flash.k[i];
    flash.scale = 0x1p-120;
    flash.consultOracle();
    Outcome outcome = run(flash);
    EXPECT_LT(outcome.relativeError, 1e-4);
    EXPECT_LT(outcome.lseError, 1e-4);
  });
}

/// `score_spill` brings factors into range, so that its scores overflow as
/// those of f32 do.
TEST_F(LargeScoresInRounds, Overflow) {
  Seed seed;
  Draws draw(seed);
  for (const LargeForm &form : kRounds)
    for (DataType type : form.types) {
      if (type == kF16)
        continue;
      SCOPED_TRACE(form.name);
      FlashCase flash(problemOf(form, type, draw(1, 140), draw(100, 300), {}),
                      form.tiles, draw(0, 1 << 30));
      llvm::fill(flash.q, 1e30F);
      for (size_t row = 0; row < flash.k.size() / form.headDim; ++row)
        std::fill_n(flash.k.begin() + row * form.headDim, form.headDim,
                    row % 4   ? 1.0F
                    : row % 8 ? -1e30F
                              : 1e30F);
      flash.consultOracle();
      check(flash);
    }
}

/// A score that is no number makes its row none, and no other.
TEST_F(LargeScores, NotANumber) {
  Seed seed;
  Draws draw(seed);
  forEach([&](const LargeForm &form, DataType type) {
    FlashCase flash(problemOf(form, type, 70, 150, {}), form.tiles);
    drawApart(flash, draw);
    int64_t row = draw(0, 69);
    flash.q[row * form.headDim] = std::numeric_limits<float>::quiet_NaN();
    flash.consultOracle();
    Outcome outcome = run(flash);
    EXPECT_LT(outcome.relativeError, type == kF8 ? 6e-2 : 4e-3);
    EXPECT_TRUE(std::isnan(outcome.o[row * form.headDimV]));
    EXPECT_TRUE(std::isnan(outcome.lse[row]));
  });
}
