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

#include "attn/CAPI/ProblemText.h"
#include "attn/Machine/Machine.h"

#include <string>

namespace attn {

/// What one asks for: a problem, as tiles see it, of a class of kernels, and a
/// machine, by its text; and what is given of the schedule, `flash, query =
/// 64`, or nothing.
struct SizedRequest {
  KernelClass kernelClass;
  Problem problem;
  Machine machine;
  std::string machineText, given;
};

/// The schedule for these sizes with all its tiles.  What is given is completed
/// for them.  Otherwise it is the best one, but that for unknown sizes
/// (IR/Attn.h, DynamicSizes) where that is predicted to be as good, or where
/// there is nothing to compute.  An empty text where nothing can be built.
std::string scheduleForSizes(const SizedRequest &request);

} // namespace attn

#endif
