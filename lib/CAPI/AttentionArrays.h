//===- AttentionArrays.h - The problem that arrays pose ---------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_ATTENTIONARRAYS_H
#define ATTN_LIB_CAPI_ATTENTIONARRAYS_H

#include "Attention.h"

#include "attn/CAPI/ProblemText.h"
#include "attn/Schedule/Packing.h"

namespace attn {

/// The problem with all its sizes, and the alignment of the rows; or what is
/// wrong with the arrays, in a sentence with all their shapes.
std::optional<std::string> classify(const AttentionRequest &request,
                                    const AttentionArrays &arrays,
                                    KernelClass &kernelClass);

/// The type of what clauses capture, with what they tell apart.
std::string typeOf(const AttentionArrays::Capture &capture);

/// How the problem of arrays that are in order is planned.
Packing packingOf(const KernelClass &kernelClass,
                  const AttentionArrays &arrays);

/// The same memory in the shapes of the problem that is planned, for several
/// queries.
AttentionArrays packed(const AttentionArrays &arrays, const Packing &packing);

} // namespace attn

#endif
