//===- Protocol.cpp - Is every breach of the execution model reported? ----===//
//
// One kernel per kind of breach, each run in three warp orders.
//
//===----------------------------------------------------------------------===//

#include "Harness/KernelTest.h"

using namespace attn;

namespace {
class Protocol : public KernelTest {
protected:
  /// A kernel of two warps over a 32 x 16 input; a stage has 32 rows.
  void kernel(const std::string &body) {
    parse(R"(
!in = !tile.view<?x16xbf16, align = 2>
!buf = !tile.smem<32x16xbf16>
!ring = !tile.smem<2x32x16xbf16>
!frag = !tile.frag<32x16xbf16, lhs>
!acc = !tile.frag<16x16xf32, acc>
tile.kernel @k(%pa: !tile.ptr<bf16>, %ph: !tile.ptr<bf16>)
    attributes {warps = 2 : i32} {
  %zero = arith.constant 0 : i64
  %sixteen = arith.constant 16 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %f0 = arith.constant 0.0 : f32
  %a = tile.view %pa[%zero] rows(%c32) stride(%sixteen) : !tile.ptr<bf16> -> !in
  %h = tile.view %ph[%zero] rows(%c32) stride(%sixteen) : !tile.ptr<bf16> -> !in
  %w = tile.warp_id
  %first = arith.cmpi eq, %w, %c0 : i32
  %mine = arith.muli %w, %c16 : i32
  %other = arith.subi %c16, %mine : i32
  %acc = tile.fill %f0 : f32 -> !acc
  %s = tile.alloc "strip" : !buf
  %r = tile.alloc "ring" : !ring
)" + body +
          "\n  tile.return\n}");
    uint64_t in = allocateBf16(std::vector<float>(512, 1.0f));
    uint64_t out = allocateUninitialised(1024);
    arguments = {in, out};
  }
  void expectBreach(const std::string &body, const std::string &message) {
    kernel(body);
    expectError(arguments, message);
  }
  /// A race is reported at the access that comes second, which depends on the
  /// order of warps; but it is reported in every order.
  void expectRace(const std::string &body) {
    kernel(body);
    for (WarpOrder order :
         {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      ASSERT_FALSE(run(arguments, {1, 1, 1}, options));
      EXPECT_EQ(errors.front().text.find("expects a barrier after the "), 0u)
          << errors.front().text;
    }
  }
  void expectCorrect(const std::string &body) {
    kernel(body);
    for (WarpOrder order :
         {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      EXPECT_TRUE(run(arguments, {2, 1, 1}, options)) << errors.front().text;
    }
  }
  std::vector<KernelArgument> arguments;
};
} // namespace

#define COPY "tile.copy_async %a[%c0] to %s[%c0] : !in to !buf"
#define LOAD "%x = tile.load_matrix %s[%c0, %c0, %c0] : !buf -> !frag"

TEST_F(Protocol, ACopyThatIsWaitedForAndSharedIsRight) {
  expectCorrect(COPY "\n tile.commit_group\n tile.wait_group 0\n"
                     "tile.barrier\n" LOAD);
}

TEST_F(Protocol, ReadBeforeWait) {
  expectBreach(COPY "\n tile.commit_group\n tile.barrier\n" LOAD " // HERE\n"
                    "tile.wait_group 0",
               "expects the copy to rows 0 to 31 of buffer 'strip' to be "
               "waited for before they are read, but got it in flight in "
               "warp 0");
  EXPECT_EQ(errors.front().notes, "the copy is here\n");
}

TEST_F(Protocol, ReadBeforeCommit) {
  // What no group holds, no wait waits for.
  expectBreach(COPY "\n tile.wait_group 0\n tile.barrier\n" LOAD " // HERE\n"
                    "tile.commit_group\n tile.wait_group 0",
               "in flight in warp 0");
}

TEST_F(Protocol, ReadWithoutBarrier) {
  kernel(COPY "\n tile.commit_group\n tile.wait_group 0\n" LOAD " // HERE\n");
  // Whether the other warp has even begun depends on the order.
  ASSERT_FALSE(run(arguments));
  EXPECT_NE(errors.front().text.find("expects all warps to have copied their "
                                     "share to rows 0 to 31 of buffer 'strip' "
                                     "before they are read, but got none from "
                                     "warp 1 (warp 0 of block 0, 0, 0)"),
            std::string::npos)
      << errors.front().text;
}

TEST_F(Protocol, BarrierBeforeWait) {
  kernel(COPY "\n tile.commit_group\n tile.barrier\n tile.wait_group 0\n" LOAD
              " // HERE\n");
  ASSERT_FALSE(run(arguments));
  EXPECT_NE(errors.front().text.find("in flight in warp 1"), std::string::npos);
}

TEST_F(Protocol, WaitBehindTheBarrierDoesNotTellTheOthers) {
  // Warp 0 waits behind the barrier, long before warp 1 reads.
  kernel(COPY R"(
  tile.commit_group
  scf.if %first {
  } else {
    tile.wait_group 0
  }
  tile.barrier
  scf.if %first {
    tile.wait_group 0
  } else {
    %x = tile.load_matrix %s[%c0, %c0, %c0] : !buf -> !frag // HERE
  })");
  InterpreterOptions options;
  ASSERT_FALSE(run(arguments, {1, 1, 1}, options));
  EXPECT_NE(errors.front().text.find(
                "expects a barrier after the write to rows 0 to 31 of buffer "
                "'strip' by warp 0 before they are read, but got none"),
            std::string::npos)
      << errors.front().text;
}

TEST_F(Protocol, WaitThatLeavesTheGroupInFlight) {
  expectBreach(COPY
               "\n tile.commit_group\n tile.wait_group 1\n tile.barrier\n" LOAD
               " // HERE\n tile.wait_group 0",
               "in flight in warp 0");
}

TEST_F(Protocol, AnOlderGroupIsDoneWhileAYoungerIsInFlight) {
  expectCorrect(R"(
  tile.copy_async %a[%c0] to %r[%c0] : !in to !ring
  tile.commit_group
  tile.copy_async %a[%c0] to %r[%c1] : !in to !ring
  tile.commit_group
  tile.wait_group 1
  tile.barrier
  %x = tile.load_matrix %r[%c0, %c0, %c0] : !ring -> !frag
  tile.wait_group 0)");
  expectBreach(R"(
  tile.copy_async %a[%c0] to %r[%c0] : !in to !ring
  tile.commit_group
  tile.copy_async %a[%c0] to %r[%c1] : !in to !ring
  tile.commit_group
  tile.wait_group 1
  tile.barrier
  %x = tile.load_matrix %r[%c1, %c0, %c0] : !ring -> !frag // HERE
  tile.wait_group 0)",
               "rows 0 to 31 of buffer 'ring' (stage 1) to be waited for");
}

TEST_F(Protocol, OverwriteOfACopyInFlight) {
  expectBreach(COPY "\n tile.commit_group\n tile.barrier\n" COPY
                    " // HERE\n tile.commit_group\n tile.wait_group 0",
               "to be waited for before they are overwritten, but got it in "
               "flight in warp 0");
}

TEST_F(Protocol, OverwriteBeforeReadersAreDone) {
  kernel(COPY "\n tile.commit_group\n tile.wait_group 0\n tile.barrier\n" LOAD
              "\n" COPY "\n tile.commit_group\n tile.wait_group 0");
  ASSERT_FALSE(run(arguments));
  // Warp 0 has begun the second copy when warp 1 reads.
  EXPECT_EQ(errors.front().text,
            "expects a barrier between this op and the copy to rows 0 to 31 of "
            "buffer 'strip' by warp 0, but got none (warp 1 of block 0, 0, 0)");
  EXPECT_EQ(errors.front().notes, "the copy is here\n");
  InterpreterOptions all;
  all.maxErrors = 10;
  ASSERT_FALSE(run(arguments, {1, 1, 1}, all));
  EXPECT_NE(errors[1].text.find("expects a barrier after the read of rows 0 to "
                                "31 of buffer 'strip' by warp 0 before they "
                                "are overwritten, but got none (warp 1"),
            std::string::npos)
      << errors[1].text;
  EXPECT_EQ(errors[1].notes, "the read is here\n");
  expectCorrect(
      COPY "\n tile.commit_group\n tile.wait_group 0\n tile.barrier\n" LOAD
           "\n tile.barrier\n" COPY "\n tile.commit_group\n tile.wait_group 0");
}

TEST_F(Protocol, StoreBeforeReadersAreDone) {
  expectRace(COPY
             "\n tile.commit_group\n tile.wait_group 0\n tile.barrier\n" LOAD
             "\n tile.store_matrix %acc to %s[%mine]"
             ": !acc to !buf");
}

TEST_F(Protocol, ReadOfAnotherWarpsStore) {
  expectCorrect(R"(
  tile.store_matrix %acc to %s[%mine] : !acc to !buf
  tile.copy_out %s[%mine] to %h[%mine] count 16 : !buf to !in
  tile.barrier
  tile.copy_out %s[%other] to %h[%mine] count 16 : !buf to !in)");
  expectRace(R"(
  tile.store_matrix %acc to %s[%mine] : !acc to !buf
  tile.barrier
  tile.store_matrix %acc to %s[%mine] : !acc to !buf
  tile.copy_out %s[%c0] to %h[%c0] count 32 : !buf to !in
  tile.barrier)");
}

TEST_F(Protocol, TwoWarpsStoreTheSameRows) {
  expectBreach("tile.store_matrix %acc to %s[%c0] // HERE\n : !acc to !buf",
               "expects a barrier after the write to rows 0 to 15 of buffer "
               "'strip' by warp");
}

TEST_F(Protocol, AliasSharesReadersAndWriters) {
  kernel(COPY R"(
  %t = tile.alias %s : !buf -> !tile.smem<16x16xbf16>
  %narrow = tile.fill %f0 : f32 -> !tile.frag<16x16xf32, acc>
  tile.commit_group
  tile.wait_group 0
  tile.barrier
  scf.if %first {
    tile.store_matrix %narrow to %t[%c0] // HERE
      : !tile.frag<16x16xf32, acc> to !tile.smem<16x16xbf16>
  } else {
    %x = tile.load_matrix %s[%c0, %c0, %c0] : !buf -> !frag
  })");
  InterpreterOptions reverse;
  reverse.order = WarpOrder::reverse;
  ASSERT_FALSE(run(arguments, {1, 1, 1}, reverse));
  EXPECT_NE(errors.front().text.find("by warp 1 before they are overwritten"),
            std::string::npos);
}

TEST_F(Protocol, UninitialisedRead) {
  expectBreach(LOAD " // HERE",
               "expects rows 0 to 31 of buffer 'strip' to be written before "
               "they are read, but got bytes that nobody wrote");
}

TEST_F(Protocol, UninitialisedRowsAreNamed) {
  expectBreach(R"(
  scf.if %first {
    tile.store_matrix %acc to %s[%c0] : !acc to !buf
  }
  tile.barrier
  %x = tile.load_matrix %s[%c0, %c0, %c0] : !buf -> !frag // HERE
  )",
               "expects rows 16 to 31 of buffer 'strip' to be written");
}

TEST_F(Protocol, CopyInFlightAtTheEnd) {
  kernel(COPY "\n tile.commit_group\n");
  ASSERT_FALSE(run(arguments));
  EXPECT_NE(errors.front().text.find("expects every copy to be waited for, but "
                                     "got one that is in flight"),
            std::string::npos);
  EXPECT_EQ(errors.front().notes, "the copy is here\n");
}

TEST_F(Protocol, CopyInNoGroupAtTheEnd) {
  kernel(COPY "\n tile.wait_group 0\n");
  ASSERT_FALSE(run(arguments));
  EXPECT_NE(errors.front().text.find("but got one that is in no group"),
            std::string::npos);
}

TEST_F(Protocol, EmptyGroupsMayStayInFlight) {
  expectCorrect("tile.commit_group\n tile.commit_group\n tile.wait_group 1");
}

TEST_F(Protocol, BarrierThatAWarpNeverReaches) {
  expectBreach(R"(
  scf.if %first {
    tile.barrier // HERE
  })",
               "expects all 2 warps at the barrier, but got the end of warp 1");
}

TEST_F(Protocol, BarrierInDivergentControlFlow) {
  expectBreach(R"(
  scf.if %first {
    tile.barrier // HERE
  } else {
    tile.barrier
  })",
               "expects all warps at this barrier, but got warp 1 at another");
  EXPECT_EQ(errors.front().notes, "the other barrier is here\n");
}

TEST_F(Protocol, LoopsOfDifferentLength) {
  expectBreach(R"(
  %n = arith.addi %w, %c1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.barrier // HERE
  })",
               "expects all 2 warps at the barrier, but got the end of warp 0");
}

TEST_F(Protocol, CopyThatAWarpLeavesOut) {
  expectBreach(R"(
  scf.if %first {
    tile.copy_async %a[%c0] to %s[%c0] : !in to !buf // HERE
    tile.commit_group
    tile.wait_group 0
  })",
               "expects all 2 warps to take part in the copy, but got 1 (block "
               "0, 0, 0)");
}

TEST_F(Protocol, CopyOnWhichWarpsDisagree) {
  expectBreach(R"(
  tile.copy_async %a[%c0] to %r[%w] : !in to !ring // HERE
  tile.commit_group
  tile.wait_group 0)",
               "expects all warps to copy the same rows to the same stage");
  expectBreach(R"(
  tile.copy_async %a[%w] to %s[%c0] : !in to !buf // HERE
  tile.commit_group
  tile.wait_group 0)",
               "expects all warps to copy the same rows to the same stage");
}

TEST_F(Protocol, ErrorsAreCollectedUpToALimit) {
  kernel("%x = tile.load_matrix %s[%c0, %c0, %c0] : !buf -> !frag\n"
         "%y = tile.load_matrix %s[%c0, %c0, %c0] : !buf -> !frag\n"
         "%z = tile.load_matrix %s[%c0, %c0, %c0] : !buf -> !frag\n");
  for (int64_t limit : {1, 2, 3}) {
    InterpreterOptions options;
    options.maxErrors = limit;
    EXPECT_FALSE(run(arguments, {2, 1, 1}, options));
    EXPECT_EQ(int64_t(errors.size()), limit);
  }
  InterpreterOptions options;
  options.maxErrors = 100;
  EXPECT_FALSE(run(arguments, {2, 1, 1}, options));
  EXPECT_EQ(errors.size(), 3u) << "one op reports one kind once";
}

TEST_F(Protocol, DataInFlightReadsAsNaN) {
  kernel(COPY "\n tile.commit_group\n tile.barrier\n"
              "tile.copy_out %s[%mine] to %h[%mine] count 16 : !buf to !in\n"
              "tile.wait_group 0");
  InterpreterOptions options;
  options.maxErrors = 100;
  EXPECT_FALSE(run(arguments, {1, 1, 1}, options));
  std::vector<float> values = bf16s(std::get<uint64_t>(arguments[1]), 512);
  for (float value : values)
    EXPECT_NE(value, value);
}

#undef COPY
#undef LOAD
