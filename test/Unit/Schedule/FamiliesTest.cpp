//===- FamiliesTest.cpp - What wgmma asks for, and what it occupies -------===//

#include "attn/Schedule/Families.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

const Machine &h100() { return *findMachine("h100_sxm"); }

Problem square(int64_t n, int64_t d) {
  Problem p;
  p.batch = 4;
  p.heads = p.kvHeads = 16;
  p.queries = p.keys = n;
  p.headDim = p.headDimV = d;
  return p;
}

std::string whyNotWgmma(const Problem &p, const Machine &m = h100()) {
  return checkFamily(TensorCoreFamily::wgmma, p, m).value_or("fine");
}

TEST(Families, WgmmaNamesNumberAndLimit) {
  Problem p = square(1024, 128);
  EXPECT_EQ(whyNotWgmma(p), "fine");
  p.dtype = DataType::f16;
  EXPECT_EQ(whyNotWgmma(p), "fine");
  p.dtype = DataType::f32;
  EXPECT_EQ(whyNotWgmma(p), "wgmma expects bf16, f16 or f8e4m3, but got f32");
  p = square(1024, 100);
  EXPECT_EQ(whyNotWgmma(p), "wgmma expects head dim to be a multiple of 8 (16 "
                            "bytes), but got 100");
  p = square(1024, 256);
  EXPECT_EQ(whyNotWgmma(p), "fine");
  p.headDimV = 264;
  EXPECT_EQ(whyNotWgmma(p),
            "wgmma expects head dim of v up to 256, but got 264");
  p = square(1024, 128);
  p.alignment = 8;
  EXPECT_EQ(whyNotWgmma(p),
            "wgmma expects rows aligned to 16 bytes, but got 8");
  EXPECT_EQ(whyNotWgmma(square(1024, 128), *findMachine("a100_80g")),
            "wgmma expects a machine that has it, but a100_80g has mma_sync");
}

/// Rows of 8-bit types are whole 16-byte pieces too.
TEST(Families, WgmmaOf8Bits) {
  Problem p = square(1024, 128);
  p.dtype = DataType::f8e4m3;
  EXPECT_EQ(whyNotWgmma(p), "fine");
  p.headDim = 80;
  p.headDimV = 48;
  EXPECT_EQ(whyNotWgmma(p), "fine");
  p.headDimV = 56;
  EXPECT_EQ(whyNotWgmma(p), "wgmma expects head dim of v to be a multiple of "
                            "16 (16 bytes), but got 56");
  p.headDimV = 272;
  EXPECT_EQ(whyNotWgmma(p),
            "wgmma expects head dim of v up to 256, but got 272");
}

/// K and V of 8 bits under Q of 16 are for who rewrites them, and their rows
/// are whole 16-byte pieces.
TEST(Families, WgmmaOfNarrowKeys) {
  auto whyNot = [](const Problem &p) {
    WgmmaUse use;
    use.mostHeadDim = 512, use.widens = true;
    return checkFamily(TensorCoreFamily::wgmma, p, h100(), use)
        .value_or("fine");
  };
  Problem p = withKvType(square(1024, 128), DataType::f8e4m3);
  EXPECT_EQ(whyNot(p), "fine");
  EXPECT_EQ(whyNotWgmma(p),
            "expects q, k and v of one type, or the schedule flash, but got k "
            "and v in f8e4m3 and q in bf16");
  EXPECT_EQ(checkFamily(TensorCoreFamily::mmaSync, p, h100()).value_or("fine"),
            "mma_sync expects q, k and v of one type, but got k and v in "
            "f8e4m3 and q in bf16");
  p.headDim = 72;
  EXPECT_EQ(whyNot(p), "wgmma expects head dim to be a multiple of 16 (16 "
                       "bytes), but got 72");
}

/// The same by name, in the plans of every machine.
TEST(Families, OnlyFlashWidens) {
  for (const Machine &machine : machines()) {
    Problem p = square(1024, 128);
    p.dtype = DataType::f16;
    PlanReport report = plans(withKvType(p, DataType::f8e4m3), machine);
    bool isHopper = machine.family == TensorCoreFamily::wgmma;
    EXPECT_EQ(report.plans.empty(), !isHopper) << machine.name;
    for (const Plan &plan : report.plans)
      EXPECT_EQ(plan.kernel, "flash_wgmma") << machine.name;
    for (const char *other :
         {"column_split", "score_spill", "output_spill", "streamed_query"})
      EXPECT_TRUE(std::any_of(report.refused.begin(), report.refused.end(),
                              [&](const Refused &refused) {
                                return refused.schedule == other &&
                                       !refused.reason.empty();
                              }))
          << machine.name << " " << other;
  }
}

/// f32 is for who splits its factors, and then in tf32x3.
TEST(Families, WgmmaOfF32) {
  auto whyNot = [](const Problem &p) {
    return checkFamily(TensorCoreFamily::wgmma, p, h100(),
                       {512, /*splits=*/true})
        .value_or("fine");
  };
  Problem p = square(1024, 128);
  p.dtype = DataType::f32;
  EXPECT_EQ(whyNot(p), "fine");
  p.headDim = 68;
  EXPECT_EQ(whyNot(p), "fine");
  p.headDim = 66;
  EXPECT_EQ(whyNot(p), "wgmma expects head dim to be a multiple of 4 (16 "
                       "bytes), but got 66");
  p.headDim = 260;
  EXPECT_EQ(whyNot(p), "wgmma expects head dim up to 256, but got 260");
  p.headDim = 64;
  p.precision = Precision::tf32;
  EXPECT_EQ(whyNot(p), "wgmma expects f32 in precision tf32x3, but got tf32");
}

/// What launches before rewrite may be as wide and lie as it likes.
TEST(Families, WgmmaOfWhatIsRewritten) {
  auto whyNot = [](const Problem &p) {
    WgmmaUse use{512, /*splits=*/true, /*rewrites=*/true};
    return checkFamily(TensorCoreFamily::wgmma, p, h100(), use)
        .value_or("fine");
  };
  Problem p = square(1024, 333);
  p.dtype = DataType::f32;
  p.alignment = 4;
  EXPECT_EQ(whyNot(p), "fine");
  p.headDimV = 513;
  EXPECT_EQ(whyNot(p), "wgmma expects head dim of v up to 512, but got 513");
  p.headDimV = 64;
  p.precision = Precision::tf32;
  EXPECT_EQ(whyNot(p), "wgmma expects f32 in precision tf32x3, but got tf32");
}

/// What wgmma cannot take, the portable family still does.
TEST(Families, PortableRemains) {
  for (int64_t alignment : {2, 16}) {
    Problem p = square(1024, 128);
    p.alignment = alignment;
    bool hasWgmma = false, hasPortable = false;
    for (const Plan &plan : plans(p, h100()).plans) {
      hasWgmma |= plan.family == TensorCoreFamily::wgmma;
      hasPortable |= plan.family == TensorCoreFamily::mmaSync;
    }
    EXPECT_EQ(hasWgmma, alignment == 16);
    EXPECT_TRUE(hasPortable);
  }
}

TEST(Families, TextTellsTheFamily) {
  Problem p = square(4096, 128);
  PlanReport report = plans(p, h100());
  for (const Plan &plan : report.plans) {
    const Form &form = findScheduleKind(plan.schedule)->formOf(plan.tiles);
    EXPECT_TRUE(form.serves(plan.family)) << plan.tiles.str();
    EXPECT_EQ(plan.tiles.has("warps"), plan.family == TensorCoreFamily::mmaSync)
        << plan.tiles.str();
  }
  std::string error;
  auto plan = planFor(p, h100(), "flash", {{"key", 64}, {"warps", 4}}, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->family, TensorCoreFamily::mmaSync);
  plan = planFor(p, h100(), "flash", {{"key", 64}, {"overlap", 0}}, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->family, TensorCoreFamily::wgmma);
  EXPECT_EQ(plan->tiles.get("overlap", -1), 0);
}

TEST(Families, TilesThatNoFamilyHas) {
  auto refusal = [](const Problem &p, const char *machine, const Tiles &tiles) {
    std::string error;
    EXPECT_FALSE(planFor(p, *findMachine(machine), "flash", tiles, error));
    return error;
  };
  Problem p = square(4096, 128);
  EXPECT_EQ(refusal(p, "h100_sxm", {{"warps", 4}, {"staging", 64}}),
            "expects tiles of one family; mma_sync has query, key, stages, "
            "warps; wgmma has query, key, stages, query_stages, staging, "
            "ping_pong, overlap, persistent; mma_sync has query, key, stages, "
            "warps, parts; wgmma has query, key, stages, parts, overlap, "
            "persistent; wgmma has query, key, stages, packed, overlap, "
            "persistent; wgmma has query, key, stages, packed, parts, overlap, "
            "persistent; wgmma has query, key, stages, query_stages, pairs, "
            "overlap, staging, ping_pong, persistent; but got warps = 4, "
            "staging = 64");
  EXPECT_EQ(refusal(p, "a100_80g", {{"staging", 64}}),
            "wgmma expects a machine that has it, but a100_80g has mma_sync");
  EXPECT_EQ(refusal(p, "h100_sxm", {{"rows", 64}}),
            "expects tiles of flash out of query, key, stages, warps, "
            "query_stages, staging, ping_pong, overlap, persistent, parts, "
            "packed, pairs, but got 'rows'");
  EXPECT_EQ(refusal(p, "h100_sxm", {{"overlap", 2}}),
            "expects overlap to be 0 or 1, but got 2");
  EXPECT_EQ(refusal(p, "h100_sxm", {{"query", 256}, {"staging", 64}}),
            "expects 64, 128 or 192 rows for one, two or three warpgroups, but "
            "got 256");
  EXPECT_EQ(refusal(p, "h100_sxm", {{"query_stages", 2}, {"persistent", 0}}),
            "expects one query stage where a block has one tile, but got 2");
  EXPECT_EQ(refusal(p, "h100_sxm", {{"staging", 192}}),
            "expects staging to be a multiple of 64 up to 128 columns, but got "
            "192");
}

/// The bytes that the measured kernels of these tiles needed: buffers as here,
/// behind 1024 bytes of barriers there.
TEST(Families, SharedMemoryOfAPipeline) {
  struct {
    int64_t d, query, key, queryStages, staging, bytes;
  } rows[] = {{64, 192, 128, 2, 64, 140288},
              {128, 128, 128, 2, 128, 230400},
              {192, 128, 64, 2, 64, 214016},
              {256, 128, 64, 1, 128, 230400}};
  for (auto &row : rows) {
    std::string error;
    auto plan = planFor(square(4096, row.d), h100(), "flash",
                        {{"query", row.query},
                         {"key", row.key},
                         {"stages", 2},
                         {"query_stages", row.queryStages},
                         {"staging", row.staging}},
                        error);
    ASSERT_TRUE(plan) << error;
    // Six rings of one or two barriers of 8 bytes, at multiples of 16, and the
    // queue.
    EXPECT_EQ(plan->footprint.smemBytes, row.bytes - 1024 + 6 * 16 + 64);
    EXPECT_EQ(plan->footprint.threads, 128 * (row.query / 64 + 1));
    EXPECT_EQ(plan->footprint.blocksPerSm, 1);
  }
}

/// Head dimensions that fill no panel, three stages: 80 and 72 columns are two
/// panels of 64, 64 and 16 rows of 128 bytes each.
TEST(Families, SharedMemoryOfPartialPanels) {
  Problem p = square(4096, 80);
  p.headDimV = 72;
  std::string error;
  auto plan = planFor(p, h100(), "flash",
                      {{"query", 64},
                       {"key", 16},
                       {"stages", 3},
                       {"query_stages", 1},
                       {"staging", 128}},
                      error);
  ASSERT_TRUE(plan) << error;
  int64_t buffers = 2 * 64 * 128 + 2 * 3 * (2 * 16 * 128) + 2 * 64 * 128;
  EXPECT_EQ(plan->footprint.smemBytes, buffers + 2 * 16 + 4 * 32 + 64);
}

Problem of8Bits(int64_t d, int64_t dv) {
  Problem p = square(4096, d);
  p.headDimV = dv;
  p.dtype = DataType::f8e4m3;
  return p;
}

/// In 8 bits a panel has 128 columns, V has a second ring whose rows are its
/// columns, O is bf16, and there are eight rows of barriers.
TEST(Families, SharedMemoryOf8Bits) {
  struct {
    int64_t d, dv, key, staging, buffers;
  } rows[] = {
      {128, 128, 128, 64, 2 * 128 * 128 + 3 * 2 * 128 * 128 + 128 * 64 * 2},
      // One panel of 80 columns, one of 48, two of 160 keys; 48 rows.
      {80, 48, 160, 64,
       2 * 128 * 128 + 2 * 2 * 160 * 128 + 2 * 2 * 48 * 128 + 128 * 64 * 2}};
  for (auto &row : rows) {
    std::string error;
    auto plan = planFor(of8Bits(row.d, row.dv), h100(), "flash",
                        {{"query", 128},
                         {"key", row.key},
                         {"stages", 2},
                         {"query_stages", 2},
                         {"staging", row.staging}},
                        error);
    ASSERT_TRUE(plan) << error;
    EXPECT_EQ(plan->footprint.smemBytes, row.buffers + 8 * 16 + 64);
  }
}

/// K and V of 8 bits under a Q of 16: what is loaded has a ring as deep as the
/// loop, what is multiplied one of two; ten rows of barriers.
TEST(Families, SharedMemoryOfNarrowKeys) {
  struct {
    int64_t d, dv, key, stages, buffers;
  } rows[] = {
      {128, 128, 64, 4,
       64 * 256 + 4 * 2 * 64 * 128 + 2 * 2 * 64 * 256 + 64 * 64 * 2},
      // Q and K of 80 have a panel of 8 bits, and two of 16; V of 48 one.
      {80, 48, 48, 3,
       64 * 256 + 3 * 2 * 48 * 128 + 2 * 48 * (256 + 128) + 64 * 64 * 2}};
  for (auto &row : rows) {
    Problem p = square(4096, row.d);
    p.headDimV = row.dv;
    std::string error;
    auto plan = planFor(withKvType(p, DataType::f8e4m3), h100(), "flash",
                        {{"query", 64},
                         {"key", row.key},
                         {"stages", row.stages},
                         {"query_stages", 1},
                         {"staging", 64}},
                        error);
    ASSERT_TRUE(plan) << error;
    int64_t barriers = 2 * (16 + 2 * roundUp(8 * row.stages, 16) + 2 * 16);
    EXPECT_EQ(plan->footprint.smemBytes, row.buffers + barriers + 64);
    EXPECT_EQ(plan->footprint.threads, 3 * 128);
  }
}

/// The warps that transpose take registers from the consumers; P takes half of
/// what it does in 16 bits.
TEST(Families, RegistersOf8Bits) {
  auto refusal = [](int64_t d, int64_t query, int64_t key) {
    std::string error;
    auto plan =
        planFor(of8Bits(d, d), h100(), "flash",
                {{"query", query}, {"key", key}, {"query_stages", 1}}, error);
    return plan ? std::to_string(plan->footprint.registersPerThread) : error;
  };
  EXPECT_EQ(refusal(128, 128, 224), "232"); // 28 + 224/2 + 224/8 + 128/2
  EXPECT_EQ(refusal(64, 192, 128), "140");  // 28 + 128/2 + 128/8 + 64/2
  EXPECT_EQ(refusal(128, 128, 256),
            "needs 252 registers per thread, but each of 2 warpgroups has 232");
  EXPECT_EQ(refusal(64, 192, 192),
            "needs 180 registers per thread, but each of 3 warpgroups has 152");
  EXPECT_EQ(refusal(128, 128, 48),
            "expects a multiple of 32 keys in f8e4m3, but got 48");
}

Problem ofF32(int64_t d, int64_t dv) {
  Problem p = square(4096, d);
  p.headDimV = dv;
  p.dtype = DataType::f32;
  return p;
}

std::string refusalOfF32(int64_t d, const Tiles &tiles) {
  std::string error;
  auto plan = planFor(ofF32(d, d), h100(), "flash", tiles, error);
  return plan ? std::to_string(plan->footprint.registersPerThread) : error;
}

/// Three parts of bf16 of everything, and pieces of f32 that come to four
/// places: of d = 128 16 rows, of d = 256 8; of 40 columns, which are two
/// panels wide, 16, which divide 48 keys.
TEST(Families, SharedMemoryOfF32) {
  struct {
    int64_t d, query, key, stages, buffers;
  } rows[] = {
      {128, 128, 64, 1, 3 * (128 + 64 + 64) * 256 + 4 * 16 * 512},
      {256, 64, 32, 1, 3 * (64 + 32 + 32) * 512 + 4 * 8 * 1024},
      {40, 128, 48, 2, 3 * (128 + 2 * 48 + 2 * 48) * 128 + 4 * 16 * 256}};
  for (auto &row : rows) {
    std::string error;
    auto plan = planFor(ofF32(row.d, row.d), h100(), "flash",
                        {{"query", row.query},
                         {"key", row.key},
                         {"stages", row.stages},
                         {"persistent", 1}},
                        error);
    ASSERT_TRUE(plan) << error;
    EXPECT_EQ(plan->family, TensorCoreFamily::wgmma);
    EXPECT_EQ(plan->footprint.smemBytes, row.buffers + 6 * 16 + 2 * 32 + 64);
  }
}

/// P in three parts, and a sum of 64 columns beside O.
TEST(Families, RegistersOfF32) {
  auto tiles = [](int64_t query, int64_t key) -> Tiles {
    return {{"query", query}, {"key", key}, {"stages", 1}, {"persistent", 1}};
  };
  // 28 + 128/2 + 64/2 + 64/2 + 64 * 3/4
  EXPECT_EQ(refusalOfF32(128, tiles(128, 64)), "204");
  EXPECT_EQ(refusalOfF32(64, tiles(128, 128)),
            "needs 252 registers per thread, but each of 2 warpgroups has 216");
  EXPECT_EQ(refusalOfF32(64, tiles(192, 48)), "152");
  EXPECT_EQ(refusalOfF32(64, {{"query_stages", 2}, {"persistent", 1}}),
            "expects one query stage in f32, but got 2");
  EXPECT_EQ(refusalOfF32(64, {{"staging", 64}}),
            "expects no staging in f32, but got 64");
}

TEST(Families, RegistersOfAHelper) {
  struct {
    int64_t groups, producer, consumer;
    Helper helper;
  } rows[] = {{1, 24, 240, Helper::none},    {1, 40, 232, Helper::transposer},
              {2, 24, 240, Helper::none},    {2, 40, 232, Helper::transposer},
              {3, 32, 160, Helper::none},    {3, 40, 152, Helper::transposer},
              {1, 56, 240, Helper::widener}, {2, 56, 224, Helper::widener},
              {3, 56, 152, Helper::widener}};
  for (auto &row : rows) {
    RegisterBudget budget = registerBudget(row.groups, row.helper);
    EXPECT_EQ(budget.producer, row.producer);
    EXPECT_EQ(budget.consumer, row.consumer);
    EXPECT_LE(budget.others * budget.producer + row.groups * budget.consumer,
              512);
  }
}

/// Where measured kernels still fit the registers of their role, and where they
/// no longer did.
TEST(Families, RegistersOfAConsumer) {
  struct {
    int64_t d, query, key;
    bool fits;
  } rows[] = {{64, 192, 128, true},
              {64, 192, 144, false},
              {128, 128, 176, true},
              {128, 128, 208, false},
              {256, 64, 80, true}};
  for (auto &row : rows) {
    std::string error;
    auto plan = planFor(
        square(4096, row.d), h100(), "flash",
        {{"query", row.query}, {"key", row.key}, {"query_stages", 1}}, error);
    EXPECT_EQ(plan.has_value(), row.fits) << row.d << " " << row.key;
  }
  std::string error;
  EXPECT_FALSE(planFor(square(4096, 64), h100(), "flash",
                       {{"query", 192}, {"key", 144}, {"staging", 64}}, error));
  EXPECT_EQ(error,
            "needs 168 registers per thread, but each of 3 warpgroups has 160");
}

} // namespace
