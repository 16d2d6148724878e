//===- PipelineFootprint.h - What a pipeline occupies -----------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_FOLDS_PIPELINEFOOTPRINT_H
#define ATTN_LIB_SCHEDULE_FOLDS_PIPELINEFOOTPRINT_H

#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"

namespace attn {

/// A unit of a common ring: 128 rows of one panel, or as many bytes of others.
inline constexpr int64_t kUnitBytes = 128 * kPanelBytes;

/// Whether factors of a grid's products are made of parts.
bool splitsFactors(const Grid &grid, const Problem &problem);

/// The registers of the warpgroups of a pipeline.
RegisterBudget budgetOf(const Grid &grid, const Problem &problem);
/// Those of a launch, for all that its blocks do.
RegisterBudget budgetOf(const Schedule::Launch &launch, const Problem &problem);
/// All registers that these have.
int64_t registersOfBlock(const Grid &grid, const RegisterBudget &budget);

/// Words of one head, one for each tile of a grid, that tell when it may begin
/// beside another; of those blocks too that scratch is filled up with.
int64_t countBytes(const Grid &grid, const Problem &problem);

/// Words of one head by which the grids of a launch wait for each other, in
/// scratch memory, two for each strip of 64 queries; forward the host has them.
int64_t flagBytes(const Schedule::Launch &launch, const Problem &problem);

/// `gridFootprint` of a grid with a pipeline, by such a budget.
Footprint pipelineFootprint(const Grid &grid, const RegisterBudget &budget,
                            const Problem &problem, const Machine &machine);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_FOLDS_PIPELINEFOOTPRINT_H
