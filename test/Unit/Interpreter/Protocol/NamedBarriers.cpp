//===- NamedBarriers.cpp - Barriers 1 to 15, turns, fences ----------------===//

#include "Harness/RolesTest.h"

using namespace attn;

namespace {
class NamedBarriers : public RolesTest {};
} // namespace

/// Each warp stores its 16 rows and then reads those of all.
static std::string exchange(const std::string &between) {
  return "%acc = tile.fill %f1 : f32 -> !acc\n"
         "tile.store_matrix %acc to %s[%mine] : !acc to !box\n" +
         between +
         "\n%x = tile.load_matrix %s[%c0, %c0, %c0] : !box -> "
         "!tile.frag<64x64xbf16, lhs>";
}

TEST_F(NamedBarriers, SyncOrdersTheWarpsThatCome) {
  roles("", exchange("tile.bar_sync %c1 warps 4"));
  expectCorrect();
  roles("", exchange("tile.bar_sync %number warps 1"));
  arguments.back() = int32_t(0);
  expectOneOf({"expects barrier 1 to 15, but got 0",
               "expects a barrier after the write",
               "to be written before they are read"});
}

TEST_F(NamedBarriers, ArriveTellsButDoesNotWait) {
  // Three warps arrive, the fourth syncs and may read.
  const std::string arrive = R"(
  %acc = tile.fill %f1 : f32 -> !acc
  tile.store_matrix %acc to %s[%mine] : !acc to !box
  scf.if %is4 {
    tile.bar_sync %c5 warps 4
    %x = tile.load_matrix %s[%c0, %c0, %c0] : !box -> !tile.frag<64x64xbf16, lhs>
  } else {
    tile.bar_arrive %c5 warps 4
  })";
  roles("", arrive);
  expectCorrect();
  // Who arrives may not.
  roles("", exchange("tile.bar_arrive %c5 warps 4"));
  expectOneOf({"expects a barrier after the write",
               "to be written before they are read"});
}

TEST_F(NamedBarriers, ABarrierIsUsedAgain) {
  roles("", R"(
  %acc = tile.fill %f1 : f32 -> !acc
  scf.for %i = %c0 to %c5 step %c1 : i32 {
    tile.store_matrix %acc to %s[%mine] : !acc to !box
    tile.bar_sync %c1 warps 4
    %x = tile.load_matrix %s[%c0, %c0, %c0] : !box -> !tile.frag<64x64xbf16, lhs>
    tile.bar_sync %c1 warps 4
  })");
  expectCorrect();
}

TEST_F(NamedBarriers, Ids) {
  roles("", "tile.bar_sync %c16 warps 4 // HERE");
  expectBreach("expects barrier 1 to 15, but got 16");
  roles("", "tile.bar_arrive %c0 warps 4 // HERE");
  expectBreach("expects barrier 1 to 15, but got 0");
}

TEST_F(NamedBarriers, CountsThatDiffer) {
  roles("", R"(
  scf.if %is4 {
    tile.bar_sync %c1 warps 4
  } else {
    tile.bar_sync %c1 warps 3
  })");
  expectOneOf({"expects the same number of warps in all ops that come to "
               "barrier 1, but got 3 and 4",
               "expects the same number of warps in all ops that come to "
               "barrier 1, but got 4 and 3",
               // The three may be through before the fourth comes.
               "expects to come to barrier 1 behind its opening before"});
  roles("", "tile.bar_sync %c1 warps 9 // HERE");
  expectBreach("expects at most the 8 warps of the block, but got 9");
}

TEST_F(NamedBarriers, TooManyWarpsExpected) {
  roles("", "tile.bar_sync %c1 warps 5 // HERE");
  expectBreach("expects some warp to go on, but got none; this one waits for "
               "barrier 1, where 1 of 5 warps are missing (warp 4");
}

TEST_F(NamedBarriers, TooFewWarpsExpected) {
  roles("", "tile.bar_sync %c1 warps 3 // HERE");
  expectBreach("expects to come to barrier 1 behind its opening before, but "
               "got no order between them");
}

TEST_F(NamedBarriers, ArrivingTwiceBehindAnOpening) {
  roles("", R"(
  scf.if %is4 {
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      tile.bar_arrive %c1 warps 2 // HERE
    }
  })");
  expectBreach("expects to come to barrier 1 behind its opening before");
}

/// Two groups take turns, as warpgroups do at the tensor cores.
static const char *const kTurns = R"(
tile.kernel @k(%pf: !tile.ptr<f32>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c5 = arith.constant 5 : i32
  %s = tile.alloc "turns" : !tile.smem<16x16xbf16>
  %w = tile.warp_id
  %group = arith.divsi %w, %c4 : i32
  %lead = arith.remsi %w, %c4 : i32
  %leads = arith.cmpi eq, %lead, %c0 : i32
  %own = arith.addi %group, %c1 : i32
  %other = arith.subi %c2, %group : i32
  %f0 = arith.constant 0.0 : f32
  %acc = tile.fill %f0 : f32 -> !tile.frag<16x16xf32, acc>
  %first = arith.cmpi eq, %group, %c0 : i32
  scf.if %first {
    tile.bar_arrive %own warps 8
  }
  scf.for %i = %c0 to %c5 step %c1 : i32 {
    tile.bar_sync %own warps 8
    scf.if %leads {
      tile.store_matrix %acc to %s[%c0] : !tile.frag<16x16xf32, acc> to !tile.smem<16x16xbf16>
    }
    tile.bar_arrive %other warps 8
  }
  tile.return
})";

TEST_F(NamedBarriers, TakingTurns) {
  parse(kTurns);
  arguments = {allocateUninitialised(4)};
  expectCorrect();
  std::string text = kTurns;
  const std::string begin = "tile.bar_arrive %own warps 8";
  parse(text.replace(text.find(begin), begin.size(), ""));
  ASSERT_FALSE(run(arguments));
  EXPECT_NE(errors.front().text.find("this one waits for barrier 1, where 4 of "
                                     "8 warps are missing (warp 0"),
            std::string::npos)
      << errors.front().text;
}
