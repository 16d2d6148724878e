//===- ProductTime.h - How long launches of products take -------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_TIME_PRODUCTTIME_H
#define ATTN_LIB_SCHEDULE_TIME_PRODUCTTIME_H

#include "Time/TimeTerms.h"

namespace attn {

/// The time of all launches, one in each round, of a grid whose pipeline is one
/// of products, with the grid before if it is done by the same blocks.
Time productTime(const Census &census, const std::vector<Node> &grids,
                 size_t number, const Problem &problem, const Machine &machine,
                 TensorCoreFamily family, const Calibration &calibration);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_TIME_PRODUCTTIME_H
