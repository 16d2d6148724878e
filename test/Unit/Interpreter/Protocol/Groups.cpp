//===- Groups.cpp - Blocks that wait for each other -----------------------===//

#include "Harness/GroupsTest.h"

using namespace attn;

namespace {
class Groups : public GroupsTest {};
} // namespace

#define PUBLISH "tile.publish %flags[%share], %count : !tile.ptr<i32>"
#define AWAIT                                                                  \
  "%seen = tile.await %flags[%other] at_least %count : !tile.ptr<i32>"
#define WAIT "tile.mbarrier_wait %ready[%c0] parity %parity : !bar"
#define WRITTEN "tile.mbarrier_wait %written[%c0] parity %parity : !bar"

static const char *const kUnpublished =
    "to be published, and that to be awaited, before they are read, but got "
    "no such order";
static const char *const kOverwritten =
    "to be published, and that to be awaited, before they are overwritten, but "
    "got no such order";
/// The other block has not even begun.
static const char *const kUninitialised = "got an uninitialised byte";

TEST_F(Groups, RightInEverySchedule) {
  exchange();
  expectCorrect();
  strips = 1;
  expectCorrect();
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

TEST_F(Groups, NoPublish) {
  exchange({{PUBLISH " // publish", ""}, {"// await", "// HERE"}});
  expectFault(
      {"expects some warp to go on, but got none; this one waits for "
       "flag 1 to be 1, where 0 is published (warp 0 of block 0, 0, 0"});
  // All that wait are named.
  EXPECT_NE(errors.front().notes.find(
                "warp 0 of block 1, 0, 0 waits here for flag 0 to be 1, where "
                "0 is published"),
            std::string::npos)
      << errors.front().notes;
  EXPECT_NE(errors.front().notes.find("warp 4 of block 0, 0, 0 waits here for "
                                      "the end of phase 0 (parity 0) of "
                                      "barrier 'ready' (slot 0)"),
            std::string::npos)
      << errors.front().notes;
}

TEST_F(Groups, PublishBeforeAllHaveWritten) {
  exchange({{WRITTEN "\n", ""},
            {"// publish", "\n" WRITTEN},
            {"// load", "// HERE"},
            {"// store", "// HERE"}});
  expectFault({kUnpublished, kUninitialised, kOverwritten});
}

TEST_F(Groups, NoAwait) {
  exchange({{AWAIT " // await", ""},
            {"// load", "// HERE"},
            {"// store", "// HERE"},
            {"// lower theirs", "// HERE"}});
  expectFault({kUnpublished, kUninitialised, kOverwritten,
               "expects to publish 0 in flag 1 behind the"});
}

TEST_F(Groups, AwaitOfTheStripBefore) {
  exchange({{AWAIT, "%seen = tile.await %flags[%other] at_least %n : "
                    "!tile.ptr<i32>"},
            {"// load", "// HERE"},
            {"// store", "// HERE"}});
  expectFault({kUnpublished, kUninitialised, kOverwritten});
}

TEST_F(Groups, AwaitOfMoreThanIsPublished) {
  exchange({{AWAIT, "%more = arith.addi %count, %c1 : i32\n"
                    "%seen = tile.await %flags[%other] at_least %more : "
                    "!tile.ptr<i32>"},
            {"// await", "// HERE"}});
  expectFault({"this one waits for flag 1 to be 2, where 1 is published"});
}

TEST_F(Groups, AnAwaitSeesAtLeastWhatItAskedFor) {
  exchange({{"tile.mbarrier_arrive %ready[%c0] : !bar // tell",
             "%enough = arith.cmpi sge, %seen, %count : i32\n"
             "tile.mbarrier_arrive %ready[%c0] if %enough : !bar"}});
  expectCorrect();
}

TEST_F(Groups, FlagsAreNotLowered) {
  exchange(
      {{"tile.publish %flags[%c0], %c0 : !tile.ptr<i32> // lower mine", ""},
       {"// publish", "// HERE"}});
  expectFault({"expects the flag to be 0 at the end of the kernel, but got 7"});
}

TEST_F(Groups, FlagsOfTheLaunchBefore) {
  exchange({{"// publish", "// HERE"}});
  firstFlag = 7;
  expectFault({"expects flag 0 to be 0 when the kernel begins, but got 7",
               "expects flag 1 to be 0 when the kernel begins, but got 7"});
}

TEST_F(Groups, FlagsAreLoweredTooEarly) {
  exchange(
      {{"%x = tile.await %flags[%c2] at_least %c1 : !tile.ptr<i32> // done",
        ""},
       {"// await", "// HERE"},
       {"// lower mine", "// HERE"},
       {"// lower both", "// HERE"},
       {"// leave", "// HERE"}});
  expectFault({"expects to lower flag 0 from 7 to 0 behind the await of warp 0 "
               "of block 1, 0, 0, but got no order between them",
               "expects to await 7 in flag 0 before warp 0 of block 0, 0, 0 "
               "lowers it to 0, but got no order between them",
               "expects to publish 1 in flag 2 behind the 0 of warp 0 of block "
               "0, 0, 0, but got no order between them",
               "expects to publish 0 in flag 2 behind the 1 of warp 0 of block "
               "1, 0, 0, but got no order between them",
               "this one waits for flag 0 to be"});
}

//===----------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------===//

TEST_F(Groups, ASlotIsOverwrittenTooEarly) {
  exchange({{"%slots = arith.constant 4", "%slots = arith.constant 3"},
            {"// load", "// HERE"},
            {"// store", "// HERE"}});
  expectFault({kUnpublished, kOverwritten});
}

TEST_F(Groups, WritesWithoutOrderInABlock) {
  // Warp 0 speaks for warps 4 to 7 only if they arrived.
  exchange({{"arrivals 4", "arrivals 3"},
            {"tile.mbarrier_arrive %written[%c0] : !bar",
             "%speaks = arith.cmpi sgt, %number, %c0 : i32\n"
             "tile.mbarrier_arrive %written[%c0] if %speaks : !bar"},
            {"// load", "// HERE"},
            {"// store", "// HERE"},
            {"// tell", "// HERE"}});
  expectFault({kUnpublished, kUninitialised, kOverwritten,
               "behind the wait of warp 4"});
}

TEST_F(Groups, TwoBlocksWriteTheSameRows) {
  exchange(
      {{"%start = arith.muli %share, %c64", "%start = arith.muli %c0, %c64"},
       {"%to[%at, %c0] : !acc to !sums",
        "%to[%at, %c0] : !acc to !sums // HERE"}});
  expectFault({kOverwritten});
}

TEST_F(Groups, RegistersOfOtherTypes) {
  exchange({{"%x:3 = tile.load_registers %scratch[%place] : !tile.ptr<i32> -> "
             "!acc, !row, !part // load",
             "%y:3 = tile.load_registers %scratch[%place] : !tile.ptr<i32> -> "
             "!row, !acc, !part // HERE"},
            {"%x#2", "%y#2"},
            {"%x#0, %x#1", "%y#1, %y#0"}});
  expectFault({"expects registers of the types that were stored, but got an "
               "image of others",
               kUninitialised});
}

//===----------------------------------------------------------------------===//
// The two hangs: a barrier that blocks drive has phases, too
//===----------------------------------------------------------------------===//

/// Every strip has a barrier `written` of its own, so that what goes wrong goes
/// wrong at `ready` alone.
static std::vector<std::pair<std::string, std::string>>
apart(std::vector<std::pair<std::string, std::string>> changes) {
  changes.push_back({"arrivals 4 : !bar", "arrivals 4 : !tile.mbarrier<8>"});
  changes.push_back(
      {WRITTEN,
       "tile.mbarrier_wait %written[%n] parity %c0 : !tile.mbarrier<8>"});
  changes.push_back({"tile.mbarrier_arrive %written[%c0] : !bar",
                     "tile.mbarrier_arrive %written[%n] : !tile.mbarrier<8>"});
  return changes;
}

static const std::pair<std::string, std::string> kWaitInB = {
    "%new = scf.if %adds -> !acc {",
    "%new = scf.if %adds -> !acc {\n" WAIT " // HERE"};

TEST_F(Groups, AParityIsWaitedForOnePhaseTooLate) {
  // Publishing strip n lets the publisher end phase n of `ready`, while phase
  // n - 1 has not been waited for.
  exchange(apart({{WAIT " // wait", ""},
                  {WAIT " // wait for the last", ""},
                  {"// tell", "// HERE"},
                  kWaitInB}));
  expectFault({"of barrier 'ready' (slot 0) to end behind the wait of warp",
               "of barrier 'ready' (slot 0) before phase"});
  exchange(apart({}));
  expectCorrect();
}

TEST_F(Groups, AWaitThatToldOfAnotherBarrierToo) {
  // With one barrier `written`, a warp may now arrive there twice before
  // another has arrived.
  exchange({{WAIT " // wait", ""},
            {WAIT " // wait for the last", ""},
            {"// arrive", "// HERE"},
            {"// tell", "// HERE"},
            kWaitInB});
  expectFault({"of barrier 'ready' (slot 0) to end behind the wait of warp",
               "of barrier 'ready' (slot 0) before phase",
               "expects 4 arrivals in a phase of barrier 'written' (slot 0)"});
}

TEST_F(Groups, ABarrierIsWaitedForTwice) {
  exchange({{"// tell", "// HERE"}, kWaitInB});
  expectFault({"of barrier 'ready' (slot 0) to end behind the wait of warp",
               "of barrier 'ready' (slot 0) before phase"});
  exchange(apart({{"// tell", "// HERE"}, kWaitInB}));
  expectFault({"of barrier 'ready' (slot 0) to end behind the wait of warp",
               "of barrier 'ready' (slot 0) before phase"});
}

//===----------------------------------------------------------------------===//
// All faults that can be made by dropping, moving or weakening one op
//===----------------------------------------------------------------------===//

TEST_F(Groups, MutantsAreKilled) {
  exchange();
  expectMutantsKilled(
      "exchange", /*atLeast=*/20, schedules(),
      [&](const InterpreterOptions &options) { return exchanges(options); },
      [] { return true; });
}

#undef PUBLISH
#undef AWAIT
#undef WAIT
#undef WRITTEN
