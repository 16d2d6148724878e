//===- SplitView.cpp - Rows of f32 as rows of two parts of f16 ------------===//

#include "Harness/KernelTest.h"

#include "attn/Host/Rounding.h"

#include <cmath>
#include <limits>

using namespace attn;

namespace {
class SplitView : public KernelTest {
protected:
  /// 70 columns in rows of 72, and parts of 128 columns each.
  static constexpr int64_t kColumns = 70, kStride = 72, kWidth = 128;
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  void SetUp() override {
    parse(R"(
!in = !tile.view<?x70xf32, align = 8>
!out = !tile.view<?x256xf16, align = 16>
tile.kernel @k(%pa: !tile.ptr<f32>, %pb: !tile.ptr<f16>, %pe: !tile.ptr<i32>,
               %n: i32, %m: i32, %row: i32, %index: i32)
    attributes {warps = 8 : i32} {
  %zero = arith.constant 0 : i64
  %stride = arith.constant 72 : i64
  %parts = arith.constant 256 : i64
  %a = tile.view %pa[%zero] rows(%n) stride(%stride) : !tile.ptr<f32> -> !in
  %b = tile.view %pb[%zero] rows(%m) stride(%parts) : !tile.ptr<f16> -> !out
  %l = tile.alloc "largest" : <1x16xf32>
  tile.split_view %a to %b[%row] exponent %pe[%index] at_most 60 by %l : !in to !out, !tile.ptr<i32>, <1x16xf32> // HERE
  tile.return
})");
  }

  static float valueAt(int64_t row, int64_t column) {
    return float(row * 1000 + column) / 7 - 100;
  }

  /// NaN between the rows.
  static std::vector<float> rowsOf(int64_t rows,
                                   float (*value)(int64_t, int64_t)) {
    std::vector<float> values;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < kStride; ++j)
        values.push_back(j < kColumns
                             ? value(i, j)
                             : std::numeric_limits<float>::quiet_NaN());
    return values;
  }

  /// The exponents of so many blocks, and the parts of all rows.
  void split(const std::vector<float> &values) {
    auto rows = int32_t(values.size() / kStride);
    int32_t blocks = (rows + 127) / 128;
    uint64_t from = allocateFloats(values),
             to = allocateUninitialised(rows * 2 * kWidth * 2),
             told = allocateUninitialised(blocks * 4);
    for (int32_t block = 0; block < blocks; ++block)
      ASSERT_TRUE(run({from, to, told, rows, rows, block * 128, block}))
          << errors.front().text;
    parts = f16s(to, rows * 2 * kWidth);
    exponents.clear();
    for (float bits : floats(told, blocks))
      exponents.push_back(int32_t(bitsOfFloat(bits)));
  }

  std::vector<float> parts;
  std::vector<int32_t> exponents;
};
} // namespace

TEST_F(SplitView, PartsSideBySideWithZerosBehind) {
  constexpr int64_t rows = 150;
  std::vector<float> values = rowsOf(rows, valueAt);
  split(values);
  // The second run split what rows were left.
  EXPECT_EQ(traffic.global, 22 * (kColumns * 4 + 2 * kWidth * 2));
  EXPECT_EQ(traffic.smem, 0);
  // 127069 / 7 - 100 and 149069 / 7 - 100 lie between 2^14 and 2^15.
  EXPECT_EQ(exponents, (std::vector<int32_t>{0, 0}));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kWidth; ++j) {
      const float *part = &parts[i * 2 * kWidth + j];
      float value = j < kColumns ? valueAt(i, j) : 0;
      F16Parts want = splitToF16(value);
      EXPECT_EQ(part[0], want.first);
      EXPECT_EQ(part[kWidth], want.second);
      EXPECT_NEAR(part[0] + part[kWidth], value,
                  std::fabs(value) * 0x1p-21 + 0x1p-23);
    }
}

/// The largest finite magnitude of 128 rows says how far all are moved.
TEST_F(SplitView, OnePowerOfTwoForAllRows) {
  std::vector<float> values =
      rowsOf(300, [](int64_t i, int64_t) { return i < 128 ? 1e-3f : -3e30f; });
  values[5 * kStride + 3] = -0.75f; // of the first block
  values[6 * kStride] = kInfinity;
  values[7 * kStride] = std::numeric_limits<float>::quiet_NaN();
  for (int64_t i = 256; i < 300; ++i)
    for (int64_t j = 0; j < kColumns; ++j)
      values[i * kStride + j] = 1e-30f;
  split(values);
  // 0.75 is 1.5 * 2^-1, 3e30 between 2^101 and 2^102, 1e-30 below 2^-46.
  EXPECT_EQ(exponents, (std::vector<int32_t>{15, 14 - 101, 60}));
  auto sum = [&](int64_t i, int64_t j) {
    return parts[i * 2 * kWidth + j] + parts[i * 2 * kWidth + kWidth + j];
  };
  EXPECT_EQ(sum(5, 3), -0.75f * 0x1p15f);
  EXPECT_NEAR(sum(5, 4), 1e-3f * 0x1p15f, 0x1p-17);
  EXPECT_EQ(sum(6, 0), kInfinity);
  EXPECT_GT(parts[6 * 2 * kWidth + kWidth], 0); // of its sign, and finite
  EXPECT_TRUE(std::isnan(sum(7, 0)));
  EXPECT_NEAR(sum(200, 1), -3e30 * 0x1p-87, 0x1p-7);
}

/// Products of both parts with an infinity are that infinity.
TEST_F(SplitView, PartsOfOneSign) {
  std::vector<float> values = rowsOf(128, [](int64_t i, int64_t j) {
    float x = std::ldexp(float(1 + j % 7), -int(i) / 8);
    return j % 2 ? -x : x;
  });
  values[0] = 0;
  split(values);
  EXPECT_EQ(parts[0], 0);
  EXPECT_EQ(parts[kWidth], 0);
  for (int64_t i = 0; i < 128; ++i)
    for (int64_t j = i == 0 ? 1 : 0; j < kColumns; ++j)
      for (int64_t part : {0, 1})
        EXPECT_GT(parts[i * 2 * kWidth + part * kWidth + j] * (j % 2 ? -1 : 1),
                  0)
            << i << " " << j;
}

TEST_F(SplitView, ViewsOfDifferentRows) {
  uint64_t from = allocateFloats(rowsOf(20, valueAt)),
           to = allocateUninitialised(20 * 256 * 2),
           told = allocateUninitialised(4);
  expectError(
      {from, to, told, int32_t(20), int32_t(19), int32_t(0), int32_t(0)},
      "expects views of as many rows, but got 20 and 19");
}
