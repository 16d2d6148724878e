//===- Proxies.cpp - What TMA loads of other blocks' writes ---------------===//
//
// Block 0 stores an image and counts.  Block 1 awaits that, fences, and has the
// copy engine load the words.  The fence lies behind the store and before the
// load, on either side of the flag.
//
//===----------------------------------------------------------------------===//

#include "Harness/GroupsTest.h"

using namespace mlir;
using namespace attn;

static const char *const kProxies = R"(
!words = !tile.smem<1x1x256xf32>
!acc = !tile.frag<16x16xf32, acc>
!bar = !tile.mbarrier<1>
tile.kernel @k(%flags: !tile.ptr<i32>, %data: !tile.ptr<f32>,
               %copies: !tile.ptr<f32>)
    attributes {cooperative, warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %seven = arith.constant 7.0 : f32
  %s = tile.alloc "words" : !words
  %full = tile.mbarrier "full" arrivals 1 : !bar
  %w = tile.warp_id
  %p = tile.program_id 0
  %reads = arith.cmpi eq, %p, %c1 : i32
  %is4 = arith.cmpi eq, %w, %c4 : i32
  tile.roles {
    tile.role "loader" warps 4 registers 24 single_lane {
      scf.if %reads {
        %seen = tile.await %flags[%c0] at_least %c1 : !tile.ptr<i32> // await
        tile.fence_async global // fence
        tile.load_words %data[%c0] to %s[%c0] arrive %full[%c0] : !tile.ptr<f32> to !words, !bar // HERE
        tile.count %flags[%c0] below %c2 : !tile.ptr<i32>
      }
    }
    tile.role "worker" warps 4 registers 240 {
      scf.if %is4 {
        scf.if %reads {
          tile.mbarrier_wait %full[%c0] parity %c0 : !bar
          %x = tile.get_columns %s[%c0, %c0, %c0] : !words -> !acc
          tile.store_registers %x to %copies[%c0] : !acc to !tile.ptr<f32>
        } else {
          %x = tile.fill %seven : f32 -> !acc
          tile.store_registers %x to %data[%c0] : !acc to !tile.ptr<f32> // store
          tile.count %flags[%c0] below %c2 : !tile.ptr<i32> // count
        }
      }
    }
  }
  tile.return
})";

namespace {
class Proxies : public GroupsTest {
protected:
  static constexpr int64_t kWords = 256;

  void kernel(const std::vector<Change> &changes = {}) {
    parse(kProxies, changes);
  }
  bool runs(const InterpreterOptions &options) {
    const int32_t none = 0;
    flags = memory.allocate(4);
    memory.write(flags, &none, 4);
    copies = allocateUninitialised(kWords * 4);
    return run({flags, allocateFloats(std::vector<float>(kWords, 1)), copies},
               {2, 1, 1}, options);
  }
  bool isRight() {
    return floats(copies, kWords) == std::vector<float>(kWords, 7);
  }
  void expectRight(const std::vector<Change> &changes = {}) {
    kernel(changes);
    for (const InterpreterOptions &options : schedules()) {
      ASSERT_TRUE(runs(options)) << errors.front().text;
      EXPECT_TRUE(isRight());
    }
  }
  /// In every schedule.
  void expectUnfenced(const std::vector<Change> &changes) {
    kernel(changes);
    for (const InterpreterOptions &options : schedules()) {
      ASSERT_FALSE(runs(options));
      expectFirstError({"expects tile.fence_async global behind the write of "
                        "these bytes by warp 4 of block 0, 0, 0, before they "
                        "are loaded, but got none"});
    }
  }

  uint64_t copies = 0;
};
} // namespace

#define FENCE "tile.fence_async global // fence"
#define AWAIT "%seen = tile.await %flags[%c0] at_least %c1 : !tile.ptr<i32>"
#define STORE "tile.store_registers %x to %data[%c0] : !acc to !tile.ptr<f32>"
#define COUNT "tile.count %flags[%c0] below %c2 : !tile.ptr<i32> // count"

TEST_F(Proxies, TheReaderFences) { expectRight(); }

TEST_F(Proxies, TheWriterFences) {
  expectRight({{FENCE, ""}, {COUNT, "tile.fence_async global\n" COUNT}});
}

TEST_F(Proxies, NobodyFences) { expectUnfenced({{FENCE, ""}}); }

TEST_F(Proxies, AFenceOfSharedMemoryIsNone) {
  expectUnfenced({{FENCE, "tile.fence_async"}});
}

TEST_F(Proxies, AFenceBeforeTheAwaitIsNone) {
  expectUnfenced({{FENCE, ""}, {AWAIT, "tile.fence_async global\n" AWAIT}});
}

TEST_F(Proxies, AFenceBeforeTheStoreIsNone) {
  expectUnfenced({{FENCE, ""}, {STORE, "tile.fence_async global\n" STORE}});
}

TEST_F(Proxies, AFenceBehindTheFlagIsNone) {
  expectUnfenced({{FENCE, ""}, {COUNT, COUNT "\ntile.fence_async global"}});
}

TEST_F(Proxies, MutantsAreKilled) {
  kernel();
  expectMutantsKilled(
      "proxies", 6, schedules(),
      [&](const InterpreterOptions &options) { return runs(options); },
      [&] { return isRight(); });
}

#undef FENCE
#undef AWAIT
#undef STORE
#undef COUNT
