//===- CaptureTraffic.h - Bytes of gradients of captures --------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_FOLDS_CAPTURETRAFFIC_H
#define ATTN_LIB_SCHEDULE_FOLDS_CAPTURETRAFFIC_H

#include "attn/Schedule/Census.h"

namespace attn {

/// What a grid adds and leaves, between L2 and the multiprocessors, of all
/// heads.
int64_t captureBytes(const Census &census, size_t grid, const Problem &problem);

} // namespace attn

#endif
