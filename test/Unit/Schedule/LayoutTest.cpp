//===- LayoutTest.cpp - Do layouts say what their elements do? ------------===//
//
// Every question is also answered by looking at all elements.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Layout.h"

#include "../Seed.h"
#include "RandomProblem.h"

#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace attn;

namespace {

/// The bytes of all elements, as often as elements have them.
std::multiset<int64_t> bytesOf(const Layout &layout, int64_t address = 0) {
  std::multiset<int64_t> bytes;
  int64_t count = 1;
  for (int64_t size : layout.sizes)
    count *= size;
  for (int64_t number = 0; number < count; ++number) {
    int64_t at = 0, rest = number;
    for (size_t dim = layout.sizes.size(); dim-- > 0;) {
      at += rest % layout.sizes[dim] * layout.strides[dim];
      rest /= layout.sizes[dim];
    }
    for (int64_t i = 0; i < layout.elementBytes; ++i)
      bytes.insert(address + at * layout.elementBytes + i);
  }
  return bytes;
}

bool liesOnItself(const Layout &layout) {
  std::multiset<int64_t> bytes = bytesOf(layout);
  return std::set<int64_t>(bytes.begin(), bytes.end()).size() != bytes.size();
}

bool shareBytes(const Layout &a, int64_t addressOfA, const Layout &b,
                int64_t addressOfB) {
  std::multiset<int64_t> ofA = bytesOf(a, addressOfA),
                         ofB = bytesOf(b, addressOfB);
  for (int64_t byte : ofA)
    if (ofB.count(byte))
      return true;
  return false;
}

/// A dense array of these sizes in some order of dimensions, the last one
/// innermost, with gaps now and then.
Layout nested(Random &random, const std::vector<int64_t> &sizes,
              int64_t elementBytes) {
  std::vector<size_t> order = {0, 1, 2};
  for (size_t i = 0; i < 3; ++i)
    std::swap(order[i], order[size_t(random.number(int64_t(i), 2))]);
  Layout layout{sizes, {0, 0, 0, 1}, 0, elementBytes};
  int64_t next = sizes[3] + random.number(0, 3);
  for (size_t dim : order) {
    layout.strides[dim] = next;
    next = next * sizes[dim] + random.number(0, 1) * random.number(0, 9);
  }
  return layout;
}

std::vector<int64_t> drawSizes(Random &random) {
  return {random.number(1, 3), random.number(1, 3), random.number(1, 5),
          random.number(1, 6)};
}

std::string wrong(const Layout &layout, bool isWritten = false) {
  return wrongLayout(layout, isWritten).value_or("");
}

TEST(Layout, WhatIsWrittenLiesApart) {
  Seed seed;
  Random random(seed);
  int refused = 0, accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    Layout layout{drawSizes(random), {}, 0, 2};
    for (int dim = 0; dim < 3; ++dim)
      layout.strides.push_back(random.number(0, 40));
    layout.strides.push_back(1);
    EXPECT_EQ(wrong(layout), "");
    bool isRefused = !wrong(layout, /*isWritten=*/true).empty();
    refused += isRefused;
    accepted += !isRefused;
    if (!isRefused)
      EXPECT_FALSE(liesOnItself(layout));
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 100);
}

TEST(Layout, NestedDimensionsAreAccepted) {
  Seed seed;
  Random random(seed);
  for (int i = 0; i < 1000; ++i) {
    Layout layout = nested(random, drawSizes(random), 2);
    EXPECT_EQ(wrong(layout, /*isWritten=*/true), "");
    EXPECT_FALSE(liesOnItself(layout));
  }
}

TEST(Layout, OverlapIsThatOfElements) {
  Seed seed;
  Random random(seed);
  int together = 0;
  for (int i = 0; i < 4000; ++i) {
    Layout a = nested(random, drawSizes(random), 2);
    Layout b = random.number(0, 1) ? a
                                   : nested(random, drawSizes(random),
                                            random.number(0, 1) ? 2 : 4);
    // Sliced out of one array now and then, where they interleave.
    if (random.number(0, 1))
      for (Layout *each : {&a, &b})
        for (int dim = 0; dim < 3; ++dim)
          each->strides[dim] *= 2;
    int64_t addressOfA = 1000, addressOfB = 1000 + random.number(-90, 90);
    bool expected = shareBytes(a, addressOfA, b, addressOfB);
    together += expected;
    EXPECT_EQ(overlap(a, addressOfA, b, addressOfB), expected);
    EXPECT_EQ(overlap(b, addressOfB, a, addressOfA), expected);
  }
  EXPECT_GT(together, 400);
  EXPECT_LT(together, 3600);
}

TEST(Layout, SlicesOfOneArrayLieApart) {
  // [batch, rows, 3, heads, d]: q, k and v, or their gradients.
  Layout slice{{2, 8, 4096, 64}, {3 * 4096 * 512, 64, 3 * 512, 1}, 0, 2};
  uint64_t base = 0x7f0000000000;
  for (uint64_t other : {1, 2})
    EXPECT_FALSE(overlap(slice, base, slice, base + other * 512 * 2));
  EXPECT_TRUE(overlap(slice, base, slice, base));
  EXPECT_TRUE(overlap(slice, base, slice, base + 510 * 2));
  EXPECT_FALSE(overlap(slice, base, slice, base + 1020 * 2));
  EXPECT_TRUE(overlap(slice, base, slice, base + 1026 * 2));
}

TEST(Layout, NothingOverlapsNothing) {
  Layout none{{2, 0, 5, 8}, {40, 40, 8, 1}, 0, 2};
  Layout some{{2, 1, 5, 8}, {40, 40, 8, 1}, 0, 2};
  EXPECT_FALSE(overlap(none, 0, some, 0));
  EXPECT_FALSE(overlap(some, 0, none, 0));
  EXPECT_EQ(none.spanBytes(), 0);
  EXPECT_EQ(some.spanBytes(), 160);
}

TEST(Layout, NumbersAreBounded) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  Layout layout{{2, 8, 100, 64}, {51200, 6400, 64, 1}, 0, 2};
  EXPECT_EQ(wrong(layout, true), "");
  for (int64_t stride : {most, most / 2 + 1, int64_t(1) << 44, most / 100})
    for (size_t dim : {0, 1, 2}) {
      Layout far = layout;
      far.strides[dim] = stride;
      EXPECT_EQ(wrong(far), "an end within 17592186044416 bytes of its "
                            "beginning");
    }
  Layout behind = layout;
  behind.offset = most;
  EXPECT_NE(wrong(behind), "");
  behind.offset = -1;
  EXPECT_EQ(wrong(behind), "an offset of 0 or more");
  Layout backwards = layout;
  backwards.strides[1] = -6400;
  EXPECT_EQ(wrong(backwards), "strides of 0 or more");
  // Of one entry a stride says nothing.
  backwards.sizes[1] = 1;
  EXPECT_EQ(wrong(backwards, true), "");
}

TEST(Layout, OpenNumbers) {
  Layout rows{{kOpen, 8, kOpen, 64}, {kOpen, 64, 512, 1}, kOpen, 2};
  EXPECT_EQ(wrong(rows, true), "");
  // Two rows are the fewest for which a stride matters.
  rows.strides[2] = 511;
  EXPECT_EQ(wrong(rows, true), "rows that do not lie on each other, so a "
                               "stride of 512 or more in dimension 2");
  rows.strides[2] = 8;
  EXPECT_NE(wrong(rows, true), "");
  EXPECT_EQ(wrong(rows), "");
  rows.strides[3] = kOpen;
  EXPECT_EQ(wrong(rows), "an innermost stride of 1");
}

} // namespace
