//===- Words.cpp - Runs of words: loaded, put together, added up ----------===//
//
// Sums leave a block as in a gradient of queries: consumers put their registers
// into shared memory, and a warp of its own fences and adds them to global
// memory, while statistics come in by runs.
//
//===----------------------------------------------------------------------===//

#include "Harness/KernelTest.h"

#include "attn/Tile/Tile.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

/// Number n of `steps` takes run n of the statistics, 16 first and 16 second
/// values, and adds 4 images of 16 x 16 to run n of the sums: in all rows first
/// plus second value of the column, and the number of the warp.
static const char *const kWords = R"(
!stats = !tile.smem<2x1x32xf32>
!staging = !tile.smem<2x64x64xbf16, sw128>
!acc = !tile.frag<16x16xf32, acc>
!bars = !tile.mbarrier<2>
!numbers = !tile.view<?xf32, align = 4>
tile.kernel @k(%stats: !tile.ptr<f32>, %sums: !tile.ptr<f32>, %steps: i32)
    attributes {warps = 8 : i32} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %s = tile.alloc "stats" : !stats
  %t = tile.alloc "staging" : !staging
  %full = tile.mbarrier "full" arrivals 1 : !bars
  %empty = tile.mbarrier "empty" arrivals 4 : !bars
  %stored = tile.mbarrier "stored" arrivals 4 : !bars
  %free = tile.mbarrier "free" arrivals 1 : !bars
  %w = tile.warp_id
  %view = tile.view %sums[%zero] rows(%c16) stride(%one) : !tile.ptr<f32> -> !numbers
  tile.roles {
    tile.role "producer" warps 1 registers 24 single_lane {
      scf.for %n = %c0 to %steps step %c1 : i32 {
        %slot = arith.remsi %n, %c2 : i32
        %round = arith.divsi %n, %c2 : i32
        %parity = arith.remsi %round, %c2 : i32
        %before = arith.subi %c1, %parity : i32
        tile.mbarrier_wait %empty[%slot] parity %before : !bars
        tile.load_words %stats[%n] to %s[%slot] arrive %full[%slot] : !tile.ptr<f32> to !stats, !bars // load
      }
    }
    tile.role "writer" warps 1 registers 24 single_lane {
      scf.for %n = %c0 to %steps step %c1 : i32 {
        %slot = arith.remsi %n, %c2 : i32
        %round = arith.divsi %n, %c2 : i32
        %parity = arith.remsi %round, %c2 : i32
        tile.mbarrier_wait %stored[%slot] parity %parity : !bars // await stored
        tile.fence_async // fence
        tile.add_words %t[%slot] to %sums[%n] count 1024 : !staging to !tile.ptr<f32> // add
        tile.tma_store_wait 0 // wait for the addition
        tile.mbarrier_arrive %free[%slot] : !bars // hand back
      }
    }
    tile.role "helper" warps 2 registers 24 {
    }
    tile.role "consumer" warps 4 registers 240 {
      %number = arith.subi %w, %c4 : i32
      %real = arith.sitofp %number : i32 to f32
      scf.for %n = %c0 to %steps step %c1 : i32 {
        %slot = arith.remsi %n, %c2 : i32
        %round = arith.divsi %n, %c2 : i32
        %parity = arith.remsi %round, %c2 : i32
        %before = arith.subi %c1, %parity : i32
        tile.mbarrier_wait %full[%slot] parity %parity : !bars // await full
        %x = tile.get_columns %s[%slot, %c0, %c0] : !stats -> !acc
        %y = tile.get_columns %s[%slot, %c0, %c16] : !stats -> !acc
        tile.mbarrier_arrive %empty[%slot] : !bars
        %sum = tile.map %x, %y : !acc, !acc -> !acc {
        ^bb0(%i: i32, %j: i32, %a: f32, %b: f32):
          %ab = arith.addf %a, %b : f32
          %all = arith.addf %ab, %real : f32
          tile.yield %all : f32
        }
        tile.mbarrier_wait %free[%slot] parity %before : !bars // await free
        tile.put_registers %sum to %t[%slot, %number] : !acc to !staging // put
        tile.mbarrier_arrive %stored[%slot] : !bars // tell
      }
    }
  }
  tile.return
})";

namespace {
class Words : public KernelTest {
protected:
  static constexpr int64_t kSteps = 5, kRun = 32, kSums = 1024;
  static constexpr int64_t kWordsOfImage = 256;

  void kernel(const std::vector<Change> &changes = {}) {
    parse(kWords, changes);
  }
  static float statistic(int64_t i) { return float(i * 7 % 32); }

  bool runs(const InterpreterOptions &options, int64_t blocks = 1) {
    std::vector<float> values;
    for (int64_t i = 0; i < kSteps * kRun; ++i)
      values.push_back(statistic(i));
    stats = allocateFloats(values);
    sums = allocateFloats(std::vector<float>(kSteps * kSums, 1));
    arguments = {stats, sums, int32_t(kSteps)};
    return run(arguments, {blocks, 1, 1}, options);
  }
  /// Whether all sums have got what that many blocks add to what they were.
  bool isRight(int64_t blocks = 1, float before = 1) {
    std::vector<float> got = floats(sums, kSteps * kSums);
    for (int64_t i = 0; i < kSteps * kSums; ++i) {
      int64_t word = i % kWordsOfImage, warp = i % kSums / kWordsOfImage;
      int64_t column = word / 128 * 8 + word / 4 % 4 * 2 + word % 2;
      int64_t first = i / kSums * kRun + column;
      float one = statistic(first) + statistic(first + 16) + float(warp);
      if (got[i] != before + float(blocks) * one)
        return false;
    }
    return true;
  }
  static std::vector<InterpreterOptions> orders() {
    std::vector<InterpreterOptions> all;
    for (WarpOrder order :
         {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled})
      for (uint64_t seed = 0; seed < 4; ++seed) {
        InterpreterOptions &options = all.emplace_back();
        options.order = order;
        options.seed = seed;
      }
    return all;
  }
  void expectCorrect() {
    for (const InterpreterOptions &options : orders()) {
      ASSERT_TRUE(runs(options)) << errors.front().text;
      EXPECT_TRUE(isRight());
    }
  }
  /// In every order one of the messages comes first.
  void expectOneOf(const std::vector<std::string> &messages) {
    for (const InterpreterOptions &options : orders()) {
      ASSERT_FALSE(runs(options)) << messages.front();
      expectFirstError(messages);
    }
  }

  std::vector<KernelArgument> arguments;
  uint64_t stats = 0, sums = 0;
};
} // namespace

static const char *const kFence = "tile.fence_async // fence";
static const char *const kAwaitStored =
    "tile.mbarrier_wait %stored[%slot] parity %parity : !bars // await stored";
static const char *const kStoreWait = "tile.tma_store_wait 0 // wait";
static const char *const kHandBack =
    "tile.mbarrier_arrive %free[%slot] : !bars // hand back";
static const char *const kTell =
    "tile.mbarrier_arrive %stored[%slot] : !bars // tell";
static const char *const kPut =
    "tile.put_registers %sum to %t[%slot, %number] : !acc to !staging // put";

TEST_F(Words, BlocksAddUp) {
  kernel();
  for (const InterpreterOptions &options : orders()) {
    ASSERT_TRUE(runs(options, 3)) << errors.front().text;
    EXPECT_TRUE(isRight(3));
    // In comes a run, out go four images; runs are read by four warps.
    EXPECT_EQ(traffic.global, 3 * kSteps * (kRun + kSums) * 4);
    EXPECT_EQ(traffic.smem, 3 * kSteps * (kRun + 2 * kSums + 4 * kRun) * 4);
  }
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  FailureOr<tile::Traffic> counted =
      tile::countTraffic(kernel, {3, 1, 1}, {0, 0, kSteps});
  ASSERT_TRUE(succeeded(counted));
  EXPECT_TRUE(*counted == traffic);
}

TEST_F(Words, MutantsAreKilled) {
  kernel();
  expectMutantsKilled(
      "words", /*atLeast=*/30, orders(),
      [&](const InterpreterOptions &options) { return runs(options); },
      [&] { return isRight(); });
}

//===----------------------------------------------------------------------===//
// Fences
//===----------------------------------------------------------------------===//

static const std::string kNoFence =
    "expects tile.fence_async by warp 4 and then a barrier between its store "
    "to bytes 0 to 4095 of buffer 'staging' (stage 0) and this op, or a fence "
    "behind the barrier, but got neither";

TEST_F(Words, NobodyFences) {
  kernel({{kFence, ""}});
  expectOneOf({kNoFence});
}

TEST_F(Words, TheFenceComesTooEarly) {
  kernel({{kFence, ""},
          {kAwaitStored, std::string("tile.fence_async\n") + kAwaitStored}});
  expectOneOf({kNoFence});
}

TEST_F(Words, TheOthersFence) {
  kernel({{kFence, ""}, {kTell, std::string("tile.fence_async\n") + kTell}});
  expectCorrect();
  // A fence before the store is none.
  kernel({{kFence, ""}, {kPut, std::string("tile.fence_async\n") + kPut}});
  expectOneOf({kNoFence});
}

TEST_F(Words, SomebodyFencesOnTheWay) {
  const std::string helper = "helper\" warps 2 registers 24 {";
  const std::string passOn = helper + R"(
      %is2 = arith.cmpi eq, %w, %c2 : i32
      scf.if %is2 {
        scf.for %n = %c0 to %steps step %c1 : i32 {
          %slot = arith.remsi %n, %c2 : i32
          %round = arith.divsi %n, %c2 : i32
          %parity = arith.remsi %round, %c2 : i32
          tile.mbarrier_wait %stored[%slot] parity %parity : !bars
          tile.fence_async
          tile.mbarrier_arrive %fenced[%slot] : !bars
        }
      })";
  const Change reserve = {"%w = tile.warp_id",
                          "%fenced = tile.mbarrier \"fenced\" arrivals 1 : "
                          "!bars\n%w = tile.warp_id"};
  kernel({{kFence, ""},
          reserve,
          {helper, passOn},
          {"tile.mbarrier_wait %stored", "tile.mbarrier_wait %fenced"}});
  expectCorrect();
  // The writer does not hear of the fence.
  kernel({{kFence, ""}, reserve, {helper, passOn}});
  expectOneOf({kNoFence});
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

TEST_F(Words, TheStagingIsHandedBackTooEarly) {
  kernel({{kHandBack, ""},
          {kStoreWait, std::string(kHandBack) + "\n" + kStoreWait}});
  expectOneOf({"expects warp 1 to have waited for its asynchronous read of "
               "bytes 0 to 1023 of buffer 'staging'",
               "expects warp 1 to have waited for its asynchronous read of "
               "bytes 1024 to 2047 of buffer 'staging'",
               "expects warp 1 to have waited for its asynchronous read of "
               "bytes 2048 to 3071 of buffer 'staging'",
               "expects warp 1 to have waited for its asynchronous read of "
               "bytes 3072 to 4095 of buffer 'staging'",
               "by warp 1 before they are overwritten, but got none"});
}

TEST_F(Words, TheStagingIsNotAwaited) {
  kernel({{"tile.mbarrier_wait %free", "// "}});
  expectOneOf({"expects warp 1 to have waited for its asynchronous read of ",
               "by warp 1 before they are overwritten, but got none",
               // Or the other way round: what is read is the next.
               "before they are read, but got none"});
}

TEST_F(Words, NobodyWaitsForTheAddition) {
  kernel({{kStoreWait, "// "},
          {kHandBack, ""},
          {"tile.mbarrier_wait %free", "// "}});
  expectOneOf({"expects every store to be waited for, but got one in flight",
               "expects warp 1 to have waited for its asynchronous read of ",
               "before they are overwritten, but got none",
               "before they are read, but got none"});
}

TEST_F(Words, WordsThatNobodyAwaits) {
  kernel({{"tile.mbarrier_wait %full", "// "}});
  expectOneOf({"expects the load to rows 0 to 0 of buffer 'stats' (stage 0) to "
               "be waited for before they are read",
               "expects rows 0 to 0 of buffer 'stats' (stage 0) to be written",
               "expects a barrier after the read of rows 0 to 0"});
}

//===----------------------------------------------------------------------===//
// One behind the other
//===----------------------------------------------------------------------===//

/// Blocks add in the order of their numbers: a flag for every run says how many
/// have, and the last of three sets it back.
static const char *const kAdd =
    "tile.add_words %t[%slot] to %sums[%n] count 1024 : !staging to "
    "!tile.ptr<f32> // add";
static const char *const kTurn =
    "%turn = tile.await %flags[%n] at_least %p : !tile.ptr<i32> // turn\n";
static const char *const kComplete = "tile.tma_store_wait 0 complete // done\n";
static const char *const kPass =
    "tile.publish %flags[%n], %then : !tile.ptr<i32> // pass\n";

class OrderedWords : public Words {
protected:
  void ordered(const std::vector<Change> &changes = {}) {
    std::vector<Change> all = {
        {"%steps: i32)", "%steps: i32, %flags: !tile.ptr<i32>)"},
        {"{warps = 8", "{cooperative, warps = 8"},
        {"%w = tile.warp_id", "%p = tile.program_id 0\n"
                              "%next = arith.addi %p, %c1 : i32\n"
                              "%isLast = arith.cmpi eq, %p, %c2 : i32\n"
                              "%then = arith.select %isLast, %c0, %next : i32\n"
                              "%w = tile.warp_id"},
        {kAdd, std::string(kTurn) +
                   "tile.add_words %t[%slot] to %sums[%n] count 1024 "
                   "{in_order} : !staging to !tile.ptr<f32> // in order"},
        {kHandBack, std::string(kComplete) + kPass + kHandBack}};
    all.insert(all.end(), changes.begin(), changes.end());
    kernel(all);
  }
  bool runsInOrder(InterpreterOptions options, BlockOrder blocks) {
    options.blocks = blocks;
    std::vector<float> values;
    for (int64_t i = 0; i < kSteps * kRun; ++i)
      values.push_back(statistic(i));
    stats = allocateFloats(values);
    sums = allocateFloats(std::vector<float>(kSteps * kSums, before));
    uint64_t flags = allocateFloats(std::vector<float>(kSteps, 0));
    arguments = {stats, sums, int32_t(kSteps), flags};
    return run(arguments, {3, 1, 1}, options);
  }
  void expectInOrder(const std::string &message) {
    for (const InterpreterOptions &options : orders())
      for (BlockOrder blocks :
           {BlockOrder::sameAsWarps, BlockOrder::oldestFirst,
            BlockOrder::newestFirst, BlockOrder::oneStarved}) {
        bool isRun = runsInOrder(options, blocks);
        if (message.empty()) {
          ASSERT_TRUE(isRun) << errors.front().text;
          EXPECT_TRUE(isRight(3, std::isnan(before) ? 0 : before));
          continue;
        }
        ASSERT_FALSE(isRun) << message;
        EXPECT_NE(errors.front().text.find(message), std::string::npos)
            << errors.front().text;
      }
  }

  /// What memory has when the kernel begins.
  float before = 1;
};

static const char *const kNoOrder =
    "expects words that nobody has added to, or behind the wait for all that "
    "was added, but got no order between them";

TEST_F(OrderedWords, OneBehindTheOther) {
  ordered();
  expectInOrder("");
}

TEST_F(OrderedWords, NobodyWaitsForHisTurn) {
  // Of flags that nobody awaits the same is to be said.
  ordered({{"at_least %p", "at_least %c0"},
           {"%flags[%n], %then", "%flags[%n], %c0"}});
  for (const InterpreterOptions &options : orders()) {
    ASSERT_FALSE(runsInOrder(options, BlockOrder::shuffled));
    EXPECT_TRUE(errors.front().text.find(kNoOrder) != std::string::npos ||
                errors.front().text.find("to publish") != std::string::npos)
        << errors.front().text;
  }
}

TEST_F(OrderedWords, TheTurnIsPassedTooEarly) {
  ordered({{kComplete, ""}});
  expectInOrder(kNoOrder);
}

TEST_F(OrderedWords, TheTurnIsNotPassed) {
  ordered({{kPass, ""}});
  expectInOrder("flag");
}

//===----------------------------------------------------------------------===//
// Behind the first
//===----------------------------------------------------------------------===//

static const char *const kTellFirst =
    "tile.publish %flags[%n], %c1 {kept} : !tile.ptr<i32> // tell all\n";

/// Block 0 stores every run and tells the others, which add to it.
class BegunWords : public OrderedWords {
protected:
  BegunWords() { before = std::numeric_limits<float>::quiet_NaN(); }

  void begun(const std::vector<Change> &changes = {}) {
    std::vector<Change> all = {
        {"%steps: i32)", "%steps: i32, %flags: !tile.ptr<i32>)"},
        {"{warps = 8", "{cooperative, warps = 8"},
        {"%w = tile.warp_id", "%p = tile.program_id 0\n"
                              "%isFirst = arith.cmpi eq, %p, %c0 : i32\n"
                              "%w = tile.warp_id"},
        {kAdd, std::string("scf.if %isFirst {\n"
                           "  tile.store_words %t[%slot] to %sums[%n] count "
                           "1024 : !staging to !tile.ptr<f32> // begin\n"
                           "} else {\n"
                           "  %told = tile.await %flags[%n] at_least %c1 : "
                           "!tile.ptr<i32>\n  ") +
                   kAdd + "\n}"},
        {kHandBack, std::string("scf.if %isFirst {\n") + kComplete +
                        kTellFirst + "}\n" + kHandBack}};
    all.insert(all.end(), changes.begin(), changes.end());
    kernel(all);
  }
};

TEST_F(BegunWords, TheFirstStoresAndOthersAdd) {
  begun();
  expectInOrder("");
  EXPECT_EQ(traffic.global, 3 * kSteps * (kRun + kSums) * 4);
  EXPECT_EQ(traffic.smem, 3 * kSteps * (kRun + 2 * kSums + 4 * kRun) * 4);
}

TEST_F(BegunWords, NobodyWaitsForTheFirst) {
  begun({{"at_least %c1", "at_least %c0"}});
  for (const InterpreterOptions &options : orders()) {
    ASSERT_FALSE(runsInOrder(options, BlockOrder::shuffled));
    expectFirstError(
        {"expects words that nobody has stored, or behind the wait "
         "for that, but got no order between them",
         "expects words that nobody has stored or added to, or "
         "behind the wait for all that, but got no order between "
         "them"});
  }
}

TEST_F(BegunWords, TheFirstTellsTooEarly) {
  begun({{kComplete, ""}});
  expectInOrder("expects words that nobody has stored, or behind the wait for "
                "that, but got no order between them");
}

TEST_F(BegunWords, TheFirstTellsNobody) {
  begun({{kTellFirst, ""}});
  expectInOrder("flag");
}

TEST_F(BegunWords, TwoAreTheFirst) {
  begun({{"cmpi eq, %p, %c0", "cmpi ult, %p, %c2"}});
  for (const InterpreterOptions &options : orders())
    EXPECT_FALSE(runsInOrder(options, BlockOrder::shuffled));
}

TEST_F(BegunWords, FlagsThatAreKeptAreSaidToBe) {
  begun({{"{kept} ", ""}});
  expectInOrder("expects the flag to be 0 at the end of the kernel, but got 1");
}

TEST_F(BegunWords, MutantsAreKilled) {
  begun();
  expectMutantsKilled(
      "begun words", /*atLeast=*/40, orders(),
      [&](const InterpreterOptions &options) {
        return runsInOrder(options, BlockOrder::shuffled);
      },
      [&] { return isRight(3, 0); });
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

TEST_F(Words, WhatIsAddedToIsNotReadOrWritten) {
  const std::string read =
      "%old = tile.load_row %view[%c0] : !numbers -> !tile.row<16xf32>\n";
  const std::string write =
      "%f = tile.fill %real : f32 -> !tile.row<16xf32>\n"
      "tile.store_row %f to %view[%c0] : !tile.row<16xf32> to !numbers\n";
  for (const std::string &access : {read, write}) {
    kernel({{kTell, std::string(kTell) + "\n" + access}});
    expectOneOf(
        {"expects bytes that no op of the launch adds to, or behind the wait "
         "for all that they do, but got some that one does (warp ",
         "expects words that no op of the launch has read or written "
         "otherwise, or behind the write, but got some that one has (warp 1"});
    EXPECT_TRUE(errors.front().notes == "the addition is here\n" ||
                errors.front().notes == "the access is here\n");
  }
  // What lies behind is nobody's business.
  kernel({{"%sums[%zero]", "%sums[%behind]"},
          {"%one = ", "%behind = arith.constant 5120 : i64\n%one = "},
          {kTell, std::string(kTell) + "\n" + write}});
  std::vector<float> values(kSteps * kRun, 1);
  sums = allocateFloats(std::vector<float>(kSteps * kSums + 16, 1));
  EXPECT_TRUE(run({allocateFloats(values), sums, int32_t(kSteps)}))
      << errors.front().text;
}

TEST_F(Words, WordsThatNobodySet) {
  kernel({{"// add", "// HERE"}});
  std::vector<float> values(kSteps * kRun, 1);
  expectError({allocateFloats(values),
               allocateUninitialised(kSteps * kSums * 4), int32_t(kSteps)},
              "expects bytes that were written, but got an uninitialised byte "
              "at offset 0");
  kernel({{"// load", "// HERE"}});
  expectError({allocateUninitialised(kSteps * kRun * 4),
               allocateFloats(std::vector<float>(kSteps * kSums, 1)),
               int32_t(kSteps)},
              "expects bytes that were written, but got an uninitialised byte "
              "at offset 0");
}

TEST_F(Words, RunsLieInTheirArrays) {
  kernel({{"// add", "// HERE"}});
  std::vector<float> values(kSteps * kRun, 1);
  expectError(
      {allocateFloats(values), allocateFloats(std::vector<float>(kSums + 4, 1)),
       int32_t(kSteps)},
      "expects bytes of an allocation of 4112 bytes, but got 4096 bytes "
      "at offset 4096");
}

TEST_F(Words, ArraysBeginAtMultiplesOf16Bytes) {
  kernel({{"// add", "// HERE"}});
  ASSERT_TRUE(runs({})) << errors.front().text;
  expectError({stats, sums + 8, int32_t(kSteps)},
              "expects words at a multiple of 16 bytes, but got ");
  kernel({{"// load", "// HERE"}});
  expectError({stats + 4, sums, int32_t(kSteps)},
              "expects words at a multiple of 16 bytes, but got ");
}

TEST_F(Words, PlacesInBuffers) {
  kernel({{"%t[%slot] to %sums[%n]", "%t[%c2] to %sums[%n]"},
          {"// add", "// HERE"}});
  ASSERT_FALSE(runs({}));
  expectError(arguments, "expects stages 0 to 1 of buffer 'staging', but got 2 "
                         "to 2");
  kernel(
      {{"to %s[%slot] arrive", "to %s[%c2] arrive"}, {"// load", "// HERE"}});
  expectError(arguments, "expects stages 0 to 1 of buffer 'stats', but got 2 "
                         "to 2");
  kernel(
      {{"arrive %full[%slot]", "arrive %full[%c2]"}, {"// load", "// HERE"}});
  expectError(arguments, "expects slots 0 to 1 of 'full', but got 2");
}
