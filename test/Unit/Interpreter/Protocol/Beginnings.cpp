//===- Beginnings.cpp - Sums and flags that a launch begins itself --------===//
//
// A warp of block 0 writes zeros and a flag, in memory that held anything, and
// counts.  All blocks await that, then add to the words, block 1 behind block
// 0.
//
//===----------------------------------------------------------------------===//

#include "Harness/GroupsTest.h"

using namespace mlir;
using namespace attn;

/// Word (i, j) of an image gets 16 i + j from every block.
static const char *const kBeginnings = R"(
!staging = !tile.smem<1x64x64xbf16, sw128>
!acc = !tile.frag<16x16xf32, acc>
!bar = !tile.mbarrier<1>
tile.kernel @k(%flags: !tile.ptr<i32>, %turns: !tile.ptr<i32>,
               %sums: !tile.ptr<f32>, %copies: !tile.ptr<f32>, %blocks: i32)
    attributes {cooperative, warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %t = tile.alloc "staging" : !staging
  %stored = tile.mbarrier "stored" arrivals 1 : !bar
  %w = tile.warp_id
  %p = tile.program_id 0
  %is0 = arith.cmpi eq, %p, %c0 : i32
  %is4 = arith.cmpi eq, %w, %c4 : i32
  %all = arith.addi %blocks, %c1 : i32
  tile.roles {
    tile.role "writer" warps 4 registers 24 single_lane {
      %begun = tile.await %flags[%c0] at_least %c1 : !tile.ptr<i32> // begun
      %mine = tile.await %turns[%c0] at_least %p : !tile.ptr<i32> // mine
      tile.mbarrier_wait %stored[%c0] parity %c0 : !bar
      tile.fence_async
      tile.add_words %t[%c0] to %sums[%c0] count 256 : !staging to !tile.ptr<f32>
      tile.tma_store_wait 0 complete
      %next = arith.addi %p, %c1 : i32
      tile.publish %turns[%c0], %next {kept} : !tile.ptr<i32>
      tile.count %flags[%c0] below %all : !tile.ptr<i32> // added
    }
    tile.role "beginner" warps 4 registers 240 {
      scf.if %is4 {
        scf.if %is0 {
          %zeros = tile.map -> !acc {
          ^bb0(%i: i32, %j: i32):
            %zero = arith.constant 0.0 : f32
            tile.yield %zero : f32
          }
          tile.store_registers %zeros to %sums[%c0] : !acc to !tile.ptr<f32>
          tile.publish %turns[%c0], %c0 {begins} : !tile.ptr<i32>
          tile.count %flags[%c0] below %all : !tile.ptr<i32> // begin
        }
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
    }
  }
  tile.return
})";

namespace {
class Beginnings : public GroupsTest {
protected:
  static constexpr int64_t kWords = 256;

  void kernel(const std::vector<Change> &changes = {}) {
    parse(kBeginnings, changes);
  }

  /// Turns and sums hold anything.
  bool runs(const InterpreterOptions &options, int64_t blocks = 2) {
    const int32_t none = 0;
    flags = memory.allocate(4);
    memory.write(flags, &none, 4);
    turns = allocateUninitialised(4);
    sums = allocateUninitialised(kWords * 4);
    arguments = {flags, turns, sums, sums, int32_t(blocks)};
    return run(arguments, {blocks, 1, 1}, options);
  }
  bool isRight(int64_t blocks = 2) {
    std::vector<float> got = floats(sums, kWords);
    float sum = 0;
    for (float word : got)
      sum += word;
    int32_t flag = -1, turn = -1;
    memory.read(flags, &flag, 4);
    memory.read(turns, &turn, 4);
    auto expected = blocks * (kWords * (kWords - 1) / 2);
    return sum == float(expected) && flag == 0 && turn == blocks;
  }
  /// In every schedule one of the messages comes first.
  void expectOneOf(const std::vector<std::string> &messages) {
    for (const InterpreterOptions &options : schedules()) {
      ASSERT_FALSE(runs(options)) << messages.front();
      expectFirstError(messages);
    }
  }

  uint64_t turns = 0, sums = 0;
};
} // namespace

#define BEGUN                                                                  \
  "%begun = tile.await %flags[%c0] at_least %c1 : !tile.ptr<i32> // begun"

static const char *const kHeldAnything =
    "expects bytes that were written, but got an uninitialised byte";
static const char *const kNotBehind =
    "expects to await flag 0 behind its first value, of warp 4 of block 0, 0, "
    "0, but got no order between them";
static const char *const kNotFirst =
    "expects to begin flag 0 before all else that is done with it, but got "
    "some that came before";

TEST_F(Beginnings, RightInEverySchedule) {
  kernel();
  for (int64_t blocks : {1, 2, 3})
    for (const InterpreterOptions &options : schedules()) {
      ASSERT_TRUE(runs(options, blocks)) << errors.front().text;
      EXPECT_TRUE(isRight(blocks));
    }
}

TEST_F(Beginnings, MutantsAreKilled) {
  kernel();
  expectMutantsKilled(
      "beginnings", /*atLeast=*/15, schedules(),
      [&](const InterpreterOptions &options) { return runs(options); },
      [&] { return isRight(); });
}

TEST_F(Beginnings, NobodyAwaits) {
  kernel({{BEGUN, ""}});
  expectOneOf({kHeldAnything, kNotBehind});
}

TEST_F(Beginnings, SumsBeginTooLate) {
  // Behind the count, so that who awaits that and not block 0 has not seen
  // them.
  const std::string store =
      "tile.store_registers %zeros to %sums[%c0] : !acc to !tile.ptr<f32>";
  kernel({{store, ""},
          {"// begin", "\n" + store},
          {"at_least %p", "at_least %c0"}});
  expectOneOf({"expects words that no op of the launch has read or written "
               "otherwise, or behind the write, but got some that one has",
               "expects bytes that no op of the launch adds to, or behind the "
               "wait for all that they do, but got some that one does",
               "expects to publish "});
}

TEST_F(Beginnings, AFlagBeginsTwice) {
  const std::string begin =
      "tile.publish %turns[%c0], %c0 {begins} : !tile.ptr<i32>";
  kernel({{begin, begin + "\n" + begin}});
  expectOneOf({kNotFirst});
}

TEST_F(Beginnings, AFlagThatHeldAnythingBegins) {
  kernel({{" {begins}", ""}});
  expectOneOf({kHeldAnything});
}

#undef BEGUN
