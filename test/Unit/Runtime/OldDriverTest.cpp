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

TEST(OldDriver, LaunchesOneAfterTheOther) {
  Expected<Gpu> gpu = Gpu::open();
  ASSERT_TRUE(gpu) << gpu.message();
  Expected<Kernel> kernel = gpu->load("not looked at", "sm_90a")->kernel("k");
  ASSERT_TRUE(kernel) << kernel.message();
  auto launch = [&](LaunchMode mode) {
    return gpu->launch(*kernel, {1, 1, 1}, 128, 0, nullptr, nullptr, mode);
  };
  EXPECT_TRUE(launch(LaunchMode::ahead).ok());
  EXPECT_EQ(launch(LaunchMode::together).message(),
            "launching 'k': the CUDA driver is too old");
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
