//===- TensorMapTest.cpp - Is an array described as it is? ----------------===//

#include "attn/Runtime/TensorMap.h"

#include "FakeCuda.h"

#include <gtest/gtest.h>

using namespace attn::runtime;

namespace {
class TensorMaps : public ::testing::Test {
protected:
  TensorMaps() : opened(Gpu::open()) {}

  /// The map at an address, as the driver has it.
  const FakeMap &at(const TensorMapShape &shape, DeviceAddress address) {
    Expected<TensorMap> map = opened->tensorMap(shape);
    Status status = map ? map->write(address, bytes) : map.status();
    EXPECT_TRUE(status.ok()) << status.message();
    return *fakeCudaMap(bytes);
  }
  std::string errorOf(const TensorMapShape &shape) {
    Expected<TensorMap> map = opened->tensorMap(shape);
    return map ? "" : map.message();
  }

  Expected<Gpu> opened;
  alignas(TensorMap::kAlignment) char bytes[TensorMap::kBytes] = {};
  /// [2, 8, 1000, 96] of bf16 in row-major order.
  const TensorMapShape plain = {
      MapElement::bf16, {96, 1000, 8, 2}, {192, 192000, 1536000}, 128};
};
} // namespace

TEST_F(TensorMaps, SayWhatTheArrayIs) {
  const FakeMap &map = at(plain, 0x7000);
  EXPECT_EQ(map.address, 0x7000u);
  EXPECT_EQ(map.rank, 4);
  EXPECT_EQ(map.type, 9) << "bf16";
  EXPECT_EQ(map.swizzle, 3) << "128 bytes";
  EXPECT_EQ(map.promotion, 2) << "128 bytes";
  EXPECT_EQ(map.fill, 0) << "zeros";
  const uint64_t extents[] = {96, 1000, 8, 2},
                 strides[] = {192, 192000, 1536000};
  const uint16_t box[] = {64, 128, 1, 1};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(map.extents[i], extents[i]);
    EXPECT_EQ(map.box[i], box[i]);
  }
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(map.strides[i], strides[i]);
}

TEST_F(TensorMaps, KnowTheElements) {
  TensorMapShape shape = plain;
  shape.element = MapElement::f16;
  EXPECT_EQ(at(shape, 16).type, 6);
  shape.element = MapElement::u8;
  EXPECT_EQ(at(shape, 16).type, 0);
  EXPECT_EQ(at(shape, 16).box[0], 128);
}

TEST_F(TensorMaps, AreWrittenForManyAddresses) {
  Expected<TensorMap> map = opened->tensorMap(plain);
  ASSERT_TRUE(map) << map.message();
  for (DeviceAddress address : {16ull, 1ull << 40, 48ull}) {
    ASSERT_TRUE(map->write(address, bytes).ok());
    EXPECT_EQ(fakeCudaMap(bytes)->address, address);
    EXPECT_EQ(fakeCudaMap(bytes)->extents[1], 1000u);
  }
  Status status = map->write(24, bytes);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(),
            "expects an array for a tensor map at a multiple of 16 bytes, but "
            "got an address that is 8 bytes off");
}

TEST_F(TensorMaps, RepeatWithAStrideOfZero) {
  TensorMapShape shape = plain;
  shape.strides = {192, 0, 0};
  EXPECT_EQ(at(shape, 16).strides[1], 0u);
  EXPECT_EQ(at(shape, 16).extents[2], 8u);
}

TEST_F(TensorMaps, IgnoreTheStridesOfSingleEntries) {
  TensorMapShape shape = plain;
  shape.extents = {96, 1, 1, 1};
  shape.strides = {7, -3, int64_t(1) << 50};
  const FakeMap &map = at(shape, 16);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(map.strides[i], 0u);
}

TEST_F(TensorMaps, OfNothingAreAZeroOfOurs) {
  TensorMapShape shape = plain;
  shape.extents[1] = 0;
  shape.strides = {192, 0, 0};
  const FakeMap &map = at(shape, /*address=*/0);
  ASSERT_NE(map.address, 0u);
  EXPECT_EQ(map.address % 16, 0u);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(map.extents[i], 1u);
  const auto *zeros = reinterpret_cast<const uint8_t *>(map.address);
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(zeros[i], 0);
  uint64_t first = map.address;
  shape.extents[0] = 0;
  EXPECT_EQ(at(shape, 0x7000).address, first) << "one zero is enough";
  EXPECT_NE(*opened->counters(nullptr, 1), first) << "and no counter";
}

TEST_F(TensorMaps, RefuseWhatTheDriverWould) {
  TensorMapShape shape = plain;
  shape.strides[0] = 200;
  EXPECT_EQ(errorOf(shape),
            "making a tensor map: expects rows that are a multiple of 16 bytes "
            "below 1099511627776 apart, but got 200");
  shape.strides = {192, int64_t(1) << 40, 192};
  EXPECT_EQ(
      errorOf(shape),
      "making a tensor map: expects heads that are a multiple of 16 bytes "
      "below 1099511627776 apart, but got 1099511627776");
  shape.strides = {192, 192, -192};
  EXPECT_EQ(errorOf(shape),
            "making a tensor map: expects batch entries that are a multiple of "
            "16 bytes below 1099511627776 apart, but got -192");
  shape = plain;
  shape.extents[1] = (int64_t(1) << 32) + 1;
  EXPECT_EQ(errorOf(shape), "making a tensor map: expects at most 4294967296 "
                            "rows, but got 4294967297");
  shape.extents[1] = int64_t(1) << 32;
  EXPECT_EQ(errorOf(shape), "");
  shape.boxRows = 257;
  EXPECT_EQ(errorOf(shape), "making a tensor map: expects boxes of 1 to 256 "
                            "rows, but got 257");
}
