//===- Timeline.h - One block, step by step, by the model -------*- C++ -*-===//
///
/// What the units of a multiprocessor do in the first steps of one tile, as the
/// time model's rates have it: when copies come, what is multiplied beside
/// which softmax, who waits for whom.  A *step* is one turn of the loop that
/// the tile walks along.
///
/// It is a simulation with the machine's rates and latencies, and knows nothing
/// of bank conflicts, other blocks, or the order of instructions that ptxas
/// chose:
///
///   * a copy begins when its slot of the ring is free and the copies before it
///     are on their way; it arrives a latency later
///   * the tensor cores and the arithmetic of a multiprocessor each do one
///     thing at a time, in the order in which workers come to it
///   * a worker waits for what it reads; without overlap also for the product
///     before
///
/// Times are clocks of a multiprocessor that has this block alone.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_TIMELINE_H
#define ATTN_SCHEDULE_TIMELINE_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Schedule.h"
#include <vector>

namespace attn {

/// What a multiprocessor gets from L2 in a clock, and after how many.
struct CopyRates {
  double clockHz, bytesPerClock, latency;
};
CopyRates copyRates(const Machine &machine);

enum class Unit { copies, helpers, products, arithmetic, results };

/// A unit does something for a worker.
struct BusySpan {
  Unit unit;
  int64_t worker; ///< of copies and helpers 0
  int64_t step;   ///< -1: before or behind all steps
  const Node *node;
  double begin, end;
};

struct Timeline {
  std::vector<BusySpan> spans; ///< in no order
  int64_t workers = 1;
  int64_t steps = 0;      ///< that are shown
  double stepsOfTile = 0; ///< on average
  double clocks = 0, clockHz = 0;

  /// Clocks in which a unit is busy.
  double busy(Unit unit) const;
};

/// Of the main grid of a launch, as many steps as have about so many copies,
/// products and so on, and at least one.  The schedule must outlive its
/// timeline.
Timeline timeline(const Schedule &schedule, size_t launch,
                  const Problem &problem, const Machine &machine,
                  TensorCoreFamily family, int64_t mostJobs);

} // namespace attn

#endif // ATTN_SCHEDULE_TIMELINE_H
