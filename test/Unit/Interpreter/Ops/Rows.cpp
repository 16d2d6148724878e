//===- Rows.cpp - Does every op on rows compute what it says? -------------===//

#include "Harness/OpsTest.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace attn;

namespace {
class RowOps : public Ops {};
} // namespace

TEST_F(RowOps, RowReduceAndCombine) {
  kernel(R"(
  %s = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %m = arith.muli %r, %c : i32
    %x = arith.sitofp %m : i32 to f32
    tile.yield %x : f32
  }
  %max = tile.row_reduce max %s : !acc -> !row
  %init = tile.fill %f10 : f32 -> !row
  %max2 = tile.row_reduce max %s init(%init : !row) : !acc -> !row
  %sum = tile.row_reduce add %s : !acc -> !part
  %more = tile.row_reduce add %s init(%sum : !part) : !acc -> !part
  %scaled = tile.map %more, %init : !part, !row -> !part {
  ^bb0(%r: i32, %x: f32, %y: f32):
    %z = arith.mulf %x, %y : f32
    tile.yield %z : f32
  }
  %one_sum = tile.row_combine %sum : !part -> !row
  %all = tile.row_combine %scaled : !part -> !row
  %at2 = arith.constant 32 : i32
  %at3 = arith.constant 48 : i32
  tile.store_row %max to %out[%c0] : !row to !out
  tile.store_row %max2 to %out[%c16] : !row to !out
  tile.store_row %one_sum to %out[%at2] : !row to !out
  tile.store_row %all to %out[%at3] : !row to !out)");
  runSquare();
  std::vector<float> values = floats(f, 64);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], float(15 * i));
    EXPECT_EQ(values[16 + i], std::max(10.0f, float(15 * i)));
    EXPECT_EQ(values[32 + i], float(120 * i));
    EXPECT_EQ(values[48 + i], float(2400 * i));
  }
}

TEST_F(RowOps, RowMaxPassesOverNaN) {
  kernel(R"(
  %s = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %first = arith.cmpi eq, %c, %c1 : i32
    %nan = arith.constant 0x7fc00000 : f32
    %x = arith.select %first, %nan, %f10 : f32
    tile.yield %x : f32
  }
  %max = tile.row_reduce max %s : !acc -> !row
  %sum = tile.row_reduce add %s : !acc -> !part
  %all = tile.row_combine %sum : !part -> !row
  tile.store_row %max to %out[%c0] : !row to !out
  tile.store_row %all to %out[%c16] : !row to !out)");
  runSquare();
  EXPECT_EQ(floats(f, 1)[0], 10.0f);
  EXPECT_TRUE(std::isnan(floats(f + 64, 1)[0]));
}

TEST_F(RowOps, RowMaxInParts) {
  // Lane l of four holds columns 2l and 2l + 1 of every eight.
  kernel(R"(
  %s = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %m = arith.addi %r, %c : i32
    %x = arith.sitofp %m : i32 to f32
    tile.yield %x : f32
  }
  %max = tile.row_reduce max %s : !acc -> !part
  %low = tile.fill %f10 : f32 -> !part
  %least = tile.row_reduce max %s init(%low : !part) : !acc -> !part
  %a0 = tile.row_combine max %max : !part -> !row
  %a1 = tile.row_combine max %least : !part -> !row
  %a2 = tile.row_combine %max : !part -> !row
  %at2 = arith.constant 32 : i32
  tile.store_row %a0 to %out[%c0] : !row to !out
  tile.store_row %a1 to %out[%c16] : !row to !out
  tile.store_row %a2 to %out[%at2] : !row to !out)");
  runSquare();
  std::vector<float> values = floats(f, 48);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], float(i + 15));
    EXPECT_EQ(values[16 + i], std::max(10.0f, float(i + 15)));
    EXPECT_EQ(values[32 + i], float(4 * i + 9 + 11 + 13 + 15));
  }
}

TEST_F(RowOps, KeepColumns) {
  // Row r keeps the columns r - 4 .. r - 1: row 0 none, row 2 the first two.
  kernel(R"(
  %up = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %x = arith.sitofp %c : i32 to f32
    tile.yield %x : f32
  }
  %down = tile.map %up : !acc -> !acc {
  ^bb0(%r: i32, %c: i32, %v: f32):
    %x = arith.negf %v : f32
    tile.yield %x : f32
  }
  %first = tile.map -> !tile.row<16xi32> {
  ^bb0(%r: i32):
    %four = arith.constant 4 : i32
    %x = arith.subi %r, %four : i32
    tile.yield %x : i32
  }
  %last = tile.map -> !tile.row<16xi32> {
  ^bb0(%r: i32):
    %x = arith.subi %r, %c1 : i32
    tile.yield %x : i32
  }
  %middle = tile.keep_columns %up from %first : !tile.row<16xi32> to %last : !acc, !tile.row<16xi32>
  %turned = tile.keep_columns %down from %first : !tile.row<16xi32> to %last : !acc, !tile.row<16xi32>
  %begun = tile.keep_columns %down to %last : !acc, !tile.row<16xi32>
  %most = tile.row_reduce max %middle : !acc -> !row
  %least = tile.row_reduce max %turned : !acc -> !row
  %start = tile.row_reduce max %begun : !acc -> !row
  %at2 = arith.constant 32 : i32
  tile.store_row %most to %out[%c0] : !row to !out
  tile.store_row %least to %out[%c16] : !row to !out
  tile.store_row %start to %out[%at2] : !row to !out)");
  runSquare();
  std::vector<float> values = floats(f, 48);
  float none = -std::numeric_limits<float>::infinity();
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], i == 0 ? none : float(i - 1));
    EXPECT_EQ(values[16 + i], i == 0 ? none : float(-std::max(0, i - 4)));
    EXPECT_EQ(values[32 + i], i == 0 ? none : 0.0f);
  }
}

TEST_F(RowOps, AnyAbove) {
  // Row 7 is the only one with 30; NaN is not above anything.
  kernel(R"(
  %s = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %seven = arith.constant 7 : i32
    %is7 = arith.cmpi eq, %r, %seven : i32
    %high = arith.constant 30.0 : f32
    %nan = arith.constant 0x7fc00000 : f32
    %x = arith.select %is7, %high, %nan : f32
    tile.yield %x : f32
  }
  %parts = tile.row_reduce max %s : !acc -> !part
  %whole = tile.row_combine max %parts : !part -> !row
  %f29 = arith.constant 29.0 : f32
  %f30 = arith.constant 30.0 : f32
  %l29 = tile.fill %f29 : f32 -> !row
  %l30 = tile.fill %f30 : f32 -> !row
  %y0 = tile.any_above %parts, %l29 : !part, !row
  %y1 = tile.any_above %whole, %l29 : !row, !row
  %n0 = tile.any_above %parts, %l30 : !part, !row
  %n1 = tile.any_above %whole, %l30 : !row, !row
  %yes = arith.andi %y0, %y1 : i1
  %no = arith.ori %n0, %n1 : i1
  %yesf = arith.uitofp %yes : i1 to f32
  %nof = arith.uitofp %no : i1 to f32
  %r0 = tile.fill %yesf : f32 -> !row
  %r1 = tile.fill %nof : f32 -> !row
  tile.store_row %r0 to %out[%c0] : !row to !out
  tile.store_row %r1 to %out[%c16] : !row to !out)");
  runSquare();
  EXPECT_EQ(floats(f, 1)[0], 1.0f);
  EXPECT_EQ(floats(f + 64, 1)[0], 0.0f);
  // No may become yes, yes never no.
  int yeses = 0;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    InterpreterOptions options;
    options.order = WarpOrder::shuffled;
    options.seed = seed;
    runSquare(16, options);
    EXPECT_EQ(floats(f, 1)[0], 1.0f);
    yeses += floats(f + 64, 1)[0] == 1.0f;
  }
  EXPECT_GT(yeses, 0);
  EXPECT_LT(yeses, 32);
}
