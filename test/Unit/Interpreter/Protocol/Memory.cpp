//===- Memory.cpp - Is every wrong access and scalar reported? ------------===//

#include "Harness/KernelTest.h"

using namespace attn;

namespace {
class MemoryAccess : public KernelTest {
protected:
  void kernel(const std::string &body) {
    parse(R"(
!in = !tile.view<?x16xbf16, align = 16>
!out = !tile.view<?xf32, align = 4>
!buf = !tile.smem<2x16x16xbf16>
!frag = !tile.frag<16x16xbf16, lhs>
!acc = !tile.frag<16x16xf32, acc>
tile.kernel @k(%pa: !tile.ptr<bf16>, %pf: !tile.ptr<f32>, %n: i32,
               %offset: i64, %stride: i64) attributes {warps = 1 : i32} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %f0 = arith.constant 0.0 : f32
  %acc = tile.fill %f0 : f32 -> !acc
  %row = tile.fill %f0 : f32 -> !tile.row<16xf32>
  %a = tile.view %pa[%offset] rows(%n) stride(%stride) : !tile.ptr<bf16> -> !in
  %out = tile.view %pf[%zero] rows(%n) stride(%one) : !tile.ptr<f32> -> !out
  %s = tile.alloc "strip" : !buf
)" + body +
          "\n  tile.return\n}");
  }
  /// An input of 16 rows of 16 and an output of 16 floats.
  std::vector<KernelArgument> arguments(int32_t rows, int64_t offset,
                                        int64_t stride) {
    return {allocateBf16(std::vector<float>(256, 1.0f)),
            allocateUninitialised(64), rows, offset, stride};
  }
};
} // namespace

static const char *const kCopy = R"(
  tile.copy_async %a[%c0] to %s[%c0] : !in to !buf // HERE
  tile.commit_group
  tile.wait_group 0)";

TEST_F(MemoryAccess, ReadBehindAnArray) {
  kernel(kCopy);
  EXPECT_TRUE(run(arguments(16, 0, 16)));
  EXPECT_TRUE(run(arguments(17, 0, 16))) << "rows that nobody reads";
  expectError(arguments(16, 8, 16),
              "expects bytes of an allocation of 512 bytes, but got 32 bytes "
              "at offset 496 in row 15 (warp 0 of block 0, 0, 0)");
}

TEST_F(MemoryAccess, ReadBeforeAnArray) {
  kernel(kCopy);
  expectError(arguments(16, -16, 16), "32 bytes at offset -32 in row 0");
}

TEST_F(MemoryAccess, ReadOfUninitialisedBytes) {
  kernel(kCopy);
  uint64_t address = allocateUninitialised(512);
  std::vector<uint8_t> zeros(500);
  memory.write(address, zeros.data(), 500);
  expectError({address, allocateUninitialised(64), int32_t(16), int64_t(0),
               int64_t(16)},
              "expects bytes that were written, but got an uninitialised byte "
              "at offset 500 in row 15");
}

TEST_F(MemoryAccess, MisalignedBase) {
  kernel(kCopy);
  expectError(arguments(8, 4, 16),
              "expects rows at multiples of 16 bytes, but got row 0 at address "
              "68719476744");
}

TEST_F(MemoryAccess, MisalignedStride) {
  kernel(kCopy);
  expectError(
      arguments(8, 0, 20),
      "expects rows at multiples of 16 bytes, but got row 1 at address");
}

TEST_F(MemoryAccess, WriteBehindAnArray) {
  kernel("tile.store_row %row to %out[%c1] // HERE\n"
         " : !tile.row<16xf32> to !out");
  EXPECT_TRUE(run(arguments(16, 0, 16)));
  expectError(arguments(17, 0, 16),
              "expects bytes of an allocation of 64 bytes, but got 4 bytes at "
              "offset 64 in row 16");
}

TEST_F(MemoryAccess, RowsOfAViewThatHasNone) {
  // Lanes behind the last row would read it.
  kernel("tile.row_dot %a, %a[%c0] // HERE\n"
         " : !in, !in -> !tile.row<16xf32>");
  EXPECT_TRUE(run(arguments(1, 0, 16)));
  expectError(arguments(0, 0, 16),
              "expects a view with a row to read, but got one of 0 rows");
}

TEST_F(MemoryAccess, CopyOutBehindAnArray) {
  kernel(R"(
  %t = tile.alloc "t" : !tile.smem<16x16xbf16>
  tile.store_matrix %acc to %t[%c0] : !acc to !tile.smem<16x16xbf16>
  tile.copy_out %t[%c0] to %a[%c1] count 16 // HERE
      : !tile.smem<16x16xbf16> to !in)");
  EXPECT_TRUE(run(arguments(16, 0, 16)));
  expectError(arguments(17, 0, 16), "32 bytes at offset 512 in row 16");
}

TEST_F(MemoryAccess, StageOutsideABuffer) {
  kernel("tile.copy_async %a[%c0] to %s[%c2] : !in to !buf // HERE");
  expectError(arguments(16, 0, 16), "expects stages 0 to 1 of buffer 'strip', "
                                    "but got 2 to 2");
}

TEST_F(MemoryAccess, RowsOutsideABuffer) {
  kernel("%x = tile.load_matrix %s[%c0, %c8, %c0] : !buf -> !frag // HERE");
  expectError(arguments(16, 0, 16), "expects rows 0 to 15 of buffer 'strip', "
                                    "but got 8 to 23");
  kernel("tile.store_matrix %acc to %s[%c1] : !acc to !buf // HERE");
  expectError(arguments(16, 0, 16), "but got 1 to 16");
  kernel("tile.copy_out %s[%c8] to %a[%c0] count 16 : !buf to !in // HERE");
  expectError(arguments(16, 0, 16), "but got 8 to 23");
}

TEST_F(MemoryAccess, ColumnsOutsideABuffer) {
  kernel("%x = tile.load_matrix %s[%c0, %c0, %c8] : !buf -> !frag // HERE");
  expectError(arguments(16, 0, 16), "expects columns 0 to 15 of buffer 'strip'"
                                    ", but got 8 to 23");
}

TEST_F(MemoryAccess, CornerOffTheGrid) {
  kernel(R"(
  %t = tile.alloc "t" : !tile.smem<32x32xbf16>
  %x = tile.load_matrix %t[%c0, %c4, %c0] // HERE
      : !tile.smem<32x32xbf16> -> !frag)");
  expectError(arguments(16, 0, 16), "expects a row and a column in multiples "
                                    "of 8, but got 4 and 0");
}

TEST_F(MemoryAccess, DivisionByZero) {
  kernel("%x = arith.remsi %c1, %c0 : i32 // HERE");
  expectError(arguments(16, 0, 16), "expects a divisor other than 0");
  kernel(R"(
  %x = tile.map -> !tile.row<16xi32> {
  ^bb0(%r: i32):
    %y = arith.divsi %c1, %r : i32 // HERE
    tile.yield %y : i32
  })");
  expectError(arguments(16, 0, 16), "expects a divisor other than 0");
}

TEST_F(MemoryAccess, StepOfZero) {
  kernel(R"(
  scf.for %i = %c0 to %c8 step %c0 : i32 { // HERE
  })");
  expectError(arguments(16, 0, 16), "expects a step of at least 1, but got 0");
}

TEST_F(MemoryAccess, AnOpThatIsNotExecuted) {
  kernel("%x = math.sin %f0 : f32 // HERE");
  expectError(arguments(16, 0, 16), "expects an op that the interpreter "
                                    "executes, but got 'math.sin'");
  kernel(R"(
  %x = tile.map -> !tile.row<16xf32> {
  ^bb0(%r: i32):
    %y = math.sin %f0 : f32 // HERE
    tile.yield %y : f32
  })");
  expectError(arguments(16, 0, 16), "but got 'math.sin'");
}
