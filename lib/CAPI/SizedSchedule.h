//===- SizedSchedule.h - The schedule for the sizes at hand -----*- C++ -*-===//
//
// A kernel serves any batch and any number of rows, but not all equally well: a
// few short sequences do not fill the machine with tall tiles.  So a size may
// ask for another schedule than the one that is derived where sizes are
// unknown, if that is worth a kernel of its own.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_SIZEDSCHEDULE_H
#define ATTN_LIB_CAPI_SIZEDSCHEDULE_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Problem.h"

#include <string>

namespace attn {

/// The schedule for this problem, `flash, query = 64, ...`, or an empty text
/// where the schedule for unknown sizes (IR/Attn.h, DynamicSizes) is predicted
/// to be as good, or nothing can be built.  `text` is that of the machine.
std::string scheduleForSizes(const Problem &problem, const Machine &machine,
                             const std::string &text);

} // namespace attn

#endif
