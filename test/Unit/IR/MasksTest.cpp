//===- MasksTest.cpp - Are regions the masks that they are taken for? -----===//
//
// Every mask is compared with the region's own value of every pair: it may hide
// no pair that the region shows, and if it is exact, show no other.
//
//===----------------------------------------------------------------------===//

#include "../Seed.h"
#include "ParsedOp.h"
#include "RandomConditions.h"
#include "attn/IR/RegionEvaluator.h"
#include "attn/IR/RegionMasks.h"

#include <gtest/gtest.h>

using namespace attn;

namespace {

struct Sizes {
  int64_t queries, keys;
};

/// What the mask of a region is, for known sizes or for any; as text, with `~`
/// in front where it is not exact.
std::string maskOf(const std::string &clause, std::optional<Sizes> known = {}) {
  ParsedOp op(forwardText(clause));
  RegionMask found =
      known ? maskOfRegion(*op->sees(), known->queries, known->keys)
            : maskOfRegion(*op->sees(), std::nullopt, std::nullopt);
  return (found.isExact ? "" : "~") + str(found.mask);
}

const char *const kCausal = "  %r = arith.cmpi sle, %j, %i : index\n";
const char *const kBottomRight =
    "  %d = arith.subi %nk, %nq : index\n  %p = arith.addi %i, %d : index\n"
    "  %r = arith.cmpi sge, %p, %j : index\n";

} // namespace

TEST(RegionMasks, OfNamedMasks) {
  EXPECT_EQ(maskOf(seesOf(kCausal)), "causal");
  EXPECT_EQ(maskOf(seesOf(kCausal), Sizes{64, 64}), "causal");
  EXPECT_EQ(maskOf(seesOf(kCausal), Sizes{64, 80}), "causal");
  EXPECT_EQ(maskOf(seesOf("  %r = arith.constant true\n")), "none");
  EXPECT_EQ(maskOf(seesOf("  %r = arith.cmpi ult, %j, %nk : index\n")), "none");
  EXPECT_EQ(maskOf(seesOf(kBottomRight)), "causal_bottom_right");
  EXPECT_EQ(maskOf(seesOf(kBottomRight), Sizes{64, 80}), "causal_bottom_right");
  EXPECT_EQ(maskOf(seesOf("  %d = arith.subi %i, %j : index\n"
                          "  %e = math.absi %d : index\n"
                          "  %c = arith.constant 9 : index\n"
                          "  %r = arith.cmpi sle, %e, %c : index\n"),
                   Sizes{70, 70}),
            "window<9, 9>");
  EXPECT_EQ(maskOf(seesOf("  %c = arith.constant 5 : index\n"
                          "  %x = arith.cmpi slt, %j, %c : index\n"
                          "  %y = arith.cmpi sle, %j, %i : index\n"
                          "  %r = arith.ori %x, %y : i1\n"),
                   Sizes{70, 70}),
            "prefix<5>");
}

TEST(RegionMasks, AroundWhatIsNoMask) {
  EXPECT_EQ(maskOf(seesOf("  %r = arith.cmpi slt, %j, %i : index\n")),
            "~causal");
  EXPECT_EQ(maskOf(seesOf("  %c = arith.constant 2 : index\n"
                          "  %d = arith.remui %j, %c : index\n"
                          "  %z = arith.constant 0 : index\n"
                          "  %x = arith.cmpi eq, %d, %z : index\n"
                          "  %y = arith.cmpi sle, %j, %i : index\n"
                          "  %r = arith.andi %x, %y : i1\n")),
            "~causal");
  // Of unknown sizes either bound may be the nearer one.
  std::string places = "  %n = arith.subi %nk, %nq : index\n"
                       "  %p = arith.addi %i, %n : index\n"
                       "  %d = arith.subi %j, %p : index\n"
                       "  %c = arith.constant 6 : index\n"
                       "  %x = arith.cmpi slt, %d, %c : index\n"
                       "  %y = arith.cmpi sle, %j, %i : index\n",
              isBoth = places + "  %r = arith.andi %x, %y : i1\n";
  EXPECT_EQ(maskOf(seesOf(isBoth)), "~window<1073741824, 5>");
  EXPECT_EQ(maskOf(seesOf(isBoth), Sizes{20, 20}), "causal");
  ParsedOp documents(
      forwardText("document(%x0 : tensor<?xi32>)", {"tensor<?xi32>"}));
  EXPECT_TRUE(maskOfRegion(*documents->sees(), std::nullopt, std::nullopt)
                  .mask.isOpen());
}

TEST(RegionMasks, HideNothingThatIsSeen) {
  Seed seed;
  std::mt19937 random(seed);
  int exact = 0, narrowed = 0;
  for (int n = 0; n < 300; ++n) {
    std::string clause = randomRegion(random);
    ParsedOp op(forwardText(clause));
    RegionEvaluator evaluator(*op->sees());
    int64_t queries = 1 + random() % 40,
            keys = random() % 2 ? queries : 1 + random() % 40;
    bool isKnown = random() % 2;
    Problem problem;
    problem.queries = queries;
    problem.keys = keys;
    RegionMask found =
        isKnown ? maskOfRegion(*op->sees(), queries, keys)
                : maskOfRegion(*op->sees(), std::nullopt, std::nullopt);
    ASSERT_FALSE(check(found.mask)) << clause;
    problem.mask = found.mask;
    exact += found.isExact;
    narrowed += !found.isExact && !found.mask.isOpen();
    Visible band = visible(problem);
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < keys; ++j) {
        bool sees = evaluator.sees({0, 0, i, j, queries, keys}, {});
        bool shows = band.sees(i, j);
        ASSERT_TRUE(found.isExact ? sees == shows : shows || !sees)
            << clause << " is taken for " << str(found.mask) << " at " << i
            << ", " << j << " of " << queries << " x " << keys;
      }
  }
  // Otherwise nothing has been tried.
  EXPECT_GT(exact, 15);
  EXPECT_GT(narrowed, 30);
}
