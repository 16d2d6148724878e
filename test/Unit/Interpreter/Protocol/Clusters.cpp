//===- Clusters.cpp - Blocks that reach each other's barriers -------------===//
//
// Two blocks load every 64 x 64 box together, each half of the rows into the
// buffers of both, in a ring of two slots; four warps of each multiply with it
// and hand the slot back to both.
//
//===----------------------------------------------------------------------===//

#include "Harness/GroupsTest.h"

using namespace attn;

static const char *const kShared = R"(
!map = !tile.tensor_map<32x64xbf16>
!box = !tile.smem<2x64x64xbf16, sw128>
!frag = !tile.frag<16x16xbf16, lhs>
!acc = !tile.frag<16x64xf32, acc>
!slots = !tile.mbarrier<2>
!sums = !tile.view<?x64xbf16, align = 16>
tile.kernel @shared(%map: !map, %psums: !tile.ptr<bf16>, %flags: !tile.ptr<i32>,
                    %boxes: i32)
    attributes {cluster = 2 : i32, warps = 8 : i32} {
  %zero = arith.constant 0 : i64
  %pitch = arith.constant 64 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c64 = arith.constant 64 : i32
  %rows = arith.constant 256 : i32
  %f0 = arith.constant 0.0 : f32
  %block = tile.program_id 0
  %rank = tile.cluster_rank
  %s = tile.alloc "box" : !box
  %full = tile.mbarrier "full" arrivals 1 : !slots
  %empty = tile.mbarrier "empty" arrivals 8 : !slots
  %w = tile.warp_id
  %number = arith.subi %w, %c4 : i32
  tile.roles {
    tile.role "producer" warps 4 registers 24 single_lane {
      scf.for %n = %c0 to %boxes step %c1 : i32 {
        %slot = arith.remsi %n, %c2 : i32
        %round = arith.divsi %n, %c2 : i32
        %after = arith.addi %round, %c1 : i32
        %parity = arith.remsi %after, %c2 : i32
        %row = arith.muli %n, %c64 : i32
        tile.mbarrier_wait %empty[%slot] parity %parity : !slots // wait
        tile.tma_load %map[%c0, %c0, %row] to %s[%slot] multicast(%rank) arrive %full[%slot] : !map to !box, !slots // load
      }
    }
    tile.role "consumer" warps 4 registers 240 {
      %none = tile.fill %f0 : f32 -> !acc
      %sum = scf.for %n = %c0 to %boxes step %c1 iter_args(%old = %none) -> (!acc) : i32 {
        %slot = arith.remsi %n, %c2 : i32
        %round = arith.divsi %n, %c2 : i32
        %parity = arith.remsi %round, %c2 : i32
        tile.mbarrier_wait %full[%slot] parity %parity : !slots // full
        %at = arith.muli %number, %c16 : i32
        %one = tile.map -> !tile.frag<16x16xf32, acc> {
        ^bb0(%i: i32, %j: i32):
          %same = arith.cmpi eq, %i, %j : i32
          %f = arith.uitofp %same : i1 to f32
          tile.yield %f : f32
        }
        %a = tile.cast %one : <16x16xf32, acc> -> <16x16xbf16, lhs>
        %b = tile.load_matrix %s[%slot, %at, %c0] : !box -> !tile.frag<16x64xbf16, rhs> // read
        %new = tile.mma %a, %b, %old : <16x16xbf16, lhs>, <16x64xbf16, rhs>, <16x64xf32, acc>
        tile.mbarrier_arrive %empty[%slot] cluster : !slots // hand back
        scf.yield %new : !acc
      }
      %to = tile.view %psums[%zero] rows(%rows) stride(%pitch) : !tile.ptr<bf16> -> !sums
      %start = arith.muli %block, %c64 : i32
      %inside = arith.muli %number, %c16 : i32
      %at = arith.addi %start, %inside : i32
      tile.store_fragment %sum to %to[%at, %c0] : !acc to !sums
    }
  }
  tile.return
})";

namespace {
class Clusters : public KernelTest {
protected:
  void shared(const std::vector<Change> &changes = {}) {
    parse(kShared, changes);
    // Element (i, j) of box n is i + j + n modulo 8.
    std::vector<float> values;
    for (int n = 0; n < kBoxes; ++n)
      for (int i = 0; i < 64; ++i)
        for (int j = 0; j < 64; ++j)
          values.push_back(float((i + j + n) % 8));
    array = {allocateBf16(values), {1, 1, 64 * kBoxes, 64}, {0, 0, 64, 1}};
  }
  bool shares(const InterpreterOptions &options) {
    std::vector<float> nothing(4 * 64 * 64, 0.0f);
    sums = allocateBf16(nothing);
    uint64_t flags = allocateFloats({0.0f, 0.0f});
    return run({array, sums, flags, int32_t(kBoxes)}, {blocks, 1, 1}, options);
  }
  /// The sums are right.
  bool summed() {
    std::vector<float> got = bf16s(sums, blocks * 64 * 64);
    for (int64_t at = 0; at < blocks * 64 * 64; ++at) {
      float want = 0;
      for (int n = 0; n < kBoxes; ++n)
        want += float((at / 64 % 64 + at % 64 + n) % 8);
      if (got[at] != want)
        return false;
    }
    return true;
  }
  void expectCorrect() {
    for (const InterpreterOptions &options : schedules()) {
      ASSERT_TRUE(shares(options)) << errors.front().text;
      ASSERT_TRUE(summed());
    }
  }
  /// One of the messages comes first, in every schedule.
  void expectFault(const std::vector<std::string> &messages) {
    for (const InterpreterOptions &options : schedules()) {
      ASSERT_FALSE(shares(options)) << messages.front();
      expectFirstError(messages);
    }
  }

  static constexpr int kBoxes = 5;
  int64_t blocks = 2;
  TensorMapArgument array;
  uint64_t sums = 0;
};
} // namespace

#define BACK "tile.mbarrier_arrive %empty[%slot] cluster : !slots // hand back"
#define LOAD                                                                   \
  "tile.tma_load %map[%c0, %c0, %row] to %s[%slot] multicast(%rank) arrive "   \
  "%full[%slot] : !map to !box, !slots"

TEST_F(Clusters, RightInEverySchedule) {
  shared();
  expectCorrect();
  // Both halves come from memory once, and to both blocks.
  EXPECT_EQ(traffic.global, kBoxes * 64 * 128 + 2 * 64 * 128);
  EXPECT_EQ(traffic.smem, 2 * kBoxes * 64 * 128 * 2);
  blocks = 4;
  expectCorrect();
}

TEST_F(Clusters, GridsOfWholeClusters) {
  shared();
  blocks = 3;
  expectFault({"expects a grid of whole clusters of 2 blocks along dimension "
               "0, but got 3 blocks"});
}

TEST_F(Clusters, TheOtherBlockStillReads) {
  // The slot is handed back to the own block only.
  shared({{BACK, "tile.mbarrier_arrive %empty[%slot] : !slots"},
          {"arrivals 8", "arrivals 4"}});
  expectFault({"expects a barrier after the read of rows 0 to 31 of buffer "
               "'box' (stage 0) by warp",
               "expects a barrier after the read of rows 32 to 63 of buffer "
               "'box' (stage 0) by warp",
               "expects the load to rows 0 to 31 of buffer 'box'",
               "expects the load to rows 32 to 63 of buffer 'box'",
               "expects to load for phase"});
}

TEST_F(Clusters, OneHalfIsNotLoaded) {
  shared({{LOAD, "%mine = arith.cmpi eq, %rank, %c0 : i32\n"
                 "scf.if %mine {\n" LOAD "\n}"}});
  expectFault({"this one waits for the end of phase 0 (parity 0) of barrier "
               "'full' (slot 0), where 0 of 1 arrivals and 4096 bytes are "
               "missing",
               "this one waits for the end of phase 0 (parity 0) of barrier "
               "'empty' (slot 0)"});
}

TEST_F(Clusters, TheRankOfAnother) {
  shared({{"multicast(%rank)", "multicast(%c0)"}});
  expectFault({"expects the block's position in its cluster, but got 0"});
}

TEST_F(Clusters, ABlockThatHasGone) {
  shared({{"  }\n  tile.return",
           "  }\n  tile.mbarrier_arrive %full[%c0] cluster : !slots\n"
           "  tile.return"}});
  expectFault({"expects barrier 'full' (slot 0) of block",
               "expects 1 arrival in a phase of barrier 'full' (slot 0)"});
}

TEST_F(Clusters, AnArrivalFromAnotherBlockShowsNoWrite) {
  // Rank 1 reads what rank 0 wrote before it arrived at rank 1's barrier.
  const std::string store = R"(
      %x = tile.fill %f0 : f32 -> !tile.frag<16x16xf32, acc>
      %is0 = arith.cmpi eq, %rank, %c0 : i32
      %is4 = arith.cmpi eq, %w, %c4 : i32
      %writes = arith.andi %is0, %is4 : i1
      scf.if %writes {
        tile.store_registers %x to %psums[%c0] : !tile.frag<16x16xf32, acc> to !tile.ptr<bf16>
      })";
  const std::string load = R"(
      %is1 = arith.cmpi eq, %rank, %c1 : i32
      scf.if %is1 {
        %y = tile.load_registers %psums[%c0] : !tile.ptr<bf16> -> !tile.frag<16x16xf32, acc>
      })";
  shared({{"%none = tile.fill %f0 : f32 -> !acc",
           store +
               "\n      tile.mbarrier_arrive %empty[%c0] cluster : !slots\n"
               "      tile.mbarrier_wait %empty[%c0] parity %c0 : !slots" +
               load + "\n      %none = tile.fill %f0 : f32 -> !acc"},
          {"scf.for %n = %c0 to %boxes", "scf.for %n = %c0 to %c0"},
          {"scf.for %n = %c0 to %boxes", "scf.for %n = %c0 to %c0"},
          {"tile.store_fragment %sum to %to[%at, %c0] : !acc to !sums", ""}});
  expectFault({"expects the write of these bytes by warp 4 of block 0, 0, 0 to "
               "be published, and that to be awaited, before they are read"});
  // Where the cluster meets, it does.
  shared({{"  tile.roles {", store + "\n  tile.roles {"},
          {"%none = tile.fill %f0 : f32 -> !acc",
           load + "\n      %none = tile.fill %f0 : f32 -> !acc"},
          {"scf.for %n = %c0 to %boxes", "scf.for %n = %c0 to %c0"},
          {"scf.for %n = %c0 to %boxes", "scf.for %n = %c0 to %c0"},
          {"tile.store_fragment %sum to %to[%at, %c0] : !acc to !sums", ""}});
  for (const InterpreterOptions &options : schedules())
    EXPECT_TRUE(shares(options)) << errors.front().text;
}

TEST_F(Clusters, MutantsAreKilled) {
  shared();
  expectMutantsKilled(
      "shared", /*atLeast=*/10, schedules(),
      [&](const InterpreterOptions &options) { return shares(options); },
      [&] { return summed(); });
}

#undef BACK
#undef LOAD
