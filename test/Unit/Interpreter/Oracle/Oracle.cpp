//===- Oracle.cpp - Does the oracle tell the truth? -----------------------===//

#include "attn/Interpreter/Oracle.h"
#include "Harness/Normals.h"
#include "Harness/SpecialValues.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace attn::oracle {

namespace {
/// A problem with row-major arrays.
struct Case {
  Problem p;
  std::vector<float> q, k, v;
  std::vector<double> o, lse;

  explicit Case(Problem problem)
      : p(problem), q(p.batch * p.heads * p.queries * p.headDim),
        k(p.batch * p.kvHeads * p.keys * p.headDim),
        v(p.batch * p.kvHeads * p.keys * p.headDimV),
        o(p.batch * p.heads * p.queries * p.headDimV),
        lse(p.batch * p.heads * p.queries) {}

  void randomise() {
    attn::Normals normal(1);
    for (std::vector<float> *array : {&q, &k, &v})
      for (float &value : *array)
        value = normal();
  }
  static Array array(const std::vector<float> &data, int64_t heads,
                     int64_t rows, int64_t columns) {
    return {data.data(), {heads * rows * columns, rows * columns, columns, 1}};
  }
  void run(unsigned threads = 0) {
    attention(p, array(q, p.heads, p.queries, p.headDim),
              array(k, p.kvHeads, p.keys, p.headDim),
              array(v, p.kvHeads, p.keys, p.headDimV), o.data(), lse.data(),
              threads);
  }

  /// The formula, term by term.
  void expectFormula() const {
    for (int64_t line = 0; line < p.batch * p.heads * p.queries; ++line) {
      int64_t i = line % p.queries, head = line / p.queries % p.heads;
      int64_t kvLine =
          line / p.queries / p.heads * p.kvHeads + head / (p.heads / p.kvHeads);
      std::vector<double> sum(p.headDimV, 0.0);
      double total = 0;
      for (int64_t j = 0; j < p.keys; ++j) {
        if (j < i + p.first || j > i + p.last)
          continue;
        double score = 0;
        for (int64_t c = 0; c < p.headDim; ++c)
          score += double(q[line * p.headDim + c]) *
                   k[(kvLine * p.keys + j) * p.headDim + c];
        double weight = std::exp(p.scale * score);
        total += weight;
        for (int64_t c = 0; c < p.headDimV; ++c)
          sum[c] += weight * v[(kvLine * p.keys + j) * p.headDimV + c];
      }
      if (total == 0) {
        EXPECT_EQ(lse[line], -kInfinity);
        EXPECT_EQ(o[line * p.headDimV], 0);
        continue;
      }
      EXPECT_NEAR(lse[line], std::log(total), 1e-12);
      for (int64_t c = 0; c < p.headDimV; ++c)
        EXPECT_NEAR(o[line * p.headDimV + c], sum[c] / total, 1e-12);
    }
  }
};
} // namespace

TEST(Oracle, TheExampleOfTheHeader) {
  Case c({1, 1, 1, 1, 2, 1, 1, -kFar, kFar, 1.0});
  c.q = {1};
  c.k = {0, std::log(3.0f)};
  c.v = {4, 8};
  c.run();
  EXPECT_NEAR(c.o[0], 7, 1e-6);
  EXPECT_NEAR(c.lse[0], std::log(4), 1e-6);
}

TEST(Oracle, AgreesWithTheFormula) {
  const std::pair<int64_t, int64_t> bands[] = {
      {-kFar, kFar}, {-kFar, 0}, {-kFar, -20}, {-7, 3}, {30, 40}, {200, 300}};
  for (auto [first, last] : bands)
    for (int64_t queries : {1, 5, 70})
      for (int64_t keys : {1, 13, 260}) {
        Case c({2, 4, 2, queries, keys, 9, 11, first, last, 0.3});
        c.randomise();
        c.run();
        c.expectFormula();
      }
}

TEST(Oracle, StridesAreElements) {
  // [batch, rows, heads, columns] in memory.
  Case c({2, 2, 2, 3, 3, 4, 4, -kFar, kFar, 0.5});
  c.randomise();
  Array transposed{c.q.data(), {24, 4, 8, 1}};
  Array k{c.k.data(), {24, 4, 8, 1}}, v{c.v.data(), {24, 4, 8, 1}};
  attention(c.p, transposed, k, v, c.o.data(), c.lse.data());
  Case rowMajor = c;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t e = 0; e < 4; ++e) {
          int64_t to = b * 24 + h * 12 + i * 4 + e;
          int64_t from = b * 24 + h * 4 + i * 8 + e;
          rowMajor.q[to] = c.q[from];
          rowMajor.k[to] = c.k[from];
          rowMajor.v[to] = c.v[from];
        }
  rowMajor.run();
  EXPECT_EQ(c.o, rowMajor.o);
}

TEST(Oracle, InvisibleKeysTakeNoPart) {
  Case clean({1, 1, 1, 40, 40, 8, 8, -kFar, 0, 1.0});
  clean.randomise();
  Case dirty = clean;
  clean.run();
  // Queries 0 to 29 do not see key 30.
  dirty.k[30 * 8 + 3] = kNaN;
  dirty.v[30 * 8 + 5] = std::numeric_limits<float>::infinity();
  dirty.run();
  for (int64_t i = 0; i < 30 * 8; ++i)
    EXPECT_NEAR(dirty.o[i], clean.o[i], 1e-14);
  for (int64_t i = 30; i < 40; ++i) {
    EXPECT_TRUE(std::isnan(dirty.lse[i]));
    EXPECT_TRUE(std::isnan(dirty.o[i * 8]));
  }
}

TEST(Oracle, NaNInAVisibleValueStaysInItsColumn) {
  Case c({1, 1, 1, 2, 3, 2, 2, -kFar, kFar, 1.0});
  c.randomise();
  c.v[1 * 2 + 1] = kNaN;
  c.run();
  EXPECT_FALSE(std::isnan(c.o[0]));
  EXPECT_TRUE(std::isnan(c.o[1]));
  EXPECT_FALSE(std::isnan(c.lse[0]));
}

/// One score that overflows, and an infinite one, are the largest f32; one of
/// the other sign is hidden, and where all are the row sees nothing.
TEST(Oracle, ScoresThatF32HasNoPlaceFor) {
  for (double scale : {0.5, -0.5}) {
    Case c({1, 1, 1, 2, 4, 1, 1, -kFar, kFar, scale});
    float heavy = scale < 0 ? -1e30f : 1e30f, infinity = heavy * 1e30f;
    c.q = {1e30f, -1e30f};
    c.k = {heavy, infinity, 1, heavy};
    c.v = {3, 6, 100, 9};
    c.run();
    EXPECT_EQ(c.o[0], 6);
    double most = 0.5 * std::numeric_limits<float>::max();
    EXPECT_EQ(c.lse[0], most + std::log(3.0));
    EXPECT_EQ(c.o[1], 100);
    c.k[2] = heavy;
    c.run();
    EXPECT_EQ(c.o[1], 0);
    EXPECT_EQ(c.lse[1], -kInfinity);
  }
}

TEST(Oracle, NoKeysGiveZero) {
  Case c({1, 1, 1, 3, 0, 2, 2, -kFar, kFar, 1.0});
  c.randomise();
  std::fill(c.o.begin(), c.o.end(), 5.0);
  c.run();
  EXPECT_EQ(c.o, std::vector<double>(6, 0.0));
  EXPECT_EQ(c.lse, std::vector<double>(3, -kInfinity));
}

TEST(Oracle, ThreadsDoNotMatter) {
  Case one({1, 3, 1, 100, 90, 16, 16, -kFar, 0, 1.0});
  one.randomise();
  Case many = one;
  one.run(1);
  many.run(7);
  EXPECT_EQ(one.o, many.o);
  EXPECT_EQ(one.lse, many.lse);
}

} // namespace attn::oracle
