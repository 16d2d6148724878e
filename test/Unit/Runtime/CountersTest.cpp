//===- CountersTest.cpp - Does every launch in flight have its own? -------===//

#include "attn/Runtime/Cuda.h"

#include "FakeCuda.h"

#include <gtest/gtest.h>
#include <set>
#include <thread>

using namespace attn::runtime;

namespace {
class CountersTest : public ::testing::Test {
protected:
  CountersTest() : opened(Gpu::open()) {}

  /// The counters of a launch on the stream, which are all 0.
  DeviceAddress of(uintptr_t stream, int64_t count = Gpu::kCounters) {
    Expected<DeviceAddress> address =
        opened->counters(reinterpret_cast<Stream>(stream), count);
    EXPECT_TRUE(address) << address.message();
    const auto *words = reinterpret_cast<const uint32_t *>(*address);
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(words[i], 0u);
    return *address;
  }

  Expected<Gpu> opened;
};

/// While it lives, the stream captures.
struct Capture {
  explicit Capture(uintptr_t stream) : stream(stream) {
    fakeCudaCapture(reinterpret_cast<void *>(stream), 1);
  }
  ~Capture() { fakeCudaCapture(reinterpret_cast<void *>(stream), 0); }
  uintptr_t stream;
};
} // namespace

TEST_F(CountersTest, BelongToAStream) {
  DeviceAddress first = of(100), second = of(200);
  EXPECT_NE(first, second);
  EXPECT_GE(std::max(first, second) - std::min(first, second),
            Gpu::kCounters * sizeof(uint32_t));
  EXPECT_EQ(of(100), first);
  EXPECT_EQ(of(200), second);
  EXPECT_EQ(of(0), of(1)) << "two handles of the legacy default stream";
  EXPECT_NE(of(0), first);
}

TEST_F(CountersTest, AreAsManyAsAsked) {
  DeviceAddress few = of(600), many = of(600, Gpu::kMostCounters);
  EXPECT_NE(few, many);
  EXPECT_EQ(of(600, Gpu::kCounters + 1), many);
  DeviceAddress others = of(700, Gpu::kMostCounters);
  EXPECT_GE(std::max(many, others) - std::min(many, others),
            Gpu::kMostCounters * sizeof(uint32_t));
}

TEST_F(CountersTest, BelongToAStreamAndNotToItsHandle) {
  DeviceAddress before = of(300);
  fakeCudaRenew(reinterpret_cast<void *>(300));
  EXPECT_NE(of(300), before);
}

TEST_F(CountersTest, EveryThreadHasADefaultStream) {
  constexpr uintptr_t perThread = 2;
  DeviceAddress own = of(perThread), other = 0;
  std::thread([&] { other = of(perThread); }).join();
  EXPECT_NE(own, other);
  EXPECT_EQ(of(perThread), own);
}

TEST_F(CountersTest, OfAGraphAreNeverGivenAgain) {
  std::set<DeviceAddress> seen = {of(400), of(500)};
  {
    Capture capture(400);
    // More than a slab holds.
    for (int i = 0; i < 1000; ++i)
      EXPECT_TRUE(seen.insert(of(400)).second);
    EXPECT_EQ(seen.count(of(500)), 1u) << "the other stream goes on as it was";
  }
  EXPECT_EQ(seen.count(of(400)), 1u);
  Capture again(400);
  EXPECT_TRUE(seen.insert(of(400)).second);
}

TEST_F(CountersTest, ThreadsDoNotMeet) {
  std::vector<std::thread> threads;
  std::vector<std::set<DeviceAddress>> seen(8);
  Capture capture(600);
  for (size_t thread = 0; thread < seen.size(); ++thread)
    threads.emplace_back([&, thread] {
      for (uintptr_t i = 0; i < 300; ++i) {
        seen[thread].insert(of(600));
        seen[thread].insert(of(1000 + 300 * thread + i));
      }
    });
  std::set<DeviceAddress> all;
  for (size_t thread = 0; thread < seen.size(); ++thread) {
    threads[thread].join();
    EXPECT_EQ(seen[thread].size(), 600u);
    for (DeviceAddress address : seen[thread])
      EXPECT_TRUE(all.insert(address).second);
  }
}

TEST_F(CountersTest, GoWithTheGpu) {
  int before = fakeCudaPieces();
  {
    Expected<Gpu> gpu = Gpu::open();
    Capture capture(700);
    for (int i = 0; i < 1000; ++i)
      (void)*gpu->counters(reinterpret_cast<Stream>(700), 1);
    EXPECT_GT(fakeCudaPieces(), before);
  }
  EXPECT_EQ(fakeCudaPieces(), before);
}

TEST_F(CountersTest, FailuresAreSentences) {
  int before = fakeCudaPieces();
  auto errorOf = [&](const char *failing) {
    setenv("ATTN_FAKE_CUDA_FAIL", failing, 1);
    Expected<Gpu> gpu = Gpu::open();
    Expected<DeviceAddress> address = gpu->counters(nullptr, 1);
    unsetenv("ATTN_FAKE_CUDA_FAIL");
    return address ? "" : address.message();
  };
  EXPECT_EQ(errorOf("cuMemAlloc=2"),
            "allocating memory for counters: on the GPU: "
            "CUDA_ERROR_OUT_OF_MEMORY: out of memory");
  EXPECT_EQ(errorOf("cuMemsetD8Async=2"),
            "zeroing memory for counters: CUDA_ERROR_OUT_OF_MEMORY: out of "
            "memory");
  EXPECT_EQ(errorOf("cuStreamIsCapturing=2"),
            "asking whether a stream captures a graph: "
            "CUDA_ERROR_OUT_OF_MEMORY: out of memory");
  EXPECT_EQ(fakeCudaPieces(), before) << "nothing leaks";
}
