//===- PipelineFootprint.h - What a pipeline occupies -----------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_PIPELINEFOOTPRINT_H
#define ATTN_LIB_SCHEDULE_PIPELINEFOOTPRINT_H

#include "attn/Schedule/Footprint.h"

namespace attn {

/// The registers of the warpgroups of a pipeline.
RegisterBudget budgetOf(const Node &grid, const Problem &problem);

/// `gridFootprint` of a grid with a pipeline.
Footprint pipelineFootprint(const Node &grid, const Problem &problem,
                            const Machine &machine);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_PIPELINEFOOTPRINT_H
