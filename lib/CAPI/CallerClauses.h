//===- CallerClauses.h - Clauses of a request in C --------------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_CALLERCLAUSES_H
#define ATTN_LIB_CAPI_CALLERCLAUSES_H

#include "Attention.h"

#include "attn-c/Attn.h"

namespace attn {

Outcome readBuffer(const attn_buffer &buffer, CallerArray &array);

/// Clauses of which lists are made, with what they capture.
Outcome readListClauses(const attn_clauses &clauses, AttentionRequest &request,
                        AttentionArrays &arrays);

/// Clauses with what they capture and, where it is not null, where gradients of
/// that go.
Outcome readCallerClauses(const attn_clauses &clauses,
                          const attn_buffer *const *gradients,
                          AttentionRequest &request, AttentionArrays &arrays);

} // namespace attn

#endif
