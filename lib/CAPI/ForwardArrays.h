//===- ForwardArrays.h - The problem that arrays pose -----------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_FORWARDARRAYS_H
#define ATTN_LIB_CAPI_FORWARDARRAYS_H

#include "Forward.h"

#include "attn/CAPI/ProblemText.h"

namespace attn {

/// The problem with all its sizes, and the alignment of the rows; or what is
/// wrong with the arrays, in a sentence with all their shapes.
std::optional<std::string> classify(const ForwardRequest &request,
                                    const ForwardArrays &arrays,
                                    KernelClass &kernelClass);

} // namespace attn

#endif
