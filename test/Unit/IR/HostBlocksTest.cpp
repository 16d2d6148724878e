//===- HostBlocksTest.cpp - Are lists of blocks what pairs say? -----------===//

#include "attn/IR/HostBlocks.h"
#include "../Seed.h"
#include "ParsedOp.h"

#include <gtest/gtest.h>
#include <random>

using namespace attn;

/// What a list has of a block.
static bool has(const HostBlocks &lists, const HostBlockList &list,
                int64_t line, int64_t column) {
  for (int32_t n = 0; n < list.counts[line]; ++n)
    if (list.indices[line * lists.columns + n] == column)
      return true;
  return false;
}

TEST(HostBlocks, OfCausalAreADiagonalAndWhatIsBelow) {
  ParsedOp op(forwardText("sees (%b, %h, %i, %j, %nq, %nk) {\n"
                          "  %r = arith.cmpi sle, %j, %i : index\n"
                          "  attn.yield %r : i1\n}"));
  HostBlocks lists = blockListsOf(*op->sees(), {}, 1, 1, 256, 256, {128, 128});
  EXPECT_EQ(lists.partial.counts, (std::vector<int32_t>{1, 1}));
  EXPECT_EQ(lists.partial.indices, (std::vector<int32_t>{0, 0, 1, 0}));
  EXPECT_EQ(lists.full.counts, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(lists.full.indices, (std::vector<int32_t>{0, 0, 0, 0}));
  HostBlocks byKeys = transposed(lists);
  EXPECT_EQ(byKeys.full.counts, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(byKeys.full.indices, (std::vector<int32_t>{1, 0, 0, 0}));
}

/// Documents of random lengths, which arithmetic cannot tell, at sizes that are
/// no multiples of a block.
TEST(HostBlocks, OfDocuments) {
  Seed seed;
  std::mt19937 random(seed);
  constexpr int64_t batch = 2, rows = 301;
  ParsedOp op(
      forwardText("document(%x0 : tensor<2x?xi32>)", {"tensor<2x?xi32>"}));
  CapturedArray ids = {{batch, rows}, {}, {}};
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0, id = 0; i < rows; ++i)
      ids.wholes.push_back(id += random() % 60 == 0);
  HostBlocks lists =
      blockListsOf(*op->sees(), {ids}, batch, 1, rows, rows, {64, 128});
  ASSERT_EQ(lists.rows, 5);
  ASSERT_EQ(lists.columns, 3);
  for (int64_t line = 0; line < batch * lists.rows; ++line)
    for (int64_t column = 0; column < lists.columns; ++column) {
      int64_t b = line / lists.rows, row = line % lists.rows, seen = 0, all = 0;
      for (int64_t i = row * 64; i < std::min<int64_t>(rows, row * 64 + 64);
           ++i)
        for (int64_t j = column * 128;
             j < std::min<int64_t>(rows, column * 128 + 128); ++j, ++all)
          seen += ids.wholes[b * rows + i] == ids.wholes[b * rows + j];
      EXPECT_EQ(has(lists, lists.full, line, column), seen == all);
      EXPECT_EQ(has(lists, lists.partial, line, column),
                seen > 0 && seen < all);
    }
  // By keys it is the same, and there and back again too.
  HostBlocks byKeys = transposed(lists), back = transposed(byKeys);
  EXPECT_EQ(back.partial.counts, lists.partial.counts);
  EXPECT_EQ(back.partial.indices, lists.partial.indices);
  EXPECT_EQ(back.full.indices, lists.full.indices);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t row = 0; row < lists.rows; ++row)
      for (int64_t column = 0; column < lists.columns; ++column)
        EXPECT_EQ(has(lists, lists.partial, b * lists.rows + row, column),
                  has(byKeys, byKeys.partial, b * byKeys.rows + column, row));
}
