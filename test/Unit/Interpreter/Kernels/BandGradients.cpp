//===- BandGradients.cpp - Do gradients walk the runs of unions of bands? -===//
//
// Random unions of bands, whole and in part, under every mask; ragged ends,
// rows and columns that see nothing, heads that share keys.  Tiles of queries
// walk the runs of their bands, and tiles of keys those of the transposed ones.
// What moved is what is counted in the IR, and what the schedule promises.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/SplitBackwardTiles.h"
#include "Harness/BuiltGradient.h"
#include "Harness/GradientTiles.h"
#include "Harness/KernelDraws.h"
#include "Harness/RandomUnion.h"

#include "../../Seed.h"
#include "../../Share.h"

#include <limits>

using namespace mlir;
using namespace attn;

namespace {

class GradientsOfBands : public BuiltGradient {
protected:
  using BuiltGradient::BuiltGradient;
  Draws draw{47};
  int derived = 0;

  Problem drawProblem(int64_t headDim = 32) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 60), draw(0, 30)},
                          {MaskKind::prefix, 0, 0, draw(0, 100)}};
    Problem p = problem(draw(0, 3) ? draw(1, 300) : draw(1, 20),
                        draw(0, 3) ? draw(1, 300) : draw(1, 30), headDim, 16,
                        masks[draw(0, 1) ? 0 : draw(0, 4)], draw16Bit(draw));
    p.batch = draw(1, 2);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.lseLow = draw(0, 3) == 0;
    p.dlse = draw(0, 3) == 0;
    return p;
  }

  /// The case of a problem whose bands are those of a region.
  GradientCase caseOf(Problem p, ClauseCase &clauses, uint64_t seed) {
    p.clauses = clauses.flags();
    p.bands = clauses.bandsFor(p);
    derived += !p.bands.isEmpty();
    return {p, seed, &clauses};
  }

  void check(const Problem &p, const Tiles &tiles, const std::string &text,
             const std::vector<std::string> &captures = {}) {
    auto seed = uint64_t(draw(0, 1 << 20));
    ClauseCase clauses(context, p, text, captures, seed);
    GradientCase truth = caseOf(p, clauses, seed);
    multiprocessors = draw(1, 4);
    SCOPED_TRACE(str(truth.problem.bands) + ", seed " + std::to_string(seed) +
                 "\n" + text);
    BuiltGradient::check(truth, tiles, drawOptions(draw));
  }

  void checkRandom(int count, ArrayRef<TilesOfDim> choices) {
    for (int i = 0; i < count; ++i) {
      const auto &[tiles, headDim] = choices[size_t(i) % choices.size()];
      Problem p = drawProblem(headDim);
      check(p, tiles, drawUnion(draw, p.keys));
    }
    EXPECT_GT(derived, count / 3);
  }

  /// First keys, first queries and a window, with scores of functions that read
  /// beside them.
  void checkWithScores(const Tiles &tiles, int64_t headDim = 32) {
    const std::string slopes = "tensor<4xf32>";
    const std::string region =
        "captures(%x0 : " + slopes + ") " +
        "sees (%b, %h, %i, %j, %nq, %nk, %s) {\n"
        "  %c = arith.constant 20 : index\n"
        "  %w = arith.constant 40 : index\n"
        "  %d = arith.subi %i, %j : index\n"
        "  %a = math.absi %d : index\n"
        "  %x = arith.cmpi slt, %j, %c : index\n"
        "  %y = arith.cmpi sle, %a, %w : index\n"
        "  %z = arith.cmpi slt, %i, %c : index\n"
        "  %p = arith.ori %x, %y : i1\n"
        "  %r = arith.ori %p, %z : i1\n"
        "  attn.yield %r : i1\n"
        "} score (%z : f32, %b, %h, %i, %j, %nq, %nk, %s) {\n"
        "  %f = attn.read %s[%h] : " +
        slopes +
        "\n"
        "  %t = math.tanh %z : f32\n"
        "  %u = arith.mulf %t, %f : f32\n"
        "  attn.yield %u : f32\n"
        "} sinks(%x1 : " +
        slopes + ")";
    for (auto [queries, keys] :
         {std::pair<int64_t, int64_t>{70, 330}, {330, 70}, {250, 260}}) {
      Problem p = problem(queries, keys, headDim, 16);
      p.heads = 4;
      p.kvHeads = 2;
      check(p, tiles, region, {slopes, slopes});
    }
    EXPECT_EQ(derived, 3);
  }

  /// Of queries and keys of which nobody sees the others nothing is touched:
  /// they are poison.
  void checkHidden(const Tiles &tiles, int64_t headDim = 32) {
    const std::string region = "sees (%b, %h, %i, %j, %nq, %nk) {\n"
                               "  %c = arith.constant 128 : index\n"
                               "  %e = arith.constant 384 : index\n"
                               "  %f = arith.constant 256 : index\n"
                               "  %x = arith.cmpi slt, %j, %c : index\n"
                               "  %y = arith.cmpi sge, %j, %e : index\n"
                               "  %z = arith.cmpi slt, %i, %f : index\n"
                               "  %p = arith.ori %x, %y : i1\n"
                               "  %r = arith.andi %p, %z : i1\n"
                               "  attn.yield %r : i1\n}";
    Problem p = problem(500, 450, headDim, 16);
    ClauseCase clauses(context, p, region, {}, 3);
    GradientCase truth = caseOf(p, clauses, 3);
    ASSERT_EQ(truth.problem.bands.all().size(), 2u);
    auto poison = [](std::vector<float> &rows, int64_t from, int64_t to,
                     int64_t columns) {
      std::fill(rows.begin() + from * columns, rows.begin() + to * columns,
                std::numeric_limits<float>::quiet_NaN());
    };
    poison(truth.k, 128, 384, headDim);
    poison(truth.v, 128, 384, 16);
    poison(truth.q, 256, 500, headDim);
    BuiltGradient::check(truth, tiles);
  }
};

class FlashBackwardOfBands : public GradientsOfBands {
protected:
  FlashBackwardOfBands() : GradientsOfBands("flash_backward", "wgmma") {}

  const std::array<TilesOfDim, 5> choices = flashBackwardChoices();
};

class SplitBackwardOfBands : public GradientsOfBands {
protected:
  SplitBackwardOfBands() : GradientsOfBands("split_backward", "wgmma") {}

  const TilesOfDim choices[3] = {
      {SplitBackwardTiles{128, 64, 128, 64, 0, 2, 1}, 32},
      {SplitBackwardTiles{128, 64, 128, 64, 1, 2, 1}, 32},
      {SplitBackwardTiles{64, 128, 128, 128, 0, 3, 2}, 32}};
};

class SplitMmaSyncOfBands : public GradientsOfBands {
protected:
  SplitMmaSyncOfBands() : GradientsOfBands("split_backward", "mma_sync") {}

  const TilesOfDim choices[3] = {{splitMmaSyncTiles(1, 0), 32},
                                 {splitMmaSyncTiles(2, 1), 48},
                                 {splitMmaSyncTiles(3, 0, 64), 32}};
};

} // namespace

TEST_F(FlashBackwardOfBands, RandomUnions) { checkRandom(15, choices); }
TEST_F(SplitBackwardOfBands, RandomUnions) { checkRandom(12, choices); }
TEST_F(SplitMmaSyncOfBands, RandomUnions) { checkRandom(12, choices); }

TEST_F(FlashBackwardOfBands, RandomUnionsInNumbers) {
  ATTN_LONG_TEST();
  Seed seed;
  draw = Draws(seed);
  checkRandom(40, choices);
}
TEST_F(SplitBackwardOfBands, RandomUnionsInNumbers) {
  ATTN_LONG_TEST();
  Seed seed;
  draw = Draws(seed);
  checkRandom(30, choices);
}
TEST_F(SplitMmaSyncOfBands, RandomUnionsInNumbers) {
  ATTN_LONG_TEST();
  Seed seed;
  draw = Draws(seed);
  checkRandom(30, choices);
}

TEST_F(FlashBackwardOfBands, WithScoresAndSinks) {
  checkWithScores(choices[0].first, choices[0].second);
}
TEST_F(SplitBackwardOfBands, WithScoresAndSinks) {
  checkWithScores(choices[0].first);
}
TEST_F(SplitMmaSyncOfBands, WithScoresAndSinks) {
  checkWithScores(choices[1].first);
}

TEST_F(FlashBackwardOfBands, HiddenTilesAreNotTouched) {
  for (const auto &[tiles, headDim] : choices)
    checkHidden(tiles, headDim);
}
TEST_F(SplitBackwardOfBands, HiddenTilesAreNotTouched) {
  checkHidden(choices[0].first);
}
TEST_F(SplitMmaSyncOfBands, HiddenTilesAreNotTouched) {
  checkHidden(choices[0].first);
}
