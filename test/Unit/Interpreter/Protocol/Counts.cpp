//===- Counts.cpp - Sums that other blocks read once they are whole -------===//
//
// All blocks add to two runs of words and count when what they added has
// arrived.  Warps of any block draw a run, wait until all blocks are through,
// and copy it.
//
//===----------------------------------------------------------------------===//

#include "Harness/GroupsTest.h"

using namespace mlir;
using namespace attn;

/// Word (i, j) of an image gets 16 i + j from every block.
static const char *const kCounts = R"(
!staging = !tile.smem<1x64x64xbf16, sw128>
!acc = !tile.frag<16x16xf32, acc>
!bar = !tile.mbarrier<1>
tile.kernel @k(%flags: !tile.ptr<i32>, %counter: !tile.ptr<i32>,
               %sums: !tile.ptr<f32>, %copies: !tile.ptr<f32>, %blocks: i32)
    attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %t = tile.alloc "staging" : !staging
  %stored = tile.mbarrier "stored" arrivals 1 : !bar
  %w = tile.warp_id
  %all = arith.addi %blocks, %c2 : i32
  %ends = arith.muli %blocks, %c4 : i32
  %draws = arith.addi %ends, %c2 : i32
  tile.roles {
    tile.role "writer" warps 4 registers 24 single_lane {
      tile.mbarrier_wait %stored[%c0] parity %c0 : !bar
      tile.fence_async
      tile.add_words %t[%c0] to %sums[%c0] count 256 : !staging to !tile.ptr<f32> // add one
      tile.add_words %t[%c0] to %sums[%c1] count 256 : !staging to !tile.ptr<f32> // add two
      tile.tma_store_wait 0 complete // wait
      tile.count %flags[%c0] below %all : !tile.ptr<i32> // count
    }
    tile.role "finisher" warps 4 registers 240 {
      %is4 = arith.cmpi eq, %w, %c4 : i32
      scf.if %is4 {
        %x = tile.map -> !acc {
        ^bb0(%i: i32, %j: i32):
          %high = arith.muli %i, %c16 : i32
          %n = arith.addi %high, %j : i32
          %f = arith.sitofp %n : i32 to f32
          tile.yield %f : f32
        }
        tile.put_registers %x to %t[%c0, %c0] : !acc to !staging
        tile.mbarrier_arrive %stored[%c0] : !bar
      }
      %first = tile.draw %counter below %draws : !tile.ptr<i32>
      %end = scf.while (%n = %first) : (i32) -> i32 {
        %left = arith.cmpi slt, %n, %c2 : i32
        scf.condition(%left) %n : i32
      } do {
      ^bb0(%n: i32):
        %seen = tile.await %flags[%c0] at_least %blocks : !tile.ptr<i32> // await
        %x = tile.load_registers %sums[%n] : !tile.ptr<f32> -> !acc // load
        tile.store_registers %x to %copies[%n] : !acc to !tile.ptr<f32>
        tile.count %flags[%c0] below %all : !tile.ptr<i32> // leave
        %next = tile.draw %counter below %draws : !tile.ptr<i32>
        scf.yield %next : i32
      }
    }
  }
  tile.return
})";

namespace {
class Counts : public GroupsTest {
protected:
  static constexpr int64_t kWords = 256;

  void kernel(const std::vector<Change> &changes = {}) {
    parse(kCounts, changes);
  }

  bool runs(const InterpreterOptions &options, int64_t blocks) {
    const int32_t none = 0;
    flags = memory.allocate(4);
    counter = memory.allocate(4);
    memory.write(flags, &firstFlag, 4);
    memory.write(counter, &none, 4);
    copies = allocateUninitialised(2 * kWords * 4);
    arguments = {flags, counter,
                 allocateFloats(std::vector<float>(2 * kWords, 1)), copies,
                 int32_t(blocks)};
    return run(arguments, {blocks, 1, 1}, options);
  }
  /// Copies are of whole sums, and all is as it was for the next launch.
  bool isRight(int64_t blocks) {
    std::vector<float> got = floats(copies, 2 * kWords);
    for (int64_t word = 0; word < 2 * kWords; ++word) {
      // Lane l has rows l / 4 and that + 8, of which it keeps two columns.
      int64_t in = word % kWords, lane = in % 128 / 4;
      int64_t row = lane / 4 + in % 4 / 2 * 8;
      int64_t column = in / 128 * 8 + lane % 4 * 2 + in % 2;
      if (got[word] != float(1 + blocks * (16 * row + column)))
        return false;
    }
    return valueOf(flags) == 0 && valueOf(counter) == 0;
  }
  int32_t valueOf(uint64_t address) {
    int32_t value = -1;
    memory.read(address, &value, 4);
    return value;
  }
  /// In every schedule one of the messages comes first.
  void expectOneOf(const std::vector<std::string> &messages,
                   int64_t blocks = 2) {
    for (const InterpreterOptions &options : schedules()) {
      ASSERT_FALSE(runs(options, blocks)) << messages.front();
      expectFirstError(messages);
    }
  }

  uint64_t counter = 0, copies = 0;
};
} // namespace

#define WAIT "tile.tma_store_wait 0 complete"
#define COUNT "tile.count %flags[%c0] below %all : !tile.ptr<i32>"
#define AWAIT "%seen = tile.await %flags[%c0] at_least %blocks : !tile.ptr<i32>"

static const char *const kReadTooEarly =
    "expects bytes that no op of the launch adds to, or behind the wait for "
    "all that they do, but got some that one does";
static const char *const kAddedTooLate =
    "expects words that no op of the launch has read or written otherwise, or "
    "behind the write, but got some that one has";

TEST_F(Counts, RightInEverySchedule) {
  kernel();
  for (int64_t blocks : {1, 2, 3, 5})
    for (const InterpreterOptions &options : schedules()) {
      ASSERT_TRUE(runs(options, blocks)) << errors.front().text;
      EXPECT_TRUE(isRight(blocks));
      // Both runs are added to by every block, and are read and written once.
      EXPECT_EQ(traffic.global, (2 * blocks + 4) * kWords * 4);
    }
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  FailureOr<tile::Traffic> counted =
      tile::countTraffic(kernel, {5, 1, 1}, {0, 0, 0, 0, 5});
  ASSERT_TRUE(succeeded(counted));
  EXPECT_TRUE(*counted == traffic);
}

TEST_F(Counts, MutantsAreKilled) {
  kernel();
  expectMutantsKilled(
      "counts", /*atLeast=*/20, schedules(),
      [&](const InterpreterOptions &options) { return runs(options, 2); },
      [&] { return isRight(2); });
}

//===----------------------------------------------------------------------===//
// Sums are whole
//===----------------------------------------------------------------------===//

TEST_F(Counts, AWaitForWhatWasReadIsNotEnough) {
  kernel({{WAIT, "tile.tma_store_wait 0"}});
  expectOneOf({kReadTooEarly});
  EXPECT_EQ(errors.front().notes, "the addition is here\n");
}

TEST_F(Counts, AWaitForTheFirstIsNotEnough) {
  kernel({{WAIT " // wait", "tile.tma_store_wait 1 complete"},
          {"// count", "\ntile.tma_store_wait 0"}});
  expectOneOf({kReadTooEarly});
}

TEST_F(Counts, AWaitThatIsNotCounted) {
  kernel({{WAIT " // wait\n", ""}, {"// count", "\n" WAIT}});
  expectOneOf({kReadTooEarly});
}

TEST_F(Counts, NobodyAwaits) {
  kernel({{AWAIT, ""}});
  expectOneOf({kReadTooEarly, kAddedTooLate});
}

TEST_F(Counts, OneBlockIsNotAwaited) {
  kernel({{AWAIT, "%most = arith.subi %blocks, %c1 : i32\n"
                  "%seen = tile.await %flags[%c0] at_least %most : "
                  "!tile.ptr<i32>"}});
  expectOneOf({kReadTooEarly, kAddedTooLate}, 3);
}

TEST_F(Counts, AnAdditionBehindTheCount) {
  const std::string late = "tile.add_words %t[%c0] to %sums[%c1] count 256 : "
                           "!staging to !tile.ptr<f32>";
  kernel({{late + " // add two\n", ""},
          {"// count", "\n" + late + "\n" WAIT "\n"}});
  expectOneOf({kReadTooEarly, kAddedTooLate});
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

TEST_F(Counts, NobodyCounts) {
  kernel({{COUNT " // count", ""}});
  expectOneOf({"this one waits for flag 0 to be 2, where 0 is published"});
}

TEST_F(Counts, FlagsDoNotReturn) {
  kernel({{COUNT " // leave", ""}});
  expectOneOf({"expects the flag to be 0 at the end of the kernel, but got 2"});
}

TEST_F(Counts, FlagsReturnTooEarly) {
  kernel({{"below %all : !tile.ptr<i32> // count",
           "below %blocks : !tile.ptr<i32>"}});
  expectOneOf({"expects some warp to go on, but got none; this one waits for "
               "flag 0 to be 2, where 0 is published"});
}

TEST_F(Counts, FlagsReturnBeforeAllHaveSeen) {
  // Who copies the first run does not count, but others return for it.
  kernel({{"%all = arith.addi %blocks, %c2", "%all = arith.addi %blocks, %c1"},
          {COUNT " // leave", "%is1 = arith.cmpi eq, %n, %c1 : i32\n"
                              "scf.if %is1 {\n" COUNT "\n}"}});
  expectOneOf({"expects to lower flag 0 from 2 to 0 behind the await of warp ",
               "expects to await 2 in flag 0 before warp ",
               "this one waits for flag 0 to be 2, where 0 is published"});
}

TEST_F(Counts, AFlagOutOfRange) {
  kernel(
      {{"below %all : !tile.ptr<i32> // count", "below %c1 : !tile.ptr<i32>"}});
  // The first count of two leaves 0; so does the second.
  expectOneOf({"this one waits for flag 0 to be 2, where 0 is published"});
  kernel(
      {{"below %all : !tile.ptr<i32> // leave", "below %c2 : !tile.ptr<i32>"}});
  expectOneOf({"expects a flag from 0 to 1, but got 2"});
}

TEST_F(Counts, FlagsOfTheLaunchBefore) {
  kernel();
  firstFlag = 1;
  expectOneOf({"expects flag 0 to be 0 when the kernel begins, but got 1"});
}

//===----------------------------------------------------------------------===//
// Draws of whole warps
//===----------------------------------------------------------------------===//

TEST_F(Counts, EveryWarpDrawsOnce) {
  // Or numbers come again: runs are copied twice, beside each other, and flags
  // return before all have seen them.
  kernel(
      {{"%ends = arith.muli %blocks, %c4", "%ends = arith.muli %blocks, %c1"}});
  expectOneOf({"expects the write of these bytes by ",
               "expects to lower flag 0 from 3 to 0 behind the await of warp ",
               "expects to await 2 in flag 0 before warp ",
               "this one waits for flag 0 to be 2, where 0 is published"});
}

#undef WAIT
#undef COUNT
#undef AWAIT
