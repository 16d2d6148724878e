//===- SidesTest.cpp - Are the halves of L2 found by time? ----------------===//

#include "Sides.h"

#include "attn/Runtime/Cuda.h"

#include "FakeCuda.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace attn;
using namespace attn::runtime;

static constexpr size_t kWords = 32;

/// Times of so many multiprocessors, of which those of `second` are on another
/// side, as an H100 has them; words lie on either side.
static std::vector<uint32_t> timesOf(size_t multiprocessors,
                                     bool (*second)(size_t sm), int near = 2500,
                                     int far = 3900, double noise = 150) {
  std::mt19937 random(3);
  std::normal_distribution<double> place(0, noise);
  std::vector<double> ofSm(multiprocessors);
  for (double &some : ofSm)
    some = place(random);
  std::vector<uint32_t> times(multiprocessors * kWords);
  for (size_t word = 0; word < kWords; ++word) {
    bool isSecond = random() % 2;
    for (size_t sm = 0; sm < multiprocessors; ++sm)
      times[sm * kWords + word] = uint32_t(
          (second(sm) == isSecond ? near : far) + ofSm[sm] + place(random));
  }
  return times;
}

static bool isSecond(const Sides &sides, size_t sm) {
  return sides[sm / 32] >> sm % 32 & 1;
}

static bool inFours(size_t sm) { return sm / 4 % 2 == 1; }

TEST(Sides, FoundByTime) {
  for (size_t multiprocessors : {132, 108, 8, 256}) {
    std::optional<Sides> sides =
        sidesByTimes(timesOf(multiprocessors, inFours), kWords);
    ASSERT_TRUE(sides);
    bool first = isSecond(*sides, 0);
    for (size_t sm = 0; sm < multiprocessors; ++sm)
      EXPECT_EQ(isSecond(*sides, sm) != first, inFours(sm)) << sm;
  }
}

TEST(Sides, NotWhereNoneStandOut) {
  auto none = [](size_t) { return false; };
  EXPECT_FALSE(sidesByTimes(timesOf(132, none), kWords));
  EXPECT_FALSE(sidesByTimes(timesOf(132, inFours, 3000, 3000), kWords));
  EXPECT_FALSE(sidesByTimes(timesOf(132, inFours, 3000, 3100, 300), kWords));
  // A side of one in ten is none.
  EXPECT_FALSE(sidesByTimes(
      timesOf(132, [](size_t sm) { return sm % 10 == 0; }), kWords));
  EXPECT_FALSE(sidesByTimes({}, kWords));
  EXPECT_FALSE(sidesByTimes(std::vector<uint32_t>(256 * kWords, 0), kWords));
  EXPECT_FALSE(sidesByTimes(std::vector<uint32_t>(256 * kWords, 7), kWords));
}

/// Those that no block ran on keep what they would have.
TEST(Sides, OfMultiprocessorsThatWereNotSeen) {
  std::vector<uint32_t> times = timesOf(132, inFours);
  for (size_t sm : {5, 18, 131})
    std::fill_n(times.begin() + sm * kWords, kWords, 0);
  std::optional<Sides> sides = sidesByTimes(times, kWords);
  ASSERT_TRUE(sides);
  bool first = isSecond(*sides, 0);
  for (size_t sm = 0; sm < 256; ++sm) {
    bool isSeen = sm < 132 && sm != 5 && sm != 18 && sm != 131;
    EXPECT_EQ(isSecond(*sides, sm), isSeen ? inFours(sm) != first : sm % 2 == 1)
        << sm;
  }
}

/// What the probe leaves in memory, when it is launched.
static void answer(const char *kernel, void *, void **arguments, void *data) {
  if (std::strcmp(kernel, "attn_probe_sides") != 0)
    return;
  ++*static_cast<int *>(data);
  std::vector<uint32_t> times = timesOf(132, inFours);
  std::memcpy(reinterpret_cast<void *>(*static_cast<uint64_t *>(arguments[1])),
              times.data(), times.size() * 4);
}

TEST(Sides, ModulesAreToldOnceFoundOut) {
  Expected<Gpu> gpu = Gpu::open();
  ASSERT_TRUE(gpu) << gpu.message();
  int probes = 0;
  fakeCudaOnLaunch(answer, &probes);
  EXPECT_TRUE(gpu->load("nothing to tell", "any chip"));
  EXPECT_EQ(probes, 0);
  int pieces = fakeCudaPieces();
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(gpu->load(".const attn_sides", "any chip"));
  fakeCudaOnLaunch(nullptr, nullptr);
  EXPECT_EQ(probes, 1);
  EXPECT_EQ(fakeCudaPieces(), pieces) << "what the probe took is free again";
  Sides told;
  std::memcpy(told.data(), fakeCudaSides(), sizeof told);
  for (size_t sm = 0; sm < 132; ++sm)
    EXPECT_EQ(isSecond(told, sm) != isSecond(told, 0), inFours(sm)) << sm;
}

/// A kernel runs without, too.
TEST(Sides, AProbeThatFails) {
  setenv("ATTN_FAKE_CUDA_FAIL", "cuLaunchKernel=700", 1);
  Expected<Gpu> gpu = Gpu::open();
  ASSERT_TRUE(gpu) << gpu.message();
  Expected<Module> module = gpu->load(".const attn_sides", "any chip");
  unsetenv("ATTN_FAKE_CUDA_FAIL");
  EXPECT_TRUE(module) << module.message();
}
