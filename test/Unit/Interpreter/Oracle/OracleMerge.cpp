//===- OracleMerge.cpp - Does the oracle tell the truth of merges? --------===//

#include "Harness/Normals.h"
#include "Harness/SpecialValues.h"
#include "attn/Interpreter/Oracle.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace attn::oracle {

static Array rowMajor(const std::vector<float> &data, const Rows &rows) {
  int64_t ofHead = rows.queries * rows.columns;
  return {data.data(), {rows.heads * ofHead, ofHead, rows.columns, 1}};
}

// Attention over all keys is the merge of that over the first and the others.
TEST(OracleMerge, PartsOfAttentionMakeIt) {
  constexpr int64_t kKeys = 11, kFirst = 4;
  Problem p = {2, 2, 1, 5, kKeys, 8, 6, -100, 100, 0.3};
  attn::Normals normal(1);
  std::vector<float> q(2 * 2 * 5 * 8), k(2 * kKeys * 8), v(2 * kKeys * 6);
  for (std::vector<float> *array : {&q, &k, &v})
    for (float &value : *array)
      value = normal();
  auto attend = [&](int64_t begin, int64_t end, std::vector<double> &o,
                    std::vector<double> &lse) {
    Problem part = p;
    part.keys = end - begin;
    o.resize(2 * 2 * 5 * 6);
    lse.resize(2 * 2 * 5);
    attention(part, {q.data(), {80, 40, 8, 1}},
              {k.data() + begin * 8, {kKeys * 8, kKeys * 8, 8, 1}},
              {v.data() + begin * 6, {kKeys * 6, kKeys * 6, 6, 1}}, o.data(),
              lse.data(), 1);
  };
  std::vector<double> whole, wholeLse, o[2], lse[2];
  attend(0, kKeys, whole, wholeLse);
  attend(0, kFirst, o[0], lse[0]);
  attend(kFirst, kKeys, o[1], lse[1]);
  Rows rows = {2, 2, 5, 6};
  std::vector<float> parts[2], lses[2];
  for (int i = 0; i < 2; ++i) {
    parts[i].assign(o[i].begin(), o[i].end());
    lses[i].assign(lse[i].begin(), lse[i].end());
  }
  std::vector<double> merged(whole.size()), mergedLse(wholeLse.size());
  merge(rows,
        {{rowMajor(parts[0], rows), lses[0].data()},
         {rowMajor(parts[1], rows), lses[1].data()}},
        merged.data(), mergedLse.data());
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_NEAR(merged[i], whole[i], 1e-6);
  for (size_t i = 0; i < wholeLse.size(); ++i)
    EXPECT_NEAR(mergedLse[i], wholeLse[i], 1e-6);
}

TEST(OracleMerge, WhatSawNothingIsNotLookedAt) {
  Rows rows = {1, 1, 2, 1};
  std::vector<float> a = {3, kNaN}, b = {kNaN, kNaN};
  std::vector<float> la = {0.5f, -INFINITY}, lb = {-INFINITY, -INFINITY};
  std::vector<double> o(2), lse(2);
  merge(rows, {{rowMajor(a, rows), la.data()}, {rowMajor(b, rows), lb.data()}},
        o.data(), lse.data());
  EXPECT_EQ(o[0], 3);
  EXPECT_EQ(lse[0], 0.5);
  EXPECT_EQ(o[1], 0);
  EXPECT_EQ(lse[1], -kInfinity);
}

// Gradients are what differences of the merge say.
TEST(OracleMerge, GradientsAreDifferences) {
  Rows rows = {1, 1, 1, 3};
  std::vector<float> o[2] = {{1, -2, 0.5}, {0.25, 3, -1}};
  std::vector<float> lse[2] = {{0.75}, {-0.5}};
  std::vector<float> dO = {0.5, -1, 2}, dlse = {0.3f};
  auto loss = [&] {
    std::vector<double> whole(3), wholeLse(1);
    merge(rows,
          {{rowMajor(o[0], rows), lse[0].data()},
           {rowMajor(o[1], rows), lse[1].data()}},
          whole.data(), wholeLse.data());
    double sum = dlse[0] * wholeLse[0];
    for (int c = 0; c < 3; ++c)
      sum += dO[c] * whole[c];
    return sum;
  };
  std::vector<double> whole(3), wholeLse(1);
  merge(rows,
        {{rowMajor(o[0], rows), lse[0].data()},
         {rowMajor(o[1], rows), lse[1].data()}},
        whole.data(), wholeLse.data());
  std::vector<float> wholeF(whole.begin(), whole.end()),
      lseF(wholeLse.begin(), wholeLse.end());
  for (int part = 0; part < 2; ++part) {
    std::vector<double> dPart(3), dLse(1);
    mergeGradients(rows, rowMajor(dO, rows), dlse.data(),
                   rowMajor(wholeF, rows), lseF.data(),
                   {rowMajor(o[part], rows), lse[part].data()}, dPart.data(),
                   dLse.data());
    auto difference = [&](float &x) {
      constexpr float kStep = 0x1p-8f;
      float before = x;
      x = before + kStep;
      double above = loss();
      x = before - kStep;
      double below = loss();
      x = before;
      return (above - below) / (2 * kStep);
    };
    for (int c = 0; c < 3; ++c)
      EXPECT_NEAR(dPart[c], difference(o[part][c]), 1e-5);
    EXPECT_NEAR(dLse[0], difference(lse[part][0]), 1e-4);
  }
}

} // namespace attn::oracle
