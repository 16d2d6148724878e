//===- Tma.cpp - Boxes of arrays: what comes, what goes, and when ---------===//

#include "Harness/RolesTest.h"

#include "attn/Host/Rounding.h"

using namespace attn;

namespace {
class Tma : public RolesTest {
protected:
  /// The output, after all orders.
  float output(int64_t i, int64_t j) {
    return bf16s(to + uint64_t(i * 64 + j) * 2, 1)[0];
  }
};
} // namespace

#define LOAD_AT(row)                                                           \
  "tile.tma_load %in[%c0, %c0, " row "] to %s[%c0] arrive %full[%c0] : "       \
  "!map to !box, !slots"
#define AWAIT "tile.mbarrier_wait %full[%c0] parity %c0 : !slots\n"
#define STORE_AT(row)                                                          \
  "tile.tma_store %s[%c0] to %to[%c0, %c0, " row ", %c0] : !box to !map"
/// One warp stores the box as it came.
#define STORE_BACK                                                             \
  AWAIT "scf.if %is4 {\n" STORE_AT("%c0") "\n tile.tma_store_wait 0\n}"
#define READ                                                                   \
  "%x = tile.load_matrix %s[%c0, %c0, %c0] : !box -> "                         \
  "!tile.frag<64x64xbf16, lhs>"

TEST_F(Tma, ThereAndBack) {
  roles(LOAD_AT("%c0"), STORE_BACK);
  expectCorrect();
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < 64; ++j)
      ASSERT_EQ(output(i, j), input(i, j)) << i << " " << j;
  EXPECT_EQ(traffic.global, 2 * 2 * 8192);
  EXPECT_EQ(traffic.smem, 2 * 2 * 8192);
}

TEST_F(Tma, RowsOutsideOfTheArrayAreZero) {
  // Rows -5 .. 58 of an array of 20 rows.
  roles("%from = arith.constant -5 : i32\n" LOAD_AT("%from"), STORE_BACK);
  arguments[0] = array(in, 20);
  expectCorrect();
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < 64; ++j)
      ASSERT_EQ(output(i, j), i >= 5 && i < 25 ? input(i - 5, j) : 0.0f);
  // Only what exists crosses the border; the fill is whole.
  EXPECT_EQ(traffic.global, 2 * (20 * 128 + 8192));
  EXPECT_EQ(traffic.smem, 2 * 2 * 8192);
}

TEST_F(Tma, WhatLiesOutsideOfTheArrayIsDropped) {
  roles(LOAD_AT("%c0"),
        AWAIT "%at = arith.constant -60 : i32\n scf.if %is4 {\n" STORE_AT(
            "%at") "\n tile.tma_store_wait 0\n}");
  arguments[1] = array(to, 3);
  expectCorrect();
  EXPECT_EQ(output(2, 5), input(62, 5));
  EXPECT_EQ(traffic.global, 2 * (8192 + 3 * 128));
  uint16_t behind;
  EXPECT_TRUE(memory.read(to + 3 * 128, &behind, 2).has_value());
}

TEST_F(Tma, HeadsAndStrides) {
  // Batch 1, head 2 of an array [2, 3, 4, 64] whose heads lie between rows.
  roles("tile.tma_load %in[%c1, %c2, %c0] to %s[%c0] arrive %full[%c0] : !map "
        "to !box, !slots",
        STORE_BACK);
  arguments[0] = TensorMapArgument{in, {2, 3, 4, 64}, {768, 64, 192, 1}};
  expectCorrect();
  for (int64_t i = 0; i < 4; ++i) {
    int64_t line = (768 + 2 * 64 + i * 192) / 64;
    for (int64_t j = 0; j < 64; ++j)
      ASSERT_EQ(output(i, j), input(line, j));
  }
  EXPECT_EQ(output(4, 0), 0.0f);
}

TEST_F(Tma, HeadsOutsideOfTheArrayAreZero) {
  roles("tile.tma_load %in[%c0, %c1, %c0] to %s[%c0] arrive %full[%c0] : !map "
        "to !box, !slots",
        STORE_BACK);
  expectCorrect();
  EXPECT_EQ(output(0, 1), 0.0f);
}

/// Boxes of 16 rows of 72 columns in two panels, stored from a second column.
static const char *const kPanels = R"(
!map = !tile.tensor_map<16x72xbf16>
!box = !tile.smem<16x80xbf16, sw128>
!staging = !tile.smem<16x64xbf16, sw128>
tile.kernel @k(%in: !map, %to: !map, %p: !tile.ptr<bf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %s = tile.alloc "box" : !box
  %t = tile.alloc "strip" : !staging
  %full = tile.mbarrier "full" arrivals 1 : !tile.mbarrier<1>
  tile.roles {
    tile.role "producer" warps 4 registers 24 single_lane {
      tile.tma_load %in[%c0, %c0, %c0] to %s[%c0] arrive %full[%c0] : !map to !box, !tile.mbarrier<1>
    }
    tile.role "consumer" warps 4 registers 240 {
      %w = tile.warp_id
      %is4 = arith.cmpi eq, %w, %c4 : i32
      tile.mbarrier_wait %full[%c0] parity %c0 : !tile.mbarrier<1>
      scf.if %is4 {
        tile.tma_store %s[%c0] to %to[%c0, %c0, %c0, %c0] : !box to !map
        %f1 = arith.constant 7.0 : f32
        %acc = tile.fill %f1 : f32 -> !tile.frag<16x64xf32, acc>
        tile.store_matrix %acc to %t[%c0] : !tile.frag<16x64xf32, acc> to !staging
        tile.fence_async
        tile.tma_store %t[%c0] to %to[%c0, %c0, %c0, %c64] : !staging to !map
        tile.tma_store_wait 0
        // Columns behind the array's are zero in shared memory.
        %x = tile.load_matrix %s[%c0, %c0, %c64] : !box -> !tile.frag<16x16xbf16, lhs>
        %id = tile.load_matrix %t[%c0, %c0, %c0] : !staging -> !tile.frag<16x16xbf16, rhs>
        %zero = arith.constant 0.0 : f32
        %acc0 = tile.fill %zero : f32 -> !tile.frag<16x16xf32, acc>
        %p0 = tile.mma %x, %id, %acc0 : !tile.frag<16x16xbf16, lhs>, !tile.frag<16x16xbf16, rhs>, !tile.frag<16x16xf32, acc>
        %u = tile.alloc "sum" : !tile.smem<16x16xbf16>
        tile.store_matrix %p0 to %u[%c0] : !tile.frag<16x16xf32, acc> to !tile.smem<16x16xbf16>
        %z = arith.constant 0 : i64
        %st = arith.constant 16 : i64
        %c16 = arith.constant 16 : i32
        %v = tile.view %p[%z] rows(%c16) stride(%st) : !tile.ptr<bf16> -> !tile.view<?x16xbf16, align = 2>
        tile.copy_out %u[%c0] to %v[%c0] count 16 : !tile.smem<16x16xbf16> to !tile.view<?x16xbf16, align = 2>
      }
    }
  }
  tile.return
})";

TEST_F(Tma, PanelsAndColumns) {
  std::string text = kPanels;
  const std::string c4 = "%c4 = arith.constant 4 : i32";
  parse(text.replace(text.find(c4), 0, "%c64 = arith.constant 64 : i32\n"));
  std::vector<float> values;
  for (int64_t i = 0; i < 16 * 72; ++i)
    values.push_back(float(i % 31));
  uint64_t from = allocateBf16(values);
  to = allocateUninitialised(16 * 144);
  uint64_t sums = allocateUninitialised(512);
  arguments = {array(from, 16, 72), array(to, 16, 72), sums};
  expectCorrect();
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t j = 0; j < 72; ++j)
      ASSERT_EQ(bf16s(to + uint64_t(i * 72 + j) * 2, 1)[0],
                j < 64 ? values[i * 72 + j] : 7.0f);
  // Columns 64 .. 71 times 7; 72 .. 79 are zero.
  for (int64_t i = 0; i < 16; ++i) {
    float sum = 0;
    for (int64_t j = 64; j < 72; ++j)
      sum += values[i * 72 + j];
    ASSERT_EQ(bf16s(sums + uint64_t(i) * 32, 1)[0], roundToBf16(7 * sum));
  }
  // The load fills two panels of 16 rows.
  EXPECT_EQ(traffic.global, 2 * (16 * 144 + 16 * 144 + 16 * 16 + 512));
  EXPECT_EQ(traffic.smem, 2 * (2 * 16 * 128 + 16 * 144 + 16 * 128 + 16 * 16 +
                               2 * 512 + 2 * 512));
}

/// A stage of 32 rows takes two boxes, of which an array of 20 rows fills one
/// and a quarter.
TEST_F(Tma, BoxesOneBelowTheOther) {
  parse(R"(
!map = !tile.tensor_map<16x64xbf16>
!stage = !tile.smem<32x64xbf16, sw128>
tile.kernel @k(%in: !map, %to: !map) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %s = tile.alloc "stage" : !stage
  %full = tile.mbarrier "full" arrivals 1 : !tile.mbarrier<1>
  tile.roles {
    tile.role "producer" warps 4 registers 24 single_lane {
      tile.tma_load %in[%c0, %c0, %c0] to %s[%c0] arrive %full[%c0] : !map to !stage, !tile.mbarrier<1>
    }
    tile.role "consumer" warps 4 registers 240 {
      %w = tile.warp_id
      %is4 = arith.cmpi eq, %w, %c4 : i32
      tile.mbarrier_wait %full[%c0] parity %c0 : !tile.mbarrier<1>
      scf.if %is4 {
        tile.tma_store %s[%c0] to %to[%c0, %c0, %c0, %c0] : !stage to !map
        tile.tma_store %s[%c16] to %to[%c0, %c0, %c16, %c0] : !stage to !map
        tile.tma_store_wait 0
      }
    }
  }
  tile.return
})");
  std::vector<float> values;
  for (int64_t i = 0; i < 20 * 64; ++i)
    values.push_back(float(i % 31));
  to = allocateUninitialised(32 * 128);
  arguments = {array(allocateBf16(values), 20), array(to, 32)};
  expectCorrect();
  for (int64_t i = 0; i < 32; ++i)
    for (int64_t j = 0; j < 64; ++j)
      ASSERT_EQ(output(i, j), i < 20 ? values[i * 64 + j] : 0.0f);
  EXPECT_EQ(traffic.global, 2 * (20 * 128 + 32 * 128));
  EXPECT_EQ(traffic.smem, 2 * 2 * 32 * 128);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

TEST_F(Tma, ReadBeforeTheLoadIsDone) {
  roles(LOAD_AT("%c0"),
        "tile.mbarrier_wait %full[%c1] parity %c1 : !slots\n" READ);
  expectOneOf({"expects the load to rows 0 to 63 of buffer 'box' to be waited "
               "for before they are read, but got no wait for phase 0 of "
               "barrier 'full' (slot 0)",
               // The reader came first.
               "expects rows 0 to 63 of buffer 'box' to be written",
               "expects a barrier after the read of rows 0 to 63"});
}

#define USE                                                                    \
  "%u = tile.cast %x : !tile.frag<64x64xbf16, lhs> -> "                        \
  "!tile.frag<64x64xf32, acc>\n"
#define BACK "tile.mbarrier_arrive %empty[%c0] : !slots\n"
#define TWICE                                                                  \
  LOAD_AT("%c0")                                                               \
  "\n tile.mbarrier_wait %empty[%c0] parity %c0 : !slots\n" LOAD_AT("%c1")

/// What a slot held is in registers when it is used, so it goes back then.
TEST_F(Tma, UsedBeforeTheSlotGoesBack) {
  roles(TWICE, AWAIT READ "\n" USE BACK);
  expectCorrect();
}

TEST_F(Tma, TheSlotGoesBackBeforeItIsUsed) {
  roles(TWICE, AWAIT READ "\n" BACK USE);
  expectOneOf({"to have used what it loads from rows 0 to 63 of buffer 'box' "
               "before they are overwritten, but got it in flight",
               // It was used meanwhile, behind what was told.
               "expects a barrier after the read of rows 0 to 63"});
}

TEST_F(Tma, WhatIsReadTooEarlyIsNaN) {
  roles(LOAD_AT("%c0"), R"(
  %c3 = arith.constant 3 : i32
  %view = tile.view %pf[%zero] rows(%c3) stride(%one) : !tile.ptr<f32> -> !out
  %x = tile.load_matrix %s[%c0, %c0, %c0] : !box -> !tile.frag<16x16xbf16, lhs>
  %y = tile.load_matrix %s[%c0, %c0, %c0] : !box -> !tile.frag<16x16xbf16, rhs>
  %acc = tile.fill %f0 : f32 -> !tile.frag<16x16xf32, acc>
  %p = tile.mma %x, %y, %acc : !tile.frag<16x16xbf16, lhs>, !tile.frag<16x16xbf16, rhs>, !tile.frag<16x16xf32, acc>
  %sum = tile.row_reduce add %p : !tile.frag<16x16xf32, acc> -> !tile.row<16xf32, partial>
  %row = tile.row_combine %sum : !tile.row<16xf32, partial> -> !row
  tile.store_row %row to %view[%c0] : !row to !out)");
  InterpreterOptions options;
  options.maxErrors = 100;
  ASSERT_FALSE(run(arguments, {1, 1, 1}, options));
  float value = floats(f, 1)[0];
  EXPECT_NE(value, value);
}

TEST_F(Tma, LoadOverALoadInFlight) {
  roles(LOAD_AT("%c0") "\n tile.tma_load %in[%c0, %c0, %c0] to %s[%c0] arrive "
                       "%full[%c1] : !map to !box, !slots // HERE",
        "");
  expectBreach("expects the load to rows 0 to 63 of buffer 'box' to be waited "
               "for before they are overwritten, but got no wait for phase 0 "
               "of barrier 'full' (slot 0)");
}

TEST_F(Tma, LoadOverOrdinaryStoresNeedsAFence) {
  const char *store = "%acc = tile.fill %f1 : f32 -> !acc\n"
                      "%at = arith.muli %w, %c16 : i32\n"
                      "%low = arith.cmpi slt, %w, %c4 : i32\n"
                      "scf.if %low {\n"
                      "tile.store_matrix %acc to %s[%at] : !acc to !box\n}\n";
  roles(LOAD_AT("%c0") " // HERE", "", store);
  expectBreach("expects tile.fence_async by warp 0 and then a barrier between "
               "its store to rows 0 to 63 of buffer 'box' and this op");
  roles(LOAD_AT("%c0"), "", std::string(store) + "tile.fence_async");
  expectCorrect();
}

TEST_F(Tma, StoreOverWhatAStoreStillReads) {
  // Without the wait the warp itself may not write the buffer.
  roles(LOAD_AT("%c0"), AWAIT R"(
  %acc = tile.fill %f1 : f32 -> !acc
  scf.if %is4 {
    tile.tma_store %s[%c0] to %to[%c0, %c0, %c0, %c0] : !box to !map
    tile.store_matrix %acc to %s[%c0] : !acc to !box // HERE
    tile.tma_store_wait 0
  })");
  expectBreach("expects warp 4 to have waited for its asynchronous read of "
               "rows 0 to 15 of buffer 'box' before they are overwritten, but "
               "got it in flight");
  EXPECT_EQ(errors.front().notes, "the read is here\n");
}

TEST_F(Tma, TheWaitForAStoreMustBeTold) {
  const std::string body = AWAIT R"(
  %acc = tile.fill %f1 : f32 -> !acc
  scf.if %is4 {
    tile.tma_store %s[%c0] to %to[%c0, %c0, %c0, %c0] : !box to !map
    BEFORE
    tile.tma_store_wait 0
    BEHIND
  }
  scf.if %is5 {
    tile.bar_sync %c1 warps 2
    tile.store_matrix %acc to %s[%c0] : !acc to !box
  })";
  auto with = [&](const std::string &before, const std::string &behind) {
    std::string text = body;
    text.replace(text.find("BEFORE"), 6, before);
    text.replace(text.find("BEHIND"), 6, behind);
    roles(LOAD_AT("%c0"), text);
  };
  with("", "tile.bar_sync %c1 warps 2");
  expectCorrect();
  with("tile.bar_sync %c1 warps 2", "");
  expectOneOf({"expects a barrier after the read of rows 0 to 15 of buffer "
               "'box' by warp 4 before they are overwritten",
               "expects warp 4 to have waited for its asynchronous read"});
}

TEST_F(Tma, StagesOfAStore) {
  auto from = [&](const std::string &stage) {
    roles("tile.tma_load %in[%c0, %c0, %c0] to %r[%c1] arrive %full[%c0] : "
          "!map to !ring, !slots",
          AWAIT "scf.if %is4 {\ntile.tma_store %r[%c0]" + stage +
              " to %to[%c0, %c0, %c0, %c0] : !ring to !map // HERE\n"
              "tile.tma_store_wait 0\n}");
  };
  from(" stage(%c1)");
  expectCorrect();
  EXPECT_EQ(output(5, 7), input(5, 7));
  from("");
  expectBreach("expects rows 0 to 63 of buffer 'ring' (stage 0) to be written");
  from(" stage(%c2)");
  expectBreach("expects stages 0 to 1 of buffer 'ring', but got 2 to 2");
}

TEST_F(Tma, StoreOfBytesNobodyWrote) {
  roles("", "scf.if %is4 {\n" STORE_AT(
                "%c0") " // HERE\n tile.tma_store_wait 0\n}");
  expectBreach("expects rows 0 to 63 of buffer 'box' to be written before they "
               "are read");
}

TEST_F(Tma, StoreNotWaitedForAtTheEnd) {
  roles(LOAD_AT("%c0"), AWAIT "scf.if %is4 {\n" STORE_AT("%c0") "\n}", "",
        "tile.barrier\n tile.return // HERE\n}\n"
        "tile.kernel @other() attributes {warps = 1 : i32} {");
  expectBreach("expects every store to be waited for, but got one in flight "
               "(warp 4");
}

TEST_F(Tma, PlacesInBuffers) {
  roles("tile.tma_load %in[%c0, %c0, %c0] to %r[%c2] arrive %full[%c0] : !map "
        "to !ring, !slots // HERE",
        "");
  expectBreach("expects stages 0 to 1 of buffer 'ring', but got 2 to 2");
  roles("tile.tma_load %in[%c0, %c0, %c0] to %r[%c1] arrive %full[%c2] : !map "
        "to !ring, !slots // HERE",
        "");
  expectBreach("expects slots 0 to 1 of 'full', but got 2");
  roles("",
        "tile.tma_store %s[%c1] to %to[%c0, %c0, %c0, %c0] : !box to !map // "
        "HERE");
  expectBreach("expects rows 0 to 63 of buffer 'box', but got 1 to 64");
}

TEST_F(Tma, RowsOfAStoreBeginWhereTheSwizzleDoes) {
  parse(R"(
!map = !tile.tensor_map<16x64xbf16>
tile.kernel @k(%to: !map) attributes {warps = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %s = tile.alloc "s" : !tile.smem<32x64xbf16, sw128>
  tile.tma_store %s[%c4] to %to[%c0, %c0, %c0, %c0] : !tile.smem<32x64xbf16, sw128> to !map // HERE
  tile.return
})");
  expectError({array(allocateUninitialised(8192))},
              "expects a source row in multiples of 8, but got 4");
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

TEST_F(Tma, UninitialisedArray) {
  roles(LOAD_AT("%c0") " // HERE", "");
  arguments[0] = array(to);
  expectBreach("expects bytes that were written, but got an uninitialised byte "
               "at offset 0 in row 0");
}

TEST_F(Tma, ArraysThatAreSmallerThanTheySay) {
  roles(LOAD_AT("%c0") " // HERE", "");
  arguments[0] = array(in, 65);
  // Row 64 does not exist, but is not in the box.
  EXPECT_TRUE(run(arguments));
  arguments[0] = TensorMapArgument{in, {1, 1, 64, 64}, {0, 0, 128, 1}};
  expectBreach("expects bytes of an allocation of 8192 bytes, but got 128 "
               "bytes at offset 8192 in row 32");
}

TEST_F(Tma, WhatTmaAsksOfAnArray) {
  roles("", "");
  auto refuses = [&](const TensorMapArgument &array,
                     const std::string &message) {
    arguments[0] = array;
    ASSERT_FALSE(run(arguments));
    EXPECT_EQ(errors.front().text, message);
  };
  refuses(
      {in + 8, {1, 1, 64, 64}, {4096, 4096, 64, 1}},
      "expects the array of argument 0 at a multiple of 16 bytes, but got " +
          std::to_string(in + 8));
  refuses(
      {in, {1, 1, 32, 64}, {4096, 4096, 68, 1}},
      "expects strides of the array of argument 0 in multiples of 16 bytes, "
      "but got 136 in dimension 2");
  refuses(
      {in, {2, 1, 16, 64}, {1001, 4096, 64, 1}},
      "expects strides of the array of argument 0 in multiples of 16 bytes, "
      "but got 2002 in dimension 0");
  refuses({in, {1, 1, 64, 72}, {4608, 4608, 72, 1}},
          "expects the array of argument 0 to have 64 columns at most, side by "
          "side, but got 72 with stride 1");
  refuses({in, {1, 1, 32, 64}, {4096, 4096, 128, 2}},
          "expects the array of argument 0 to have 64 columns at most, side by "
          "side, but got 64 with stride 2");
  refuses(
      {in, {1, 1, -1, 64}, {4096, 4096, 64, 1}},
      "expects the array of argument 0 to have sizes of at least 0, but got "
      "-1");
  // The stride of a single row is never used.
  arguments[0] = TensorMapArgument{in, {1, 1, 1, 64}, {7, 7, 7, 1}};
  EXPECT_TRUE(run(arguments));
  arguments[0] = in;
  ASSERT_FALSE(run(arguments));
  EXPECT_EQ(errors.front().text,
            "expects argument 0 to be a value of type "
            "'!tile.tensor_map<64x64xbf16>', but got one of another type");
}

#undef LOAD_AT
#undef AWAIT
#undef STORE_AT
#undef STORE_BACK
#undef READ
#undef USE
#undef BACK
#undef TWICE
