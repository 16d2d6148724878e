//===- OracleGradients.cpp - Are the oracle's gradients derivatives? ------===//

#include "Harness/Normals.h"
#include "Harness/SpecialValues.h"
#include "attn/Interpreter/Oracle.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace attn::oracle {

namespace {
/// A problem with row-major arrays, and a loss that is linear in O and LSE:
/// the sum of dO * O and of dLSE * LSE.
struct LossCase {
  Problem p;
  std::vector<float> q, k, v, dO, dlse;
  std::vector<double> dq, dk, dv;

  explicit LossCase(Problem problem)
      : p(problem), q(p.batch * p.heads * p.queries * p.headDim),
        k(p.batch * p.kvHeads * p.keys * p.headDim),
        v(p.batch * p.kvHeads * p.keys * p.headDimV),
        dO(p.batch * p.heads * p.queries * p.headDimV),
        dlse(p.batch * p.heads * p.queries), dq(q.size()), dk(k.size()),
        dv(v.size()) {}

  /// Multiples of 1/64, so that small steps from them are exact.
  void randomise() {
    attn::Normals normal(1);
    for (std::vector<float> *array : {&q, &k, &v, &dO, &dlse})
      for (float &value : *array)
        value = std::round(normal() * 64) / 64;
  }
  static Array array(const std::vector<float> &data, int64_t heads,
                     int64_t rows, int64_t columns) {
    return {data.data(), {heads * rows * columns, rows * columns, columns, 1}};
  }
  Array qArray() const { return array(q, p.heads, p.queries, p.headDim); }
  Array kArray() const { return array(k, p.kvHeads, p.keys, p.headDim); }
  Array vArray() const { return array(v, p.kvHeads, p.keys, p.headDimV); }

  GradientSizes runOf(const std::vector<int64_t> &lines, bool hasDlse = true,
                      unsigned threads = 0) {
    return gradients(p, qArray(), kArray(), vArray(),
                     array(dO, p.heads, p.queries, p.headDimV),
                     hasDlse ? dlse.data() : nullptr,
                     {dq.data(), dk.data(), dv.data(), lines.data(),
                      static_cast<int64_t>(lines.size())},
                     threads);
  }
  GradientSizes run(bool hasDlse = true, unsigned threads = 0) {
    std::vector<int64_t> lines(p.batch * p.kvHeads);
    std::iota(lines.begin(), lines.end(), 0);
    return runOf(lines, hasDlse, threads);
  }

  double loss(bool hasDlse) const {
    std::vector<double> o(dO.size()), lse(dlse.size());
    attention(p, qArray(), kArray(), vArray(), o.data(), lse.data(), 1);
    double sum = 0;
    for (size_t i = 0; i < o.size(); ++i)
      sum += dO[i] * o[i];
    for (size_t i = 0; hasDlse && i < lse.size(); ++i)
      if (std::isfinite(lse[i]))
        sum += dlse[i] * lse[i];
    return sum;
  }

  /// Central differences of two steps, which together err by h^4.
  double slope(float &x, bool hasDlse) {
    auto central = [&](float h) {
      float at = x;
      x = at + h;
      double above = loss(hasDlse);
      x = at - h;
      double below = loss(hasDlse);
      x = at;
      return (above - below) / (2 * double(h));
    };
    return (4 * central(0x1p-9f) - central(0x1p-8f)) / 3;
  }

  void expectDerivatives(bool hasDlse, size_t every) {
    run(hasDlse);
    struct {
      const char *name;
      std::vector<float> &x;
      const std::vector<double> &gradient;
    } all[] = {{"dq", q, dq}, {"dk", k, dk}, {"dv", v, dv}};
    for (auto &each : all)
      for (size_t i = 0; i < each.x.size(); i += every)
        ASSERT_NEAR(each.gradient[i], slope(each.x[i], hasDlse), 1e-6)
            << each.name << "[" << i << "]";
  }
};
} // namespace

/// One query of 1, keys 0 and ln 3 of values 4 and 8: P is 1/4 and 3/4, O is 7,
/// and dS is 1/4 (4 - 7) and 3/4 (8 - 7).
TEST(OracleGradients, TheExampleOfTheHeader) {
  LossCase c({1, 1, 1, 1, 2, 1, 1, -kFar, kFar, 1.0});
  c.q = {1};
  c.k = {0, std::log(3.0f)};
  c.v = {4, 8};
  c.dO = {1};
  GradientSizes sizes = c.run(/*hasDlse=*/false);
  // The terms of dS: 1/4 of 4 and 7, 3/4 of 8 and 7.
  EXPECT_NEAR(sizes.dq, std::log(3.0) * std::sqrt(9 * (64 + 49) / 16.0), 1e-5);
  EXPECT_NEAR(sizes.dk, std::sqrt((16 + 49 + 9 * (64 + 49)) / 16.0), 1e-5);
  EXPECT_NEAR(sizes.dv, std::sqrt((1 + 9) / 16.0), 1e-6);
  EXPECT_NEAR(c.dq[0], 0.75 * std::log(3.0), 1e-6);
  EXPECT_NEAR(c.dk[0], -0.75, 1e-6);
  EXPECT_NEAR(c.dk[1], 0.75, 1e-6);
  EXPECT_NEAR(c.dv[0], 0.25, 1e-6);
  EXPECT_NEAR(c.dv[1], 0.75, 1e-6);
  // Of LSE alone: P K and P Q.
  c.dO = {0};
  c.dlse = {2};
  c.run();
  EXPECT_NEAR(c.dq[0], 1.5 * std::log(3.0), 1e-6);
  EXPECT_NEAR(c.dk[0], 0.5, 1e-6);
  EXPECT_NEAR(c.dk[1], 1.5, 1e-6);
  EXPECT_EQ(c.dv[0], 0);
}

TEST(OracleGradients, AreDerivatives) {
  const std::pair<int64_t, int64_t> bands[] = {
      {-kFar, kFar}, {-kFar, 0}, {-3, 1}, {2, 4}, {200, 300}};
  for (auto [first, last] : bands)
    for (bool hasDlse : {false, true})
      for (auto [queries, keys] : {std::pair(1, 1), {4, 7}, {6, 3}}) {
        LossCase c({2, 4, 2, queries, keys, 3, 5, first, last, 0.7});
        c.randomise();
        c.expectDerivatives(hasDlse, 1);
      }
}

/// By their definition, pair by pair.
TEST(OracleGradients, SizesAreNormsOfTerms) {
  LossCase c({2, 4, 2, 37, 150, 3, 5, -60, 40, -0.7});
  c.randomise();
  const Problem &p = c.p;
  std::vector<double> o(c.dO.size()), lse(c.dlse.size());
  double values =
      attention(p, c.qArray(), c.kArray(), c.vArray(), o.data(), lse.data());
  GradientSizes sizes = c.run();
  double ofO = 0, ofQ = 0, ofK = 0, ofV = 0;
  for (int64_t line = 0; line < p.batch * p.heads * p.queries; ++line) {
    int64_t i = line % p.queries, head = line / p.queries / 2;
    const float *query = &c.q[line * 3], *gradient = &c.dO[line * 5];
    double delta = c.dlse[line] * c.dlse[line];
    for (int64_t x = 0; x < 5; ++x)
      delta += std::pow(gradient[x] * o[line * 5 + x], 2);
    for (int64_t j = 0; j < p.keys; ++j) {
      if (j < i + p.first || j > i + p.last)
        continue;
      const float *key = &c.k[(head * p.keys + j) * 3];
      const float *value = &c.v[(head * p.keys + j) * 5];
      auto dot = [](const float *a, const float *b, int64_t n) {
        return std::inner_product(a, a + n, b, 0.0);
      };
      double weight = std::exp(2 * (p.scale * dot(query, key, 3) - lse[line]));
      double slope =
          weight * (std::pow(dot(gradient, value, 5), 2) + delta) * 0.49;
      ofO += weight * dot(value, value, 5);
      ofV += weight * dot(gradient, gradient, 5);
      ofQ += slope * dot(key, key, 3);
      ofK += slope * dot(query, query, 3);
    }
  }
  EXPECT_NEAR(values / std::sqrt(ofO), 1, 1e-6);
  EXPECT_NEAR(sizes.dv / std::sqrt(ofV), 1, 1e-6);
  EXPECT_NEAR(sizes.dq / std::sqrt(ofQ), 1, 1e-6);
  EXPECT_NEAR(sizes.dk / std::sqrt(ofK), 1, 1e-6);
}

/// Of one key all of dP goes away, and what rounds it does not.
TEST(OracleGradients, SizesDoNotCancel) {
  LossCase c({1, 1, 1, 1, 1, 2, 3, -kFar, kFar, 0.5});
  c.q = {3, 4};
  c.k = {6, 8};
  c.v = {1, -2, 1};
  c.dO = {2, 2, 2};
  GradientSizes sizes = c.run(/*hasDlse=*/false);
  EXPECT_EQ(c.dq, std::vector<double>(2, 0.0));
  EXPECT_EQ(c.dk, std::vector<double>(2, 0.0));
  // dP is 0, and D is 2 - 4 + 2.
  EXPECT_DOUBLE_EQ(sizes.dq, 0.5 * 10 * std::sqrt(24));
  EXPECT_DOUBLE_EQ(sizes.dk, 0.5 * 5 * std::sqrt(24));
}

/// More than a strip of rows and a chunk of what they meet.
TEST(OracleGradients, OfManyRows) {
  for (auto [queries, keys] : {std::pair(37, 150), {150, 37}})
    for (int64_t last : {int64_t(5), kFar}) {
      LossCase c({1, 2, 1, queries, keys, 4, 3, -60, last, -0.3});
      c.randomise();
      c.expectDerivatives(true, 29);
    }
}

TEST(OracleGradients, WhatIsNotSeenTakesNoPart) {
  LossCase clean({1, 1, 1, 40, 40, 8, 8, -kFar, -1, 1.0});
  clean.randomise();
  LossCase dirty = clean;
  clean.run();
  // Query 0 sees nothing, and key 39 is not seen.
  for (int64_t c = 0; c < 8; ++c) {
    dirty.dO[c] = dirty.q[c] = kNaN;
    dirty.k[39 * 8 + c] = dirty.v[39 * 8 + c] = kNaN;
  }
  dirty.run();
  for (int64_t i = 0; i < 40 * 8; ++i) {
    EXPECT_NEAR(dirty.dq[i], clean.dq[i], 1e-12);
    EXPECT_NEAR(dirty.dk[i], clean.dk[i], 1e-12);
    EXPECT_NEAR(dirty.dv[i], clean.dv[i], 1e-12);
  }
  for (int64_t c = 0; c < 8; ++c) {
    EXPECT_EQ(clean.dq[c], 0);
    EXPECT_EQ(clean.dk[39 * 8 + c], 0);
    EXPECT_EQ(clean.dv[39 * 8 + c], 0);
  }
}

TEST(OracleGradients, NaNStaysWithWhoSeesIt) {
  LossCase c({1, 1, 1, 40, 40, 8, 8, 0, 3, 1.0});
  c.randomise();
  c.k[20 * 8] = kNaN; // seen by queries 17 to 20, which see keys 17 to 23
  c.run();
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(std::isnan(c.dq[i * 8 + 1]), i >= 17 && i <= 20) << i;
    EXPECT_EQ(std::isnan(c.dk[i * 8 + 1]), i >= 17 && i <= 23) << i;
    EXPECT_EQ(std::isnan(c.dv[i * 8 + 1]), i >= 17 && i <= 23) << i;
  }
}

TEST(OracleGradients, OnlyOfChosenHeads) {
  LossCase all({2, 4, 2, 9, 11, 3, 2, -kFar, 0, 1.0});
  all.randomise();
  LossCase some = all;
  all.run();
  for (std::vector<double> *array : {&some.dq, &some.dk, &some.dv})
    std::fill(array->begin(), array->end(), 5.0);
  some.runOf({2}); // batch entry 1, key head 0, query heads 0 and 1
  for (size_t i = 0; i < all.dq.size(); ++i)
    EXPECT_EQ(some.dq[i], i / (9 * 3) / 2 == 2 ? all.dq[i] : 5.0);
  for (size_t i = 0; i < all.dk.size(); ++i)
    EXPECT_EQ(some.dk[i], i / (11 * 3) == 2 ? all.dk[i] : 5.0);
  for (size_t i = 0; i < all.dv.size(); ++i)
    EXPECT_EQ(some.dv[i], i / (11 * 2) == 2 ? all.dv[i] : 5.0);
}

TEST(OracleGradients, NothingGivesNothing) {
  LossCase keyless({1, 1, 1, 3, 0, 2, 2, -kFar, kFar, 1.0});
  keyless.randomise();
  std::fill(keyless.dq.begin(), keyless.dq.end(), 5.0);
  keyless.run();
  EXPECT_EQ(keyless.dq, std::vector<double>(6, 0.0));
  LossCase unasked({1, 1, 1, 0, 3, 2, 2, -kFar, kFar, 1.0});
  unasked.randomise();
  std::fill(unasked.dk.begin(), unasked.dk.end(), 5.0);
  unasked.run();
  EXPECT_EQ(unasked.dk, std::vector<double>(6, 0.0));
}

TEST(OracleGradients, ThreadsDoNotMatter) {
  LossCase one({1, 3, 1, 100, 90, 16, 16, -kFar, 0, 1.0});
  one.randomise();
  LossCase many = one;
  one.run(true, 1);
  many.run(true, 7);
  EXPECT_EQ(one.dq, many.dq);
  EXPECT_EQ(one.dk, many.dk);
  EXPECT_EQ(one.dv, many.dv);
}

} // namespace attn::oracle
