//===- Stores.cpp - When what the copy engine stores is there -------------===//
//
// One block stores a box and tells the other, which copies it on.
//
//===----------------------------------------------------------------------===//

#include "Harness/GroupsTest.h"

using namespace mlir;
using namespace attn;

static const char *const kRelay = R"(
!map = !tile.tensor_map<64x64xbf16>
!box = !tile.smem<64x64xbf16, sw128>
!bar = !tile.mbarrier<1>
tile.kernel @relay(%in: !map, %between: !map, %out: !map,
                   %flags: !tile.ptr<i32>)
    attributes {cooperative, warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %share = tile.program_id 0
  %s = tile.alloc "box" : !box
  %full = tile.mbarrier "full" arrivals 1 : !bar
  tile.roles {
    tile.role "copier" warps 4 registers 24 single_lane {
      %first = arith.cmpi eq, %share, %c0 : i32
      scf.if %first {
        tile.tma_load %in[%c0, %c0, %c0] to %s[%c0] arrive %full[%c0] : !map to !box, !bar
        tile.mbarrier_wait %full[%c0] parity %c0 : !bar
        tile.tma_store %s[%c0] to %between[%c0, %c0, %c0, %c0] : !box to !map
        tile.tma_store_wait 0 complete // wait
        tile.publish %flags[%c0], %c1 : !tile.ptr<i32> // publish
      } else {
        %seen = tile.await %flags[%c0] at_least %c1 : !tile.ptr<i32>
        tile.fence_async global // fence
        tile.tma_load %between[%c0, %c0, %c0] to %s[%c0] arrive %full[%c0] : !map to !box, !bar
        tile.mbarrier_wait %full[%c0] parity %c0 : !bar
        tile.tma_store %s[%c0] to %out[%c0, %c0, %c0, %c0] : !box to !map
        tile.tma_store_wait 0
        tile.publish %flags[%c0], %c0 : !tile.ptr<i32>
      }
    }
    tile.role "idle" warps 4 registers 240 {
    }
  }
  tile.return
})";

namespace {
class Stores : public KernelTest {
protected:
  static constexpr int64_t kSide = 64, kElements = kSide * kSide;

  void relay(const std::vector<Change> &changes = {}) {
    parse(kRelay, changes);
  }
  bool runs(const InterpreterOptions &options) {
    std::vector<float> values(kElements);
    for (int64_t i = 0; i < kElements; ++i)
      values[i] = float(i % 251);
    auto map = [](uint64_t address) {
      return TensorMapArgument{
          address, {1, 1, kSide, kSide}, {kElements, kElements, kSide, 1}};
    };
    out = allocateUninitialised(kElements * 2);
    uint64_t flags = memory.allocate(4);
    const int32_t zero = 0;
    memory.write(flags, &zero, sizeof zero);
    return run({map(allocateBf16(values)),
                map(allocateUninitialised(kElements * 2)), map(out), flags},
               {2, 1, 1}, options);
  }
  bool isRight() {
    std::vector<uint8_t> bytes(kElements * 2);
    if (memory.read(out, bytes.data(), kElements * 2))
      return false; // some was not written
    std::vector<float> got = bf16s(out, kElements);
    for (int64_t i = 0; i < kElements; ++i)
      if (got[i] != float(i % 251))
        return false;
    return true;
  }
  /// In every schedule one of the messages comes first.
  void expectOneOf(const std::vector<std::string> &messages) {
    for (const InterpreterOptions &options : schedules()) {
      ASSERT_FALSE(runs(options)) << messages.front();
      expectFirstError(messages);
    }
  }

  uint64_t out = 0;
};
} // namespace

#define WAIT "tile.tma_store_wait 0 complete"

static const char *const kInFlight =
    "expects the write of these bytes by warp 0 of block 0, 0, 0 to be "
    "complete before they are read, but it has not been waited for";
static const char *const kToldBefore =
    "expects the write of these bytes by warp 0 of block 0, 0, 0 to be "
    "published, and that to be awaited, before they are read";

TEST_F(Stores, RightInEverySchedule) {
  relay();
  for (const InterpreterOptions &options : schedules()) {
    ASSERT_TRUE(runs(options)) << errors.front().text;
    EXPECT_TRUE(isRight());
  }
}

TEST_F(Stores, AWaitForWhatWasReadIsNotEnough) {
  relay({{WAIT, "tile.tma_store_wait 0"}});
  expectOneOf({kInFlight});
  EXPECT_EQ(errors.front().notes, "the write is here\n");
}

TEST_F(Stores, TheLastMayNotBeComplete) {
  relay({{WAIT, "tile.tma_store_wait 1 complete\ntile.tma_store_wait 0"}});
  expectOneOf({kInFlight});
}

TEST_F(Stores, ToldBeforeTheWait) {
  relay({{WAIT " // wait", ""}, {"// publish", "\n" WAIT}});
  expectOneOf({kInFlight, kToldBefore});
}

// A later store may come first.
TEST_F(Stores, StoresOfTheSameBytesHaveNoOrder) {
  const std::string store = "tile.tma_store %s[%c0] to %between[%c0, %c0, %c0, "
                            "%c0] : !box to !map\n";
  relay({{WAIT, store + WAIT}});
  expectOneOf({"expects the write of these bytes by warp 0 to be complete "
               "before they are overwritten, but it has not been waited for"});
  relay({{WAIT, WAIT "\n" + store + WAIT}});
  EXPECT_TRUE(runs({})) << errors.front().text;
}

TEST_F(Stores, TheWarpItselfSeesThemBehindTheWait) {
  const std::string load =
      "tile.tma_load %between[%c0, %c0, %c0] to %s[%c0] arrive %full[%c0] : "
      "!map to !box, !bar\n"
      "tile.mbarrier_wait %full[%c0] parity %c1 : !bar\n";
  relay({{WAIT, "tile.tma_store_wait 0\n" + load + WAIT}});
  expectOneOf({"expects the write of these bytes by warp 0 to be complete "
               "before they are read, but it has not been waited for"});
  relay({{WAIT, WAIT "\n" + load}});
  EXPECT_TRUE(runs({})) << errors.front().text;
}

// Another block's copy engine reads through a proxy of its own; the warp's own
// needs no fence.
TEST_F(Stores, TheOtherBlockFences) {
  relay({{"tile.fence_async global // fence", ""}});
  expectOneOf({"expects tile.fence_async global behind the write of these "
               "bytes by warp 0 of block 0, 0, 0, before they are loaded, but "
               "got none"});
}

TEST_F(Stores, MutantsAreKilled) {
  relay();
  expectMutantsKilled(
      "stores", /*atLeast=*/8, schedules(),
      [&](const InterpreterOptions &options) { return runs(options); },
      [&] { return isRight(); });
}

#undef WAIT
