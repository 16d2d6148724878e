//===- SplitView.cpp - Rows of f32 as rows of three parts of bf16 ---------===//

#include "KernelTest.h"

#include "attn/Interpreter/Rounding.h"

#include <limits>

using namespace attn;

namespace {
class SplitView : public KernelTest {
protected:
  /// 70 columns in rows of 72, and parts of 128 columns each.
  static constexpr int64_t kColumns = 70, kStride = 72, kWidth = 128;

  void SetUp() override {
    parse(R"(
!in = !tile.view<?x70xf32, align = 8>
!out = !tile.view<?x384xbf16, align = 16>
tile.kernel @k(%pa: !tile.ptr<f32>, %pb: !tile.ptr<bf16>, %n: i32, %m: i32,
               %row: i32) attributes {warps = 1 : i32} {
  %zero = arith.constant 0 : i64
  %stride = arith.constant 72 : i64
  %parts = arith.constant 384 : i64
  %a = tile.view %pa[%zero] rows(%n) stride(%stride) : !tile.ptr<f32> -> !in
  %b = tile.view %pb[%zero] rows(%m) stride(%parts) : !tile.ptr<bf16> -> !out
  tile.split_view %a to %b[%row] : !in to !out // HERE
  tile.return
})");
  }

  static float valueAt(int64_t row, int64_t column) {
    return float(row * 1000 + column) / 7 - 100;
  }

  uint64_t source(int64_t rows) {
    std::vector<float> values;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < kStride; ++j)
        values.push_back(j < kColumns
                             ? valueAt(i, j)
                             : std::numeric_limits<float>::quiet_NaN());
    return allocateFloats(values);
  }
};
} // namespace

TEST_F(SplitView, PartsSideBySideWithZerosBehind) {
  constexpr int64_t rows = 20;
  uint64_t from = source(rows), to = allocateUninitialised(rows * 384 * 2);
  for (int32_t row : {0, 16})
    ASSERT_TRUE(run({from, to, int32_t(rows), int32_t(rows), row}))
        << errors.front().text;
  // The second run splits what rows are left.
  EXPECT_EQ(traffic.global, 4 * (kColumns * 4 + 3 * kWidth * 2));
  EXPECT_EQ(traffic.smem, 0);
  std::vector<float> parts = bf16s(to, rows * 3 * kWidth);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kWidth; ++j) {
      const float *part = &parts[i * 3 * kWidth + j];
      Bf16Parts want = splitToBf16(j < kColumns ? valueAt(i, j) : 0);
      EXPECT_EQ(part[0], want.first);
      EXPECT_EQ(part[kWidth], want.second);
      EXPECT_EQ(part[2 * kWidth], want.third);
    }
}

TEST_F(SplitView, ViewsOfDifferentRows) {
  uint64_t from = source(20), to = allocateUninitialised(20 * 384 * 2);
  expectError({from, to, int32_t(20), int32_t(19), int32_t(0)},
              "expects views of as many rows, but got 20 and 19");
}
