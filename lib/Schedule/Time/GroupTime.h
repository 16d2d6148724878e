//===- GroupTime.h - How long a group of blocks takes -----------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_TIME_GROUPTIME_H
#define ATTN_LIB_SCHEDULE_TIME_GROUPTIME_H

#include "Time/TimeTerms.h"

namespace attn {

/// Time of one launch whose blocks share tiles in groups.
Time groupTime(const Census &census, size_t number, const Node &grid,
               const Problem &problem, const Machine &machine,
               TensorCoreFamily family, const Calibration &calibration);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_TIME_GROUPTIME_H
