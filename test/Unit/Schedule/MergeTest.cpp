//===- MergeTest.cpp - Bytes and limits of merges -------------------------===//

#include "attn/Schedule/Merge.h"

#include <gtest/gtest.h>

using namespace attn;

namespace {

/// The example of Merge.h.
Merge twoParts() {
  Merge merge;
  merge.queries = 100;
  merge.headDim = 64;
  merge.parts = {DataType::bf16, DataType::bf16};
  return merge;
}

} // namespace

TEST(Merge, BytesAreThoseOfAllArrays) {
  Merge merge = twoParts();
  EXPECT_EQ(bytesOf(merge), 39600);
  merge.lse = false;
  EXPECT_EQ(bytesOf(merge), 39600 - 400);
  merge.parts[1] = DataType::f32;
  EXPECT_EQ(bytesOf(merge), 39600 - 400 + 12800);
  merge.batch = 2;
  merge.heads = 3;
  EXPECT_EQ(bytesOf(merge), 6 * (39600 - 400 + 12800));
}

TEST(Merge, BytesOfGradients) {
  Merge merge = twoParts();
  merge.direction = Direction::backward;
  merge.parts = {DataType::f32};
  // dO and O, O_i and dO_i, and three statistics.
  EXPECT_EQ(bytesOf(merge), 2 * 12800 + 2 * 25600 + 3 * 400);
  merge.dlse = true;
  EXPECT_EQ(bytesOf(merge), 2 * 12800 + 2 * 25600 + 4 * 400);
}

TEST(Merge, BlocksHaveWholeRows) {
  Merge merge = twoParts();
  merge.heads = 5;
  EXPECT_EQ(blocksOf(merge), 10);
  merge.queries = 0;
  EXPECT_EQ(blocksOf(merge), 0);
}

TEST(Merge, RefusesWhatHasNoKernel) {
  EXPECT_EQ(check(twoParts()), std::nullopt);
  Merge none = twoParts();
  none.parts.clear();
  EXPECT_EQ(*check(none), "expects a part at least, but got none");
  Merge many = twoParts();
  many.parts.resize(17);
  EXPECT_EQ(*check(many), "expects at most 16 parts, but got 17");
  Merge mixed = twoParts();
  mixed.parts[0] = DataType::f16;
  EXPECT_EQ(*check(mixed), "expects parts of bf16 or f32, but got f16");
  Merge small = twoParts();
  small.dtype = DataType::f8e4m3;
  EXPECT_EQ(*check(small), "expects bf16, f16 or f32, but got f8e4m3");
  Merge gradients = twoParts();
  gradients.direction = Direction::backward;
  EXPECT_EQ(*check(gradients), "expects gradients of one part, but got 2");
  Merge wide = twoParts();
  wide.headDim = kMaxHeadDim + 1;
  EXPECT_TRUE(check(wide).has_value());
}
