//===- Roles.cpp - Roles, loops without a count, deadlocks ----------------===//

#include "Harness/RolesTest.h"

using namespace attn;

namespace {
class Roles : public RolesTest {};
} // namespace

TEST_F(Roles, WarpsComeInOrderAndKeepTheirNumbers) {
  roles("", R"(
  %x = arith.sitofp %w : i32 to f32
  %row = tile.fill %x : f32 -> !row
  tile.store_row %row to %out[%mine] : !row to !out)",
        "", R"(
  %y = arith.sitofp %w : i32 to f32
  %all = tile.fill %y : f32 -> !row
  %at0 = arith.muli %w, %c16 : i32
  %base = arith.constant 64 : i32
  %at = arith.addi %base, %at0 : i32
  tile.store_row %all to %out[%at] : !row to !out)");
  expectCorrect();
  std::vector<float> values = floats(f, 12 * 16);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(values[i * 16], float(4 + i));
  // All warps go on behind the roles, those without work too.
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(values[64 + i * 16], float(i));
}

TEST_F(Roles, RolesShareAWarpgroup) {
  // Draws below 2: one of the producer, three of helpers, eight of consumers.
  roles("%d = tile.draw %counter below %c2 : !tile.ptr<i32>",
        "%d = tile.draw %counter below %c2 : !tile.ptr<i32>\n"
        "%e = tile.draw %counter below %c2 : !tile.ptr<i32>",
        "", "", R"(
  %x = arith.sitofp %w : i32 to f32
  %row = tile.fill %x : f32 -> !row
  %at = arith.muli %w, %c16 : i32
  tile.store_row %row to %out[%at] : !row to !out
  %d = tile.draw %counter below %c2 : !tile.ptr<i32>)");
  expectCorrect();
  // The producer's warp stores nothing.
  std::vector<float> values = floats(f + 16 * 4, 3 * 16);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(values[i * 16], float(1 + i));
}

TEST_F(Roles, TheGridHasASize) {
  roles("", R"(
  %x = tile.grid_size 0
  %y = tile.grid_size 1
  %tens = arith.muli %x, %c16 : i32
  %both = arith.addi %tens, %y : i32
  %v = arith.sitofp %both : i32 to f32
  %row = tile.fill %v : f32 -> !row
  tile.store_row %row to %out[%mine] : !row to !out)");
  ASSERT_TRUE(run(arguments, {2, 3, 1})) << errors.front().text;
  EXPECT_EQ(floats(f, 1)[0], 35.0f);
}

TEST_F(Roles, OneWarpRunsARoleOfASingleLane) {
  // Two draws below 2: one of the first role, one of warp 4.
  roles("%d = tile.draw %counter below %c2 : !tile.ptr<i32>", R"(
  scf.if %is4 {
    %d = tile.draw %counter below %c2 : !tile.ptr<i32>
  })");
  expectCorrect();
}

TEST_F(Roles, AllWarpsMeetBeforeTheRoles) {
  roles("",
        "%x = tile.load_matrix %s[%c0, %c0, %c0] : !box -> "
        "!tile.frag<16x64xbf16, lhs>",
        R"(
  %first = arith.cmpi eq, %w, %c0 : i32
  scf.if %first {
    %acc = tile.fill %f1 : f32 -> !acc
    tile.store_matrix %acc to %s[%c0] : !acc to !box
  })");
  expectCorrect();
}

TEST_F(Roles, RolesAreNoBarrierAtTheirEnd) {
  roles("", R"(
  scf.if %is4 {
    %acc = tile.fill %f1 : f32 -> !acc
    tile.store_matrix %acc to %s[%c0] : !acc to !box
  })",
        "",
        "%x = tile.load_matrix %s[%c0, %c0, %c0] : !box -> "
        "!tile.frag<16x64xbf16, lhs>");
  expectOneOf({"expects a barrier after the write to rows 0 to 15",
               "expects rows 0 to 15 of buffer 'box' to be written"});
}

TEST_F(Roles, WhileCarriesScalarsRowsAndFragments) {
  // Doubles until the number is above 100; counts the rounds in a row and a
  // fragment.
  roles("", R"(
  %row0 = tile.fill %f0 : f32 -> !row
  %acc0 = tile.fill %f0 : f32 -> !acc
  %res:3 = scf.while (%x = %c1, %row = %row0, %acc = %acc0)
      : (i32, !row, !acc) -> (!acc, i32, !row) {
    %limit = arith.constant 100 : i32
    %more = arith.cmpi sle, %x, %limit : i32
    scf.condition(%more) %acc, %x, %row : !acc, i32, !row
  } do {
  ^bb0(%acc: !acc, %x: i32, %row: !row):
    %next = arith.muli %x, %c2 : i32
    %more_row = tile.map %row : !row -> !row {
    ^bb0(%i: i32, %v: f32):
      %sum = arith.addf %v, %f1 : f32
      tile.yield %sum : f32
    }
    %more_acc = tile.map %acc : !acc -> !acc {
    ^bb0(%i: i32, %j: i32, %v: f32):
      %sum = arith.addf %v, %f1 : f32
      tile.yield %sum : f32
    }
    scf.yield %next, %more_row, %more_acc : i32, !row, !acc
  }
  scf.if %is4 {
    tile.store_row %res#2 to %out[%c0] : !row to !out
    %max = tile.row_reduce max %res#0 : !acc -> !row
    tile.store_row %max to %out[%c16] : !row to !out
    %x = arith.sitofp %res#1 : i32 to f32
    %last = tile.fill %x : f32 -> !row
    %at = arith.constant 32 : i32
    tile.store_row %last to %out[%at] : !row to !out
  })");
  expectCorrect();
  EXPECT_EQ(floats(f, 1)[0], 7.0f);
  EXPECT_EQ(floats(f + 64, 1)[0], 7.0f);
  EXPECT_EQ(floats(f + 128, 1)[0], 128.0f);
}

TEST_F(Roles, WhileThatNeverBegins) {
  roles("", R"(
  %res = scf.while (%x = %c5) : (i32) -> i32 {
    %more = arith.cmpi slt, %x, %c0 : i32
    scf.condition(%more) %x : i32
  } do {
  ^bb0(%x: i32):
    scf.yield %c0 : i32
  }
  %v = arith.sitofp %res : i32 to f32
  %row = tile.fill %v : f32 -> !row
  scf.if %is4 {
    tile.store_row %row to %out[%c0] : !row to !out
  })");
  expectCorrect();
  EXPECT_EQ(floats(f, 1)[0], 5.0f);
}

TEST_F(Roles, BarriersAreNotReadyBeforeTheRoles) {
  roles("", "", "tile.mbarrier_wait %full[%c0] parity %c1 : !slots // HERE");
  expectBreach("expects to stand in or behind tile.roles, where 'full' is "
               "ready for use");
}

TEST_F(Roles, ABarrierOfTheBlockNeedsAllRoles) {
  roles("", "tile.barrier // HERE");
  expectBreach("expects all 8 warps at the barrier, but got the end of warp 0");
}

TEST_F(Roles, ADeadlockIsToldOnceWithWhereTheOthersWait) {
  roles("tile.mbarrier_wait %empty[%c1] parity %c0 : !slots // HERE", R"(
  scf.if %is4 {
    tile.bar_sync %c2 warps 2
  } else {
    %x:2 = tile.pop %queue[%c0] parity %c0 : !queue -> i32, i32
  })");
  InterpreterOptions options;
  options.maxErrors = 10;
  ASSERT_FALSE(run(arguments, {1, 1, 1}, options));
  ASSERT_EQ(errors.size(), 1u);
  expectBreach(
      "expects some warp to go on, but got none; this one waits for the end of "
      "phase 0 (parity 0) of barrier 'empty' (slot 1), where 4 of 4 arrivals "
      "and 0 bytes are missing (warp 0 of block 0, 0, 0)");
  EXPECT_EQ(errors.front().notes,
            "warp 4 waits here for barrier 2, where 1 of 2 warps are missing\n"
            "warp 5 waits here for the end of phase 0 (parity 0) of queue "
            "'message' (slot 0, full), where 1 of 1 arrivals and 0 bytes are "
            "missing\n");
}
