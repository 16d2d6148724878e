//===- Queues.cpp - Messages between warps, counters of the grid ----------===//

#include "Harness/RolesTest.h"

using namespace attn;

namespace {
class Queues : public RolesTest {
protected:
  int32_t count() {
    int32_t value = -1;
    memory.read(counter, &value, 4);
    return value;
  }
  void setCount(int32_t value) { memory.write(counter, &value, 4); }
};
} // namespace

/// Goes round the two slots; `body` uses %slot and %parity.
static std::string round(const std::string &body) {
  return R"(
  scf.for %i = %c0 to %c5 step %c1 : i32 {
    %slot = arith.remsi %i, %c2 : i32
    %half = arith.divsi %i, %c2 : i32
    %parity = arith.remsi %half, %c2 : i32
    %before = arith.subi %c1, %parity : i32
)" + body +
         "\n  }\n";
}

#define PUSH "tile.push %queue[%slot] parity %parity, %i, %half : !queue"
#define POP "%x:2 = tile.pop %queue[%slot] parity %parity : !queue -> i32, i32"

TEST_F(Queues, EveryReaderGetsEveryMessageInOrder) {
  roles(round(PUSH), round(POP R"(
    %tens = arith.muli %x#0, %c16 : i32
    %both = arith.addi %tens, %x#1 : i32
    %v = arith.sitofp %both : i32 to f32
    %row = tile.fill %v : f32 -> !row
    %line = arith.muli %i, %c4 : i32
    %which = arith.addi %line, %number : i32
    %at = arith.muli %which, %c16 : i32
    tile.store_row %row to %out[%at] : !row to !out)"));
  expectCorrect();
  std::vector<float> values = floats(f, 5 * 4 * 16);
  for (int i = 0; i < 5; ++i)
    for (int warp = 0; warp < 4; ++warp) {
      int expected = 16 * i + i / 2;
      EXPECT_EQ(values[(i * 4 + warp) * 16], float(expected));
    }
}

TEST_F(Queues, AMessageTellsWhatThePusherDid) {
  // The pusher's load has landed for whoever has popped its message.
  roles("tile.tma_load %in[%c0, %c0, %c0] to %s[%c0] arrive %full[%c0] : !map "
        "to !box, !slots\n"
        "tile.mbarrier_wait %full[%c0] parity %c0 : !slots\n" +
            round(PUSH),
        round(POP) + "%y = tile.load_matrix %s[%c0, %c0, %c0] : !box -> "
                     "!tile.frag<16x64xbf16, lhs>");
  expectCorrect();
}

TEST_F(Queues, PushOutOfTurn) {
  roles(round("tile.push %queue[%c0] parity %parity, %i, %i : !queue // HERE"),
        round(POP));
  expectBreach("expects message 1 of queue 'message' in slot 1 with parity 0, "
               "but got slot 0 with parity 0");
}

TEST_F(Queues, PopOutOfTurn) {
  roles(round(PUSH), round("%x:2 = tile.pop %queue[%slot] parity %before : "
                           "!queue -> i32, i32 // HERE"));
  expectBreach("expects message 0 of queue 'message' in slot 0 with parity 0, "
               "but got slot 0 with parity 1");
}

TEST_F(Queues, AReaderThatLeavesAMessage) {
  // Warp 5 stops reading: the pusher finds its slot full.
  roles(
      round("tile.push %queue[%slot] parity %parity, %i, %i : !queue // HERE"),
      "scf.if %is5 {\n} else {\n" + round(POP) + "}");
  expectBreach("this one waits for the end of phase 0 (parity 0) of queue "
               "'message' (slot 0, empty), where 1 of 4 arrivals and 0 bytes "
               "are missing (warp 0");
}

TEST_F(Queues, AMessageThatNobodySends) {
  roles("", round("%x:2 = tile.pop %queue[%slot] parity %parity : !queue -> "
                  "i32, i32 // HERE"));
  expectBreach("this one waits for the end of phase 0 (parity 0) of queue "
               "'message' (slot 0, full), where 1 of 1 arrivals");
}

TEST_F(Queues, TwoPushers) {
  roles("", R"(
  scf.if %is4 {
    tile.push %queue[%c0] parity %c0, %c1, %c1 : !queue
    tile.bar_sync %c1 warps 2
  }
  scf.if %is5 {
    tile.bar_sync %c1 warps 2
    tile.push %queue[%c1] parity %c0, %c1, %c1 : !queue // HERE
  })");
  expectBreach("expects one warp to push to queue 'message', but got warp 4 "
               "before");
}

TEST_F(Queues, DrawsWrapAround) {
  roles("", R"(
  scf.if %is4 {
    scf.for %i = %c0 to %c16 step %c1 : i32 {
      %d = tile.draw %counter below %c4 : !tile.ptr<i32>
      %v = arith.sitofp %d : i32 to f32
      %row = tile.fill %v : f32 -> !row
      %at = arith.muli %i, %c16 : i32
      tile.store_row %row to %out[%at] : !row to !out
    }
  })");
  expectCorrect();
  std::vector<float> values = floats(f, 256);
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(values[16 * i], float(i % 4));
  EXPECT_EQ(count(), 0);
}

TEST_F(Queues, BlocksShareACounter) {
  roles("%d = tile.draw %counter below %c2 : !tile.ptr<i32>", "");
  EXPECT_TRUE(run(arguments, {4, 1, 1})) << errors.front().text;
  EXPECT_EQ(count(), 0);
}

TEST_F(Queues, ACounterThatDoesNotReturn) {
  roles("%d = tile.draw %counter below %c2 : !tile.ptr<i32> // HERE", "");
  ASSERT_FALSE(run(arguments, {3, 1, 1}));
  EXPECT_EQ(errors.front().text, "expects the counter to be 0 at the end of "
                                 "the kernel, but got 1");
}

TEST_F(Queues, ACounterOutOfRange) {
  roles("%d = tile.draw %counter below %c2 : !tile.ptr<i32> // HERE", "");
  setCount(2);
  expectBreach("expects a counter from 0 to 1, but got 2");
  setCount(-1);
  expectBreach("expects a counter from 0 to 1, but got -1");
  arguments[3] = memory.allocate(4);
  expectBreach("uninitialised");
}

#undef PUSH
#undef POP
