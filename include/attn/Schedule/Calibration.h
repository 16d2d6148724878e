//===- Calibration.h - What the model knows in general ----------*- C++ -*-===//
///
/// The constants of the model that are neither facts of a machine's data sheet
/// (GPUs.def) nor counts of a kernel's instructions
/// (lib/Schedule/Time/Work.cpp): registers that ptxas adds, what L2 keeps, and
/// the constants of time, which are fitted for each machine (Times.def,
/// tools/bench/fit.py).
///
/// A machine that nobody has measured borrows the constants of one that
/// somebody has.  Clocks stay clocks, so they follow its clock; seconds of
/// latencies and launches stay seconds; rates are those of its data sheet.  Its
/// plans say so.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_CALIBRATION_H
#define ATTN_SCHEDULE_CALIBRATION_H

#include <cstdint>
#include <string_view>

namespace attn {

struct Machine;

/// Registers of a thread for addresses, loop control and masks: what ptxas 13.0
/// adds to the fragments of a flash kernel.  Over 90 kernels (d = 8 to 128, 16
/// and 32 rows a warp, 16 to 128 keys) those that are then put at 255 or less
/// do not spill; d = 96 with 64 keys (260) and d = 128 with 48 (276) do.
inline constexpr int64_t kBaseRegisters = 36;
/// The same on top for products of split factors, which come in twos.
inline constexpr int64_t kSplitRegisters = 24;
/// The same on top where a block has places in scratch memory: their addresses,
/// where copies are; and per row of a warp (eight values of a row are two
/// registers for every sixteen) the maxima that places were written with, what
/// they make of sums, masks.  Of 110 kernels of score_spill those that are then
/// put at 255 or less do not spill, but 32 rows with 128 keys (256) do.
inline constexpr int64_t kPlaceRegisters = 12, kPlaceRegistersPerRow = 1;
/// The same of a thread of a consumer warpgroup, whose operands come from
/// shared memory: d = 64 with 128 keys fits 160 registers (156) and is
/// serialised with 144 keys (168), d = 128 fits 240 up to 192 keys (236), d =
/// 256 with 80 (216).
inline constexpr int64_t kBaseRegistersOfConsumer = 28;
/// The same where keys stay and gradients are added up: there are no statistics
/// of own rows.  FlashAttention-3 has so much left of 240 for 128 queries and
/// keys at d = 64.
inline constexpr int64_t kBaseRegistersOfGradients = 16;
/// Columns of a right operand that are loaded ahead of their product.
inline constexpr int64_t kColumnsInFlight = 128;

/// Schedulers of a multiprocessor, since Maxwell: each issues one instruction
/// per clock and has a quarter of the register file.
inline constexpr int64_t kSchedulersPerSm = 4;

/// What time depends on beside the facts of a machine.
struct Calibration {
  /// Share of the vendor's memory rate that a copy reaches: the H100's 2.97 of
  /// 3.35 TB/s, used where the machine itself has not been measured.
  double hbmEfficiency = 0.886;
  /// Share of L2 that keeps what will be read again: on an H100 a spilled
  /// tensor began to fall out at about 20 of 50 MB.
  double l2UsableShare = 0.4;
  /// The same of places of single blocks, which come back to them strip by
  /// strip: up to the first share of L2 it keeps all, from the second on none.
  /// With 0.4 for both, 3,900 kernels of score_spill and output_spill on
  /// mma_sync had errors of 17.4 and 17.5 % (sd), so 14.6 and 14.9.
  double placesHeldShare = 0.25, placesLostShare = 0.46;
  /// Of the queries that come again for every part of the keys, what is no
  /// longer in L2: with d = 1024 and 512 rows all of it, read in the same order
  /// both times; back and forth it is less.
  double queriesAgainShare = 0.46;
  /// Of L2, what keeps keys and values that tiles of a section want again under
  /// a mask: of 25 MB of 38 heads nothing came twice, of 64 heads with 512 rows
  /// of d = 1024 three quarters of 192 MB.
  double keptL2Share = 0.6;

  /// The machine whose constants of time these are.
  std::string_view machine, source;
#define ATTN_TIME(NAME, WORDS) double NAME = 0;
#include "attn/Schedule/Times.def"
};

/// Sets a constant of time by its name; false: there is none of that name.
bool setTime(Calibration &calibration, std::string_view name, double value);
/// What is known of a machine, or borrowed from the first one of its tensor
/// cores that was measured, or else the first of all.
const Calibration &calibrationOf(const Machine &machine);
/// Whether somebody measured the machine, and nothing is borrowed.
bool isCalibrated(const Machine &machine);

} // namespace attn

#endif // ATTN_SCHEDULE_CALIBRATION_H
