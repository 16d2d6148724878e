//===- MachineTest.cpp - Properties of every row --------------------------===//
//
// A row is positional, so every column has a property here that a value of
// another column, or of another unit, cannot have.
//
//===----------------------------------------------------------------------===//

#include "attn/Machine/Machine.h"
#include "gtest/gtest.h"
#include <cmath>
#include <set>

using namespace attn;

namespace {

class Row : public testing::TestWithParam<Machine> {};

bool isPowerOfTwo(double value) {
  return value > 0 && std::exp2(std::round(std::log2(value))) == value;
}

TEST_P(Row, ChipMatchesCapability) {
  const Machine &m = GetParam();
  bool isNewest = m.family == TensorCoreFamily::wgmma ||
                  m.family == TensorCoreFamily::tcgen05;
  EXPECT_EQ(m.chip, "sm_" + std::to_string(m.computeCapability) +
                        (isNewest ? "a" : ""));
}

TEST_P(Row, FamilyMatchesCapability) {
  const Machine &m = GetParam();
  int major = m.computeCapability / 10;
  EXPECT_EQ(m.family == TensorCoreFamily::wgmma, major == 9);
  EXPECT_EQ(m.family == TensorCoreFamily::tcgen05, major == 10);
  EXPECT_EQ(m.family == TensorCoreFamily::none, major < 7);
}

TEST_P(Row, SharedMemory) {
  const Machine &m = GetParam();
  EXPECT_EQ(m.smemBytesPerBlock % 1024, 0);
  EXPECT_GE(m.smemBytesPerBlock, 48 << 10);
  EXPECT_LE(m.smemBytesPerBlock, m.smemBytesPerSm);
  EXPECT_LE(m.smemBytesPerSm, 256 << 10);
  if (m.computeCapability >= 80)
    EXPECT_EQ(m.smemBytesPerSm - m.smemBytesPerBlock,
              m.smemBytesReservedPerBlock());
}

TEST_P(Row, Counts) {
  const Machine &m = GetParam();
  EXPECT_GE(m.sms, 1);
  EXPECT_LE(m.sms, 512);
  EXPECT_EQ(m.registersPerSm, 65536);
  EXPECT_EQ(m.maxThreadsPerSm % 512, 0);
  EXPECT_GE(m.maxThreadsPerSm, 1024);
  EXPECT_LE(m.maxThreadsPerSm, 2048);
  EXPECT_EQ(m.maxBlocksPerSm % 8, 0);
  EXPECT_GE(m.maxBlocksPerSm, 16);
  EXPECT_LE(m.maxBlocksPerSm, 32);
  bool hasClusters =
      m.computeCapability / 10 == 9 || m.computeCapability / 10 == 10;
  EXPECT_EQ(m.maxClusterSize, hasClusters ? 8 : 1);
}

TEST_P(Row, Capacities) {
  const Machine &m = GetParam();
  EXPECT_GE(m.l2Bytes, 1 << 20);
  EXPECT_LE(m.l2Bytes, 256 << 20);
  EXPECT_EQ(m.l2Bytes % 4096, 0);
  EXPECT_GE(m.hbmBytes, int64_t(4) << 30);
  EXPECT_LE(m.hbmBytes, int64_t(512) << 30);
}

TEST_P(Row, RatesRiseTowardsTheCores) {
  const Machine &m = GetParam();
  EXPECT_GE(m.clockHz, 1e9);
  EXPECT_LE(m.clockHz, 3e9);
  EXPECT_GE(m.hbmBytesPerSecond, 1e11);
  EXPECT_LE(m.hbmBytesPerSecond, 1e13);
  EXPECT_GT(m.l2BytesPerSecond, m.hbmBytesPerSecond);
  double smemRate = m.smemBytesPerClockPerSm * m.sms * m.clockHz;
  EXPECT_GT(smemRate, m.l2BytesPerSecond);
  EXPECT_EQ(m.smemBytesPerClockPerSm, 128);
}

TEST_P(Row, UnitsPerClockArePowersOfTwo) {
  const Machine &m = GetParam();
  EXPECT_TRUE(m.fp32FlopsPerClockPerSm == 128 ||
              m.fp32FlopsPerClockPerSm == 256);
  EXPECT_TRUE(m.expPerClockPerSm == 16 || m.expPerClockPerSm == 32);
  EXPECT_LT(m.fp32FlopsPerSecond(), 2e14);
  if (m.family == TensorCoreFamily::none) {
    EXPECT_EQ(m.tensor16FlopsPerClockPerSm, 0);
    EXPECT_EQ(m.mmaSyncFlopsPerClockPerSm, 0);
    return;
  }
  EXPECT_TRUE(isPowerOfTwo(m.tensor16FlopsPerClockPerSm));
  EXPECT_GT(m.tensor16FlopsPerClockPerSm, m.fp32FlopsPerClockPerSm);
  EXPECT_LE(m.mmaSyncFlopsPerClockPerSm, m.tensor16FlopsPerClockPerSm);
  EXPECT_GE(m.mmaSyncFlopsPerClockPerSm, m.tensor16FlopsPerClockPerSm / 4);
}

TEST_P(Row, EightBitRateIsTwiceTheSixteenBitRate) {
  const Machine &m = GetParam();
  bool hasFp8 = m.computeCapability >= 89;
  EXPECT_EQ(m.tensor8FlopsPerClockPerSm,
            hasFp8 ? 2 * m.tensor16FlopsPerClockPerSm : 0);
  EXPECT_EQ(m.hasBf16, m.computeCapability >= 80);
}

TEST_P(Row, MeasurementsStayBelowTheDatasheet) {
  const Machine &m = GetParam();
  EXPECT_FALSE(m.source.empty());
  EXPECT_LE(m.measuredHbmBytesPerSecond, m.hbmBytesPerSecond);
  EXPECT_EQ(m.measuredHbmBytesPerSecond > 0, !m.measuredSource.empty());
}

TEST_P(Row, EveryFieldCanBeOverridden) {
  for (const MachineField &field : machineFields()) {
    Machine m = GetParam();
    double value = *fieldValue(m, field.name) + 1024;
    EXPECT_EQ(overrideField(m, field.name, value), std::nullopt);
    EXPECT_EQ(*fieldValue(m, field.name), value) << field.name;
  }
}

INSTANTIATE_TEST_SUITE_P(GPUs, Row, testing::ValuesIn(machines()),
                         [](const auto &info) { return info.param.name; });

TEST(Machine, DatasheetRates) {
  // TFLOP/s, 16 bit, dense, f32 accumulators, as the vendor prints them.
  std::pair<const char *, double> stated[] = {
      {"t4", 65},          {"a100_80g", 312}, {"rtx_a6000", 154.8},
      {"l4", 121},         {"rtx_4090", 165}, {"rtx_5090", 209.5},
      {"h100_sxm", 989.4}, {"h200", 989.4},   {"b200", 2250}};
  for (auto &[name, teraflops] : stated) {
    double rate = findMachine(name)->tensor16FlopsPerSecond() / 1e12;
    EXPECT_NEAR(rate / teraflops, 1, 0.015) << name;
  }
}

TEST(Machine, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const Machine &m : machines()) {
    EXPECT_TRUE(names.insert(m.name).second) << m.name;
    EXPECT_EQ(findMachine(m.name), &m);
    EXPECT_NE(machineNames().find(m.name), std::string::npos);
  }
  EXPECT_EQ(findMachine("h100"), nullptr);
  EXPECT_EQ(findMachine(""), nullptr);
}

TEST(Machine, OverrideRefusesWithNumbers) {
  Machine m = *findMachine("h100_sxm");
  EXPECT_EQ(*overrideField(m, "smem", 1),
            "expects a machine field, but got 'smem'");
  EXPECT_EQ(*overrideField(m, "sms", 0),
            "expects sms between 1 and 1000000, but got 0");
  EXPECT_EQ(*overrideField(m, "sms", 1.5),
            "expects sms to be a whole number, but got 1.500000");
  EXPECT_TRUE(overrideField(m, "clock_hz", NAN).has_value());
  EXPECT_EQ(m.sms, 132);
  EXPECT_EQ(fieldValue(m, "smem"), std::nullopt);
}

/// What nothing can be divided by is refused by its name.
TEST(Machine, OverrideRefusesNothing) {
  for (const MachineField &field : machineFields()) {
    Machine m = *findMachine("h100_sxm");
    auto sentence = overrideField(m, field.name, 0);
    if (field.name == "smem_bytes_per_block" ||
        field.name == "smem_bytes_per_sm")
      EXPECT_EQ(sentence, std::nullopt);
    else
      EXPECT_EQ(sentence.value_or("").find(
                    "expects " + std::string(field.name) + " between "),
                0u)
          << field.name;
  }
}

/// A block may not use more shared memory than a multiprocessor has.
TEST(Machine, ContradictionsAreFound) {
  for (const Machine &machine : machines())
    EXPECT_EQ(check(machine), std::nullopt) << machine.name;
  Machine m = *findMachine("h100_sxm");
  EXPECT_EQ(overrideField(m, "smem_bytes_per_sm", 0), std::nullopt);
  EXPECT_EQ(*check(m),
            "expects smem_bytes_per_sm to be at least 233472, "
            "smem_bytes_per_block and 1024 that the system keeps, but got 0");
  EXPECT_EQ(overrideField(m, "smem_bytes_per_block", 0), std::nullopt);
  EXPECT_EQ(overrideField(m, "smem_bytes_per_sm", 1024), std::nullopt);
  EXPECT_EQ(check(m), std::nullopt);
}

TEST(Machine, OverrideOutranksMeasurement) {
  Machine m = *findMachine("h100_sxm");
  EXPECT_GT(m.measuredHbmBytesPerSecond, 0);
  EXPECT_EQ(overrideField(m, "hbm_bytes_per_second", 1e12), std::nullopt);
  EXPECT_EQ(m.measuredHbmBytesPerSecond, 0);
}

} // namespace
