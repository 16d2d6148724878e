//===- Ops.cpp - Does every tile op compute what it says? -----------------===//

#include "Harness/OpsTest.h"

#include "attn/Host/Rounding.h"

#include <cmath>
#include <limits>

using namespace attn;

static const char *const kLoadBoth = R"(
  %sa = tile.alloc "a" : !tile.smem<16x16xbf16>
  %sb = tile.alloc "b" : !tile.smem<16x16xbf16>
  tile.copy_async %a[%c0] to %sa[%c0] : !in to !tile.smem<16x16xbf16>
  tile.copy_async %b[%c0] to %sb[%c0] : !in to !tile.smem<16x16xbf16>
  tile.commit_group
  tile.wait_group 0
  tile.barrier
)";

TEST_F(Ops, FillAndStoreRow) {
  kernel(R"(
  %r = tile.fill %f10 : f32 -> !row
  tile.store_row %r to %out[%c2] : !row to !out)");
  runSquare();
  EXPECT_EQ(floats(f + 8, 16), std::vector<float>(16, 10.0f));
  EXPECT_EQ(traffic.global, 64);
  EXPECT_EQ(traffic.smem, 0);
}

TEST_F(Ops, StoreRowDropsWhatTheViewHasNot) {
  kernel(R"(
  %few = arith.constant 5 : i32
  %short = tile.view %pf[%zero] rows(%few) stride(%one) : !tile.ptr<f32> -> !out
  %r = tile.fill %f10 : f32 -> !row
  %before = arith.constant -14 : i32
  tile.store_row %r to %short[%before] : !row to !out
  tile.store_row %r to %short[%c2] : !row to !out)");
  runSquare();
  EXPECT_EQ(traffic.global, (2 + 3) * 4);
  EXPECT_EQ(floats(f, 5), std::vector<float>(5, 10.0f));
  float rest;
  EXPECT_TRUE(memory.read(f + 20, &rest, 4).has_value());
}

TEST_F(Ops, StoreRowStrides) {
  kernel(R"(
  %three = arith.constant 3 : i64
  %wide = tile.view %pf[%one] rows(%c16) stride(%three)
      : !tile.ptr<f32> -> !out
  %r = tile.map -> !row {
  ^bb0(%i: i32):
    %x = arith.sitofp %i : i32 to f32
    tile.yield %x : f32
  }
  tile.store_row %r to %wide[%c0] : !row to !out)");
  runSquare();
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(floats(f + 4 + 12 * i, 1)[0], float(i));
}

TEST_F(Ops, CopyAsyncAndCopyOut) {
  kernel(std::string(kLoadBoth) + R"(
  tile.copy_out %sa[%c2] to %half[%c0] count 8
      : !tile.smem<16x16xbf16> to !in)");
  runSquare();
  std::vector<float> values = bf16s(h, 128);
  EXPECT_EQ(values[0], 2.0f);
  EXPECT_EQ(values[7 * 16 + 15], 9.9375f);
  EXPECT_EQ(traffic.global, 2 * 512 + 8 * 32);
  EXPECT_EQ(traffic.smem, 2 * 512 + 8 * 32);
}

TEST_F(Ops, CopyAsyncFillsWithZeros) {
  // Rows -3 .. 12 of a view of 5 rows and 10 columns.
  kernel(R"(
  %few = arith.constant 5 : i32
  %from = arith.constant -3 : i32
  %narrow = tile.view %pa[%zero] rows(%few) stride(%sixteen)
      : !tile.ptr<bf16> -> !tile.view<?x10xbf16, align = 2>
  %s = tile.alloc "s" : !tile.smem<16x16xbf16>
  tile.copy_async %narrow[%from] to %s[%c0]
      : !tile.view<?x10xbf16, align = 2> to !tile.smem<16x16xbf16>
  tile.commit_group
  tile.wait_group 0
  tile.barrier
  tile.copy_out %s[%c0] to %half[%c0] count 16
      : !tile.smem<16x16xbf16> to !in)");
  runSquare();
  std::vector<float> values = bf16s(h, 256);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      EXPECT_EQ(values[i * 16 + j],
                i >= 3 && i < 8 && j < 10 ? i - 3 + j / 16.0f : 0.0f)
          << i << " " << j;
  EXPECT_EQ(traffic.global, 5 * 20 + 512);
}

TEST_F(Ops, Stages) {
  kernel(R"(
  %s = tile.alloc "ring" : !tile.smem<2x16x16xbf16>
  tile.copy_async %a[%c0] to %s[%c0] : !in to !tile.smem<2x16x16xbf16>
  tile.copy_async %b[%c0] to %s[%c1] : !in to !tile.smem<2x16x16xbf16>
  tile.commit_group
  tile.wait_group 0
  tile.barrier
  %x = tile.load_matrix %s[%c1, %c0, %c0]
      : !tile.smem<2x16x16xbf16> -> !tile.frag<16x16xbf16, lhs>
  %y = tile.load_matrix %s[%c0, %c0, %c0]
      : !tile.smem<2x16x16xbf16> -> !tile.frag<16x16xbf16, rhs>
  %acc = tile.fill %f0 : f32 -> !acc
  %p = tile.mma %x, %y, %acc : !tile.frag<16x16xbf16, lhs>,
      !tile.frag<16x16xbf16, rhs>, !acc
  %m = tile.row_reduce max %p : !acc -> !row
  tile.store_row %m to %out[%c0] : !row to !out)");
  runSquare();
  // Row 0 of b times the last column of a.
  float expected = 0;
  for (int k = 0; k < 16; ++k)
    expected += float(k) * (float(k) + 15 / 16.0f);
  EXPECT_EQ(floats(f, 1)[0], expected);
}

TEST_F(Ops, MmaTimesTransposed) {
  kernel(std::string(kLoadBoth) + R"(
  %x = tile.load_matrix %sa[%c0, %c0, %c0]
      : !tile.smem<16x16xbf16> -> !tile.frag<16x16xbf16, lhs>
  %y = tile.load_matrix %sb[%c0, %c0, %c0] transpose
      : !tile.smem<16x16xbf16> -> !tile.frag<16x16xbf16, rhs>
  %acc = tile.fill %f1 : f32 -> !acc
  %p = tile.mma %x, %y, %acc : !tile.frag<16x16xbf16, lhs>,
      !tile.frag<16x16xbf16, rhs>, !acc
  scf.for %j = %c0 to %c16 step %c1 : i32 {
    %pick = tile.map %p : !acc -> !acc {
    ^bb0(%r: i32, %c: i32, %v: f32):
      %same = arith.cmpi eq, %c, %j : i32
      %low = arith.constant 0xff800000 : f32
      %s = arith.select %same, %v, %low : f32
      tile.yield %s : f32
    }
    %m = tile.row_reduce max %pick : !acc -> !row
    %at = arith.muli %j, %c16 : i32
    tile.store_row %m to %out[%at] : !row to !out
  })");
  runSquare();
  std::vector<float> values = floats(f, 256);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      float sum = 1;
      for (int k = 0; k < 16; ++k)
        sum += (float(i) + float(k) / 16) * float(10 * j + k);
      EXPECT_FLOAT_EQ(values[j * 16 + i], sum) << i << " " << j;
    }
  EXPECT_EQ(traffic.smem, 2 * 512 + 2 * 512);
}

TEST_F(Ops, LoadMatrixOfAPart) {
  kernel(R"(
  %s = tile.alloc "s" : !tile.smem<32x32xbf16>
  %thirtytwo = arith.constant 32 : i64
  %wide = tile.view %pa[%zero] rows(%c8) stride(%thirtytwo)
      : !tile.ptr<bf16> -> !tile.view<?x32xbf16, align = 2>
  tile.copy_async %wide[%c0] to %s[%c0]
      : !tile.view<?x32xbf16, align = 2> to !tile.smem<32x32xbf16>
  tile.commit_group
  tile.wait_group 0
  tile.barrier
  %x = tile.load_matrix %s[%c0, %c0, %c8]
      : !tile.smem<32x32xbf16> -> !tile.frag<16x16xbf16, lhs>
  %y = tile.fill %f1 : f32 -> !acc
  %id = tile.map %y : !acc -> !acc {
  ^bb0(%r: i32, %c: i32, %v: f32):
    %same = arith.cmpi eq, %c, %r : i32
    %d = arith.select %same, %v, %f0 : f32
    tile.yield %d : f32
  }
  tile.barrier
  %t = tile.alloc "t" : !tile.smem<16x16xbf16>
  tile.store_matrix %id to %t[%c0] : !acc to !tile.smem<16x16xbf16>
  %e = tile.load_matrix %t[%c0, %c0, %c0]
      : !tile.smem<16x16xbf16> -> !tile.frag<16x16xbf16, rhs>
  %acc = tile.fill %f0 : f32 -> !acc
  %p = tile.mma %x, %e, %acc : !tile.frag<16x16xbf16, lhs>,
      !tile.frag<16x16xbf16, rhs>, !acc
  tile.store_matrix %p to %t[%c0] : !acc to !tile.smem<16x16xbf16>
  tile.copy_out %t[%c0] to %half[%c0] count 16
      : !tile.smem<16x16xbf16> to !in)");
  runSquare();
  // a as 8 rows of 32: columns 8 .. 23 of a row are the second half of one row
  // of a and the first half of the next.
  std::vector<float> values = bf16s(h, 256);
  EXPECT_EQ(values[0], 0.5f);
  EXPECT_EQ(values[8], 1.0f);
  EXPECT_EQ(values[7 * 16 + 15], 15.4375f);
  EXPECT_EQ(values[8 * 16], 0.0f);
}

TEST_F(Ops, CastRoundsAndColumnsAreTakenAndJoined) {
  kernel(R"(
  %s = tile.map -> !tile.frag<16x32xf32, acc> {
  ^bb0(%r: i32, %c: i32):
    %x = arith.sitofp %c : i32 to f32
    %e = arith.constant 0.00390625 : f32
    %g = arith.constant 1.0 : f32
    %m = arith.mulf %x, %e : f32
    %v = arith.addf %g, %m : f32
    tile.yield %v : f32
  }
  %h = tile.cast %s : !tile.frag<16x32xf32, acc> -> !tile.frag<16x32xbf16, lhs>
  %upper = tile.extract %h[16]
      : !tile.frag<16x32xbf16, lhs> -> !tile.frag<16x16xbf16, lhs>
  %lower = tile.extract %h[0]
      : !tile.frag<16x32xbf16, lhs> -> !tile.frag<16x16xbf16, lhs>
  %turned = tile.concat %upper, %lower : !tile.frag<16x16xbf16, lhs>,
      !tile.frag<16x16xbf16, lhs> -> !tile.frag<16x32xbf16, lhs>
  %part = tile.extract %turned[0]
      : !tile.frag<16x32xbf16, lhs> -> !tile.frag<16x16xbf16, lhs>
  %t = tile.alloc "t" : !tile.smem<16x16xbf16>
  %id = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %same = arith.cmpi eq, %c, %r : i32
    %d = arith.select %same, %f1, %f0 : f32
    tile.yield %d : f32
  }
  tile.store_matrix %id to %t[%c0] : !acc to !tile.smem<16x16xbf16>
  %e = tile.load_matrix %t[%c0, %c0, %c0]
      : !tile.smem<16x16xbf16> -> !tile.frag<16x16xbf16, rhs>
  %acc = tile.fill %f0 : f32 -> !acc
  %p = tile.mma %part, %e, %acc : !tile.frag<16x16xbf16, lhs>,
      !tile.frag<16x16xbf16, rhs>, !acc
  tile.store_matrix %p to %t[%c0] : !acc to !tile.smem<16x16xbf16>
  tile.copy_out %t[%c0] to %half[%c0] count 16
      : !tile.smem<16x16xbf16> to !in)");
  runSquare();
  std::vector<float> values = bf16s(h, 16);
  // 1 + c / 256 has to be rounded to a multiple of 1/128, ties to even.
  EXPECT_EQ(values[0], 1 + 16 / 256.0f);
  EXPECT_EQ(values[1], 1 + 16 / 256.0f);
  EXPECT_EQ(values[2], 1 + 18 / 256.0f);
  EXPECT_EQ(values[3], 1 + 20 / 256.0f);
  EXPECT_EQ(values[15], 1 + 32 / 256.0f);
}

TEST_F(Ops, SwizzledBuffersKeepRowsAndColumns) {
  // The second panel of a buffer of 80 columns, through all ops that read it;
  // as another shape the bytes lie elsewhere.
  kernel(R"(
  %s = tile.alloc "s" : !tile.smem<16x80xbf16, sw128>
  %v = tile.map -> !tile.frag<16x80xf32, acc> {
  ^bb0(%r: i32, %c: i32):
    %m = arith.muli %r, %c : i32
    %x = arith.sitofp %m : i32 to f32
    tile.yield %x : f32
  }
  tile.store_matrix %v to %s[%c0] : !tile.frag<16x80xf32, acc> to !tile.smem<16x80xbf16, sw128>
  %t = tile.alloc "t" : !tile.smem<16x16xbf16>
  %id = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %same = arith.cmpi eq, %c, %r : i32
    %d = arith.select %same, %f1, %f0 : f32
    tile.yield %d : f32
  }
  tile.store_matrix %id to %t[%c0] : !acc to !tile.smem<16x16xbf16>
  %e = tile.load_matrix %t[%c0, %c0, %c0] : !tile.smem<16x16xbf16> -> !tile.frag<16x16xbf16, rhs>
  %at = arith.constant 56 : i32
  %x = tile.load_matrix %s[%c0, %c0, %at] : !tile.smem<16x80xbf16, sw128> -> !tile.frag<16x16xbf16, lhs>
  %acc = tile.fill %f0 : f32 -> !acc
  %p = tile.mma %x, %e, %acc : !tile.frag<16x16xbf16, lhs>, !tile.frag<16x16xbf16, rhs>, !acc
  %other = tile.alias %s : !tile.smem<16x80xbf16, sw128> -> !tile.smem<16x48xbf16>
  %wrong = tile.load_matrix %other[%c0, %c0, %c0] : !tile.smem<16x48xbf16> -> !tile.frag<16x16xbf16, lhs>
  %q = tile.mma %wrong, %e, %acc : !tile.frag<16x16xbf16, lhs>, !tile.frag<16x16xbf16, rhs>, !acc
  %max = tile.row_reduce max %q : !acc -> !row
  tile.store_row %max to %out[%c0] : !row to !out
  tile.store_matrix %p to %t[%c0] : !acc to !tile.smem<16x16xbf16>
  tile.copy_out %t[%c0] to %half[%c0] count 16
      : !tile.smem<16x16xbf16> to !in)");
  runSquare();
  std::vector<float> values = bf16s(h, 256);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      ASSERT_EQ(values[i * 16 + j], roundToBf16(float(i * (56 + j))));
  EXPECT_NE(floats(f + 8, 1)[0], 30.0f);
}

TEST_F(Ops, AliasesOfSwizzledBuffersMustBeAligned) {
  kernel(R"(
  %u = tile.alloc "first" : !tile.smem<16x16xbf16>
  %s = tile.alloc "second" : !tile.smem<16x64xbf16>
  %t = tile.alias %s : !tile.smem<16x64xbf16> -> !tile.smem<16x64xbf16, sw128> // HERE
  )");
  expectError({uint64_t(0), uint64_t(0), uint64_t(0), uint64_t(0), int32_t(1)},
              "expects a buffer at a multiple of 1024 bytes, but got 'second' "
              "at 512");
}

TEST_F(Ops, MapOfRowsOfIntegers) {
  kernel(R"(
  %s = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %x = arith.sitofp %c : i32 to f32
    tile.yield %x : f32
  }
  %limit = tile.map -> !tile.row<16xi32> {
  ^bb0(%r: i32):
    %big = arith.constant 100000000 : i32
    %l = arith.addi %r, %big : i32
    tile.yield %l : i32
  }
  %offset = tile.fill %c2 : i32 -> !tile.row<16xi32>
  %cut = tile.map %s, %limit, %offset
      : !acc, !tile.row<16xi32>, !tile.row<16xi32> -> !acc {
  ^bb0(%r: i32, %c: i32, %x: f32, %l: i32, %o: i32):
    %big = arith.constant 100000000 : i32
    %shifted = arith.addi %c, %big : i32
    %last = arith.subi %l, %o : i32
    %visible = arith.cmpi sle, %shifted, %last : i32
    %low = arith.constant -1.0 : f32
    %y = arith.select %visible, %x, %low : f32
    tile.yield %y : f32
  }
  %max = tile.row_reduce max %cut : !acc -> !row
  tile.store_row %max to %out[%c0] : !row to !out)");
  runSquare();
  std::vector<float> values = floats(f, 16);
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(values[i], i < 2 ? -1.0f : float(i - 2));
}

TEST_F(Ops, AliasSharesBytes) {
  kernel(std::string(kLoadBoth) + R"(
  %al = tile.alias %sa : !tile.smem<16x16xbf16> -> !tile.smem<16x16xbf16>
  tile.copy_out %al[%c0] to %half[%c0] count 16
      : !tile.smem<16x16xbf16> to !in)");
  runSquare();
  EXPECT_EQ(bf16s(h + 32, 1)[0], 1.0f);
}

TEST_F(Ops, ControlFlowAndPosition) {
  kernel(R"(
  %w = tile.warp_id
  %x = tile.program_id 0
  %first = arith.cmpi eq, %w, %c0 : i32
  %sum, %swap = scf.for %i = %c1 to %c8 step %c2 iter_args(%s = %c0, %t = %c2)
      -> (i32, i32) : i32 {
    %n2 = arith.addi %s, %i : i32
    scf.yield %t, %n2 : i32, i32
  }
  %never = scf.for %i = %c8 to %c1 step %c1 iter_args(%s = %c16) -> (i32) : i32 {
    scf.yield %c0 : i32
  }
  %value = scf.if %first -> (i32) {
    scf.yield %sum : i32
  } else {
    scf.yield %never : i32
  }
  scf.if %first {
    %skip = arith.addi %c0, %c0 : i32
  }
  %blocked = arith.muli %x, %c2 : i32
  %index = arith.addi %blocked, %w : i32
  %at = arith.muli %index, %c16 : i32
  %v = arith.sitofp %value : i32 to f32
  %r = tile.fill %v : f32 -> !row
  tile.store_row %r to %out[%at] : !row to !out)",
         /*warps=*/2);
  uint64_t a = allocateBf16(std::vector<float>(256));
  uint64_t out = allocateUninitialised(4000);
  ASSERT_TRUE(run({a, a, out, a, int32_t(16)}, {3, 1, 1}));
  std::vector<float> values = floats(out, 96);
  // (0, 2) -> (2, 1) -> (1, 5) -> (5, 6) -> (6, 12)
  for (int block = 0; block < 3; ++block) {
    EXPECT_EQ(values[block * 32], 6.0f);
    EXPECT_EQ(values[block * 32 + 16], 16.0f);
  }
  EXPECT_EQ(traffic.global, 3 * 2 * 64);
}

TEST_F(Ops, AnEmptyGridDoesNothing) {
  kernel("");
  EXPECT_TRUE(
      run({uint64_t(0), uint64_t(0), uint64_t(0), uint64_t(0), int32_t(0)},
          {4, 0, 1}));
  EXPECT_EQ(traffic, tile::Traffic{});
}

TEST_F(Ops, WrongArguments) {
  kernel("");
  EXPECT_FALSE(run({int32_t(0)}));
  EXPECT_EQ(errors.front().text, "expects 5 arguments, but got 1");
  EXPECT_FALSE(
      run({uint64_t(0), uint64_t(0), uint64_t(0), uint64_t(0), int64_t(0)}));
  EXPECT_EQ(errors.front().text, "expects argument 4 to be a value of type "
                                 "'i32', but got one of another type");
}
