//===- LaunchTest.cpp - What may begin ahead of time? ---------------------===//

#include "attn/Runtime/Cuda.h"

#include "FakeCuda.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace attn::runtime;

/// Whether a launch is one, on a GPU and a driver.
static bool isAhead(LaunchMode mode, const char *gpu, const char *version) {
  setenv("ATTN_FAKE_CUDA_GPU", gpu, 1);
  setenv("ATTN_FAKE_CUDA_VERSION", version, 1);
  Expected<Gpu> opened = Gpu::open();
  unsetenv("ATTN_FAKE_CUDA_GPU");
  unsetenv("ATTN_FAKE_CUDA_VERSION");
  EXPECT_TRUE(opened) << opened.message();
  Expected<Module> module = opened->load("not looked at", "any chip");
  EXPECT_TRUE(module) << module.message();
  Expected<Kernel> kernel = module->kernel("k");
  EXPECT_TRUE(kernel) << kernel.message();
  int launched = -1;
  fakeCudaOnLaunch(
      [](const char *, void *, void **, void *data) {
        *static_cast<int *>(data) = fakeCudaAhead();
      },
      &launched);
  Status status = opened->launch(*kernel, {1, 1, 1}, 128, 0, nullptr,
                                 /*stream=*/nullptr, mode);
  fakeCudaOnLaunch(nullptr, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_NE(launched, -1);
  return launched == 1;
}

TEST(Launch, IsAheadWhereGraphsTakeItToo) {
  const char *hopper = "NVIDIA H100 80GB HBM3,90,132,80";
  const char *ampere = "NVIDIA A100-SXM4-80GB,80,108,80";
  EXPECT_TRUE(isAhead(LaunchMode::ahead, hopper, "12030"));
  EXPECT_FALSE(isAhead(LaunchMode::ahead, hopper, "12020"));
  EXPECT_FALSE(isAhead(LaunchMode::ahead, ampere, "12030"));
  EXPECT_FALSE(isAhead(LaunchMode::plain, hopper, "12030"));
  EXPECT_FALSE(isAhead(LaunchMode::together, hopper, "12030"));
}
