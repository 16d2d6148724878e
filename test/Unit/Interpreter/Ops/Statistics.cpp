//===- Statistics.cpp - What warps on the same rows hand each other -------===//

#include "Harness/KernelTest.h"

using namespace attn;

namespace {
class Statistics : public KernelTest {
protected:
  /// Two warps; each has a row of values 100 warp + i.
  void kernel(const std::string &body) {
    parse(R"(
!row = !tile.row<16xf32>
!buf = !tile.smem<2x32xf32>
!part = !tile.smem<16x32xbf16>
!out = !tile.view<?xf32, align = 4>
!half = !tile.view<?x32xbf16, align = 16>
tile.kernel @k(%pf: !tile.ptr<f32>, %ph: !tile.ptr<bf16>)
    attributes {warps = 2 : i32} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %wide = arith.constant 32 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c100 = arith.constant 100 : i32
  %warp = tile.warp_id
  %other = arith.subi %c1, %warp : i32
  %mine = arith.muli %warp, %c16 : i32
  %base = arith.muli %warp, %c100 : i32
  %row = tile.map -> !row {
  ^bb0(%r: i32):
    %s = arith.addi %base, %r : i32
    %x = arith.sitofp %s : i32 to f32
    tile.yield %x : f32
  }
  %out = tile.view %pf[%zero] rows(%c32) stride(%one) : !tile.ptr<f32> -> !out
  %half = tile.view %ph[%zero] rows(%c16) stride(%wide)
      : !tile.ptr<bf16> -> !half
  %b = tile.alloc "statistic" : !buf
  %p = tile.alloc "weight" : !part
)" + body +
          "\n  tile.return\n}");
  }
  std::vector<KernelArgument> arguments() {
    return {out = allocateUninitialised(128),
            half = allocateUninitialised(1024)};
  }
  uint64_t out = 0, half = 0;
};
} // namespace

TEST_F(Statistics, RowsComeBack) {
  kernel(R"(
  tile.put_row %row to %b[%warp, %c16] : !row to !buf
  tile.barrier
  %x = tile.get_row %b[%other, %c16] : !buf -> !row
  tile.store_row %x to %out[%mine] : !row to !out)");
  ASSERT_TRUE(run(arguments()));
  std::vector<float> values = floats(out, 32);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], float(100 + i));
    EXPECT_EQ(values[16 + i], float(i));
  }
  // Written and read by both; stored.
  EXPECT_EQ(traffic.smem, 2 * 2 * 16 * 4);
  EXPECT_EQ(traffic.global, 2 * 16 * 4);
}

TEST_F(Statistics, RowsNeedABarrier) {
  kernel(R"(
  tile.put_row %row to %b[%warp, %c0] : !row to !buf
  %x = tile.get_row %b[%other, %c0] : !buf -> !row // HERE
  tile.store_row %x to %out[%mine] : !row to !out)");
  expectError(arguments(), "of buffer 'statistic'");
  kernel(R"(
  tile.put_row %row to %b[%c0, %c0] : !row to !buf // HERE
  tile.barrier)");
  expectError(arguments(), "expects a barrier after the write to rows 0 to 0 "
                           "of buffer 'statistic'");
}

TEST_F(Statistics, RowsOutsideABuffer) {
  kernel("tile.put_row %row to %b[%c4, %c0] : !row to !buf // HERE");
  expectError(arguments(), "expects rows 0 to 1 of buffer 'statistic'");
  kernel("%x = tile.get_row %b[%c0, %c32] : !buf -> !row // HERE");
  expectError(arguments(), "expects columns 0 to 31 of buffer 'statistic'");
}

TEST_F(Statistics, PartsOfAMatrix) {
  kernel(R"(
  %x = tile.map -> !tile.frag<16x16xf32, acc> {
  ^bb0(%r: i32, %c: i32):
    %s = arith.addi %base, %c : i32
    %y = arith.sitofp %s : i32 to f32
    tile.yield %y : f32
  }
  tile.store_matrix %x to %p[%c0, %mine] : <16x16xf32, acc> to !part
  tile.barrier
  %first = arith.muli %warp, %c4 : i32
  tile.copy_out %p[%first] to %half[%first] count 4 : !part to !half)");
  ASSERT_TRUE(run(arguments()));
  std::vector<float> values = bf16s(half, 8 * 32);
  for (int i = 0; i < 8 * 32; ++i)
    EXPECT_EQ(values[i], float(i % 32 < 16 ? i % 32 : 100 + i % 32 - 16));
}

TEST_F(Statistics, ColumnsOfAMatrix) {
  const char *store = R"(
  %f = arith.constant 0.0 : f32
  %x = tile.fill %f : f32 -> !tile.frag<16x16xf32, acc>
  tile.store_matrix %x to %p[%c0, )";
  kernel(std::string(store) + "%c4] : <16x16xf32, acc> to !part // HERE");
  expectError(arguments(), "expects a column in multiples of 8, but got 4");
  kernel(std::string(store) + "%c32] : <16x16xf32, acc> to !part // HERE");
  expectError(arguments(), "expects columns 0 to 31 of buffer 'weight'");
}
