//===- TimeTest.cpp - The model moves the right way -----------------------===//

#include "attn/Schedule/Time.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Registry.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

Problem square(int64_t n, int64_t d) {
  Problem p;
  p.batch = 4;
  p.heads = p.kvHeads = 16;
  p.queries = p.keys = n;
  p.headDim = p.headDimV = d;
  return p;
}

Time timeOf(const Problem &p, const Machine &m) {
  Schedule schedule = findScheduleKind("flash")->build(
      {{"query", 128}, {"key", 32}, {"stages", 2}, {"warps", 4}});
  return time(schedule, p, m, TensorCoreFamily::mmaSync);
}

TEST(Time, SlowerResourceTakesLongerAndBinds) {
  Problem p = square(4096, 128);
  const Machine &h100 = *findMachine("h100_sxm");
  double before = timeOf(p, h100).seconds;
  struct {
    const char *field;
    double value;
    const char *binds;
  } cases[] = {{"hbm_bytes_per_second", 1e10, "hbm"},
               {"l2_bytes_per_second", 1e11, "l2"},
               {"smem_bytes_per_clock_per_sm", 4, "smem"},
               {"exp_per_clock_per_sm", 1, "exp"},
               {"mma_sync_flops_per_clock_per_sm", 64, "tensor"}};
  for (auto &one : cases) {
    Machine slow = h100;
    ASSERT_EQ(overrideField(slow, one.field, one.value), std::nullopt);
    Time t = timeOf(p, slow);
    EXPECT_GT(t.seconds, before) << one.field;
    EXPECT_STREQ(binding(t, TensorCoreFamily::mmaSync).name, one.binds);
  }
}

TEST(Time, GrowsWithTheProblem) {
  const Machine &h100 = *findMachine("h100_sxm");
  double last = 0;
  for (int64_t n : {128, 512, 2048, 8192, 32768}) {
    double seconds = timeOf(square(n, 128), h100).seconds;
    EXPECT_GT(seconds, last);
    last = seconds;
  }
}

TEST(Time, CausalCostsLessThanFullAndMoreThanHalf) {
  const Machine &h100 = *findMachine("h100_sxm");
  Problem full = square(8192, 128), causal = full;
  causal.mask = {MaskKind::causal};
  double whole = timeOf(full, h100).seconds;
  double half = timeOf(causal, h100).seconds;
  EXPECT_LT(half, 0.6 * whole);
  EXPECT_GT(half, 0.5 * whole);
}

/// One block leaves all but one multiprocessor idle, and only power to it.
TEST(Time, TailWaveIsPaid) {
  const Machine &h100 = *findMachine("h100_sxm");
  Problem one = square(4096, 128), wave = one;
  one.batch = one.heads = one.kvHeads = 1;
  one.queries = 128;
  wave.batch = wave.heads = wave.kvHeads = 1;
  wave.queries = 128 * 132;
  EXPECT_NEAR(timeOf(one, h100).seconds / timeOf(wave, h100).seconds, 1, 0.15);
}

/// Measured on an H100 (2026-11-21): 314 TFLOP/s, where
/// FlashAttention-2 reached 320.
TEST(Time, PortableKernelOnHopper) {
  Problem p = square(4096, 128);
  double rate =
      usefulFlops(p) / timeOf(p, *findMachine("h100_sxm")).seconds / 1e12;
  EXPECT_GT(rate, 270);
  EXPECT_LT(rate, 370);
}

TEST(Pseudocode, FlashReadsAsAPersonWouldWriteIt) {
  Problem p = square(100, 40);
  p.mask = {MaskKind::causal};
  Schedule schedule = findScheduleKind("flash")->build(
      {{"query", 64}, {"key", 32}, {"stages", 2}, {"warps", 4}});
  EXPECT_EQ(
      pseudocode(schedule, p),
      "parallel for every batch, head and query tile of 64 (2 of them), 4 "
      "warps:\n"
      "  keep O[64 x 40] in registers\n"
      "  keep stats[64] in registers\n"
      "  load Q[64 x 40] to smem, to stay\n"
      "  for every key tile of 32 (4 of them) that causal lets see, 2 in "
      "flight:\n"
      "    keep S[64 x 32] in registers\n"
      "    stream K[32 x 40] through smem\n"
      "    S += Q . K^T\n"
      "    P = exp(S - running max), update running max and sum\n"
      "    rescale O to the new max\n"
      "    stream V[32 x 40] through smem\n"
      "    O += P . V\n"
      "  store O[64 x 40]\n"
      "  store LSE[64]\n");
}

/// Causal tiles of several heads begin with the longest of all, so it does not
/// matter that four heads of 33 are as many as 132 multiprocessors.
TEST(Time, LongTilesDoNotMeetOnAMultiprocessor) {
  Machine machine = *findMachine("h100_sxm");
  machine.smemBytesPerBlock = 101376;
  auto seconds = [&](int64_t tiles) {
    Problem p = square(64 * tiles, 224);
    p.batch = 1;
    p.mask.kind = MaskKind::causal;
    Schedule schedule = findScheduleKind("flash")->build(
        {{"query", 64}, {"key", 64}, {"stages", 1}, {"warps", 4}});
    return time(schedule, p, machine, TensorCoreFamily::mmaSync).seconds;
  };
  EXPECT_GT(seconds(34), seconds(33));
  // Of the work there is 1.0625 times as much.
  EXPECT_LT(seconds(33), 1.075 * seconds(32));
}

} // namespace
