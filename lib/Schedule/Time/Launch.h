//===- Launch.h - How long a launch takes -----------------------*- C++ -*-===//
//
// A launch lasts until the last multiprocessor has done its tiles, or as long
// as copies take, or as device memory does: these get into each other's way.
// And it has to start.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TIME_LAUNCH_H
#define ATTN_LIB_SCHEDULE_TIME_LAUNCH_H

#include "Time/Step.h"
#include "attn/Schedule/Time.h"

namespace attn {

/// A launch, or all rounds of it: the grids whose tiles are in its queue, of
/// which the last fills the last wave.
using LaunchWork = std::vector<Work>;
std::vector<LaunchWork> launchWork(const Census &census,
                                   const Schedule &schedule,
                                   const Problem &problem,
                                   const Machine &machine,
                                   TensorCoreFamily family);
Time launchTime(const LaunchWork &launch, const Machine &machine,
                const Calibration &c);

/// Adds to times of units, L2, memory and overhead how they get into each
/// other's way, and sums up.
void addContention(Time &time, double whole, const Calibration &c);

/// Seconds that tiles are longer for sums in slow memory that they add to, if
/// they take `whole`; and adds the grids that the same launch does before and
/// beside them (`Sums`).
double secondsOfSums(const Work &w, const Step &step, double whole,
                     double clock, const Machine &machine,
                     const Calibration &c);
void addFusedGrids(Time &time, double whole, const Work &w,
                   const Machine &machine, const Calibration &c);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_TIME_LAUNCH_H
