//===- Exchange.cpp - Registers in memory, products that go on ------------===//

#include "Harness/RolesTest.h"

#include <cmath>

using namespace attn;

namespace {
class Exchange : public RolesTest {
protected:
  /// One warp; `body` has the scratch, a view of 16 rows of 24 bf16, and a
  /// fragment of r + c / 16.
  void kernel(const std::string &body) {
    parse(R"(
!acc = !tile.frag<16x16xf32, acc>
!lhs = !tile.frag<16x16xbf16, lhs>
!row = !tile.row<16xf32>
!part = !tile.row<16xf32, partial>
!ints = !tile.row<16xi32>
!out = !tile.view<?x24xbf16, align = 16>
!rows = !tile.view<?xf32, align = 4>
tile.kernel @k(%scratch: !tile.ptr<i32>, %pout: !tile.ptr<bf16>, %pf: !tile.ptr<f32>)
    attributes {warps = 1 : i32} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %pitch = arith.constant 24 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c8 = arith.constant 8 : i32
  %c10 = arith.constant 10 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c48 = arith.constant 48 : i32
  %f0 = arith.constant 0.0 : f32
  %out = tile.view %pout[%zero] rows(%c16) stride(%pitch) : !tile.ptr<bf16> -> !out
  %rows = tile.view %pf[%zero] rows(%c48) stride(%one) : !tile.ptr<f32> -> !rows
  %v = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %x = arith.muli %r, %c8 : i32
    %y = arith.addi %x, %c : i32
    %f = arith.sitofp %y : i32 to f32
    tile.yield %f : f32
  }
)" + body +
          "\n  tile.return\n}");
    std::vector<float> nothing(16 * 24, -1.0f);
    out = allocateBf16(nothing);
    f = allocateUninitialised(48 * 4);
    scratch = allocateUninitialised(1 << 16);
    arguments = {scratch, out, f};
  }
  void runKernel() { ASSERT_TRUE(run(arguments)) << errors.front().text; }
  uint64_t out = 0, scratch = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// tile.store_registers, tile.load_registers, tile.put_registers,
// tile.scale_rows
//===----------------------------------------------------------------------===//

TEST_F(Exchange, RegistersComeBackAsTheyWere) {
  kernel(R"(
  %part = tile.row_reduce add %v : !acc -> !part
  %row = tile.map -> !row {
  ^bb0(%r: i32):
    %x = arith.sitofp %r : i32 to f32
    tile.yield %x : f32
  }
  %ints = tile.map -> !ints {
  ^bb0(%r: i32):
    %x = arith.subi %r, %c8 : i32
    tile.yield %x : i32
  }
  %b = tile.cast %v : !acc -> !lhs
  tile.store_registers %v, %b, %row, %part to %scratch[%c1] : !acc, !lhs, !row, !part to !tile.ptr<i32>
  tile.store_registers %ints, %ints to %scratch[%c0] : !ints, !ints to !tile.ptr<i32>
  %got:4 = tile.load_registers %scratch[%c1] : !tile.ptr<i32> -> !acc, !lhs, !row, !part
  %n:2 = tile.load_registers %scratch[%c0] : !tile.ptr<i32> -> !ints, !ints
  // The transpose of a unit matrix is one.
  %s = tile.alloc "s" : !tile.smem<16x16xbf16>
  %id = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %same = arith.cmpi eq, %r, %c : i32
    %f = arith.uitofp %same : i1 to f32
    tile.yield %f : f32
  }
  tile.store_matrix %id to %s[%c0] : !acc to !tile.smem<16x16xbf16>
  %rhs = tile.load_matrix %s[%c0, %c0, %c0] : !tile.smem<16x16xbf16> -> !tile.frag<16x16xbf16, rhs>
  %sum = tile.mma %got#1, %rhs, %got#0 : <16x16xbf16, lhs>, <16x16xbf16, rhs>, <16x16xf32, acc>
  tile.store_fragment %sum to %out[%c0, %c0] : !acc to !out
  %whole = tile.row_combine %got#3 : !part -> !row
  tile.store_row %got#2 to %rows[%c0] : !row to !rows
  tile.store_row %whole to %rows[%c16] : !row to !rows
  %n1 = tile.map %n#1 : !ints -> !row {
  ^bb0(%r: i32, %x: i32):
    %y = arith.sitofp %x : i32 to f32
    tile.yield %y : f32
  }
  tile.store_row %n1 to %rows[%c32] : !row to !rows)");
  runKernel();
  std::vector<float> sums = bf16s(out, 16 * 24), rows = floats(f, 48);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j)
      EXPECT_EQ(sums[i * 24 + j], float(2 * (8 * i + j))) << i << " " << j;
    EXPECT_EQ(sums[i * 24 + 16], -1.0f);
    EXPECT_EQ(rows[i], float(i));
    EXPECT_EQ(rows[16 + i], float(16 * 8 * i + 120));
    EXPECT_EQ(rows[32 + i], float(i - 8));
  }
  // Images of 8 + 4 + 2 + 2 and of 2 + 2 registers, both ways; the rest stores.
  EXPECT_EQ(traffic.global, 2 * (16 + 4) * 128 + 16 * 32 + 3 * 64);
}

TEST_F(Exchange, ImagesOfColumnsAreAnImage) {
  kernel(R"(
  %a = tile.extract %v[0] : !acc -> !tile.frag<16x8xf32, acc>
  %b = tile.extract %v[8] : !acc -> !tile.frag<16x8xf32, acc>
  tile.store_registers %b to %scratch[%c1] : !tile.frag<16x8xf32, acc> to !tile.ptr<i32>
  tile.store_registers %a to %scratch[%c0] : !tile.frag<16x8xf32, acc> to !tile.ptr<i32>
  %x = tile.load_registers %scratch[%c0] : !tile.ptr<i32> -> !acc
  tile.store_fragment %x to %out[%c0, %c0] : !acc to !out)");
  runKernel();
  std::vector<float> got = bf16s(out, 16 * 24);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      EXPECT_EQ(got[i * 24 + j], float(8 * i + j));
}

TEST_F(Exchange, RegistersInSharedMemory) {
  // Words 0 to 15 of an image are of lanes 0 to 3, which have two columns of
  // row 0 and two of row 8 each.
  kernel(R"(
  %s = tile.alloc "s" : !tile.smem<2x1x512xf32>
  tile.put_registers %v to %s[%c1, %c1] : !acc to !tile.smem<2x1x512xf32>
  %c256 = arith.constant 256 : i32
  %x = tile.get_columns %s[%c1, %c0, %c256] : !tile.smem<2x1x512xf32> -> !acc
  tile.store_fragment %x to %out[%c0, %c0] : !acc to !out)");
  runKernel();
  std::vector<float> got = bf16s(out, 16 * 24);
  for (int word = 0; word < 16; ++word) {
    int row = word % 4 / 2 * 8, column = word / 4 * 2 + word % 2;
    EXPECT_EQ(got[word], float(8 * row + column)) << word;
  }
  EXPECT_EQ(traffic.smem, 1024 + 16 * 4);
}

TEST_F(Exchange, RegistersComeBackFromSharedMemory) {
  kernel(R"(
  %s = tile.alloc "s" : !tile.smem<2x1x512xf32>
  %part = tile.row_reduce add %v : !acc -> !part
  tile.put_registers %v, %part to %s[%c1, %c0] : !acc, !part to !tile.smem<2x1x512xf32>
  %got:2 = tile.get_registers %s[%c1, %c0] : !tile.smem<2x1x512xf32> -> !acc, !part
  tile.store_fragment %got#0 to %out[%c0, %c0] : !acc to !out
  %whole = tile.row_combine %got#1 : !part -> !row
  tile.store_row %whole to %rows[%c0] : !row to !rows)");
  runKernel();
  std::vector<float> got = bf16s(out, 16 * 24), rows = floats(f, 16);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j)
      EXPECT_EQ(got[i * 24 + j], float(8 * i + j)) << i << " " << j;
    EXPECT_EQ(rows[i], float(16 * 8 * i + 120));
  }
  EXPECT_EQ(traffic.smem, 2 * (1024 + 256));
}

TEST_F(Exchange, PlacesOfImages) {
  auto at = [&](const std::string &stage, const std::string &place) {
    kernel("%s = tile.alloc \"s\" : !tile.smem<2x1x512xf32>\n"
           "tile.put_registers %v to %s[" +
           stage + ", " + place +
           "] : !acc to !tile.smem<2x1x512xf32> // HERE");
  };
  at("%c0", "%c2");
  expectError(arguments,
              "expects bytes 0 to 2063 of buffer 's', but got 2048 to 3071");
  at("%c2", "%c0");
  expectError(arguments, "expects stages 0 to 1 of buffer 's', but got 2 to 2");
}

TEST_F(Exchange, ImagesLieAtMultiplesOf16Bytes) {
  kernel("tile.store_registers %v to %scratch[%c0] : !acc to !tile.ptr<i32> // "
         "HERE");
  arguments[0] = scratch + 8;
  expectError(arguments, "expects images at a multiple of 16 bytes, but got ");
}

TEST_F(Exchange, ImagesLieInMemory) {
  kernel("tile.store_registers %v to %scratch[%c0] : !acc to !tile.ptr<i32>\n"
         "%x = tile.load_registers %scratch[%c1] : !tile.ptr<i32> -> !acc // "
         "HERE");
  expectError(arguments, "got an uninitialised byte at offset 1024");
}

TEST_F(Exchange, RowsTimesPowersOfTwo) {
  kernel(R"(
  %e = tile.map -> !row {
  ^bb0(%r: i32):
    %x = arith.subi %r, %c8 : i32
    %y = arith.sitofp %x : i32 to f32
    tile.yield %y : f32
  }
  %b = tile.cast %v : !acc -> !lhs
  %t = tile.scale_rows %b by %e : !lhs, !row
  %s = tile.alloc "s" : !tile.smem<16x16xbf16>
  %id = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %same = arith.cmpi eq, %r, %c : i32
    %f = arith.uitofp %same : i1 to f32
    tile.yield %f : f32
  }
  tile.store_matrix %id to %s[%c0] : !acc to !tile.smem<16x16xbf16>
  %rhs = tile.load_matrix %s[%c0, %c0, %c0] : !tile.smem<16x16xbf16> -> !tile.frag<16x16xbf16, rhs>
  %none = tile.fill %f0 : f32 -> !acc
  %sum = tile.mma %t, %rhs, %none : <16x16xbf16, lhs>, <16x16xbf16, rhs>, <16x16xf32, acc>
  tile.store_fragment %sum to %out[%c0, %c0] : !acc to !out)");
  runKernel();
  std::vector<float> sums = bf16s(out, 16 * 24);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      EXPECT_EQ(sums[i * 24 + j], std::ldexp(float(8 * i + j), i - 8));
}

TEST_F(Exchange, PowersThatAreNotWhole) {
  kernel(R"(
  %half = arith.constant 0.5 : f32
  %e = tile.fill %half : f32 -> !row
  %b = tile.cast %v : !acc -> !lhs
  %t = tile.scale_rows %b by %e : !lhs, !row // HERE
  )");
  expectError(arguments, "expects whole numbers, but got 0.5");
}

//===----------------------------------------------------------------------===//
// tile.store_transposed, stages of tile.store_matrix
//===----------------------------------------------------------------------===//

TEST_F(Exchange, TransposesInSharedMemory) {
  for (std::string layout : {"", ", sw128"}) {
    std::string buffer = "!tile.smem<2x32x96xbf16" + layout + ">";
    kernel("%b = tile.cast %v : !acc -> !lhs\n"
           "%c80 = arith.constant 80 : i32\n"
           "%s = tile.alloc \"s\" : " +
           buffer +
           "\n tile.store_transposed %b to %s[%c1, %c8, %c80] : !lhs to " +
           buffer + "\n %x = tile.load_matrix %s[%c1, %c8, %c80] : " + buffer +
           " -> !lhs\n" + R"(
  %t = tile.alloc "t" : !tile.smem<2x16x16xbf16>
  %id = tile.map -> !acc {
  ^bb0(%r: i32, %c: i32):
    %same = arith.cmpi eq, %r, %c : i32
    %f = arith.uitofp %same : i1 to f32
    tile.yield %f : f32
  }
  tile.store_matrix %id to %t[%c0] stage(%c1) : !acc to !tile.smem<2x16x16xbf16>
  %rhs = tile.load_matrix %t[%c1, %c0, %c0] : !tile.smem<2x16x16xbf16> -> !tile.frag<16x16xbf16, rhs>
  %none = tile.fill %f0 : f32 -> !acc
  %sum = tile.mma %x, %rhs, %none : <16x16xbf16, lhs>, <16x16xbf16, rhs>, <16x16xf32, acc>
  tile.store_fragment %sum to %out[%c0, %c0] : !acc to !out)");
    runKernel();
    std::vector<float> got = bf16s(out, 16 * 24);
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 16; ++j)
        EXPECT_EQ(got[i * 24 + j], float(8 * j + i));
    EXPECT_EQ(traffic.smem, 4 * 512);
  }
}

TEST_F(Exchange, PlacesOfTransposes) {
  auto at = [&](const std::string &place) {
    kernel("%b = tile.cast %v : !acc -> !lhs\n"
           "%s = tile.alloc \"s\" : !tile.smem<2x32x64xbf16, sw128>\n"
           "tile.store_transposed %b to %s[" +
           place + "] : !lhs to !tile.smem<2x32x64xbf16, sw128> // HERE");
  };
  at("%c0, %c0, %c8");
  expectError(arguments, "expects a row in multiples of 8 and a column in "
                         "multiples of 16, but got 0 and 8");
  at("%c0, %c1, %c0");
  expectError(arguments, "expects a row in multiples of 8 and a column in "
                         "multiples of 16, but got 1 and 0");
  at("%c0, %c32, %c0");
  expectError(arguments,
              "expects rows 0 to 31 of buffer 's', but got 32 to 47");
}

TEST_F(Exchange, StagesOfAStore) {
  kernel("%s = tile.alloc \"s\" : !tile.smem<2x16x16xbf16>\n"
         "tile.store_matrix %v to %s[%c0, %c0] stage(%c2) : !acc to "
         "!tile.smem<2x16x16xbf16> // HERE");
  expectError(arguments, "expects stages 0 to 1 of buffer 's', but got 2 to 2");
}

//===----------------------------------------------------------------------===//
// tile.store_fragment
//===----------------------------------------------------------------------===//

TEST_F(Exchange, FragmentsAreClipped) {
  kernel("tile.store_fragment %v to %out[%c10, %c16] : !acc to !out");
  runKernel();
  EXPECT_EQ(traffic.global, 6 * 8 * 2);
  std::vector<float> got = bf16s(out, 16 * 24);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 24; ++j)
      EXPECT_EQ(got[i * 24 + j],
                i < 10 || j < 16 ? -1.0f : float(8 * (i - 10) + j - 16));
}

TEST_F(Exchange, FragmentsBeginAtPieces) {
  kernel("tile.store_fragment %v to %out[%c0, %c1] : !acc to !out // HERE");
  expectError(arguments, "expects a column that is a multiple of 8, but got 1");
}

TEST_F(Exchange, LoadedFragmentsAreClipped) {
  kernel(R"(
  tile.store_fragment %v to %out[%c0, %c8] : !acc to !out
  %x = tile.load_fragment %out[%c8, %c16] : !out -> !acc
  tile.store_registers %x to %scratch[%c0] : !acc to !tile.ptr<i32>
  %s = tile.row_reduce add %x : !acc -> !part
  %t = tile.row_combine %s : !part -> !row
  tile.store_row %t to %rows[%c0] : !row to !rows)");
  runKernel();
  EXPECT_EQ(traffic.global, 16 * 16 * 2 + 8 * 8 * 2 + 1024 + 64);
  // Rows 8 to 15 of the view, and columns 16 to 23, which are 8 to 15 of what
  // was stored; nothing is behind them.
  std::vector<float> sums = floats(f, 16);
  for (int i = 0; i < 16; ++i) {
    float expected = 0;
    for (int j = 8; i < 8 && j < 16; ++j)
      expected += float(8 * (i + 8) + j);
    // Of bf16, which holds even numbers only beyond 256.
    EXPECT_EQ(sums[i], expected) << i;
  }
}

TEST_F(Exchange, LoadedFragmentsBeginAtPieces) {
  kernel("%x = tile.load_fragment %out[%c0, %c1] : !out -> !acc // HERE");
  expectError(arguments, "expects a column that is a multiple of 8, but got 1");
}

TEST_F(Exchange, ThereIsARowToLoad) {
  kernel("%none = tile.view %pout[%zero] rows(%c0) stride(%pitch) : "
         "!tile.ptr<bf16> -> !out\n"
         "%x = tile.load_fragment %none[%c0, %c0] : !out -> !acc // HERE");
  expectError(arguments,
              "expects a view with a row to read, but got one of 0 rows");
}

//===----------------------------------------------------------------------===//
// Columns of boxes, products that go on
//===----------------------------------------------------------------------===//

/// Sums of the rows of the box, 64 of them; the parts of each in order.
static const char *const kRowSums = R"(
  %id = tile.map -> !tile.frag<16x16xf32, acc> {
  ^bb0(%i: i32, %j: i32):
    %same = arith.cmpi eq, %i, %j : i32
    %v = arith.uitofp %same : i1 to f32
    tile.yield %v : f32
  }
  %lhs = tile.cast %id : <16x16xf32, acc> -> <16x16xbf16, lhs>
  %rhs = tile.load_matrix %s[%c0, %mine, %c0] : !box -> !tile.frag<16x64xbf16, rhs>
  %none = tile.fill %f0 : f32 -> !acc
  %all = tile.mma %lhs, %rhs, %none : <16x16xbf16, lhs>, <16x64xbf16, rhs>, <16x64xf32, acc>
  %weighed = tile.map %all : !acc -> !acc {
  ^bb0(%i: i32, %j: i32, %v: f32):
    %weight = arith.sitofp %j : i32 to f32
    %product = arith.mulf %weight, %v : f32
    tile.yield %product : f32
  }
  %parts = tile.row_reduce add %weighed : !acc -> !tile.row<16xf32, partial>
  %sum = tile.row_combine %parts : !tile.row<16xf32, partial> -> !row
  tile.store_row %sum to %out[%mine] : !row to !out
)";

TEST_F(Exchange, ABoxFromAColumnOn) {
  roles("%c20 = arith.constant 20 : i32\n"
        "tile.tma_load %in[%c0, %c0, %c0, %c20] to %s[%c0] arrive %full[%c0] : "
        "!map to !box, !slots",
        std::string("tile.mbarrier_wait %full[%c0] parity %c0 : !slots\n") +
            kRowSums);
  expectCorrect();
  std::vector<float> sums = floats(f, 64);
  for (int i = 0; i < 64; ++i) {
    float want = 0;
    for (int j = 20; j < 64; ++j)
      want += float(j - 20) * input(i, j);
    EXPECT_EQ(sums[i], want) << i;
  }
  // 44 columns of 64 rows in each of two blocks, and the sums.
  EXPECT_EQ(traffic.global, 2 * (44 * 2 * 64 + 64 * 4));
}

TEST_F(Exchange, SomePanelsOfAStage) {
  // The second panel keeps what was stored to it.
  roles(
      "%two = tile.alias %r : !ring -> !tile.smem<64x128xbf16, sw128>\n"
      "tile.tma_load %in[%c0, %c0, %c0] to %two[%c0] columns 64 arrive "
      "%full[%c0] : !map to !tile.smem<64x128xbf16, sw128>, !slots",
      "%two = tile.alias %r : !ring -> !tile.smem<64x128xbf16, sw128>\n"
      "tile.mbarrier_wait %full[%c0] parity %c0 : !slots\n"
      "%c64 = arith.constant 64 : i32\n"
      "%a = tile.load_matrix %two[%c0, %mine, %c0] : "
      "!tile.smem<64x128xbf16, sw128> -> !tile.frag<16x64xbf16, lhs>\n"
      "%b = tile.load_matrix %two[%c0, %mine, %c64] : "
      "!tile.smem<64x128xbf16, sw128> -> !tile.frag<16x64xbf16, lhs> // HERE");
  expectBreach("of buffer 'ring' to be written before they are read");
}

TEST_F(Exchange, AProductGoesOn) {
  const std::string products = R"(
  tile.mbarrier_wait %full[%c0] parity %c0 : !slots
  %a = tile.wgmma %s[%c0, %c0], %s[%c0] transpose : !box, !box -> !sum
  %b = tile.wgmma %s[%c0, %c0], %s[%c0] transpose acc(%a : !tile.pending<16x64xf32>) : !box, !box -> !sum
  tile.wgmma_wait 1
  %x = tile.wgmma_wait 0, %b : !sum -> !acc
  %max = tile.row_reduce max %x : !acc -> !row
  tile.store_row %max to %out[%mine] : !row to !out)";
  roles("tile.tma_load %in[%c0, %c0, %c0] to %s[%c0] arrive %full[%c0] : !map "
        "to !box, !slots",
        products);
  expectCorrect();
  std::vector<float> values = floats(f, 64);
  for (int64_t i = 0; i < 64; ++i) {
    float greatest = 0;
    for (int64_t j = 0; j < 64; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < 64; ++k)
        sum += input(i, k) * input(j, k);
      greatest = std::max(greatest, 2 * sum);
    }
    ASSERT_EQ(values[i], greatest) << i;
  }
}
