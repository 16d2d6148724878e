//===- Time.h - How long, and what binds ------------------------*- C++ -*-===//
///
/// Time is the most over all resources, plus what cannot overlap.  A number
/// without its binding resource cannot be argued with, so the fold names it.
///
/// For every launch:
///
///   1. Each resource's seconds if it alone were busy: the memory levels hbm,
///      l2 and smem, the tensor cores (or FMA pipes), the exp unit, and the
///      issue slots.
///   2. The phases of a warp depend on each other: scores, softmax, output.
///      With w warps per scheduler the others fill the gaps of one, so of all
///      work beside the busiest unit's a share of about 1/w stays exposed (1
///      over a power of w: `fillPower`).  This is what makes FlashAttention-2
///      on Hopper run at half of what mma.sync can do: two warps per scheduler.
///   3. Blocks come in waves; the last one is paid in full even if it is short.
///      Where blocks differ in length (masks) the longest go first, and only
///      the end is ragged.
///   4. Memory levels that are nearly as busy as the longest resource are in
///      its way now and then.
///   5. A launch, and the first loads of a block, which only other blocks on
///      the same multiprocessor can hide.
///
/// What binds is the longest term, be it a resource or what comes on top of
/// one: 65536 keys and one query keep one multiprocessor of an L4 busy, and the
/// last wave is what they wait for, though no unit is busier than shared
/// memory.
///
/// A pipeline has one block on a multiprocessor, so nothing hides behind other
/// blocks; its warpgroups take steps in rounds instead (PipelineTime.cpp).  A
/// round is as long as its units, which collide now and then, or as what one
/// warpgroup does one behind the other; tiles meet at a boundary.  The blocks
/// of a group take strips together, one thing after the other (GroupTime.cpp).
/// In a pipeline over keys, whose warpgroups make all steps together, shared
/// memory is as busy as the tensor cores (GradientTime.cpp).  Products that are
/// launches of their own wait for copies, scores and their last wave
/// (ProductTime.cpp).
///
/// Every constant is in Calibration, with its source.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_TIME_H
#define ATTN_SCHEDULE_TIME_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Calibration.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Traffic.h"
#include <array>
#include <vector>

namespace attn {

/// Seconds each resource is busy, for the whole problem, and the total.
struct Time {
  double hbm = 0, l2 = 0, smem = 0, tensor = 0, exp = 0, issue = 0;
  double exposed = 0;    ///< phases of a warp that nothing hides
  double contention = 0; ///< levels that are nearly as busy as the longest
  double tail = 0;       ///< the last wave
  double overhead = 0;   ///< launches, first loads of a block
  double seconds = 0;
};

/// A term of a time, in words.
struct TimeTerm {
  const char *name;  ///< where it binds and in JSON: `hbm`, `tail`
  const char *label; ///< in a table: `last wave`
  const char *what;  ///< in a sentence: "a short last wave"
  double Time::*seconds;
  /// Whether it is a resource's, which is busy beside the others; all else
  /// comes on top of the busiest.
  bool isResource;
};
/// All of them.  Products run on `tensor`, or of no family on `fma`.
std::array<TimeTerm, 10> timeTerms(TensorCoreFamily family);
/// The longest; of equals, the first.
TimeTerm binding(const Time &time, TensorCoreFamily family);

/// `family` says on which unit products run; `none` means the FMA pipes.
Time time(const Schedule &schedule, const Problem &problem,
          const Machine &machine, TensorCoreFamily family,
          const Calibration &calibration = {});
/// Every launch by itself, with what is done beside it and the schedule's
/// census; those of rounds, all of a kind.
std::vector<Time> launchTimes(const Census &census, const Schedule &schedule,
                              const Problem &problem, const Machine &machine,
                              TensorCoreFamily family,
                              const Calibration &calibration);
/// One launch after the other: the sum.
Time inOrder(const std::vector<Time> &launches);

} // namespace attn

#endif // ATTN_SCHEDULE_TIME_H
