//===- Mbarriers.cpp - Phases, parities, and who may be late --------------===//

#include "Harness/RolesTest.h"

using namespace attn;

namespace {
class Mbarriers : public RolesTest {};
} // namespace

#define STORE "tile.store_matrix %acc to %s[%c0] : !acc to !box\n"
#define LOAD                                                                   \
  "%x = tile.load_matrix %s[%c0, %c0, %c0] : !box -> "                         \
  "!tile.frag<16x64xbf16, lhs>"

/// Something that warps 4 and 5 do, and the others do not.
static std::string two(const std::string &four, const std::string &five) {
  return "%acc = tile.fill %f1 : f32 -> !acc\nscf.if %is4 {\n" + four +
         "\n}\nscf.if %is5 {\n" + five + "\n}\n";
}

TEST_F(Mbarriers, AFreshBarrierLetsParity1Pass) {
  roles("", "tile.mbarrier_wait %full[%c1] parity %c1 : !slots");
  expectCorrect();
}

TEST_F(Mbarriers, AFreshBarrierHoldsParity0) {
  roles("", "tile.mbarrier_wait %full[%c1] parity %c0 : !slots // HERE");
  expectBreach("this one waits for the end of phase 0 (parity 0) of barrier "
               "'full' (slot 1), where 1 of 1 arrivals and 0 bytes are missing "
               "(warp 4 ");
}

TEST_F(Mbarriers, AnArrivalTellsWhatTheWarpDid) {
  roles("", two(STORE "tile.mbarrier_arrive %full[%c0] : !slots",
                "tile.mbarrier_wait %full[%c0] parity %c0 : !slots\n" LOAD));
  expectCorrect();
  // What it does behind the arrival is not told.
  roles("", two("tile.mbarrier_arrive %full[%c0] : !slots\n" STORE,
                "tile.mbarrier_wait %full[%c0] parity %c0 : !slots\n" LOAD));
  expectOneOf({"expects a barrier after the write to rows 0 to 15",
               "expects rows 0 to 15 of buffer 'box' to be written",
               "expects a barrier after the read of rows 0 to 15"});
}

TEST_F(Mbarriers, APhaseTellsOfAllItsArrivals) {
  // Warp 5 arrives last and knows nothing of warp 4's store; warp 6 does.
  roles("", two(STORE "tile.mbarrier_arrive %empty[%c0] : !slots\n"
                      "tile.mbarrier_arrive %empty[%c0] : !slots",
                "tile.mbarrier_arrive %empty[%c0] : !slots\n"
                "tile.mbarrier_arrive %empty[%c0] : !slots") +
                R"(
  %other = arith.cmpi sgt, %w, %c5 : i32
  scf.if %other {
    tile.mbarrier_wait %empty[%c0] parity %c0 : !slots
    %x = tile.load_matrix %s[%c0, %c0, %c0] : !box -> !tile.frag<16x64xbf16, lhs>
  })");
  expectCorrect();
}

TEST_F(Mbarriers, OneSlotTellsNothingOfAnother) {
  roles("", two(STORE "tile.mbarrier_arrive %full[%c1] : !slots",
                "tile.mbarrier_wait %full[%c0] parity %c1 : !slots\n" LOAD));
  expectOneOf({"expects a barrier after the write to rows 0 to 15",
               "expects rows 0 to 15 of buffer 'box' to be written",
               "expects a barrier after the read of rows 0 to 15"});
}

TEST_F(Mbarriers, ArrivesIfTheConditionHolds) {
  roles("", R"(
  tile.mbarrier_arrive %full[%c0] if %is5 : !slots
  tile.mbarrier_wait %full[%c0] parity %c0 : !slots)");
  expectCorrect();
  roles("", R"(
  %never = arith.cmpi eq, %w, %c0 : i32
  tile.mbarrier_arrive %full[%c0] if %never : !slots
  tile.mbarrier_wait %full[%c0] parity %c0 : !slots // HERE
  )");
  expectBreach("where 1 of 1 arrivals and 0 bytes are missing");
}

TEST_F(Mbarriers, AnArrivalTooMany) {
  roles("", "tile.mbarrier_arrive %full[%c0] : !slots // HERE");
  expectBreach("expects 1 arrival in a phase of barrier 'full' (slot 0) and "
               "others only behind its end, but got one that is not ordered "
               "behind the end of phase 0");
}

TEST_F(Mbarriers, AWaiterThatComesOnePhaseTooLate) {
  // Warp 4 ends two phases, each of which it knows.
  const std::string twice = R"(
  tile.mbarrier_arrive %full[%c0] : !slots
  tile.mbarrier_wait %full[%c0] parity %c0 : !slots
  tile.mbarrier_arrive %full[%c0] : !slots
  tile.mbarrier_wait %full[%c0] parity %c1 : !slots)";
  roles("", two(twice,
                "tile.mbarrier_wait %full[%c0] parity %c0 : !slots // HERE"));
  expectBreach("expects to wait for parity 0 of barrier 'full' (slot 0) before "
               "phase 1 ends, but got to it in phase 2 (warp 5");
}

TEST_F(Mbarriers, AWaiterThatOnlyHappensToBeInTime) {
  // The waiter tells warp 4 through another barrier, or nothing at all.
  const std::string told = R"(
  tile.mbarrier_arrive %full[%c0] : !slots
  tile.mbarrier_wait %full[%c0] parity %c0 : !slots
  tile.bar_sync %c1 warps 2
  tile.mbarrier_arrive %full[%c0] : !slots)";
  roles("", two(told, "tile.mbarrier_wait %full[%c0] parity %c0 : !slots\n"
                      "tile.bar_sync %c1 warps 2"));
  expectCorrect();
  // The barrier between them stands before the wait.
  roles("", two(told, "tile.bar_sync %c1 warps 2\n"
                      "tile.mbarrier_wait %full[%c0] parity %c0 : !slots"));
  expectOneOf({"expects phase 1 of barrier 'full' (slot 0) to end behind the "
               "wait of warp 5 for the phase before, but got no order between "
               "them (warp 4",
               "expects to wait for parity 0 of barrier 'full' (slot 0) before "
               "phase 1 ends"});
}

TEST_F(Mbarriers, AParityIsABit) {
  roles("", "tile.mbarrier_wait %full[%c0] parity %c2 : !slots // HERE");
  expectBreach("expects parity 0 or 1, but got 2");
}

TEST_F(Mbarriers, SlotsOfTheRing) {
  roles("", "tile.mbarrier_arrive %full[%c2] : !slots // HERE");
  expectBreach("expects slots 0 to 1 of 'full', but got 2");
  roles("", "%minus = arith.constant -1 : i32\n"
            "tile.mbarrier_wait %full[%minus] parity %c1 : !slots // HERE");
  expectBreach("expects slots 0 to 1 of 'full', but got -1");
}

#undef STORE
#undef LOAD
