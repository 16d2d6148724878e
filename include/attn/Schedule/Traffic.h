//===- Traffic.h - Bytes per memory level, exact ----------------*- C++ -*-===//
///
/// Two readings of one census.
///
/// *Words* are the currency of the theory: one processor with a small fast
/// memory, and one word per element moved between fast and slow memory.  For
/// `flash` with Br = 8 on 32 queries and keys of 16 columns:
/// Q and O 2·512, LSE 32, K and V 4·1024: 5152 words.
///
/// *Bytes* are what a GPU moves, by level:
///   l2    between L2 and the multiprocessors; ragged tiles are clipped
///   smem  in and out of shared memory, padding included: fills, fragment reads
///         (the left operand once, the right one by every warp, or by every
///         warpgroup of a pipeline), and results staged on their way out
///   hbm   a model: every input and result once, plus what L2 cannot keep
/// The first two are exact: a kernel that moves other bytes is a wrong kernel.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_TRAFFIC_H
#define ATTN_SCHEDULE_TRAFFIC_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Calibration.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Costs.h"

namespace attn {

/// Words between fast and slow memory, for the whole problem.
int64_t trafficWords(const Schedule &schedule, const Problem &problem);

/// Bytes of the whole problem, and of one grid of it.
Bytes traffic(const Schedule &schedule, const Problem &problem,
              const Machine &machine, const Calibration &calibration = {});
/// With the schedule's census, for who has it already.
Bytes traffic(const Census &census, const Schedule &schedule,
              const Problem &problem, const Machine &machine,
              const Calibration &calibration);
/// The same of every launch by itself.
std::vector<Bytes> launchTraffic(const Census &census, const Schedule &schedule,
                                 const Problem &problem, const Machine &machine,
                                 const Calibration &calibration);
Bytes gridTraffic(const Census &census, size_t grid, const Problem &problem,
                  const Machine &machine, int64_t residentBlocks,
                  const Calibration &calibration = {});
/// The share, 0 to 1, of what so many blocks spill to places and take up again
/// for which L2 has no room.
double shareOfPlacesLost(const Census &census, size_t grid,
                         const Problem &problem, const Machine &machine,
                         int64_t residentBlocks,
                         const Calibration &calibration);

/// Bytes that one leaf moves between L2 and a multiprocessor, one head.
int64_t slowBytes(const Use &use, const Problem &problem);
/// Bytes in and out of shared memory that one leaf moves, one head; the
/// fragment reads of a product and the fills and stagings of a copy.
int64_t smemBytes(const Use &use, const Problem &problem);

} // namespace attn

#endif // ATTN_SCHEDULE_TRAFFIC_H
