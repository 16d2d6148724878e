//===- ClassesTest.cpp - Are hidden tiles hidden, and open ones open? -----===//
//
// Every class is compared with the region's own value of every pair.
//
//===----------------------------------------------------------------------===//

#include "../Seed.h"
#include "ParsedOp.h"
#include "attn/IR/RegionClasses.h"
#include "attn/IR/RegionEvaluator.h"

#include <gtest/gtest.h>
#include <random>

using namespace attn;

namespace {

/// A region, and what it says of pairs and tiles.
class TestedMask {
public:
  TestedMask(const std::string &body, int64_t queries, int64_t keys)
      : op(forwardText(seesOf(body))), region(*op->sees()), evaluator(region),
        queries(queries), keys(keys) {}

  bool sees(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return evaluator.sees({b, h, i, j, queries, keys}, {});
  }
  TileClass classOf(Interval b, Interval h, Interval i, Interval j) {
    return classify(region, {b, h, i, j, queries, keys});
  }
  /// What the pairs of a tile say.
  TileClass trueClassOf(Interval b, Interval h, Interval i, Interval j) const {
    bool isHidden = true, isOpen = true;
    for (int64_t bb = b.first; bb <= b.last; ++bb)
      for (int64_t hh = h.first; hh <= h.last; ++hh)
        for (int64_t ii = i.first; ii <= i.last; ++ii)
          for (int64_t jj = j.first; jj <= j.last; ++jj) {
            bool isSeen = sees(bb, hh, ii, jj);
            isHidden &= !isSeen;
            isOpen &= isSeen;
          }
    if (isHidden)
      return TileClass::hidden;
    return isOpen ? TileClass::open : TileClass::cut;
  }
  std::optional<std::vector<Interval>> bounds() {
    return boundsOf(region, 0, 0, queries, keys);
  }
  std::optional<std::vector<Interval>> keysOf(int64_t query) {
    return keysSeen(region, 0, 0, query, queries, keys);
  }

private:
  ParsedOp op;
  mlir::Region &region;
  RegionEvaluator evaluator;
  int64_t queries, keys;
};

/// Text of random conditions.
class RandomRegion {
public:
  explicit RandomRegion(unsigned seed) : random(seed) {}

  std::string body() {
    text.clear();
    count = 0;
    std::string result = truth(3);
    return text + "  %one = arith.constant true\n  %r = arith.andi " + result +
           ", %one : i1\n";
  }

  int64_t draw(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  }

private:
  std::string add(const std::string &op) {
    std::string name = "%v" + std::to_string(count++);
    text += "  " + name + " = " + op + "\n";
    return name;
  }
  template <size_t N> const char *one(const char *const (&of)[N]) {
    return of[draw(0, N - 1)];
  }

  std::string constant(int64_t least, int64_t most) {
    return add("arith.constant " + std::to_string(draw(least, most)) +
               " : index");
  }

  std::string number(int depth) {
    static constexpr const char *positions[] = {"%b", "%h",  "%i",
                                                "%j", "%nq", "%nk"};
    if (depth == 0)
      return draw(0, 3) == 0 ? constant(-20, 20) : one(positions);
    switch (draw(0, 7)) {
    case 0:
    case 1:
    case 2: {
      static constexpr const char *ops[] = {"arith.addi ", "arith.subi ",
                                            "arith.maxsi ", "arith.minsi "};
      std::string a = number(depth - 1), b = number(depth - 1);
      return add(one(ops) + a + ", " + b + " : index");
    }
    case 3: {
      static constexpr const char *ops[] = {
          "arith.remsi ",     "arith.divsi ", "arith.floordivsi ",
          "arith.ceildivsi ", "arith.remui ", "arith.divui ",
          "arith.ceildivui "};
      std::string a = number(depth - 1), b = constant(1, 9);
      return add(one(ops) + a + ", " + b + " : index");
    }
    case 4: {
      std::string a = number(depth - 1), b = constant(-3, 3);
      return add("arith.muli " + a + ", " + b + " : index");
    }
    case 5: {
      static constexpr const char *ops[] = {"arith.shli ", "arith.shrsi ",
                                            "arith.andi ", "arith.shrui "};
      std::string a = number(depth - 1), b = constant(0, 3);
      return add(one(ops) + a + ", " + b + " : index");
    }
    case 6: {
      std::string a = number(depth - 1);
      std::string cast = add("arith.index_cast " + a + " : index to i8");
      std::string absolute = add("math.absi " + cast + " : i8");
      return add(one({"arith.index_cast ", "arith.index_castui "}) + absolute +
                 " : i8 to index");
    }
    default: {
      std::string c = truth(depth - 1), a = number(depth - 1),
                  b = number(depth - 1);
      return add("arith.select " + c + ", " + a + ", " + b + " : index");
    }
    }
  }

  std::string truth(int depth) {
    if (depth <= 1 || draw(0, 2) == 0) {
      static constexpr const char *predicates[] = {
          "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};
      std::string a = number(std::max(depth, 1)), b = number(1);
      return add("arith.cmpi " + std::string(one(predicates)) + ", " + a +
                 ", " + b + " : index");
    }
    if (draw(0, 4) == 0) {
      std::string c = truth(depth - 1), a = truth(depth - 1),
                  b = truth(depth - 1);
      return add("arith.select " + c + ", " + a + ", " + b + " : i1");
    }
    static constexpr const char *ops[] = {"arith.andi ", "arith.ori ",
                                          "arith.xori "};
    std::string a = truth(depth - 1), b = truth(depth - 1);
    return add(one(ops) + a + ", " + b + " : i1");
  }

  std::mt19937 random;
  std::string text;
  int count = 0;
};

const Interval kOne = {0, 0};

std::string causal() { return "  %r = arith.cmpi sle, %j, %i : index\n"; }

/// i + nk - nq - left <= j <= i + nk - nq + right.
std::string window(int64_t left, int64_t right) {
  return "  %l = arith.constant " + std::to_string(left) +
         " : index\n  %o = arith.constant " + std::to_string(right) +
         " : index\n"
         "  %m = arith.subi %nk, %nq : index\n"
         "  %e = arith.addi %i, %m : index\n"
         "  %f = arith.subi %e, %l : index\n"
         "  %g = arith.addi %e, %o : index\n"
         "  %p = arith.cmpi sge, %j, %f : index\n"
         "  %q = arith.cmpi sle, %j, %g : index\n"
         "  %r = arith.andi %p, %q : i1\n";
}

/// j < 5, or causal.
std::string prefix() {
  return "  %c = arith.constant 5 : index\n"
         "  %p = arith.cmpi slt, %j, %c : index\n"
         "  %q = arith.cmpi sle, %j, %i : index\n"
         "  %r = arith.ori %p, %q : i1\n";
}

/// Every third key of the causal ones.
std::string dilated() {
  return "  %c = arith.constant 3 : index\n"
         "  %z = arith.constant 0 : index\n"
         "  %d = arith.subi %i, %j : index\n"
         "  %m = arith.remsi %d, %c : index\n"
         "  %p = arith.cmpi eq, %m, %z : index\n"
         "  %q = arith.cmpi sge, %d, %z : index\n"
         "  %r = arith.andi %p, %q : i1\n";
}

/// The first four keys, and the last eight of the causal ones.
std::string globalAndWindow() {
  return "  %c = arith.constant 4 : index\n"
         "  %w = arith.constant 8 : index\n"
         "  %z = arith.constant 0 : index\n"
         "  %d = arith.subi %i, %j : index\n"
         "  %s = arith.cmpi slt, %j, %c : index\n"
         "  %p = arith.cmpi slt, %d, %w : index\n"
         "  %q = arith.cmpi sge, %d, %z : index\n"
         "  %t = arith.ori %s, %p : i1\n"
         "  %r = arith.andi %t, %q : i1\n";
}

} // namespace

TEST(Classes, OfRandomRegionsAreTrue) {
  Seed seed;
  RandomRegion region(seed);
  int found = 0;
  for (int trial = 0; trial < 100; ++trial) {
    std::string body = region.body();
    TestedMask mask(body, region.draw(1, 40), region.draw(1, 40));
    for (int tile = 0; tile < 6; ++tile) {
      auto interval = [&](int64_t most) {
        int64_t first = region.draw(0, most);
        return Interval{first, first + region.draw(0, 6)};
      };
      Interval b = {0, region.draw(0, 1)}, h = {1, region.draw(1, 3)},
               i = interval(30), j = interval(30);
      TileClass expected = mask.trueClassOf(b, h, i, j);
      TileClass got = mask.classOf(b, h, i, j);
      found += got != TileClass::cut;
      ASSERT_TRUE(got == TileClass::cut || got == expected)
          << body << "queries " << i.first << " to " << i.last << ", keys "
          << j.first << " to " << j.last;
    }
  }
  EXPECT_GT(found, 100); // most that are not cut are found out
}

/// A pair has the class that it has, without reads and floats.
TEST(Classes, OfSinglePairsAreExact) {
  Seed seed;
  RandomRegion region(seed);
  for (int trial = 0; trial < 100; ++trial) {
    std::string body = region.body();
    TestedMask mask(body, 20, 30);
    for (int tile = 0; tile < 10; ++tile) {
      int64_t i = region.draw(0, 19), j = region.draw(0, 29);
      TileClass expected =
          mask.sees(0, 0, i, j) ? TileClass::open : TileClass::hidden;
      ASSERT_EQ(mask.classOf(kOne, kOne, {i, i}, {j, j}), expected) << body;
    }
  }
}

TEST(Classes, OfBandsAreExact) {
  for (const std::string &body :
       {causal(), window(5, 0), window(3, 4), window(0, 0), prefix()}) {
    TestedMask mask(body, 24, 32);
    for (int64_t i = 0; i < 24; i += 8)
      for (int64_t j = 0; j < 32; j += 4) {
        Interval queries = {i, i + 7}, keys = {j, j + 3};
        if (body == prefix() && j == 4)
          continue; // open by both conditions together
        EXPECT_EQ(mask.classOf({0, 1}, {0, 3}, queries, keys),
                  mask.trueClassOf(kOne, kOne, queries, keys))
            << body << i << ", " << j;
      }
  }
}

TEST(Classes, DilatedTilesAreHiddenOrCut) {
  TestedMask mask(dilated(), 32, 32);
  EXPECT_EQ(mask.classOf(kOne, kOne, {0, 7}, {8, 15}), TileClass::hidden);
  EXPECT_EQ(mask.classOf(kOne, kOne, {8, 15}, {0, 7}), TileClass::cut);
  EXPECT_EQ(mask.classOf(kOne, kOne, {9, 9}, {6, 6}), TileClass::open);
  EXPECT_EQ(mask.classOf(kOne, kOne, {9, 9}, {7, 8}), TileClass::hidden);
}

TEST(Classes, GlobalKeysAndAWindow) {
  TestedMask mask(globalAndWindow(), 64, 64);
  EXPECT_EQ(mask.classOf(kOne, kOne, {32, 47}, {0, 3}), TileClass::open);
  EXPECT_EQ(mask.classOf(kOne, kOne, {32, 47}, {4, 19}), TileClass::hidden);
  EXPECT_EQ(mask.classOf(kOne, kOne, {32, 47}, {24, 39}), TileClass::cut);
  EXPECT_EQ(mask.classOf(kOne, kOne, {32, 47}, {48, 63}), TileClass::hidden);
  EXPECT_EQ(mask.keysOf(40), (std::vector<Interval>{{0, 3}, {33, 40}}));
  EXPECT_FALSE(mask.bounds());
}

/// What is read may be anything.
TEST(Classes, OfReadsAreCut) {
  ParsedOp op(forwardText("document(%x0 : tensor<?xi32>)", {"tensor<?xi32>"}));
  PairsOfRows pairs = {kOne, kOne, {0, 7}, {0, 7}, 64, 64};
  EXPECT_EQ(classify(*op->sees(), pairs), TileClass::cut);
  EXPECT_FALSE(keysSeen(*op->sees(), 0, 0, 3, 64, 64));
  EXPECT_FALSE(boundsOf(*op->sees(), 0, 0, 64, 64));
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

TEST(Bounds, OfBandsAreTheirEnds) {
  TestedMask mask(window(3, 1), 6, 8);
  std::optional<std::vector<Interval>> bounds = mask.bounds();
  ASSERT_TRUE(bounds);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ((*bounds)[i], (Interval{std::max<int64_t>(i + 2 - 3, 0),
                                      std::min<int64_t>(i + 2 + 1, 7)}));
  EXPECT_EQ((*TestedMask(prefix(), 8, 8).bounds())[0], (Interval{0, 4}));
  EXPECT_EQ((*TestedMask(causal(), 2, 8).bounds())[1], (Interval{0, 1}));
}

/// Of any region without reads: runs are what single pairs say.
TEST(Bounds, KeysOfRandomRegions) {
  Seed seed;
  RandomRegion region(seed);
  for (int trial = 0; trial < 50; ++trial) {
    std::string body = region.body();
    TestedMask mask(body, 20, 30);
    int64_t query = region.draw(0, 19);
    std::optional<std::vector<Interval>> runs = mask.keysOf(query);
    ASSERT_TRUE(runs) << body;
    std::vector<bool> seen(30);
    for (const Interval &run : *runs)
      for (int64_t j = run.first; j <= run.last; ++j)
        seen[j] = true;
    for (int64_t j = 0; j < 30; ++j)
      ASSERT_EQ(seen[j], mask.sees(0, 0, query, j)) << body << query;
  }
}

/// An end that falls is none of a monotone mask.
TEST(Bounds, FallingEnds) {
  EXPECT_FALSE(TestedMask("  %s = arith.addi %i, %j : index\n"
                          "  %c = arith.constant 6 : index\n"
                          "  %r = arith.cmpi sle, %s, %c : index\n",
                          6, 8)
                   .bounds());
}

/// Rows that see nothing have no run, and no say about those behind.
TEST(Bounds, EmptyRows) {
  TestedMask mask("  %c = arith.constant 3 : index\n"
                  "  %d = arith.subi %i, %c : index\n"
                  "  %r = arith.cmpi sle, %j, %d : index\n",
                  6, 8);
  std::optional<std::vector<Interval>> bounds = mask.bounds();
  ASSERT_TRUE(bounds);
  EXPECT_LT((*bounds)[2].last, (*bounds)[2].first);
  EXPECT_EQ((*bounds)[5], (Interval{0, 2}));
}
