//===- Clauses.h - Clauses of attention that a caller wrote -----*- C++ -*-===//
//
// A request has clauses as text (attn-c/Attn.h).  They become a part of the
// text of a kernel class, so they must not say more than clauses: what stands
// between them is looked at here, before MLIR parses all.  What MLIR says about
// its text is told by the lines and columns of the caller's.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_CLAUSES_H
#define ATTN_LIB_CAPI_CLAUSES_H

#include "Attention.h"

#include "attn/CAPI/ProblemText.h"

namespace attn {

/// Whether the text has nothing but clauses, each a request may have, and names
/// all captures and no others.
Outcome checkClauses(const AttentionRequest &request,
                     const AttentionArrays &arrays);

/// The same of the clauses of which lists are made, captures and sees.
Outcome checkListClauses(const AttentionRequest &request,
                         const AttentionArrays &arrays);

/// Parses and verifies a class with clauses, and completes its problem by what
/// they say.
Outcome readClauses(KernelClass &kernelClass);

} // namespace attn

#endif
