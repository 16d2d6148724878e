//===- TilesOfBlocks.cpp - A number drawn for warps that are alike --------===//

#include "Harness/KernelTest.h"

using namespace attn;

namespace {
class TilesOfBlocks : public KernelTest {
protected:
  /// Two warps that draw two numbers, one after the other, and write each to a
  /// line of their own; what stands behind the draw, and behind the use.
  void kernel(const std::string &behindPut, const std::string &behindGet,
              const std::vector<Change> &changes = {}) {
    parse(R"(
!out = !tile.view<?xf32, align = 4>
!buf = !tile.smem<1x16x16xbf16>
tile.kernel @k(%pf: !tile.ptr<f32>, %counter: !tile.ptr<i32>)
    attributes {warps = 2 : i32} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c6 = arith.constant 6 : i32
  %c16 = arith.constant 16 : i32
  %c192 = arith.constant 192 : i32
  %out = tile.view %pf[%zero] rows(%c192) stride(%one)
      : !tile.ptr<f32> -> !out
  %warp = tile.warp_id
  %s = tile.alloc "tile" : !buf
  scf.for %i = %c0 to %c2 step %c1 : i32 {
    tile.put_draw %counter below %c6 to %s : !tile.ptr<i32> to !buf // PUT
)" + behindPut +
              R"(
    %d = tile.get_draw %s : !buf // GET
    %v = arith.sitofp %d : i32 to f32
    %row = tile.fill %v : f32 -> !tile.row<16xf32>
    %pair = arith.muli %d, %c2 : i32
    %line = arith.addi %pair, %warp : i32
    %at = arith.muli %line, %c16 : i32
    tile.store_row %row to %out[%at] : !tile.row<16xf32> to !out
)" + behindGet +
              "\n  }\n  tile.return\n}",
          changes);
    f = allocateUninitialised(4 * 192);
    counter = allocateUninitialised(4);
    setCount(0);
  }
  int32_t count() {
    int32_t value = -1;
    memory.read(counter, &value, 4);
    return value;
  }
  void setCount(int32_t value) { memory.write(counter, &value, 4); }

  uint64_t f = 0, counter = 0;
};
} // namespace

static const char *const kBarrier = "tile.barrier";

TEST_F(TilesOfBlocks, AllWarpsGetTheNumber) {
  kernel(kBarrier, kBarrier);
  for (WarpOrder order :
       {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
    InterpreterOptions options;
    options.order = order;
    ASSERT_TRUE(run({f, counter}, {3, 1, 1}, options)) << errors.front().text;
    // Three blocks drew each number once, and two warps wrote it.
    std::vector<float> values = floats(f, 192);
    for (int line = 0; line < 12; ++line)
      EXPECT_EQ(values[16 * line], float(line / 2));
    EXPECT_EQ(count(), 0);
  }
}

TEST_F(TilesOfBlocks, NobodyReadsItBeforeABarrier) {
  kernel("", kBarrier);
  ASSERT_FALSE(run({f, counter}, {3, 1, 1}));
  EXPECT_NE(errors.front().text.find("barrier"), std::string::npos)
      << errors.front().text;
}

TEST_F(TilesOfBlocks, NobodyDrawsAgainBeforeABarrier) {
  kernel(kBarrier, "");
  ASSERT_FALSE(run({f, counter}, {3, 1, 1}));
  EXPECT_NE(errors.front().text.find("barrier"), std::string::npos)
      << errors.front().text;
}

TEST_F(TilesOfBlocks, ACounterOutOfRange) {
  kernel(kBarrier, kBarrier, {{"// PUT", "// HERE"}});
  setCount(6);
  expectError({f, counter}, "expects a counter from 0 to 5, but got 6");
}
