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

/// How blocks of like warps wait.  Forward was fitted to 5,800 mma_sync kernels
/// of 25 border searches on an H100 with 48 to 227 KiB for a block, whose tiles
/// were at most 1.7 times as long as the best of their problem; score_spill and
/// output_spill without a mask (2026-11-26).  Within a problem, which is what a
/// choice sees, they were met to 8.5 % (sd), before to 11.7; tiles under a mask
/// have been ordered since.  Gradients are met to 16.5 %.
struct LikeWarps {
  /// Of the time that one warp leaves a scheduler idle, the share that another
  /// warp of the same block can use; a warp of another block uses all of it.
  double independenceWithinBlock;
  /// The same where a ring brings slices of a step, so that a barrier keeps
  /// warps together for every few products; and clocks that a unit of a ring of
  /// two slots waits for its copy, which began one unit ago.  Of
  /// streamed_query's kernels with 128 rows (d = 64 to 256) those with three
  /// stages took 8 to 16 % less time than those with two.
  double independenceWithinUnit, lateUnitClocks;
  /// A scheduler with n independent warps leaves gaps that are shorter by n to
  /// this power: two often wait at the same time.
  double fillPower;
  /// Clocks from the first warp's arrival at a barrier of four to the last
  /// one's departure, in a loop with one barrier per product.  Of n warps they
  /// grow with n to this power, since all wait for the last one.
  double barrierClocks, barrierPower;
  /// Clocks in which a block begins and ends: it is launched, works out where
  /// it is, writes its statistics.  Of 630 mma_sync kernels of 130 problems on
  /// an H100 half were short, and 16 % too fast without it.
  double startClocks;
  /// The same on top of a tile whose block has places: it takes tile after
  /// tile, but nothing of the next one is on its way when one ends.  Without
  /// it tiles of at most three steps were 10 to 20 % too fast (2026-11-26).
  double placesStartClocks;
  /// How what multiprocessors do combines with what they bring through L2: 32
  /// queries at a time take longer than 64 although L2 has half to do.
  double l2Power;
  /// By how much the clock of a long run at full power rises towards idle
  /// tensor cores, as `spareClock`; mma_sync takes more power for them.
  double spareClock;
  /// How many times as long copies take as their bytes at the rate of L2: where
  /// rows are whole sectors of 32 bytes; where they stagger (`staggersRows`),
  /// so that a slice takes 4.5 sectors instead of 4 and half as many requests
  /// again; and where sectors cross twice, as those of f32 do.
  double wholeSectors, staggeredSectors, cutSectors;
  /// A request to L2 is for a line of 128 bytes at most, and one for a row of
  /// less takes so much of the time that is left of a whole one's.  Without it,
  /// and with 1.39 for rows that stagger, streamed_query was taken for the
  /// fastest in 3 of 180 border problems where it took 1.18 to 1.33 times as
  /// long as flash (2026-11-26).
  double narrowShare;
};

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
  /// mma_sync had errors of 17.4 and 17.5 % (sd), so and with
  /// `placesStartClocks` 14.6 and 14.9: what was put as held with 15 to 20 of
  /// 50 MB took up to 1.2 times as long as predicted, what was put as lost with
  /// 20 to 25 MB 0.9 times (2026-11-26).
  double placesHeldShare = 0.25, placesLostShare = 0.46;
  /// Issue slots per 32 scores in a softmax: max, fma, exp, add, half a
  /// conversion.  A compiled loop has 4.6 (68 + 68 + 66 + 62 + 32 of 64).
  double softmaxSlots = 4.6;
  /// The same of weights from a known LSE (fma, exp, half a conversion), and of
  /// dS from dP (subtract, multiply, half a conversion).
  double weighSlots = 2.5, differentiateSlots = 2.5;
  /// The same of a step, however many keys it has, per 16 rows: maxima pass
  /// between lanes, what was summed shrinks, the loop goes on, barriers, copies
  /// start.  Fitted to 1,100 mma_sync kernels on an H100; without them those of
  /// d = 16 with 16 keys were 1.3 to 1.5 times too fast.
  double stepSlots = 45;
  /// Bytes that one warp instruction moves: ldmatrix.x4, 16 bytes per thread.
  double bytesPerWarpInstruction = 512;
  /// Slots of a global copy: the copy, its address, its predicate.
  double copySlots = 3;
  /// FLOPs of one m16n8k16 of a warp, and of one FMA of a warp.
  double flopsPerMma = 4096;
  /// The same of a product in tf32x3: three m16n8k8, and what it takes to add
  /// their sums in f32.  A compiled loop has 4.7 instructions to 2048 FLOPs.
  double flopsPerSplitMma = 435;
  /// Slots of 32 factors that are split (a product, a cut, a difference), and
  /// of 32 that are rounded, on a part that does not do it in one instruction.
  double splitSlots = 3, roundSlots = 4;
  double flopsPerFma = 64;
  /// Gradients were fitted earlier, to kernels of their own (GradientTimeTest).
  LikeWarps forwardWarps = {/*independenceWithinBlock=*/0.55,
                            /*independenceWithinUnit=*/0,
                            /*lateUnitClocks=*/376,
                            /*fillPower=*/0.71,
                            /*barrierClocks=*/80,
                            /*barrierPower=*/1.75,
                            /*startClocks=*/2076,
                            /*placesStartClocks=*/1050,
                            /*l2Power=*/3.28,
                            /*spareClock=*/0.39,
                            /*wholeSectors=*/0.8,
                            /*staggeredSectors=*/1.18,
                            /*cutSectors=*/1.39,
                            /*narrowShare=*/0.3};
  LikeWarps gradientWarps = {/*independenceWithinBlock=*/0.6,
                             /*independenceWithinUnit=*/0.1,
                             /*lateUnitClocks=*/250,
                             /*fillPower=*/1,
                             /*barrierClocks=*/100,
                             /*barrierPower=*/0,
                             /*startClocks=*/1200,
                             /*placesStartClocks=*/0,
                             /*l2Power=*/4,
                             /*spareClock=*/0,
                             /*wholeSectors=*/1,
                             /*staggeredSectors=*/1,
                             /*cutSectors=*/1,
                             /*narrowShare=*/0};
  /// Matrix products and the fragment reads that feed them overlap within a
  /// warp, but for this share of the shorter.  Together with the rule for idle
  /// schedulers flash is put at 183 and 165 TFLOP/s on an A100 at d = 128 and
  /// 64 (16384 rows, 16 heads), 321 and 301 on an H100; FlashAttention-2 was
  /// published with about 220 and 190, 340 and 300.
  double fragmentShare = 0.25;
  /// Levels combine as a power mean.  With 4, device memory at 65 % of the
  /// longest resource adds 4 %: there it was seen to begin to limit an H100.
  double contentionPower = 4;
  /// Seconds from issuing a load to its arrival: about 270 clocks from L2 and
  /// 500 to 800 from memory on recent parts, with queueing.
  double loadLatencySeconds = 0.6e-6;
  /// What one more launch costs in a stream.
  double launchSeconds = 2.5e-6;

  // Pipelines.  Fitted together to 30,000 forward kernels of 330 problems on an
  // H100 (2026-11-21 and -22, tools/bench/results/searches.tsv): what the
  // choice loses, how the kernels of a problem near its best compare, then
  // their times.  ChoiceTest has what is left.

  /// Units of a multiprocessor that are busy at once combine as a power mean.
  double unitPower = 2.5;
  /// By how much longer exponentials and instructions take for each warp that a
  /// scheduler has fewer than three: what one waits for, others fill.  At d =
  /// 48, 128 rows and 176 keys at a time took 352 us, 192 and 96 326 us.
  double fewWarpsShare = 0.39;
  /// Clocks of the tensor cores per step: of a turn, for its barrier; without
  /// overlap, where a warpgroup waits for its output before it starts scores.
  double turnClocks = 74, drainClocks = 77;
  /// Of what units lose if all warpgroups do the same at the same time, the
  /// share that is lost where nothing keeps them apart: without overlap, for
  /// two (three: squared), and with it.  At d = 192 two warpgroups without
  /// turns and overlap took 26 % longer than with overlap, in turns 7 %.
  double inStepShare = 0.42, lockedShare = 0.15;
  /// Share of the others' products for which a warpgroup waits that is free to
  /// meet them.
  double meetShare = 0.42;
  /// More of the two in a multiprocessor's first tile: what begins in step
  /// stays so for long.  With a tile for each, kernels that are free took 1.2
  /// times as long as those in turns (d = 72, 192 rows); with 20 as long.
  double firstLockedShare = 0.09, firstMeetShare = 0.22;
  /// Clocks of a scheduler per 32 scores of a softmax that seldom rescales,
  /// beside the exponential: 4.4 instructions, of which some take two clocks.
  double softmaxClocks = 5.3;
  /// The same per step beside the softmax, and clocks of a step in which a
  /// warpgroup waits: for the barrier, for shuffles.
  double stepClocks = 99, waitClocks = 260;
  /// The same where a warpgroup has its multiprocessor to itself, and a step
  /// has 32 keys at most.  With 260, 78 such kernels of 64 rows and 32 keys for
  /// up to 99 KiB took 0.74 (d = 128), 0.85 (160) and 0.88 times (192) as long
  /// as predicted, now 0.79, 0.91 and 0.94 times (2026-11-25).
  double aloneWaitClocks = 173;
  /// Of a step's instructions, the share that overlaps the product for the
  /// output, if they were ordered so, as far as that lasts.
  double hiddenShare = 0.38;
  /// Share of the counted bytes of shared memory that take time: counters show
  /// 42 to 44 % of the peak where the bytes make 71 %.
  double operandShare = 0.6;
  /// Copy engines bring boxes row by row, 128 bytes or less of each.  Clocks of
  /// a row of a box, however long, where all engines are busy: 2.1 ns; where
  /// rows begin within a sector of 32 bytes, as every other one does if the
  /// head dimension is an odd multiple of 8: 3.4 ns.
  double boxClocks = 3.5, crossingClocks = 6.3;
  /// The share of them where rows are whole lines of 128 bytes: beside keys of
  /// 304 bytes, 64 keys with values of 384 bytes take 128 queries 1770 to 2030
  /// clocks, with values of 352 bytes 1900 to 2120.
  double wholeLinesShare = 0.5;
  /// The share of them that is left to an engine alone, and how it combines
  /// with what its multiprocessor does.
  double aloneShare = 0.31, ringPower = 12;
  /// The share by which a ring of two slots lengthens a round: a block that is
  /// late, or a warpgroup, holds up all.  Of more slots it is as much less as
  /// there are more beyond the first.
  double ringShare = 0.039;
  /// How much longer rounds of one warpgroup are, for which others split: while
  /// it waits for them nobody multiplies.  d = 192 and 256 in f32, 4096 and
  /// 16384 rows, took 1.2 to 1.37 times as long as predicted without this
  /// (2026-11-23).
  double loneSplitShare = 1.25;
  /// Share of the first fill of a ring that the first step waits for: with one
  /// tile each, four stages took 19.0 us, two 17.4 (d = 72, 3345 rows, a window
  /// of 923).
  double fillShare = 0.2;
  /// How copies of all engines combine with what multiprocessors do.
  double l2Power = 6.6;
  /// How much more than its share of L2's rate one copy engine gets in a burst,
  /// as for queries, or where several blocks need the same and each brings a
  /// part.
  double burstGain = 1.94;
  /// Of the time that warpgroups wait for the last one of a tile, the share
  /// that is lost although the next tile's queries are there.
  double idleShare = 0.79;
  /// Share of a short tile that is left when the first multiprocessor has
  /// nothing more to do, where tiles differ in length.
  double tailShare = 0.42;
  /// Seconds from handing a slot back to the arrival of its next block from a
  /// device memory that is busy.  By Little's law a ring brings at most its
  /// bytes in that time: a window of 128 keys at d = 64 took 121 to 129 us with
  /// two stages of 64 keys, 98 with four, and no less with more.
  double memoryLatencySeconds = 2.8e-6;
  /// By how much faster copy engines bring rows of 16 bits of more than 240
  /// columns when n multiprocessors walk along the same keys: by that times n
  /// to this power, under a mask to the other, where they begin apart.  Up to
  /// 160 columns not at all, as the searches of `Choice` have it.  Flash with
  /// more than 256 took 1.15 times as long as predicted at 300 rows and 0.86 to
  /// 0.90 times beyond 5000; with this 192 of its kernels at the border, of 170
  /// columns and more, are met to 9 % (rms), before to 11 % (2026-11-24).
  double sharedCopyGain = 0.8, sharedCopyPower = 0.1,
         maskedSharedCopyPower = 0.07;
  /// Clocks of a warpgroup between two tiles: barriers, the next tile's place,
  /// the statistics; per 32 outputs of a warp the slots to scale, convert and
  /// stage them; per strip of the staging buffer the wait for the strip before.
  double groupTileClocks = 451, epilogueSlots = 2.7, stripClocks = 116;
  /// Slots per 32 scores that may be hidden, and clocks of a loop of its own
  /// for blocks that a mask cuts: with 96 or 144 keys, causal kernels take 3 to
  /// 4 % more time, against those with 128, than without a mask.
  double maskSlots = 12, cutLoopClocks = 51;
  /// Fraction of the tile epilogue that is not overlapped; added when two
  /// warpgroups ping-pong; added when Q is single-buffered.  Three in ping-pong
  /// get only the first: with the second, tiles of up to eight steps were
  /// predicted 2 to 4 % too slow.
  double exposedShare = 0.23, exposedByTurnsShare = 0.19,
         exposedByQueriesShare = 0.11;
  /// Clocks per tile and warpgroup beyond the first that turns under a mask
  /// take times the share of rounds in which others pass theirs on.
  double passedTurnClocks = 870;
  /// Clocks in which one warp transposes 32 x 16 bytes: about ten instructions
  /// (a read and a write of four matrices, four permutes, addresses), one every
  /// other clock; and in which it waits, per step, for three barriers.  An
  /// estimate.
  double transposeClocks = 24, transposeWaitClocks = 200;
  /// Clocks in which one warp splits 8 x 64 numbers of f32: of about 190
  /// instructions those on bits, nearly half, take two; and in which it waits,
  /// per tile, for barriers.  An estimate.
  double splitUnitClocks = 240, splitWaitClocks = 250;
  /// Clocks of a scheduler for 32 weights that are split, and for 32 outputs
  /// that a sum is added to.  An estimate.
  double splitWeightClocks = 12, addClocks = 1.5;
  /// More of them where every tile is a block of its own: the start of a block
  /// and its barriers.  First loads and scores come on top.
  double blockClocks = 2350;
  /// The share of them, and of first loads and scores, that a persistent
  /// block's first tile takes too.  With one tile or two for each
  /// multiprocessor persistent blocks gained 0 to 2 %, not the 2 to 5 % that
  /// they are put at without.
  double firstStartShare = 0.44;
  /// What a launch takes beside its tiles: descriptors of tensors are fetched,
  /// first loads come from device memory, last stores leave.  Kernels of 20 to
  /// 50 us allow for no more.
  double pipelineSeconds = 1.5e-6;
  /// By how much a clock that has been measured in long runs, where power
  /// limits it, rises towards idle tensor cores: an H100's from 1.60 to 1.98
  /// GHz.
  double spareClock = 0.24;
  /// The same towards multiprocessors that have no tile at all: with 64 % of
  /// them, tall tiles took 0.87 of the time that they are put at without (d =
  /// 152, 192 rows), others with 91 % as long.
  double idleClock = 0.29;

  // Pipelines over keys.  From times of such a kernel on an H100 (d = 128, 64
  // queries and 128 keys at a time, two stages; 16384 tokens of 16 heads): 463,
  // 590 and 624 TFLOP/s with 1024, 4096 and 16384 rows, causal 290, 510 and
  // 591, all launches together.

  /// Tensor cores, shared memory, exponentials and instructions are all in each
  /// other's way: with 2560 clocks of products and 2976 of shared memory a step
  /// takes about 3500.
  double gradientPower = 3;
  /// Slots per 32 scores that may be hidden: an index, a comparison, a
  /// selection.  Of gradients in every step; of forward on mma_sync in blocks
  /// that a mask cuts.
  double hideSlots = 3;
  /// Clocks of a step in which a warpgroup waits: for dS of the others, for
  /// barriers, for products of which nothing else is left to do.
  double gradientWaitClocks = 800;
  /// Clocks between two tiles: the last sums, the accumulators leave, keys and
  /// values come.
  double gradientTileClocks = 3500;
  /// A grid beside the tiles: bytes that its warps of a multiprocessor read and
  /// write in a second (16 queries of d = 128, 12 KB, in 3 us); how many times
  /// as long as they need tiles must last, or they fall behind; seconds in
  /// which last sums arrive and are told of.  An H100 on 2026-11-22, TFLOP/s of
  /// all launches with such a grid and without: d = 128 474 and 447 (1024
  /// rows), 612 and 588 (4096), causal 306 and 315, 510 and 499; d = 64 397 and
  /// 385, 504 and 486, causal 283 and 271, 417 and 411.
  double besideBytesPerSecond = 4.05e9, besideRoom = 1.3,
         besideTailSeconds = 15e-6;
  /// A grid before the tiles that the same warps do: seconds in which one of
  /// them is through with 16 queries, seconds of a multiprocessor that tiles
  /// lose by those, and seconds in which all warps begin.  An H100 on
  /// 2026-11-23, us of one launch and of two: d = 128 739 and 736 (1024 rows),
  /// 1210 and 1272 (2048), 2225 and 2387 (4096), 8792 and 8952 (16384), causal
  /// 571 and 487, 771 and 772, 1310 and 1344, 4413 and 4496; d = 64 910 and
  /// 855, 2809 and 2771 (4096), 10404 and 10304 (16384), causal 740 and 598,
  /// 1645 and 1519, 5470 and 5251.
  double beforePartSeconds = 8e-6, beforeWorkSeconds = 0.17e-6,
         beforeBeginSeconds = 3e-6;
  /// Slowdown of the main tiles when the preparation grid is fused and dQ
  /// accumulation is ordered, or begins with first stores.  Ordered sums of d =
  /// 64 and 128 were 0 to 6 % slower than behind a launch.  Cause unknown.
  double beforeWaitShare = 0.03;
  /// Ordered sums: from when a tile's sums of a step are there to be added
  /// until the tile behind may add its own.  Not measured: an addition on its
  /// way to L2 and back, a flag behind it, a look at the flag.
  double turnSeconds = 2e-6;
  /// The same where tiles differ in length, the longest first, in lanes of
  /// heads (TileOrder.h): what an average tile loses, and each of its steps.
  /// Causal, 4096, 8192 and 16384 rows took 126, 300 and 240 us more than in
  /// any order at d = 128, 16384 rows 220 at d = 64 (2026-11-24); the shortest
  /// first, 1024, 4096 and 16384 rows, 59, 880 and 5200, and 20, 57 and 2400
  /// (2026-11-23).  With a grid beside the tiles steps lose more: d = 128 with
  /// 16384 rows took 100 to 270 us longer with one than without.
  double unequalTurnSeconds = 4e-6, turnStepSeconds = 0.08e-6,
         besideTurnSeconds = 0.1e-6;
  /// What tiles lose without a mask, which all begin with the same queries, if
  /// the first of them stores its part of dQ.  1024 rows of d = 64 and 128 were
  /// 1 and 2 % faster than with zeros, not 6 and 7 as without this; under a
  /// causal mask 8 and 12 %, as predicted.  Not of steps with as many queries
  /// as a tile has keys: d = 64 with 4096 and 16384 rows was 3 % faster.
  double firstStoresShare = 0.05;

  // Products of which a block keeps a tile.  Fitted to the launches of
  // spill_backward on an H100 (d = 256 to 1024, 16384 tokens of 2048 columns,
  // 1024 to 16384 rows; 2026-11-22); SpillBackwardTest has what is left.

  /// Clocks of a tile of scores in which both warpgroups wait: for the last
  /// products of S, then of dP; beside exponentials and instructions.
  double productScoreClocks = 1200;
  /// Clocks between two tiles of sums: the last products, scaling, the staging
  /// buffer; all warpgroups do it at once, and first loads come from device
  /// memory.  By launches of 1024, 4096 and 16384 rows 4 to 5 us with what a
  /// launch itself takes.
  double productTileClocks = 5200;
  /// Forward, by 61 merged launches on an H100 whose blocks take heads of their
  /// half of L2 (129 to 16384 rows, d = 72 to 4096; 2026-11-25), met to 6 %
  /// (rms), before to 9 %: what is left of the exposed clocks of scores, whose
  /// warpgroups take turns; of those between two tiles of outputs, beside which
  /// other blocks' scores are made; and what a launch takes more, of which the
  /// first outputs wait for the first scores.
  double productTurnsShare = 0.7, mergedOutputShare = 0.4;
  double mergedStartSeconds = 7e-6;
  /// Forward, how what multiprocessors do combines with what L2 brings: as with
  /// `heldL2Power`.  With `l2Power`, and 1.08 times as much of device memory as
  /// a copy gets, 771 kernels of 40 searches at the border were met to 7 %
  /// (rms), now to 5; so are those of the four that it was not fitted to,
  /// before to 6 (2026-11-26).
  double productL2Power = 3.1;
  /// Clocks of a step in which a left factor goes through registers to be
  /// scaled.  With 120 score_spill of 16 bits (d = 512 to 2048, 1024 and 4096
  /// rows) was met to 3 % in two launches.  Merged it is put 2 to 8 % too slow
  /// with this, column_split 2 % too fast to 4 % too slow (2026-11-23).
  double productFactorClocks = 130;
  /// Clocks of a tile of scores of which nothing is visible, for the block that
  /// takes it from the queue: of causal problems about one to every one that
  /// is, and those took 1.4 to 2.3 us more for each than without a mask.  Taken
  /// for blocks of like warps too, which are launched for nothing.
  double productHiddenClocks = 3500;
  /// How much more L2 seems to give where many multiprocessors ask for the same
  /// at the same time; and the same for sums under a mask, of which each begins
  /// or ends elsewhere.
  double productInStepGain = 1.9, productL2Gain = 1.45;
  /// The same for outputs under a mask, of which most begin with the same keys:
  /// with 1.45 merged score_spill, d = 512 to 2048, was put 2 % slower than
  /// without a mask, beside its times (2026-11-23).
  double productOutputL2Gain = 1.6;
  /// What products wait for slices, as the logarithm of a factor: of two stages
  /// as much less with three, and with every one more a quarter of that.  With
  /// two stages score_spill took 1.22 times as long as with three, with which
  /// all else here was measured; with four 0.95 to 1.00 times, but with three
  /// it is put 3 % too slow.
  double productRingWait = 0.2;
  /// How much longer products take with two stages beside that: both were held
  /// while they followed one another, so nothing was on its way.  Five
  /// problems, d = 360 to 568, took 1.31 to 1.6 times as long as predicted
  /// without this (2026-11-23).  One of two is held since; not measured again.
  double productHeldShare = 1.35;
  /// Of the clocks that rows of boxes take (`boxClocks`, `groupLineClocks`),
  /// what they take here.  Where rows of 240 to 648 columns begin within a line
  /// of 128 bytes, merged score_spill took 1.0 to 1.2 times as long with two
  /// stages as predicted without a second line, with four 1.0 to 1.4 times; of
  /// 307 kernels of 88 problems two thirds are now met to 9 %, before to 16 %
  /// (2026-11-23).
  double productBoxShare = 0.74;
  /// Of the tensor cores' rate, what products of parts reach whose tiles of 128
  /// columns take six of them out of shared memory.  Not fitted: d = 512 with
  /// 4096 rows is put 12 % too fast, other kernels of f32 as much or more.
  double productPartsShare = 0.88;

  // Gradients by like warps.

  /// As `operandShare`.  With all bytes split_backward in bf16, of which they
  /// take longest, is put at 1.18 of its times on an H100 (d = 64 to 256, 1024
  /// to 16384 rows), with these at 1.09; f32, of which products do, at 1.00.
  /// 0.8 is nearest, but chooses other tiles, which were not measured.
  double gradientOperandShare = 0.9;

  // Groups of blocks that share rows.  Fitted to times on an H100 (2026-11-22)
  // of 30 problems of 512 to 2048 columns and 80 of 200 to 256, with clusters
  // and without, which are met to 6 % (rms) and 15 % at most; and, at less
  // weight, to 207 of the kernel before, from the searches: 14 %.

  /// Issue slots per 32 scores of a softmax, as compiled: half a maximum (of
  /// three integers at once), fma, exp, add, half a conversion; and per wgmma.
  double groupSoftmaxSlots = 4.36, groupWgmmaSlots = 1.64;
  /// How much longer than exponentials alone the weights of the own share take:
  /// they wait for the last scores, a slice goes into its product at a time.
  double groupWeightShare = 2.53;
  /// Clocks of a share of P beside its product: it is waited for and scaled;
  /// and more in a cluster, whose blocks wait for each other with every unit.
  /// At d = 256 groups of two took 7 to 19 % longer in clusters.
  double shareClocks = 545, clusterShareClocks = 342;
  /// A tile of few strips under a mask, for every 128 columns of a block beyond
  /// the first: d = 512 at 1024 causal rows, 64 heads, took 219 us where 192
  /// were predicted (2026-11-22).  With 8000 for that one, 300 kernels of 200
  /// to 1100 causal rows (d = 224 to 608) took 0.85 times as long as predicted,
  /// with this and `groupSharedKeyClocks` 0.97 times (2026-11-23).
  double groupShortTileClocks = 2000;
  /// Clocks more of a row of a box that reaches into a second line of 128
  /// bytes, beside the exchange.  With rows of 448, 480 and 496 bytes (d = 224,
  /// 240, 248) groups without clusters took 8, 16 and 41 % longer than with
  /// those of 512, which 2.57 met; with this 3,166 kernels of 99 to 227 KiB are
  /// met to 6 % (rms), before to 7 (2026-11-26).
  double groupLineClocks = 1.9;
  /// Clocks in which a unit of the ring is handed back: by the last reader of a
  /// cluster, and until the next load starts.
  double handBackClocks = 470;
  /// Clocks more between two tiles: a tile's first scores and its last output
  /// have nothing beside them.  Under a mask, where tiles are not equally long,
  /// groups come to that at different times, and memory is free.
  double groupBoundaryClocks = 4900, groupMaskedBoundaryClocks = 2500;
  /// Of these, what is left out of a tile whose first keys another query head
  /// has just brought into L2.  Tiles of one to three strips took 5000 to 10000
  /// clocks less than predicted where two to eight heads share keys, but not
  /// where none do; with this short tiles without a mask are met to 11 % (rms),
  /// before to 14 % (2026-11-23).
  double groupSharedKeyClocks = 6000;
  /// What a launch takes more, in which all groups begin at once: so long, and
  /// so much longer than a copy as what they begin with comes from device
  /// memory.  With 4900 clocks under a mask as well and nothing for what groups
  /// begin with 1283 of eleven searches at the border were met to 9 % (rms),
  /// and to 8 since (2026-11-26).
  double groupStartSeconds = 4e-6, groupFirstLoadShare = 1.5;
  /// Latencies of L2 from the last write of a share to its first read
  /// elsewhere: the write, the flag, the poll.
  double exchangeLatencies = 3;

  // Blocks that hold P.  Fitted to times on an H100 (2026-11-26) of 463
  // problems at the border, which are met to 7 % (rms), to 8 with what was
  // fitted to 209 of 65 to 16000 rows, d = 64 to 744, before.

  /// From the start of a unit's load until its slot takes another one.
  double heldUnitClocks = 2110;
  /// What softmax takes of the clocks of its exponentials and instructions,
  /// where products do not hide it.
  double heldSoftmaxShare = 1.4;
  /// A tile of columns beside its products; and more if it comes back first.
  double heldColumnClocks = 2000, heldReturnClocks = 3100;
  /// What a launch takes more.
  double heldStartSeconds = 5.5e-6;
  /// Of the clocks that rows of boxes take, what they take here.
  double heldCopyShare = 0.71;
  /// Scores are read and outputs written by all blocks at about the same time,
  /// so less of what L2 does is hidden than with `l2Power`.
  double heldL2Power = 2.6;
  /// Of the queries that come again for every part of the keys, what is no
  /// longer in L2: with d = 1024 and 512 rows all of it, read in the same order
  /// both times; back and forth it is less.
  double queriesAgainShare = 0.46;
  /// Of L2, what keeps keys and values that tiles of a section want again under
  /// a mask: of 25 MB of 38 heads nothing came twice, of 64 heads with 512 rows
  /// of d = 1024 three quarters of 192 MB.
  double keptL2Share = 0.6;
};

} // namespace attn

#endif // ATTN_SCHEDULE_CALIBRATION_H
