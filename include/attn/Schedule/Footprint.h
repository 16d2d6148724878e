//===- Footprint.h - What a schedule occupies -------------------*- C++ -*-===//
///
/// `peakWords` is the theory's footprint: the most words in fast memory at one
/// time, found by walking the tree with its scopes.  FlashAttention with 8
/// queries, 8 keys and slices of one column at d = 16 holds Q and O (128 each),
/// the statistics (16), scores (64) and a slice of K or V (8): 344.
///
/// `footprint` is what one block occupies on a GPU, launch by launch, the most
/// over the launches.  A row of c columns in shared memory takes its bytes
/// rounded up to an odd multiple of 16, so that eight rows fall into different
/// banks; buffers begin at multiples of 128; a ring has one buffer per stage.
/// Results leave through a staging buffer that reuses the place of the resident
/// input, which is dead by then (rings may already be filling again).
///
/// A pipeline lies in shared memory as the copy engine wants it: every buffer
/// in panels of 128 bytes a row, at multiples of 1024; behind them a pair of
/// barriers per ring and the queue of tiles.  In bf16, d = 128 with 128
/// queries, 128 keys, two stages of each and 64 columns of staging: 2·32 + 4·32
/// + 16 KiB and 160 bytes.  In f8e4m3 a ring of V's transposed tiles joins
/// them, and the staging is bf16: 2·16 + 6·16 + 16 KiB and 192 bytes.  What is
/// split has its parts there, of bf16, and a ring through which f32 comes a few
/// rows at a time; O is stored from registers.  With 128 queries, 64 keys and
/// one stage: 3·(32 + 16 + 16) + 4·8 KiB and 224 bytes.  K and V of f8e4m3
/// under Q of bf16 have rings of two blocks more, in bf16: with 64 queries, 64
/// keys and four stages 16 + 4·(8 + 8) + 2·(16 + 16) + 8 KiB and 304 bytes.
///
/// A pipeline of products has one ring of pairs of factors, of 128 + `width`
/// rows of a panel each, and a staging buffer of 128 rows as wide: with three
/// pairs of 128 + 256, 3·48 + 64 KiB and, for barriers and queue, 160 bytes.
/// Like warps have such a ring of slices as the loops cut them, and no staging:
/// with three pairs of 128 x 32 and 32 x 128 bf16, 3·(10 + 8.5) KiB.
///
/// Registers are an estimate: accumulators are exact, the rest is what operands
/// in flight and addresses take.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_FOOTPRINT_H
#define ATTN_SCHEDULE_FOOTPRINT_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Costs.h"
#include "attn/Schedule/Schedule.h"
#include <vector>

namespace attn {

/// Messages of the queue of steps that a pipeline for gradients has where
/// blocks are listed.
inline constexpr int64_t kStepMessages = 4;

/// The most scratch of a plan that does not spill whole tensors.
inline constexpr int64_t kMostScratchBytes = int64_t(256) << 20;

/// One launch, without its scratch memory; and of a grid in a launch of its
/// own.
Footprint launchFootprint(const Schedule::Launch &launch,
                          const Problem &problem, const Machine &machine);
Footprint gridFootprint(const Grid &grid, const Problem &problem,
                        const Machine &machine);

/// The most over all launches, and the scratch of all of them.
Footprint footprint(const Schedule &schedule, const Problem &problem,
                    const Machine &machine);

/// A sentence with number and limit when a schedule with that footprint does
/// not fit.
std::optional<std::string> checkFootprint(const Footprint &footprint,
                                          const Schedule &schedule,
                                          const Problem &problem,
                                          const Machine &machine);

/// Words in fast memory at one time, by the two-level model: the tiles of the
/// scopes around a leaf, one of each ring, and of one ring for all a unit.
struct HeldWords {
  int64_t smem = 0, registers = 0;
  int64_t all() const { return smem + registers; }
};
/// While each leaf runs, in the order of the tree.
std::vector<HeldWords> heldWords(const Schedule &schedule,
                                 const Problem &problem);
/// The most of them.
int64_t peakWords(const Schedule &schedule, const Problem &problem);

/// Whether every other row of the inputs and outputs begins in the middle of a
/// sector of 32 bytes, if they lie one behind the other.  So do those of
/// buffers that they are copied to, or sectors would come from L2 twice: with
/// 72 columns `flash` took 1.26 times as long on an H100 as with 80.
bool staggersRows(const Problem &problem);

/// Bytes of a row of `columns` elements in shared memory, where no swizzle
/// permutes it (`padded` of `!tile.smem`, or `staggered`).
int64_t smemPitch(int64_t columns, int64_t bytesPerElement,
                  bool isStaggered = false);

/// Warps of so many registers per thread that a multiprocessor has room for.
/// Registers are dealt out to a warp in units of 256, from the quarter of the
/// file that belongs to its scheduler; so the number is a multiple of four.
int64_t warpsPerSm(int64_t registersPerThread, const Machine &machine);

/// The most registers that one thread can have, and threads of a block.
inline constexpr int64_t kMaxRegistersPerThread = 255, kMostThreads = 1024;

/// Descriptors of a factor of wgmma, one per step of 32 contracted bytes, that
/// a kernel keeps in uniform registers: 4 words for a pair, of 63.  Where there
/// are more, each is made anew.
inline constexpr int64_t kMostKeptDescriptors = 10;

/// Who rewrites what the producer loads, in warps of its own.
enum class Helper { none, transposer, splitter, widener };

/// How the warpgroups of a pipeline share the registers of a multiprocessor.
struct RegisterBudget {
  int64_t producer, consumer; ///< per thread
  int64_t others = 1;         ///< warpgroups beside the consumers

  /// Warps beside the producer's, for what transposes, splits or widens.
  int64_t helperWarps() const { return 4 * others - 1; }
};
/// Warps of a helper share the producer's registers: those that it leaves of
/// its warpgroup, and of more where they split, or widen for one of consumers.
/// One that `merges` draws tiles of several kinds.
RegisterBudget registerBudget(int64_t consumerWarpgroups,
                              Helper helper = Helper::none, bool merges = false,
                              int64_t pairs = 1);

/// The ring through which f32 comes that is split in pieces of so many rows,
/// which divide the `keys` of a step; of wide rows as few as a swizzle has.
struct Landing {
  int64_t stages, rows, columns;
  int64_t bytes() const; ///< of all stages
};
Landing landingOf(const Problem &problem, int64_t keys);

} // namespace attn

#endif // ATTN_SCHEDULE_FOOTPRINT_H
