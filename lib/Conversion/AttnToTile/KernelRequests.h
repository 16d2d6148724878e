//===- KernelRequests.h - What kernel an attn op asks for -------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELREQUESTS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELREQUESTS_H

#include "attn/IR/Attn.h"
#include "attn/Kernels/Kernels.h"

#include <vector>

namespace attn {

/// A request and the builder that serves it.
struct KernelChoice {
  KernelRequest request;
  std::string builder;
};

/// What the op's schedule asks for on a machine, launch by launch.  The names
/// of the requests are left empty.  Emits an error at the op when there is no
/// schedule, when the schedule is not legal here, or when no builder exists for
/// it.
mlir::FailureOr<std::vector<KernelChoice>> kernelsFor(AttentionOpInterface op,
                                                      const Machine &machine);

/// Whether one kernel can serve both.
bool sameKernel(const KernelChoice &a, const KernelChoice &b);

/// A name that says what a kernel computes, `flash_bf16_128_causal`.
std::string kernelName(const KernelChoice &choice);

} // namespace attn

#endif
