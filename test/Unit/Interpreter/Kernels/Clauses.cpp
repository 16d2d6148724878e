//===- Clauses.cpp - Do kernels score and hide as clauses say? ------------===//
//
// Short forms, random regions and sinks, with every mask and with lists; ragged
// ends, rows that see nothing, and captures beside which nothing may be read.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltKernel.h"
#include "Harness/RandomRegion.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

namespace {

class Clauses : public BuiltKernel {
protected:
  /// Two heads that share keys, in two batch entries.
  static Problem problem(int64_t queries, int64_t keys, Mask mask = {},
                         DataType type = DataType::bf16) {
    Problem p = oneHead(queries, keys, 32, 16, mask, type);
    p.batch = 2;
    p.heads = 4;
    p.kvHeads = 2;
    return p;
  }

  void check(Problem p, const Tiles &tiles, const std::string &text,
             const std::vector<std::string> &captures = {},
             InterpreterOptions options = {}) {
    ClauseCase clauses(context, p, text, captures, ++seed);
    p.clauses = clauses.flags();
    p.scales = clauses.scales();
    FlashCase flash(p, tiles, seed);
    if (p.pattern)
      flash.list({}, {}, seed);
    flash.use(clauses);
    OwningOpRef<ModuleOp> module =
        buildFlash(context, p, tiles, flash.scale, &clauses);
    tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
    SCOPED_TRACE(tiles.str() + "; queries " + std::to_string(p.queries) +
                 ", keys " + std::to_string(p.keys) + ", " + str(p.mask) +
                 ", seed " + std::to_string(seed) + "\n" + text);
    Outcome outcome = flash.run(kernel, options);
    ASSERT_EQ(outcome.error, "");
    EXPECT_LT(outcome.relativeError, limitOf(flash));
    EXPECT_LT(outcome.lseError, limitOfLse(p));
    if (p.lseLow)
      EXPECT_LT(outcome.lowError, limitOfLse(p));
  }

  /// On both families.
  void checkBoth(const Problem &p, const std::string &text,
                 const std::vector<std::string> &captures = {}) {
    check(p, mmaSyncTiles(32, 32, 2, 2), text, captures);
    check(p, wgmma(64, 32, 2, 1), text, captures);
  }

  static Tiles wgmma(int64_t query, int64_t key, int64_t stages,
                     int64_t queryStages, bool overlap = true) {
    return {{"query", query},     {"key", key},
            {"stages", stages},   {"query_stages", queryStages},
            {"staging", 64},      {"ping_pong", 0},
            {"overlap", overlap}, {"persistent", 1}};
  }

  /// Scores of f32 that a region makes of a query's number %r and z, which is
  /// 0, one by one: of the only key there is the LSE is its score.
  std::vector<float> scoresOf(int64_t queries, const std::string &text) {
    Problem p = oneHead(queries, 1, 16, 16, {}, DataType::f32);
    ClauseCase clauses(context, p,
                       "score (%z : f32, %b, %h, %i, %j, %nq, %nk) {\n"
                       "  %n = arith.index_cast %i : index to i32\n"
                       "  %r = arith.sitofp %n : i32 to f32\n" +
                           text + "  attn.yield %s : f32\n}",
                       {}, seed);
    p.clauses = clauses.flags();
    Tiles tiles = mmaSyncTiles(64, 16, 1, 4);
    FlashCase flash(p, tiles, seed);
    std::fill(flash.q.begin(), flash.q.end(), 0.0f);
    flash.use(clauses);
    OwningOpRef<ModuleOp> module =
        buildFlash(context, p, tiles, flash.scale, &clauses);
    Outcome outcome = flash.run(*module->getOps<tile::KernelOp>().begin());
    EXPECT_EQ(outcome.error, "");
    return outcome.lse;
  }

  uint64_t seed = 1;
};

std::string tensorOf(std::initializer_list<int64_t> sizes,
                     const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

} // namespace

TEST_F(Clauses, ShortForms) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks) {
    Problem p = problem(70, 90, mask);
    checkBoth(p, "softcap(2.5)");
    std::string slopes = tensorOf({4}, "f32"), ids = tensorOf({2, 90}, "i32"),
                bias = tensorOf({4, 70, 90}, "bf16");
    checkBoth(p, "alibi(%x0 : " + slopes + ")", {slopes});
    checkBoth(p, "bias(%x0 : " + bias + ")", {bias});
    checkBoth(p, "document(%x0 : " + ids + ")", {ids});
    checkBoth(p,
              "document(%x0 : " + ids + ") softcap(3.0) alibi(%x1 : " + slopes +
                  ") bias(%x2 : " + bias + ")",
              {ids, slopes, bias});
  }
}

TEST_F(Clauses, SinksAreInEveryRow) {
  std::string sinks = tensorOf({4}, "f32");
  for (const Mask &mask : kMasks)
    for (bool lseLow : {false, true}) {
      Problem p = problem(130, 70, mask);
      p.lseLow = lseLow;
      checkBoth(p, "sinks(%x0 : " + sinks + ")", {sinks});
    }
  // Rows that see nothing.
  checkBoth(problem(80, 20, {MaskKind::causalBottomRight}),
            "sinks(%x0 : " + sinks + ")", {sinks});
  checkBoth(problem(40, 0), "sinks(%x0 : " + sinks + ")", {sinks});
}

/// Of all operands or some, one for all or for each; scores of many tiles, of
/// heads with other scales, in whole walks and in parts.
TEST_F(Clauses, ScalesOfOperands) {
  ATTN_LONG_TEST();
  std::string one = tensorOf({1, 1}, "f32"), each = tensorOf({2, 2}, "f32"),
              ofBatch = tensorOf({2, 1}, "f32"),
              ofHead = tensorOf({1, 2}, "f32");
  for (const Mask &mask : kMasks) {
    Problem p = problem(70, 90, mask);
    checkBoth(p,
              "scales(q %x0, k %x1, v %x2 : " + one + ", " + each + ", " +
                  each + ")",
              {one, each, each});
    checkBoth(p, "scales(v %x0 : " + ofBatch + ")", {ofBatch});
    checkBoth(p, "scales(k %x0 : " + ofHead + ") softcap(2.5)", {ofHead});
  }
  Problem long_ = problem(300, 200, {MaskKind::causal});
  std::string text = "scales(q %x0, v %x1 : " + each + ", " + each + ")";
  for (int64_t groups : {1, 2, 3})
    for (bool overlap : {false, true})
      check(long_, wgmma(64 * groups, 64, 2, 1 + overlap, overlap), text,
            {each, each});
  long_.lseLow = true;
  checkBoth(long_, text, {each, each});
  // Keys in parts.
  Problem few = problem(3, 400);
  Tiles ofGroups = {{"query", 64},  {"key", 64},       {"stages", 2},
                    {"overlap", 1}, {"persistent", 1}, {"parts", 3}};
  Tiles ofWarps = mmaSyncTiles(16, 32, 2, 1);
  ofWarps.set("parts", 3);
  for (const Tiles &tiles : {ofGroups, ofWarps})
    check(few, tiles, text, {each, each});
  // Rows that see nothing.
  checkBoth(problem(80, 20, {MaskKind::causalBottomRight}), text, {each, each});
}

TEST_F(Clauses, ScalesOfEightBits) {
  std::string one = tensorOf({1, 1}, "f32"), each = tensorOf({2, 2}, "f32");
  std::string text =
      "scales(q %x0, k %x1, v %x2 : " + one + ", " + each + ", " + each + ")";
  for (const Mask &mask : kMasks)
    for (int64_t groups : {1, 2})
      check(problem(150, 130, mask, DataType::f8e4m3),
            wgmma(64 * groups, 32, 2, groups), text, {one, each, each});
}

/// Keys and values of eight bits, with what they are to be multiplied by,
/// beside all that a mask or a clause shows.
TEST_F(Clauses, ScalesOfNarrowKeys) {
  std::string one = tensorOf({1, 1}, "f32"), each = tensorOf({2, 2}, "f32"),
              sinks = tensorOf({4}, "f32");
  std::string text = "scales(k %x0, v %x1 : " + one + ", " + each + ")";
  for (DataType type : {DataType::bf16, DataType::f16}) {
    for (const Mask &mask : kMasks)
      for (int64_t groups : {1, 2})
        check(withKvType(problem(150, 130, mask, type), DataType::f8e4m3),
              wgmma(64 * groups, 48, 2, groups), text, {one, each});
    Problem p = withKvType(problem(130, 200, {MaskKind::causal}, type),
                           DataType::f8e4m3);
    check(p, wgmma(192, 32, 3, 1), text, {one, each});
    p.pattern.emplace(BlockSize{64, 64}, /*density=*/0.5);
    check(p, wgmma(64, 32, 2, 1),
          "sinks(%x2 : " + sinks + ") softcap(2.5) " + text,
          {one, each, sinks});
  }
}

/// sinks and lists beside scales.
TEST_F(Clauses, ScalesBesideOthers) {
  std::string each = tensorOf({2, 2}, "f32"), ofHead = tensorOf({4}, "f32");
  std::string text = "sinks(%x0 : " + ofHead +
                     ") scales(q %x1, v %x2 : " + each + ", " + each + ")";
  Problem p = problem(130, 200, {MaskKind::causal});
  checkBoth(p, text, {ofHead, each, each});
  p.pattern.emplace(BlockSize{64, 64}, /*density=*/0.5);
  check(p, mmaSyncTiles(32, 32, 2, 2), text, {ofHead, each, each});
  check(p, wgmma(64, 32, 2, 1), text, {ofHead, each, each});
}

TEST_F(Clauses, RandomRegions) {
  for (int i = 0; i < 20; ++i) {
    Draws draw(seed);
    Problem p = problem(draw(1, 140), draw(1, 140), kMasks[draw(0, 5)],
                        draw(0, 1) ? DataType::bf16 : DataType::f16);
    RandomRegion region(p, seed * 31 + 7);
    std::string text = region.captures() + (draw(0, 1) ? region.sees() : "") +
                       (draw(0, 2) ? region.score() : "");
    checkBoth(p, text, region.types());
  }
}

TEST_F(Clauses, WithLists) {
  for (int i = 0; i < 8; ++i) {
    Draws draw(seed);
    Problem p = problem(draw(1, 200), draw(1, 200), kMasks[draw(0, 5)]);
    p.pattern.emplace(BlockSize{64, 64}, /*density=*/0.5);
    RandomRegion region(p, seed * 17 + 3);
    std::string text = region.captures() + region.sees() + region.score();
    check(p, mmaSyncTiles(32, 32, 2, 2), text, region.types());
    check(p, wgmma(64, 32, 2, 1), text, region.types());
  }
}

TEST_F(Clauses, TilesAndTypes) {
  ATTN_LONG_TEST();
  std::string slopes = tensorOf({4}, "f32"), bias = tensorOf({90}, "f16");
  std::string text =
      "softcap(3.0) alibi(%x0 : " + slopes + ") sinks(%x1 : " + slopes + ")";
  for (int64_t groups : {1, 2, 3})
    for (bool overlap : {false, true}) {
      Problem p = problem(300, 200, {MaskKind::causal});
      check(p, wgmma(64 * groups, 64, 2, 1 + overlap, overlap), text,
            {slopes, slopes});
    }
  for (int64_t stages : {1, 3})
    check(problem(100, 120, {MaskKind::window, 40, 7}),
          mmaSyncTiles(64, 16, stages, 4), text, {slopes, slopes});
  Problem p = problem(100, 120, {MaskKind::causal}, DataType::f32);
  Tiles tiles = wgmma(128, 64, 1, 1);
  tiles.set("staging", 0);
  check(p, tiles, text, {slopes, slopes});
  check(p, mmaSyncTiles(32, 32, 2, 2), text, {slopes, slopes});
}

/// Beside f64: at 8000 places from -8 to 8, and at powers of two of both signs,
/// from those that f32 rounds to 0 to those that are infinite in it.
TEST_F(Clauses, TanhOfSinglePrecision) {
  constexpr int64_t places = 8000;
  std::vector<float> near = scoresOf(places, R"(
      %step = arith.constant 0.002 : f32
      %first = arith.constant -8.0 : f32
      %t = math.fma %r, %step, %first : f32
      %x = arith.addf %t, %z : f32
      %s = math.tanh %x : f32
)");
  ASSERT_EQ(near.size(), size_t(places));
  constexpr double limit = 1e-6;
  for (int64_t i = 0; i < places; ++i) {
    double x = std::fma(float(i), 0.002f, -8.0f), truth = std::tanh(x);
    ASSERT_NEAR(near[i], truth, limit * std::fabs(truth)) << x;
  }
  constexpr int64_t powers = 4800, perPower = 8, firstPower = -160;
  std::vector<float> wide = scoresOf(powers, R"(
      %inverse = arith.constant 0.0625 : f32
      %first = arith.constant -160.0 : f32
      %e = math.fma %r, %inverse, %first : f32
      %size = math.exp2 %e : f32
      %one = arith.constant 1 : i32
      %odd = arith.andi %n, %one : i32
      %is = arith.cmpi eq, %odd, %one : i32
      %minus = arith.negf %size : f32
      %t = arith.select %is, %minus, %size : f32
      %x = arith.addf %t, %z : f32
      %s = math.tanh %x : f32
)");
  ASSERT_EQ(wide.size(), size_t(powers));
  for (int64_t i = 0; i < powers; ++i) {
    float x = std::exp2(float(i) / (2 * perPower) + float(firstPower));
    double truth = std::tanh(double(i % 2 ? -x : x));
    double least = std::numeric_limits<float>::min();
    ASSERT_NEAR(wide[i], truth, limit * std::fabs(truth) + least) << x;
  }
  EXPECT_EQ(wide.back(), -1);
  std::vector<float> none = scoresOf(/*queries=*/3, R"(
      %x = arith.divf %z, %z : f32
      %s = math.tanh %x : f32
)");
  for (float value : none)
    EXPECT_TRUE(std::isnan(value));
}
