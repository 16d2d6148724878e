//===- PipelineTime.h - How long a pipeline takes ---------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_TIME_PIPELINETIME_H
#define ATTN_LIB_SCHEDULE_TIME_PIPELINETIME_H

#include "Time/TimeTerms.h"

namespace attn {

/// The time of a launch whose grid has a pipeline.
Time pipelineTime(const Census &census, size_t number, const Node &grid,
                  const Problem &problem, const Machine &machine,
                  TensorCoreFamily family, const Calibration &calibration);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_TIME_PIPELINETIME_H
