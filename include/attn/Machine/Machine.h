//===- Machine.h - What a GPU is --------------------------------*- C++ -*-===//
///
/// A `Machine` is a row of facts about one GPU product, with the unit in every
/// name.  It holds no opinion: what a fact is good for is decided by the folds
/// over a schedule.  The rows live in GPUs.def, keyed by product and never by
/// family, because products of one architecture differ (an sm_86 part offers a
/// block 99 KiB of shared memory, the sm_80 part 163 KiB).
///
/// Two kinds of number stand side by side and are never mixed: what the vendor
/// states, and what somebody measured.  `hbmBytesPerSecond` of the H100 is the
/// vendor's 3.35e12; its `measuredHbmBytesPerSecond` is the 2.97e12 that a copy
/// reaches.  A measured fact is 0 where nobody measured.
///
/// Rates are kept per clock and per multiprocessor, as the hardware has them;
/// rates per second are derived.  Example, one H100: 4096 tensor FLOP per clock
/// and multiprocessor × 132 × 1.83e9 Hz = 989e12 FLOP/s.
///
/// Deliberately absent: anything learned from a device at compile time, and any
/// choice of tile.
//===----------------------------------------------------------------------===//

#ifndef ATTN_MACHINE_MACHINE_H
#define ATTN_MACHINE_MACHINE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// How matrix products are issued.  `none`: only the ordinary FMA pipes.
enum class TensorCoreFamily { none, mmaSync, wgmma, tcgen05 };

/// Spelled as in the names of kernels: `none`, `mma_sync`, `wgmma`, `tcgen05`.
std::string_view name(TensorCoreFamily family);

struct Machine {
  /// As users write it, `h100_sxm`; and as LLVM does, `sm_90a`.
  std::string name, chip;
  /// Major version times ten plus minor version: 90.
  int64_t computeCapability = 0;
  /// The newest family; a machine also runs `mmaSync` if it has any.
  TensorCoreFamily family = TensorCoreFamily::none;

  int64_t sms = 0;
  int64_t smemBytesPerBlock = 0; ///< the most that one block may use
  int64_t smemBytesPerSm = 0;
  int64_t registersPerSm = 0; ///< of 32 bits
  int64_t maxThreadsPerSm = 0;
  int64_t maxBlocksPerSm = 0;
  int64_t maxClusterSize = 1; ///< blocks, without opting into more
  int64_t l2Bytes = 0;
  int64_t hbmBytes = 0; ///< capacity of the device memory

  double clockHz = 0; ///< the boost clock of the vendor's tensor rate
  double hbmBytesPerSecond = 0;
  double l2BytesPerSecond = 0;
  double smemBytesPerClockPerSm = 0;
  double fp32FlopsPerClockPerSm = 0;
  double expPerClockPerSm = 0;
  /// Dense tensor-core rates with f32 accumulators.  The first two belong to
  /// the newest family; `mmaSync` is what the portable instruction reaches.
  double tensor16FlopsPerClockPerSm = 0;
  double tensor8FlopsPerClockPerSm = 0;
  double mmaSyncFlopsPerClockPerSm = 0;
  bool hasBf16 = false; ///< tensor cores take bf16, not only f16

  double measuredHbmBytesPerSecond = 0;
  double measuredL2BytesPerSecond = 0;
  double measuredClockHz = 0; ///< what long runs at full power sustain
  std::string source;
  std::string measuredSource;

  double fp32FlopsPerSecond() const {
    return fp32FlopsPerClockPerSm * sms * clockHz;
  }
  double tensor16FlopsPerSecond() const {
    return tensor16FlopsPerClockPerSm * sms * clockHz;
  }
  double tensor8FlopsPerSecond() const {
    return tensor8FlopsPerClockPerSm * sms * clockHz;
  }
  /// Shared memory that the system keeps for itself in every resident block:
  /// 1 KiB from cc 8.0 on (CUDA C++ Programming Guide, "Shared Memory").
  int64_t smemBytesReservedPerBlock() const {
    return computeCapability >= 80 ? 1024 : 0;
  }
  /// Whether a launch can begin ahead of the end of the one before it: from cc
  /// 9.0 on (the same guide, "Programmatic Dependent Launch").
  bool canChain() const { return computeCapability >= 90; }
};

/// All rows of GPUs.def, in its order.
const std::vector<Machine> &machines();

/// The row of that name, or null.
const Machine *findMachine(std::string_view name);

/// The names of all rows, separated by ", ": the note below every error about
/// an unknown machine.
std::string machineNames();

/// "expects a known machine, but got 'h1000'; known machines: ...".
std::string unknownMachine(std::string_view name);

/// A fact that can be overridden, spelled `smem_bytes_per_block`, and what it
/// may be.
struct MachineField {
  std::string_view name;
  bool isInteger;
  double least, most;
};

/// All facts that can be overridden.
std::vector<MachineField> machineFields();

/// Their names, separated by ", ".
std::string machineFieldNames();

/// Replaces one fact.  Returns a sentence on failure: no such field, a value
/// out of range, a fraction where a count is due.
std::optional<std::string> overrideField(Machine &machine,
                                         std::string_view field, double value);

/// A sentence when facts contradict each other: a block may not use more shared
/// memory than a multiprocessor has.  For when all are overridden.
std::optional<std::string> check(const Machine &machine);

/// What the machine has in that field; nothing if there is no such field.
std::optional<double> fieldValue(const Machine &machine,
                                 std::string_view field);

} // namespace attn

#endif // ATTN_MACHINE_MACHINE_H
