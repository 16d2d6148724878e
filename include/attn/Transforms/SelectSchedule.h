//===- SelectSchedule.h - Decide how an op is computed ----------*- C++ -*-===//

#ifndef ATTN_TRANSFORMS_SELECTSCHEDULE_H
#define ATTN_TRANSFORMS_SELECTSCHEDULE_H

#include "attn/IR/Attn.h"

namespace attn {

/// The plan of the schedule that is given, or the best one; an error at the op,
/// with the reason, where there is none.
mlir::FailureOr<Plan> choosePlan(AttentionOpInterface op,
                                 const Machine &machine, ScheduleAttr given,
                                 DynamicSizes assumed = {});

/// `flash, query = 128, key = 64`: a schedule as options take it.
std::string textOf(ScheduleAttr schedule);

} // namespace attn

#endif
