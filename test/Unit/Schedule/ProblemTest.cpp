//===- ProblemTest.cpp - Masks, limits, text ------------------------------===//

#include "RandomProblem.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

TEST(Problem, VisibleIsTheMask) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(40);
    Visible seen = visible(p), fromKeys = seen.transposed();
    int64_t row = random.number(0, 20), column = random.number(0, 20);
    Visible inTile = seen.from(row, column);
    int64_t pairs = 0;
    for (int64_t i = 0; i < p.queries; ++i)
      for (int64_t j = 0; j < p.keys; ++j) {
        SCOPED_TRACE(testing::Message() << p << " " << i << " " << j);
        EXPECT_EQ(seen.sees(i, j), isVisible(p, i, j));
        EXPECT_EQ(fromKeys.sees(j, i), isVisible(p, i, j));
        EXPECT_EQ(inTile.sees(i - row, j - column), isVisible(p, i, j));
        pairs += isVisible(p, i, j);
      }
    EXPECT_EQ(visiblePairs(p), pairs) << p;
  }
}

/// What a mask says for all numbers of rows holds for these, and tiles see what
/// their rows see.
TEST(Problem, MasksKnowWhatTheyShow) {
  Random random(3);
  for (int round = 0; round < 2000; ++round) {
    Problem p = random.problem(12);
    bool isOfKeys = random.number(0, 1);
    Visible seen = isOfKeys ? visible(p).transposed() : visible(p);
    int64_t rows = isOfKeys ? p.keys : p.queries;
    int64_t columns = isOfKeys ? p.queries : p.keys;
    Span tile;
    tile.begin = random.number(0, rows - 1);
    tile.end = random.number(tile.begin + 1, rows);
    SCOPED_TRACE(testing::Message() << p << " rows " << tile.begin << " to "
                                    << tile.end << " of keys " << isOfKeys);
    Span some = seen.seenBySome(tile, columns);
    Span all = seen.seenByAll(tile, columns);
    for (int64_t j = 0; j < columns; ++j) {
      int64_t count = 0;
      for (int64_t i = tile.begin; i < tile.end; ++i)
        count += seen.sees(i, j);
      EXPECT_EQ(count > 0, some.begin <= j && j < some.end) << j;
      EXPECT_EQ(count == tile.size(), all.begin <= j && j < all.end) << j;
    }
    int64_t hiddenKeys = 0;
    bool hidesBefore = false, hidesBehind = false;
    for (int64_t j = 0; j < p.keys; ++j) {
      bool isSeen = false;
      for (int64_t i = 0; i < p.queries; ++i) {
        isSeen |= isVisible(p, i, j);
        hidesBefore |=
            j + 1 < p.keys && !isVisible(p, i, j) && isVisible(p, i, j + 1);
        hidesBehind |= j > 0 && isVisible(p, i, j - 1) && !isVisible(p, i, j);
      }
      hiddenKeys += !isSeen;
    }
    EXPECT_LE(hiddenKeys > 0, p.mask.mayHideKeys());
    EXPECT_LE(hidesBefore, p.mask.hidesBefore());
    EXPECT_LE(hidesBehind, p.mask.hidesBehind());
    EXPECT_LE(visible(p).openColumns > 0, p.mask.opensKeys());
    EXPECT_EQ(parseMask(str(p.mask)), p.mask);
  }
}

TEST(Problem, WideWindowSaturates) {
  Problem p;
  p.queries = 10;
  p.keys = 20;
  p.headDim = p.headDimV = 8;
  p.mask = {MaskKind::window, kUnbounded, kUnbounded};
  EXPECT_EQ(check(p), std::nullopt);
  EXPECT_EQ(visible(p).first, -p.queries) << "farther away bounds nothing";
  EXPECT_EQ(visible(p).last, p.keys);
  EXPECT_EQ(visiblePairs(p), 200);
}

TEST(Problem, UsefulFlops) {
  Problem p;
  p.batch = 4;
  p.heads = p.kvHeads = 16;
  p.queries = p.keys = 4096;
  p.headDim = p.headDimV = 128;
  EXPECT_EQ(usefulFlops(p), 4.0 * 64 * 4096 * 4096 * 128);
  // Five products, of which three are as long as a row of Q.
  p.direction = Direction::backward;
  EXPECT_EQ(usefulFlops(p), 10.0 * 64 * 4096 * 4096 * 128);
  p.headDimV = 64;
  EXPECT_EQ(usefulFlops(p), 2.0 * (3 * 128 + 2 * 64) * 64 * 4096 * 4096);
}

TEST(Problem, CheckNamesNumberAndLimit) {
  auto checked = [](auto change) {
    Problem p;
    p.queries = p.keys = p.headDim = p.headDimV = 64;
    change(p);
    return check(p).value_or("fine");
  };
  EXPECT_EQ(checked([](Problem &) {}), "fine");
  EXPECT_EQ(checked([](Problem &p) { p.headDim = 0; }),
            "expects head dim between 1 and 65536, but got 0");
  EXPECT_EQ(checked([](Problem &p) { p.headDimV = 70000; }),
            "expects head dim of v between 1 and 65536, but got 70000");
  EXPECT_EQ(checked([](Problem &p) { p.queries = -1; }),
            "expects queries between 0 and 1073741823, but got -1");
  EXPECT_EQ(checked([](Problem &p) { p.heads = 3, p.kvHeads = 2; }),
            "expects heads to be a multiple of kv heads, but got 3 heads and 2 "
            "kv heads");
  EXPECT_EQ(checked([](Problem &p) { p.mask = {MaskKind::window, -1, 0}; }),
            "expects the window's left side between 0 and 1073741824, but got "
            "-1");
  EXPECT_NE(checked([](Problem &p) { p.queries = p.keys = kMaxRows; }), "fine");
  EXPECT_EQ(checked([](Problem &p) {
              p.direction = Direction::backward;
              p.deterministic = p.dlse = true;
            }),
            "fine");
  EXPECT_EQ(checked([](Problem &p) {
              p.direction = Direction::backward;
              p.dtype = DataType::f8e4m3;
            }),
            "expects bf16, f16 or f32 for gradients, but got f8e4m3");
  EXPECT_EQ(checked([](Problem &p) { p.kvDtype = DataType::f8e4m3; }), "fine");
  EXPECT_EQ(checked([](Problem &p) {
              p.dtype = DataType::f32;
              p.kvDtype = DataType::f8e4m3;
            }),
            "expects k and v in the type of q, or in f8e4m3 where that is bf16 "
            "or f16, but got f8e4m3 for q in f32");
  EXPECT_EQ(checked([](Problem &p) { p.kvDtype = DataType::f16; }),
            "expects k and v in the type of q, or in f8e4m3 where that is bf16 "
            "or f16, but got f16 for q in bf16");
  EXPECT_EQ(checked([](Problem &p) {
              p.direction = Direction::backward;
              p.kvDtype = DataType::f8e4m3;
            }),
            "expects operands of one type for gradients, but got k and v in "
            "f8e4m3 and q in bf16");
  EXPECT_EQ(checked([](Problem &p) {
              p.keepsWeights = true;
              p.kvDtype = DataType::f8e4m3;
            }),
            "expects operands of one type where weights are kept, but got k "
            "and v in f8e4m3 and q in bf16");
  EXPECT_EQ(checked([](Problem &p) { p.dlse = true; }),
            "expects a gradient of the LSE only backward, but got one forward");
  EXPECT_EQ(checked([](Problem &p) { p.lseLow = true; }), "fine");
  EXPECT_EQ(checked([](Problem &p) {
              p.lse = false;
              p.lseLow = true;
            }),
            "expects the LSE beside its low word, but got none");
}

TEST(Problem, TextRoundTrips) {
  for (DataType type :
       {DataType::bf16, DataType::f16, DataType::f32, DataType::f8e4m3})
    EXPECT_EQ(parseDataType(name(type)), type);
  EXPECT_EQ(parseDataType("f64"), std::nullopt);
  for (Direction direction : {Direction::forward, Direction::backward})
    EXPECT_EQ(parseDirection(name(direction)), direction);
  EXPECT_EQ(parseDirection("sideways"), std::nullopt);
  for (const char *text :
       {"none", "causal", "causal_bottom_right", "window<3, 0>"})
    EXPECT_EQ(str(*parseMask(text)), text);
  EXPECT_EQ(str(*parseMask("window<3,0>")), "window<3, 0>");
  for (const char *text : {"", "Causal", "window", "window<1>", "window<1, 2",
                           "window<a, 2>", "window<1, 2>x"})
    EXPECT_FALSE(parseMask(text)) << text;
}

} // namespace
