//===- BandsTest.cpp - Are regions the bands that they are taken for? -----===//
//
// Bands are compared with the region's own value of every pair: together they
// hide no pair that it shows, and a whole one shows no other.
//
//===----------------------------------------------------------------------===//

#include "../Seed.h"
#include "ParsedOp.h"
#include "RandomConditions.h"
#include "attn/IR/RegionBands.h"
#include "attn/IR/RegionEvaluator.h"

#include <gtest/gtest.h>

using namespace attn;

namespace {

/// What is derived of a region, as text.
std::string bandsIn(const std::string &body, const Mask &mask = {}) {
  ParsedOp op(forwardText(seesOf(body)));
  Bands bands = bandsOfRegion(*op->sees(), mask);
  return bands.isEmpty() ? "none" : str(bands);
}

const char *const kFirstAndNear = "  %c = arith.constant 4 : index\n"
                                  "  %w = arith.constant 128 : index\n"
                                  "  %d = arith.subi %i, %j : index\n"
                                  "  %a = math.absi %d : index\n"
                                  "  %x = arith.cmpi slt, %j, %c : index\n"
                                  "  %y = arith.cmpi sle, %a, %w : index\n"
                                  "  %r = arith.ori %x, %y : i1\n";

} // namespace

TEST(RegionBands, AreDerived) {
  EXPECT_EQ(bandsIn(kFirstAndNear), "2 bands");
  EXPECT_EQ(bandsIn("  %r = arith.cmpi slt, %j, %i : index\n"), "1 band");
  // First queries, too.
  EXPECT_EQ(bandsIn(std::string(kFirstAndNear) +
                    "  %z = arith.cmpi slt, %i, %c : index\n"
                    "  %s = arith.ori %r, %z : i1\n"
                    "  %t = arith.constant true\n"
                    "  %u = arith.andi %s, %t : i1\n"),
            "2 bands"); // what is yielded is %r
  // Dilated: no band is whole, and there is one.
  EXPECT_EQ(bandsIn("  %c = arith.constant 3 : index\n"
                    "  %z = arith.constant 0 : index\n"
                    "  %d = arith.remui %j, %c : index\n"
                    "  %r = arith.cmpi eq, %d, %z : index\n"),
            "none");
}

TEST(RegionBands, MasksCutThem) {
  // Causal leaves both; of a prefix the first two keys are a band, too, which
  // has them of the window.
  EXPECT_EQ(bandsIn(kFirstAndNear, {MaskKind::causal}), "2 bands");
  EXPECT_EQ(bandsIn(kFirstAndNear, {MaskKind::prefix, 0, 0, 2}),
            "3 bands, 1 of them in part");
}

namespace {

bool shows(const Band &band, int64_t i, int64_t j, int64_t queries,
           int64_t keys) {
  const int64_t values[kBandSides] = {j - i, j - i, j, j, i, i};
  for (size_t side = 0; side < kBandSides; ++side) {
    if (!band.sides[side])
      continue;
    int64_t end = band.sides[side]->at(queries, keys);
    if (side % 2 == 1 ? values[side] > end : values[side] < end)
      return false;
  }
  return true;
}

} // namespace

TEST(RegionBands, HideNothingThatIsSeen) {
  Seed seed;
  std::mt19937 random(seed);
  const Mask masks[] = {{},
                        {MaskKind::causal},
                        {MaskKind::causalBottomRight},
                        {MaskKind::window, 9, 3},
                        {MaskKind::prefix, 0, 0, 6}};
  int derived = 0, exact = 0;
  for (int n = 0; n < 400; ++n) {
    std::string clause = randomRegion(random);
    ParsedOp op(forwardText(clause));
    RegionEvaluator evaluator(*op->sees());
    Problem problem;
    problem.queries = 1 + random() % 40;
    problem.keys = random() % 2 ? problem.queries : 1 + random() % 40;
    problem.mask = masks[random() % 2 ? 0 : random() % 5];
    Bands bands = bandsOfRegion(*op->sees(), problem.mask);
    if (bands.isEmpty())
      continue;
    ++derived;
    bool areWhole = true;
    for (const Band &band : bands.all()) {
      areWhole &= band.isWhole;
      for (const std::optional<RowBound> &side : band.sides)
        ASSERT_TRUE(!side || fits(*side)) << clause;
    }
    exact += areWhole;
    Visible mask = visible(problem);
    int64_t queries = problem.queries, keys = problem.keys;
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < keys; ++j) {
        bool sees =
            mask.sees(i, j) && evaluator.sees({0, 0, i, j, queries, keys}, {});
        bool isShown = false;
        for (const Band &band : bands.all()) {
          bool isOwn = shows(band, i, j, queries, keys);
          isShown |= isOwn;
          ASSERT_TRUE(sees || !(isOwn && band.isWhole))
              << clause << str(problem.mask) << " at " << i << ", " << j
              << " of " << queries << " x " << keys;
        }
        ASSERT_TRUE(isShown || !sees)
            << clause << str(problem.mask) << " at " << i << ", " << j << " of "
            << queries << " x " << keys;
      }
  }
  // Otherwise nothing has been tried.
  EXPECT_GT(derived, 100);
  EXPECT_GT(exact, 40);
}
