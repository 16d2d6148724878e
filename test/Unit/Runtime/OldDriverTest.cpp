//===- OldDriverTest.cpp - A driver from before CUDA 12 -------------------===//

#include "attn/Runtime/TensorMap.h"

#include <gtest/gtest.h>

using namespace attn::runtime;

TEST(OldDriver, LacksOnlyTensorMaps) {
  Expected<Gpu> gpu = Gpu::open();
  ASSERT_TRUE(gpu) << gpu.message();
  Expected<TensorMap> map = gpu->tensorMap(
      {MapElement::f16, {64, 100, 8, 2}, {128, 12800, 102400}, 64});
  ASSERT_FALSE(map);
  EXPECT_EQ(map.message(),
            "the CUDA driver is too old: it has no cuTensorMapEncodeTiled, "
            "which came with CUDA 12");
}

TEST(OldDriver, TellsStreamsApartByTheirHandles) {
  Expected<Gpu> gpu = Gpu::open();
  ASSERT_TRUE(gpu) << gpu.message();
  auto of = [&](uintptr_t stream) {
    return *gpu->counters(reinterpret_cast<Stream>(stream), 1);
  };
  EXPECT_NE(of(100), of(200));
  EXPECT_EQ(of(100), of(100));
}
