//===- Machine.cpp - The table and its fields -----------------------------===//

#include "attn/Machine/Machine.h"
#include <cmath>

using namespace attn;

std::string_view attn::name(TensorCoreFamily family) {
  switch (family) {
  case TensorCoreFamily::none:
    return "none";
  case TensorCoreFamily::mmaSync:
    return "mma_sync";
  case TensorCoreFamily::wgmma:
    return "wgmma";
  case TensorCoreFamily::tcgen05:
    return "tcgen05";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

static std::vector<Machine> readTable() {
  std::vector<Machine> table;
#define ATTN_GPU(NAME, CHIP, CC, FAMILY, SMS, SMEM_BLOCK, SMEM_SM, THREADS,    \
                 BLOCKS, CLUSTER, L2, MEMORY, CLOCK, HBM_RATE, L2_RATE, FP32,  \
                 EXP, TENSOR16, TENSOR8, MMA_SYNC, BF16, SOURCE)               \
  {                                                                            \
    Machine m;                                                                 \
    m.name = #NAME;                                                            \
    m.chip = CHIP;                                                             \
    m.computeCapability = CC;                                                  \
    m.family = TensorCoreFamily::FAMILY;                                       \
    m.sms = SMS;                                                               \
    m.smemBytesPerBlock = SMEM_BLOCK;                                          \
    m.smemBytesPerSm = SMEM_SM;                                                \
    m.registersPerSm = 65536;                                                  \
    m.maxThreadsPerSm = THREADS;                                               \
    m.maxBlocksPerSm = BLOCKS;                                                 \
    m.maxClusterSize = CLUSTER;                                                \
    m.l2Bytes = L2;                                                            \
    m.hbmBytes = MEMORY;                                                       \
    m.clockHz = CLOCK;                                                         \
    m.hbmBytesPerSecond = HBM_RATE;                                            \
    m.l2BytesPerSecond = L2_RATE;                                              \
    m.smemBytesPerClockPerSm = 128;                                            \
    m.fp32FlopsPerClockPerSm = FP32;                                           \
    m.expPerClockPerSm = EXP;                                                  \
    m.tensor16FlopsPerClockPerSm = TENSOR16;                                   \
    m.tensor8FlopsPerClockPerSm = TENSOR8;                                     \
    m.mmaSyncFlopsPerClockPerSm = MMA_SYNC;                                    \
    m.hasBf16 = BF16;                                                          \
    m.source = SOURCE;                                                         \
    table.push_back(m);                                                        \
  }
#define ATTN_MEASURED(NAME, HBM_RATE, L2_RATE, CLOCK, SOURCE)                  \
  for (Machine &m : table)                                                     \
    if (m.name == #NAME) {                                                     \
      m.measuredHbmBytesPerSecond = HBM_RATE;                                  \
      m.measuredL2BytesPerSecond = L2_RATE;                                    \
      m.measuredClockHz = CLOCK;                                               \
      m.measuredSource = SOURCE;                                               \
    }
#include "attn/Machine/GPUs.def"
  return table;
}

const std::vector<Machine> &attn::machines() {
  static const std::vector<Machine> table = readTable();
  return table;
}

const Machine *attn::findMachine(std::string_view name) {
  for (const Machine &machine : machines())
    if (machine.name == name)
      return &machine;
  return nullptr;
}

std::string attn::machineNames() {
  std::string names;
  for (const Machine &machine : machines())
    names += (names.empty() ? "" : ", ") + machine.name;
  return names;
}

std::string attn::unknownMachine(std::string_view name) {
  return "expects a known machine, but got '" + std::string(name) +
         "'; known machines: " + machineNames();
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

namespace {
/// A field that may be overridden: a count or a rate, and what it may be.  A
/// machine has some of everything but the shared memory that a block may use;
/// what it has none of is a matter of its chip.
struct Field {
  std::string_view name;
  int64_t Machine::*count;
  double Machine::*rate;
  double least, most;
};
} // namespace

static constexpr double kMost = 1e15;

static const Field fields[] = {
    {"sms", &Machine::sms, nullptr, 1, 1e6},
    {"smem_bytes_per_block", &Machine::smemBytesPerBlock, nullptr, 0, 1e9},
    {"smem_bytes_per_sm", &Machine::smemBytesPerSm, nullptr, 0, 1e9},
    // A warp on each scheduler has 8 for each thread.
    {"registers_per_sm", &Machine::registersPerSm, nullptr, 1024, 1e9},
    {"max_threads_per_sm", &Machine::maxThreadsPerSm, nullptr, 32, 1e6},
    {"max_blocks_per_sm", &Machine::maxBlocksPerSm, nullptr, 1, 1e6},
    {"max_cluster_size", &Machine::maxClusterSize, nullptr, 1, 1e6},
    {"l2_bytes", &Machine::l2Bytes, nullptr, 1, kMost},
    {"hbm_bytes", &Machine::hbmBytes, nullptr, 1, kMost},
    {"clock_hz", nullptr, &Machine::clockHz, 1e6, 1e11},
    {"hbm_bytes_per_second", nullptr, &Machine::hbmBytesPerSecond, 1e6, 1e18},
    {"l2_bytes_per_second", nullptr, &Machine::l2BytesPerSecond, 1e6, 1e18},
    {"smem_bytes_per_clock_per_sm", nullptr, &Machine::smemBytesPerClockPerSm,
     1, 1e6},
    {"fp32_flops_per_clock_per_sm", nullptr, &Machine::fp32FlopsPerClockPerSm,
     1, 1e6},
    {"exp_per_clock_per_sm", nullptr, &Machine::expPerClockPerSm, 1, 1e6},
    {"tensor16_flops_per_clock_per_sm", nullptr,
     &Machine::tensor16FlopsPerClockPerSm, 1, 1e7},
    {"tensor8_flops_per_clock_per_sm", nullptr,
     &Machine::tensor8FlopsPerClockPerSm, 1, 1e7},
    {"mma_sync_flops_per_clock_per_sm", nullptr,
     &Machine::mmaSyncFlopsPerClockPerSm, 1, 1e7},
};

std::string attn::machineFieldNames() {
  std::string names;
  for (const Field &field : fields)
    names += (names.empty() ? "" : ", ") + std::string(field.name);
  return names;
}

std::vector<MachineField> attn::machineFields() {
  std::vector<MachineField> result;
  for (const Field &field : fields)
    result.push_back(
        {field.name, field.count != nullptr, field.least, field.most});
  return result;
}

static const Field *findField(std::string_view name) {
  for (const Field &field : fields)
    if (field.name == name)
      return &field;
  return nullptr;
}

/// A number as a person writes it: 65536, 1.5, 1e+18.
static std::string number(double value) {
  bool isWhole = std::abs(value) < 1e16 && std::floor(value) == value;
  return isWhole ? std::to_string(static_cast<int64_t>(value))
                 : std::to_string(value);
}

std::optional<std::string>
attn::overrideField(Machine &machine, std::string_view name, double value) {
  const Field *field = findField(name);
  if (!field)
    return "expects a machine field, but got '" + std::string(name) + "'";
  std::string subject = "expects " + std::string(name);
  // Asked this way round, a NaN is outside.
  bool isInside = value >= field->least && value <= field->most;
  if (!isInside)
    return subject + " between " + number(field->least) + " and " +
           number(field->most) + ", but got " + number(value);
  if (field->rate) {
    machine.*field->rate = value;
    // An override is meant to be believed, over any measurement.
    if (field->rate == &Machine::hbmBytesPerSecond)
      machine.measuredHbmBytesPerSecond = 0;
    if (field->rate == &Machine::l2BytesPerSecond)
      machine.measuredL2BytesPerSecond = 0;
    if (field->rate == &Machine::clockHz)
      machine.measuredClockHz = 0;
    return std::nullopt;
  }
  if (std::floor(value) != value)
    return subject + " to be a whole number, but got " + number(value);
  machine.*field->count = static_cast<int64_t>(value);
  return std::nullopt;
}

std::optional<std::string> attn::check(const Machine &machine) {
  int64_t kept = machine.smemBytesReservedPerBlock();
  int64_t needed = machine.smemBytesPerBlock + kept;
  if (machine.smemBytesPerSm >= needed)
    return std::nullopt;
  return "expects smem_bytes_per_sm to be at least " + std::to_string(needed) +
         ", smem_bytes_per_block and " + std::to_string(kept) +
         " that the system keeps, but got " +
         std::to_string(machine.smemBytesPerSm);
}

std::optional<double> attn::fieldValue(const Machine &machine,
                                       std::string_view name) {
  const Field *field = findField(name);
  if (!field)
    return std::nullopt;
  return field->count ? static_cast<double>(machine.*field->count)
                      : machine.*field->rate;
}
