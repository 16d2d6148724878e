//===- Calibration.h - What the model knows in general ----------*- C++ -*-===//
///
/// Every constant of the model, with its source.  Nothing here belongs to one
/// machine (that would be a column of GPUs.def) or to one shape.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_CALIBRATION_H
#define ATTN_SCHEDULE_CALIBRATION_H

#include <cstdint>

namespace attn {

/// Registers of a thread for addresses, loop control and masks: what ptxas 13.0
/// adds to the fragments of a flash kernel.  Over 90 kernels (d = 8 to 128, 16
/// and 32 rows a warp, 16 to 128 keys) those that are then put at 255 or less
/// do not spill; d = 96 with 64 keys (260) and d = 128 with 48 (276) do.
inline constexpr int64_t kBaseRegisters = 36;
/// The same of a thread of a consumer warpgroup, whose operands come from
/// shared memory: d = 64 with 128 keys fits 160 registers (156) and is
/// serialised with 144 keys (168), d = 128 fits 240 up to 192 keys (236), d =
/// 256 with 80 (216).
inline constexpr int64_t kBaseRegistersOfConsumer = 28;
/// Columns of a right operand that are loaded ahead of their product.
inline constexpr int64_t kColumnsInFlight = 128;

/// Schedulers of a multiprocessor, since Maxwell: each issues one instruction
/// per clock and has a quarter of the register file.
inline constexpr int64_t kSchedulersPerSm = 4;

struct Calibration {
  /// Share of the vendor's memory rate that a copy reaches: the H100's 2.97 of
  /// 3.35 TB/s, used where the machine itself has not been measured.
  double hbmEfficiency = 0.886;
  /// Share of L2 that keeps what will be read again: on an H100 a spilled
  /// tensor began to fall out at about 20 of 50 MB.
  double l2UsableShare = 0.4;
  /// Issue slots per 32 scores in a softmax: max, fma, exp, add, half a
  /// conversion.  A compiled loop has 4.6 (68 + 68 + 66 + 62 + 32 of 64).
  double softmaxSlots = 4.6;
  /// Bytes that one warp instruction moves: ldmatrix.x4, 16 bytes per thread.
  double bytesPerWarpInstruction = 512;
  /// Slots of a global copy: the copy, its address, its predicate.
  double copySlots = 3;
  /// FLOPs of one m16n8k16 of a warp, and of one FMA of a warp.
  double flopsPerMma = 4096;
  double flopsPerFma = 64;
  /// Of the time that one warp leaves a scheduler idle, the share that another
  /// warp of the same block can use; a warp of another block uses all of it.
  double independenceWithinBlock = 0.6;
  /// Matrix products and the fragment reads that feed them overlap within a
  /// warp, but for this share of the shorter.  Together with the rule for idle
  /// schedulers this puts FlashAttention-2 where it was published: about 220
  /// and 190 TFLOP/s on an A100 at d = 128 and 64, 340 and 300 on an H100.
  double fragmentShare = 0.25;
  /// Clocks from the first warp's arrival at a barrier to the last one's
  /// departure, in a loop with one barrier per product.
  double barrierClocks = 100;
  /// Clocks in which a block begins and ends: it is launched, works out where
  /// it is, writes its statistics.  Fitted to 630 mma_sync kernels of 130
  /// problems on an H100, half of them short: 16 % too fast without it, now 2
  /// %.
  double startClocks = 1200;
  /// Levels combine as a power mean.  With 4, device memory at 65 % of the
  /// longest resource adds 4 %: there it was seen to begin to limit an H100.
  double contentionPower = 4;
  /// Seconds from issuing a load to its arrival: about 270 clocks from L2 and
  /// 500 to 800 from memory on recent parts, with queueing.
  double loadLatencySeconds = 0.6e-6;
  /// What one more launch costs in a stream.
  double launchSeconds = 2.5e-6;

  // Pipelines.  Fitted together to 14,000 forward kernels of 160 problems on an
  // H100 (2026-11-21, tools/bench/results/*-choice-*.json): the order of the
  // kernels of a problem first, then their times.  ChoiceTest has what is left.

  /// Units of a multiprocessor that are busy at once combine as a power mean:
  /// warpgroups that work on their own collide.
  double pipelinePower = 2.95;
  /// The same where they take turns, and the clocks that a turn costs the
  /// tensor cores: + 2 % where exponentials bind (d = 64), else nothing.
  double turnPower = 3.74, turnClocks = 8.6;
  /// Clocks in which the tensor cores go from one warpgroup to the next.
  double switchClocks = 7.8;
  /// What one warpgroup does one behind the other hides under the work of all
  /// until it is nearly as long.
  double chainPower = 5.4;
  /// Issue slots per 32 scores of a softmax that seldom rescales: half a
  /// maximum (of three integers at once), fma, exp, add, half a conversion.
  double lazySoftmaxSlots = 4.36;
  /// Slots of a warp per step beside the softmax, and per wgmma: a compiled
  /// step of 64 x 128 scores has about 365 of them at d = 128 (16 wgmma) and
  /// 360 at d = 64 (12).
  double stepSlots = 25.2, wgmmaSlots = 1.64;
  /// Clocks of a step in which a warpgroup waits: for the barrier, for the
  /// first scores, for shuffles.
  double waitClocks = 460;
  /// Share of the counted bytes of shared memory that take time: counters show
  /// 42 to 44 % of the peak where the bytes make 71 %.
  double operandShare = 0.6;
  /// Copy engines bring boxes row by row, 128 bytes or less of each.  A row
  /// takes as long as so many bytes more would, and longer where rows begin
  /// within a sector of 32 bytes, as every other one does where the head
  /// dimension is an odd multiple of 8; all at this multiple of what plain
  /// loads reach in L2.
  double boxBytes = 64, crossingBytes = 200, boxGain = 1.41;
  /// How much more than its share of L2's rate one copy engine gets in a burst,
  /// as for queries, or where several blocks need the same and each brings a
  /// part.
  double burstGain = 1.94;
  /// Seconds of a load that a ring with room for half a block more does not
  /// hide.
  double copyLatencySeconds = 0.165e-6;
  /// Of the time that warpgroups wait for the last one of a tile, the share
  /// that is lost although the next tile's queries are there.
  double idleShare = 0.72;
  /// Share of a short tile that is left when the first multiprocessor has
  /// nothing more to do, where tiles differ in length.
  double tailShare = 0.35;
  /// The share by which a ring of two slots lengthens a round: a block that is
  /// late, or a warpgroup, holds up all.  Of more slots it is as much less as
  /// there are more beyond the first.
  double ringShare = 0.0066;
  /// Seconds from handing a slot back to the arrival of its next block from a
  /// device memory that is busy.  By Little's law a ring brings at most its
  /// bytes in that time: a window of 128 keys at d = 64 took 121 to 129 us with
  /// two stages of 64 keys, 98 with four, and no less with more.
  double memoryLatencySeconds = 1.35e-6;
  /// Clocks between two tiles, per warpgroup: barriers, the next tile's place,
  /// the statistics; per 32 outputs of a warp the slots to scale, convert and
  /// stage them; per strip of the staging buffer the wait for the strip before.
  double groupTileClocks = 378, epilogueSlots = 5.5, stripClocks = 277;
  /// More of them under a mask, per warpgroup: each ends at a step of its own.
  double maskedGroupClocks = 249;
  /// The share of these that is gone when the ring has slots enough.  Measured
  /// at d = 64 with four slots instead of two: 2 to 4 % less time for 1024
  /// causal rows, 1 to 2 % for a window of 1024 keys.
  double aheadShare = 0.68;
  /// Clocks in which one warp transposes 32 x 16 bytes: about ten instructions
  /// (a read and a write of four matrices, four permutes, addresses), one every
  /// other clock; and in which it waits, per step, for three barriers.  An
  /// estimate.
  double transposeClocks = 24, transposeWaitClocks = 200;
  /// More of them where every tile is a block of its own: the start of a block
  /// and its barriers.  First loads and scores come on top.
  double blockClocks = 1850;

  // Groups of blocks that share rows.  Fitted to kernels of two and four blocks
  // (d = 512 and 1024) on an H100 (2026-11-21).

  /// Clocks of a share of P beside its product: the product before it drains, P
  /// is scaled.  A strip took 13.3 K clocks of 8.2 K of products with two
  /// shares, 29 K of 16.4 K with four; in a kernel written by hand 10.4
  /// and 19.6 K, which would be 470 here.
  double shareClocks = 2400;
  /// Latencies of L2 from the last write of a share to its first read
  /// elsewhere: the write, the flag, the poll.
  double exchangeLatencies = 3;
};

} // namespace attn

#endif // ATTN_SCHEDULE_CALIBRATION_H
