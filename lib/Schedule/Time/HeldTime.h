//===- HeldTime.h - How long a pipeline takes that holds P ------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_TIME_HELDTIME_H
#define ATTN_LIB_SCHEDULE_TIME_HELDTIME_H

#include "Time/TimeTerms.h"

namespace attn {

/// Time of one launch whose blocks keep P in registers and have one ring for
/// all that streams.
Time heldTime(const Census &census, size_t number, const Node &grid,
              const Problem &problem, const Machine &machine,
              TensorCoreFamily family, const Calibration &calibration);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_TIME_HELDTIME_H
