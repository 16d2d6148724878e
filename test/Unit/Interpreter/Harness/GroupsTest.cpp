//===- GroupsTest.cpp - Blocks that work together, in a test --------------===//

#include "Harness/GroupsTest.h"

#include <algorithm>

using namespace attn;

std::vector<InterpreterOptions> attn::schedules() {
  std::vector<InterpreterOptions> all;
  auto add = [&](WarpOrder warps, BlockOrder blocks, uint64_t seeds) {
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      InterpreterOptions &options = all.emplace_back();
      options.order = warps;
      options.blocks = blocks;
      options.seed = seed;
    }
  };
  for (WarpOrder warps :
       {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
    add(warps, BlockOrder::inTurn, 1);
    add(warps, BlockOrder::oldestFirst, 1);
    add(warps, BlockOrder::newestFirst, 1);
    add(warps, BlockOrder::oneStarved, 2);
  }
  add(WarpOrder::shuffled, BlockOrder::sameAsWarps, 8);
  return all;
}

static const char *const kExchange = R"(
!acc = !tile.frag<16x16xf32, acc>
!row = !tile.row<16xf32>
!part = !tile.row<16xf32, partial>
!bar = !tile.mbarrier<1>
!sums = !tile.view<?x16xbf16, align = 16>
tile.kernel @exchange(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>,
                      %psums: !tile.ptr<bf16>, %strips: i32)
    attributes {cooperative, warps = 8 : i32} {
  %zero = arith.constant 0 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %slots = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %pitch = arith.constant 16 : i64
  %f0 = arith.constant 0.0 : f32
  %share = tile.program_id 0
  %other = arith.subi %c1, %share : i32
  %written = tile.mbarrier "written" arrivals 4 : !bar
  %ready = tile.mbarrier "ready" arrivals 1 : !bar
  %w = tile.warp_id
  %c4 = arith.constant 4 : i32
  %number = arith.subi %w, %c4 : i32
  tile.roles {
    tile.role "publisher" warps 4 registers 24 single_lane {
      scf.for %n = %c0 to %strips step %c1 : i32 {
        %parity = arith.remsi %n, %c2 : i32
        %count = arith.addi %n, %c1 : i32
        tile.mbarrier_wait %written[%c0] parity %parity : !bar
        tile.publish %flags[%share], %count : !tile.ptr<i32> // publish
        %seen = tile.await %flags[%other] at_least %count : !tile.ptr<i32> // await
        tile.mbarrier_arrive %ready[%c0] : !bar // tell
      }
      %first = arith.cmpi eq, %share, %c0 : i32
      scf.if %first {
        %x = tile.await %flags[%c2] at_least %c1 : !tile.ptr<i32> // done
        tile.publish %flags[%c0], %c0 : !tile.ptr<i32> // lower mine
        tile.publish %flags[%c1], %c0 : !tile.ptr<i32> // lower theirs
        tile.publish %flags[%c2], %c0 : !tile.ptr<i32> // lower both
      } else {
        tile.publish %flags[%c2], %c1 : !tile.ptr<i32> // leave
      }
    }
    tile.role "worker" warps 4 registers 240 {
      %none = tile.fill %f0 : f32 -> !acc
      %end = arith.addi %strips, %c1 : i32
      %sum = scf.for %n = %c0 to %end step %c1 iter_args(%old = %none) -> (!acc) : i32 {
        %stores = arith.cmpi slt, %n, %strips : i32
        %adds = arith.cmpi sgt, %n, %c0 : i32
        %before = arith.subi %n, %c1 : i32
        %parity = arith.remsi %before, %c2 : i32
        scf.if %stores {
          %high = arith.muli %n, %c3 : i32
          %value = arith.addi %high, %number : i32
          %real = arith.sitofp %value : i32 to f32
          %factor = arith.sitofp %share : i32 to f32
          %p = tile.fill %real : f32 -> !acc
          %r = tile.fill %factor : f32 -> !row
          %s = tile.fill %factor : f32 -> !part
          %slot = arith.remsi %n, %slots : i32
          %twice = arith.muli %slot, %c2 : i32
          %image = arith.addi %twice, %share : i32
          %images = arith.muli %image, %c4 : i32
          %place = arith.addi %images, %number : i32
          tile.store_registers %p, %r, %s to %scratch[%place] : !acc, !row, !part to !tile.ptr<i32> // store
          scf.if %adds {
            tile.mbarrier_wait %ready[%c0] parity %parity : !bar // wait
          }
          tile.mbarrier_arrive %written[%c0] : !bar // arrive
        } else {
          tile.mbarrier_wait %ready[%c0] parity %parity : !bar // wait for the last
        }
        %new = scf.if %adds -> !acc {
          %slot = arith.remsi %before, %slots : i32
          %twice = arith.muli %slot, %c2 : i32
          %both = scf.for %of = %c0 to %c2 step %c1 iter_args(%into = %old) -> (!acc) : i32 {
            %image = arith.addi %twice, %of : i32
            %images = arith.muli %image, %c4 : i32
            %place = arith.addi %images, %number : i32
            %x:3 = tile.load_registers %scratch[%place] : !tile.ptr<i32> -> !acc, !row, !part // load
            %whole = tile.row_combine %x#2 : !part -> !row
            %next = tile.map %into, %x#0, %x#1, %whole : !acc, !acc, !row, !row -> !acc {
            ^bb0(%i: i32, %j: i32, %a: f32, %b: f32, %c: f32, %d: f32):
              %ab = arith.addf %a, %b : f32
              %cd = arith.addf %c, %d : f32
              %abcd = arith.addf %ab, %cd : f32
              tile.yield %abcd : f32
            }
            scf.yield %next : !acc
          }
          scf.yield %both : !acc
        } else {
          scf.yield %old : !acc
        }
        scf.yield %new : !acc
      }
      %to = tile.view %psums[%zero] rows(%c128) stride(%pitch) : !tile.ptr<bf16> -> !sums
      %start = arith.muli %share, %c64 : i32
      %inside = arith.muli %number, %c16 : i32
      %at = arith.addi %start, %inside : i32
      tile.store_fragment %sum to %to[%at, %c0] : !acc to !sums
    }
  }
  tile.return
})";

void GroupsTest::exchange(const std::vector<Change> &changes) {
  parse(kExchange, changes);
}

bool GroupsTest::exchanges(const InterpreterOptions &options) {
  constexpr int64_t imageBytes = 12 * 4 * 32, images = 4 * 2 * 4, rows = 128;
  flags = memory.allocate(3 * 4);
  for (int i = 0; i < 3; ++i)
    memory.write(flags + 4 * i, &firstFlag, 4);
  sums = allocateUninitialised(rows * 16 * 2);
  arguments = {allocateUninitialised(images * imageBytes), flags, sums,
               int32_t(strips)};
  if (!run(arguments, {2, 1, 1}, options))
    return false;
  std::vector<float> got = bf16s(sums, rows * 16);
  for (int64_t row = 0; row < rows; ++row) {
    // Of strip n both blocks add 3 n + number; block 1 also 1 and 4 parts of 1.
    int64_t number = row % 64 / 16;
    int64_t want = 3 * strips * (strips - 1) + 2 * number * strips + 5 * strips;
    for (int64_t column = 0; column < 16; ++column)
      if (got[row * 16 + column] != float(want))
        return false;
  }
  return true;
}

void GroupsTest::expectCorrect() {
  for (const InterpreterOptions &options : schedules())
    ASSERT_TRUE(exchanges(options))
        << (errors.empty() ? "wrong sums" : errors.front().text);
}

void GroupsTest::expectFault(const std::vector<std::string> &messages) {
  std::vector<unsigned> marked;
  unsigned line = 1;
  for (size_t at = 0; at < source.size(); ++at) {
    if (source.compare(at, 7, "// HERE") == 0)
      marked.push_back(line);
    line += source[at] == '\n';
  }
  for (const InterpreterOptions &options : schedules()) {
    ASSERT_FALSE(exchanges(options)) << messages.front();
    expectFirstError(messages);
    ASSERT_FALSE(errors.empty());
    const Diagnosed &error = errors.front();
    EXPECT_TRUE(std::count(marked.begin(), marked.end(), error.line))
        << "line " << error.line << ": " << error.text;
  }
}
