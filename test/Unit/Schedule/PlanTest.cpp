//===- PlanTest.cpp - Properties over machines and schedules --------------===//

#include "attn/Schedule/Plan.h"
#include "RandomProblem.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Registry.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>

using namespace attn;

namespace {

Problem square(int64_t n, int64_t d) {
  Problem p;
  p.batch = 2;
  p.heads = p.kvHeads = 4;
  p.queries = p.keys = n;
  p.headDim = p.headDimV = d;
  return p;
}

class OnEveryMachine : public testing::TestWithParam<Machine> {};

TEST_P(OnEveryMachine, PlansFitAndAreOrdered) {
  const Machine &m = GetParam();
  Random random(8);
  for (int round = 0; round < 20; ++round) {
    Problem p = random.problem(3000);
    p.headDim = random.number(1, 300);
    p.headDimV = random.number(1, 300);
    PlanReport report = plans(p, m);
    double last = 0;
    for (const Plan &plan : report.plans) {
      EXPECT_LE(plan.footprint.smemBytes, m.smemBytesPerBlock);
      EXPECT_LE(plan.footprint.registersPerThread, kMaxRegistersPerThread);
      EXPECT_GE(plan.footprint.blocksPerSm, 1);
      EXPECT_LE(plan.footprint.blocksPerSm * plan.footprint.threads,
                m.maxThreadsPerSm);
      EXPECT_GE(plan.bytes.smem, 0);
      EXPECT_GE(plan.bytes.l2, plan.bytes.hbm / 2);
      EXPECT_GE(plan.seconds, last);
      EXPECT_FALSE(plan.boundBy.empty());
      EXPECT_GE(plan.flops, usefulFlops(p) * 0.999);
      last = plan.seconds;
    }
    for (const Refused &refused : report.refused)
      EXPECT_FALSE(refused.reason.empty());
  }
}

/// Every choice is either a plan or refused, and pricing it alone agrees.
TEST_P(OnEveryMachine, OverruledChoiceAgrees) {
  const Machine &m = GetParam();
  Problem p = square(1000, 96);
  PlanReport report = plans(p, m);
  for (const Plan &plan : report.plans) {
    std::string error;
    auto again = planFor(p, m, plan.schedule, plan.tiles, error);
    ASSERT_TRUE(again) << error;
    EXPECT_EQ(again->seconds, plan.seconds);
    EXPECT_EQ(again->bytes.l2, plan.bytes.l2);
    EXPECT_EQ(again->tiles, plan.tiles);
  }
  for (const Refused &refused : report.refused) {
    if (refused.tiles.empty())
      continue;
    std::string error;
    auto again = planFor(p, m, refused.schedule, refused.tiles, error);
    bool isUnusual =
        refused.reason.find("unless it is asked for") != std::string::npos;
    EXPECT_EQ(again.has_value(), isUnusual);
    EXPECT_EQ(error, isUnusual ? "" : refused.reason);
  }
}

TEST_P(OnEveryMachine, MmaSyncNeedsItsTypesAndCapability) {
  const Machine &m = GetParam();
  for (DataType type :
       {DataType::bf16, DataType::f16, DataType::f32, DataType::f8e4m3}) {
    Problem p = square(512, 64);
    p.dtype = type;
    bool hasIt = m.computeCapability >= 80 && type != DataType::f8e4m3;
    bool hasPortable = false;
    for (const Plan &plan : plans(p, m).plans) {
      hasPortable |= plan.family == TensorCoreFamily::mmaSync;
      bool isOnWgmma = plan.family == TensorCoreFamily::wgmma;
      EXPECT_TRUE(hasIt || isOnWgmma || plan.family == TensorCoreFamily::none);
      EXPECT_TRUE(!hasIt || plan.family != TensorCoreFamily::none);
      EXPECT_TRUE(!isOnWgmma || m.family == TensorCoreFamily::wgmma);
    }
    EXPECT_EQ(hasPortable, hasIt);
  }
}

TEST_P(OnEveryMachine, LessSharedMemoryNeverAddsPlans) {
  Machine small = GetParam();
  Problem p = square(2048, 128);
  size_t before = plans(p, small).plans.size();
  ASSERT_EQ(overrideField(small, "smem_bytes_per_block", 40000), std::nullopt);
  PlanReport report = plans(p, small);
  EXPECT_LE(report.plans.size(), before);
  bool isNamed = false;
  for (const Refused &refused : report.refused)
    isNamed |= refused.reason.find("40000") != std::string::npos;
  EXPECT_TRUE(isNamed);
}

INSTANTIATE_TEST_SUITE_P(GPUs, OnEveryMachine, testing::ValuesIn(machines()),
                         [](const auto &info) { return info.param.name; });

TEST(Plans, SharedMemoryOfTheKernel) {
  // Query tile of 128 rows of 288 bytes (128 columns, odd multiple of 32).
  EXPECT_EQ(smemPitch(128, 2), 288);
  EXPECT_EQ(smemPitch(16, 2), 32);
  EXPECT_EQ(smemPitch(80, 2), 160);
  // Of f32 an odd multiple of 16, and of rows that stagger.
  EXPECT_EQ(smemPitch(64, 4), 272);
  EXPECT_EQ(smemPitch(64, 2, /*isStaggered=*/true), 144);
  EXPECT_EQ(smemPitch(80, 2, /*isStaggered=*/true), 176);
  EXPECT_TRUE(staggersRows(square(4096, 72)));
  EXPECT_FALSE(staggersRows(square(4096, 80)));
  std::string error;
  auto plan = planFor(
      square(4096, 128), *findMachine("h100_sxm"), "flash",
      {{"query", 128}, {"key", 32}, {"stages", 2}, {"warps", 4}}, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->footprint.smemBytes, (128 + 4 * 32) * 288);
  // O 128, S 32, P 16, statistics 8, a step of V 32, the rest 36.
  EXPECT_EQ(plan->footprint.registersPerThread, 252);
  EXPECT_EQ(plan->footprint.blocksPerSm, 2);
}

/// Each scheduler has a quarter of the registers: of blocks of two warps with
/// 184 registers each, five would put three warps on one scheduler (17664
/// registers of 16384), so four fit.
TEST(Plans, RegistersAreThoseOfASchedulersQuarter) {
  std::string error;
  auto plan =
      planFor(square(4096, 48), *findMachine("a100_80g"), "flash",
              {{"query", 64}, {"key", 48}, {"stages", 1}, {"warps", 2}}, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->footprint.registersPerThread, 184);
  EXPECT_EQ(plan->footprint.blocksPerSm, 4);
}

/// No schedule that computes O is offered for gradients, or taken for them.
TEST(Plans, SchedulesHaveADirection) {
  Problem p = square(4096, 64);
  p.direction = Direction::backward;
  PlanReport report = plans(p, *findMachine("h100_sxm"));
  for (const Plan &plan : report.plans)
    EXPECT_EQ(findScheduleKind(plan.schedule)->direction, Direction::backward);
  for (const Refused &refused : report.refused)
    EXPECT_EQ(findScheduleKind(refused.schedule)->direction,
              Direction::backward);
  std::string error, end = "but got 'flash', which is forward";
  EXPECT_FALSE(planFor(p, *findMachine("h100_sxm"), "flash", {}, error));
  EXPECT_EQ(error.substr(error.size() - end.size()), end);
}

/// The output's staging takes the place of Q, and may be the wider one.
TEST(Plans, StagingReusesTheResidentInput) {
  Problem p = square(4096, 64);
  p.headDimV = 128;
  std::string error;
  auto plan = planFor(
      p, *findMachine("h100_sxm"), "flash",
      {{"query", 128}, {"key", 32}, {"stages", 1}, {"warps", 4}}, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->footprint.smemBytes, 128 * 288 + 32 * 160 + 32 * 288);
}

TEST(Plans, RefusalsNameNumberAndLimit) {
  const Machine &l4 = *findMachine("l4");
  auto refusal = [&](const Problem &p, const Tiles &tiles) {
    std::string error;
    EXPECT_FALSE(planFor(p, l4, "flash", tiles, error));
    return error;
  };
  EXPECT_EQ(
      refusal(square(4096, 256),
              {{"query", 128}, {"key", 64}, {"stages", 1}, {"warps", 8}}),
      "needs 139264 bytes of shared memory, but a block on l4 has 101376");
  EXPECT_EQ(refusal(square(4096, 128),
                    {{"query", 128}, {"key", 96}, {"stages", 1}, {"warps", 4}}),
            "needs 348 registers per thread, but a thread has 255");
  EXPECT_EQ(refusal(square(4096, 64), {{"query", 256}, {"warps", 4}}),
            "expects 16 or 32 rows per warp, but got 256 rows and 4 warps");
  EXPECT_EQ(refusal(square(4096, 64), {{"rows", 64}}),
            "expects tiles of flash out of query, key, stages, warps, "
            "query_stages, staging, ping_pong, overlap, persistent, parts, "
            "packed, pairs, but got 'rows'");
  std::string error;
  EXPECT_FALSE(planFor(square(64, 64), l4, "flesh", {}, error));
  EXPECT_EQ(error, "expects a schedule out of column_split, flash, "
                   "output_spill, score_spill, streamed_query, but got "
                   "'flesh'");
  EXPECT_FALSE(planFor(square(64, 64), l4, "cluster", {}, error));
  EXPECT_EQ(error, "expects a schedule out of column_split, flash, "
                   "output_spill, score_spill, streamed_query, but got "
                   "'cluster', which was never faster than flash and is gone: "
                   "ask for flash, or for column_split where rows are wider "
                   "than a block");
}

TEST(Plans, MaskedSpillNeedsNestedTiles) {
  Problem p = square(512, 512);
  p.mask = {MaskKind::causal};
  std::string error;
  EXPECT_FALSE(planFor(p, *findMachine("h100_sxm"), "score_spill",
                       {{"query", 64}, {"out_query", 128}, {"warps", 4}},
                       error));
  EXPECT_NE(error.find("expects query to be a multiple of out_query"),
            std::string::npos)
      << error;
}

TEST(Plans, MissingTilesAreChosen) {
  std::string error;
  auto plan = planFor(square(4096, 128), *findMachine("h100_sxm"), "flash",
                      {{"key", 32}}, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->tiles.get("key"), 32);
  const Form &form = findScheduleKind("flash")->formOf(plan->tiles);
  EXPECT_TRUE(form.serves(plan->family));
  EXPECT_EQ(plan->tiles.size(), form.parameters().size());
}

/// Large caches take flash, small ones the cache of a group, or two products.
TEST(Plans, FollowTheRegimeInTheLimit) {
  const Machine &h100 = *findMachine("h100_sxm");
  for (int64_t d : {32, 64, 96, 128}) {
    PlanReport report = plans(square(4096, d), h100);
    EXPECT_EQ(report.regime, Regime::largeCache);
    EXPECT_EQ(report.plans.front().schedule, "flash") << d;
  }
  for (int64_t d : {1024, 2048}) {
    PlanReport report = plans(square(4096, d), h100);
    EXPECT_EQ(report.regime, Regime::smallCache);
    const std::string &first = report.plans.front().schedule;
    EXPECT_TRUE(first == "column_split" || first == "score_spill") << d;
  }
}

/// No plan has more scratch than stated, whatever the number of rows; more has
/// to be asked for, and be there.
TEST(Plans, ScratchIsBounded) {
  const Machine &h100 = *findMachine("h100_sxm");
  Tiles all = {{"out_query", 128}};
  std::string error;
  for (int64_t d : {1024, 4096})
    for (int64_t n : {4096, 1 << 16, 1 << 20}) {
      PlanReport report = plans(square(n, d), h100);
      for (const Plan &plan : report.plans) {
        const Footprint &space = plan.footprint;
        EXPECT_LE(space.scratchBytes - space.rowScratchBytes,
                  kMostScratchBytes);
        EXPECT_LE(space.rowScratchBytes, kMostWeightScratchBytes);
      }
      auto asked = planFor(square(n, d), h100, "score_spill", all, error);
      EXPECT_EQ(asked.has_value(), n < 1 << 17) << error;
    }
  EXPECT_NE(error.find("bytes of scratch memory, but h100_sxm has"),
            std::string::npos)
      << error;
  // A strip of so many keys exceeds the limit, asked for or not.
  const Machine &a100 = *findMachine("a100_80g");
  EXPECT_FALSE(planFor(square(4096, 512), a100, "score_spill",
                       {{"query", 128}, {"strip", 16384}}, error));
  EXPECT_NE(error.find("but a plan has at most 268435456"), std::string::npos)
      << error;
}

/// Results of parts grow as O does, and so do not count beside places.
TEST(Plans, RowsOfPartsHaveNoLimit) {
  Problem p;
  p.heads = 128, p.kvHeads = 1;
  p.headDim = 576, p.headDimV = 512;
  Tiles tiles = {{"query", 128}, {"key", 128}, {"group", 2},   {"cluster", 1},
                 {"slots", 6},   {"parts", 2}, {"resident", 8}};
  const Machine &h100 = *findMachine("h100_sxm");
  int64_t places = 0;
  for (int64_t queries : {4, 4096}) {
    p.queries = p.keys = queries;
    std::string error;
    auto plan = planFor(p, h100, "column_split", tiles, error);
    ASSERT_TRUE(plan) << error;
    const Footprint &space = plan->footprint;
    EXPECT_EQ(space.rowScratchBytes, 2 * p.heads * queries * (512 + 1) * 4);
    EXPECT_GT(space.scratchBytes, space.rowScratchBytes);
    EXPECT_TRUE(!places ||
                space.scratchBytes - space.rowScratchBytes == places);
    places = space.scratchBytes - space.rowScratchBytes;
  }
}

/// Wide heads have a kernel because accumulators of 32 rows on each
/// multiprocessor, and more, may be in scratch.
TEST(Plans, WideHeadsHaveScratch) {
  const Machine &a100 = *findMachine("a100_80g");
  for (int64_t d : {1024, 2048, 4096}) {
    PlanReport report = plans(square(4096, d), a100);
    const Plan *best = report.best();
    ASSERT_NE(best, nullptr);
    EXPECT_EQ(best->kernel, "score_spill_mma_sync");
    EXPECT_GT(best->footprint.scratchBytes, a100.sms * 32 * d * 4);
  }
}

static bool spills(const PlanReport &report) {
  const Plan *best = report.best();
  return best && (best->kernel == "score_spill_mma_sync" ||
                  best->kernel == "output_spill_mma_sync");
}

/// Where rows of O do not fit, there are kernels that spill P or O.
TEST(Plans, SmallMachinesSpill) {
  for (int64_t smem : {16384, 24576, 32768}) {
    Machine machine = *findMachine("a100_80g");
    machine.smemBytesPerBlock = smem;
    for (int64_t d : {256, 512, 1024}) {
      PlanReport report = plans(square(4096, d), machine);
      if (smem == 32768 && d == 256) // streamed_query fits as well
        continue;
      EXPECT_TRUE(spills(report)) << smem << " " << d;
    }
  }
  // Wide heads run fewer blocks at once, which have scratch for so many.
  Machine small = *findMachine("h100_sxm");
  small.smemBytesPerBlock = 16384;
  for (int64_t d : {2048, 4096}) {
    PlanReport report = plans(square(4096, d), small);
    EXPECT_TRUE(spills(report)) << d;
  }
  // Of P in f32 there is none yet, nor for all of it at once.
  Problem single = square(4096, 512);
  single.dtype = DataType::f32;
  std::string error;
  for (const Problem &p : {single, square(4096, 512)}) {
    Tiles tiles = {{"query", 64}};
    if (p.dtype != DataType::f32)
      tiles.set("out_query", 64);
    auto plan =
        planFor(p, *findMachine("a100_80g"), "score_spill", tiles, error);
    ASSERT_TRUE(plan) << error;
    EXPECT_EQ(plan->kernel, "");
  }
}

/// f32 heads that are wide have a kernel on GPUs with 99 KiB a block.
TEST(Plans, EveryWidthHasAKernelInSinglePrecision) {
  for (const char *name : {"l4", "rtx_4090", "a100_80g"})
    for (int64_t d : {64, 256, 512, 768, 1024}) {
      Problem p = square(4096, d);
      p.dtype = DataType::f32;
      EXPECT_NE(plans(p, *findMachine(name)).best(), nullptr)
          << name << ", " << d;
    }
}

/// tf32 runs at half the rate of 16 bits, and a split product is three of it.
TEST(Plans, SplitProductsAreThree) {
  auto tensorSeconds = [](DataType type, Precision precision) {
    Problem p = square(4096, 64);
    p.dtype = type;
    p.precision = precision;
    std::string error;
    std::optional<Plan> plan = planFor(
        p, *findMachine("a100_80g"), "flash",
        {{"query", 64}, {"key", 32}, {"stages", 1}, {"warps", 4}}, error);
    EXPECT_EQ(error, "");
    return plan ? plan->time.tensor : 0;
  };
  double half = tensorSeconds(DataType::bf16, Precision::tf32x3),
         rounded = tensorSeconds(DataType::f32, Precision::tf32);
  EXPECT_DOUBLE_EQ(rounded, 2 * half);
  EXPECT_DOUBLE_EQ(tensorSeconds(DataType::f32, Precision::tf32x3),
                   3 * rounded);
}

#if __has_feature(address_sanitizer)
constexpr double kSlowdown = 10; // what the checks cost
#else
constexpr double kSlowdown = 1;
#endif

/// Seconds of the processor that something takes.
double processorSeconds(const std::function<void()> &something) {
  std::clock_t start = std::clock();
  something();
  return double(std::clock() - start) / CLOCKS_PER_SEC;
}

/// Numbers are drawn, written and sorted into a table: memory is asked for and
/// walked as planning does it.  2.3 ms where this test was made.
void fixedWork() {
  std::mt19937 draw(1);
  std::map<std::string, int> table;
  for (int i = 0; i < 10000; ++i)
    table[std::to_string(draw())] = i;
  EXPECT_GT(table.size(), 9000u);
}

TEST(Plans, AreFast) {
  Problem p = square(1 << 20, 128);
  p.mask = {MaskKind::causal};
  // The processor's time, and the best of several: other programs may run. They
  // take caches and units, too; so does a slower processor: fixed work beside
  // it says how much.
  double least = std::numeric_limits<double>::infinity(), fixed = least;
  for (int round = 0; round < 5; ++round) {
    fixed = std::min(fixed, processorSeconds(fixedWork));
    least = std::min(
        least, processorSeconds([&] { plans(p, *findMachine("h100_sxm")); }));
  }
  EXPECT_LT(least, 0.05 * kSlowdown * std::max(1.0, fixed / 0.0023))
      << "fixed work took " << fixed << " s";
}

TEST(Plans, WhyLostNamesTheTerm) {
  PlanReport report = plans(square(4096, 128), *findMachine("h100_sxm"));
  const Plan &winner = report.plans.front(), &last = report.plans.back();
  std::string reason = whyLost(last, winner);
  EXPECT_NE(reason.find("% slower: "), std::string::npos) << reason;
  EXPECT_NE(reason.find("instead of"), std::string::npos) << reason;
}

} // namespace
