//===- GradientTime.h - How long a pipeline of gradients takes --*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_TIME_GRADIENTTIME_H
#define ATTN_LIB_SCHEDULE_TIME_GRADIENTTIME_H

#include "Time/TimeTerms.h"

namespace attn {

/// The time of a launch whose grid is a pipeline and whose results are
/// gradients.
Time gradientTime(const Census &census, size_t number, const Node &grid,
                  const Problem &problem, const Machine &machine,
                  TensorCoreFamily family, const Calibration &calibration);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_TIME_GRADIENTTIME_H
