//===- Time.h - How long, and what binds ------------------------*- C++ -*-===//
///
/// Time is the most over all resources, plus what cannot overlap.  A number
/// without its binding resource cannot be argued with, so the fold names it.
///
/// The model has two halves.  *Work* is what a schedule has the blocks of a
/// grid do: clocks of units, bytes, steps, handovers
/// (lib/Schedule/Time/Work.h). *Step* turns work into time, the same way for
/// every grid:
///
///   1. A step takes what the units of a multiprocessor have to do, which get
///      into each other's way, and some of what is lost as workers do the same
///      at the same time; at least what one worker does one behind the other;
///      and no less than its ring brings, by Little's law.
///   2. A tile is its steps and a boundary, in which results leave.
///   3. Tiles come in waves; the last one is paid in full even if it is short.
///      Where tiles differ in length (masks) the longest go first, and only the
///      end is ragged.
///   4. Multiprocessors, L2 and device memory that are nearly as busy as the
///      longest of them are in its way now and then.
///   5. A launch, and its first loads.
///
/// What binds is the longest term, be it a resource or what comes on top of
/// one: 65536 keys and one query in one part keep one multiprocessor of an L4
/// busy, and the last wave is what they wait for, though no unit is busier than
/// shared memory.
///
/// Every constant is in Calibration; those of time are fitted for a machine by
/// tools/bench/fit.py.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_TIME_H
#define ATTN_SCHEDULE_TIME_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Calibration.h"
#include "attn/Schedule/Costs.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Traffic.h"
#include <array>
#include <vector>

namespace attn {

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
          const Machine &machine, TensorCoreFamily family);
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
