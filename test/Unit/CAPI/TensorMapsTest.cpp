//===- TensorMapsTest.cpp - Tensor maps through the C interface -----------===//

#include "attn-c/Attn.h"

#include "FakeCuda.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

// The driver's names.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" int cuCtxPushCurrent_v2(void *context);
extern "C" int cuCtxPopCurrent_v2(void **context);
// NOLINTEND(readability-identifier-naming)

namespace {
class EncodeTensorMap : public ::testing::Test {
protected:
  void SetUp() override { cuCtxPushCurrent_v2(reinterpret_cast<void *>(1)); }
  void TearDown() override {
    void *context = nullptr;
    cuCtxPopCurrent_v2(&context);
  }

  /// "" or the message; the code says whether there is one.
  std::string encode(uint64_t address, int32_t element = ATTN_ELEMENT_BF16,
                     int64_t askew = 0) {
    attn_status status = {ATTN_OK, nullptr};
    code = attn_encode_tensor_map(bytes + askew, element, address, sizes,
                                  strides, 128, &status);
    EXPECT_EQ(code, status.code);
    std::string message = status.message ? status.message : "";
    attn_status_clear(&status);
    return message;
  }

  int64_t sizes[4] = {2, 8, 1000, 96};
  int64_t strides[4] = {768000, 96, 768, 1};
  alignas(64) char bytes[256] = {};
  int32_t code = -1;
};
} // namespace

TEST_F(EncodeTensorMap, CountsDimensionsFromTheOutermost) {
  ASSERT_EQ(encode(0x7000), "");
  const FakeMap &map = *fakeCudaMap(bytes);
  EXPECT_EQ(map.address, 0x7000u);
  const uint64_t extents[] = {96, 1000, 8, 2}, apart[] = {1536, 192, 1536000};
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(map.extents[i], extents[i]);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(map.strides[i], apart[i]);
  EXPECT_EQ(map.box[0], 64);
  EXPECT_EQ(map.box[1], 128);
  EXPECT_EQ(map.type, 9);
  ASSERT_EQ(encode(0x7000, ATTN_ELEMENT_F16), "");
  EXPECT_EQ(fakeCudaMap(bytes)->type, 6);
  ASSERT_EQ(encode(0x7000, ATTN_ELEMENT_U8), "");
  EXPECT_EQ(fakeCudaMap(bytes)->type, 0);
  EXPECT_EQ(fakeCudaMap(bytes)->box[0], 128);
}

TEST_F(EncodeTensorMap, OfNothingHasAnAddress) {
  sizes[2] = 0;
  ASSERT_EQ(encode(0), "");
  EXPECT_NE(fakeCudaMap(bytes)->address, 0u);
}

TEST_F(EncodeTensorMap, SaysWhatIsWrong) {
  EXPECT_NE(encode(0x7008).find("but got an address that is 8 bytes off"),
            std::string::npos);
  EXPECT_EQ(code, ATTN_INVALID_ARGUMENT);
  EXPECT_EQ(encode(0x7000, 4), "expects an element of 0 to 3, but got 4");
  EXPECT_EQ(encode(0x7000, ATTN_ELEMENT_BF16, 32),
            "expects a place for the map at a multiple of 64 bytes");
  strides[3] = 2;
  EXPECT_EQ(encode(0x7000),
            "expects columns side by side, but got a stride of 2");
}

// As MLIR's host code calls it: its run time enters a context only for calls of
// the driver.
TEST_F(EncodeTensorMap, NeedsNoCurrentContext) {
  TearDown();
  ASSERT_EQ(encode(0x7000), "");
  EXPECT_EQ(fakeCudaMap(bytes)->address, 0x7000u);
  // An address that is nobody's.
  setenv("ATTN_FAKE_CUDA_FAIL", "cuPointerGetAttribute=1", 1);
  EXPECT_EQ(encode(0x7010), "");
  EXPECT_EQ(fakeCudaMap(bytes)->address, 0x7010u);
  unsetenv("ATTN_FAKE_CUDA_FAIL");
  SetUp();
}
