//===- RequestArrays.h - Arrays that a request may leave out ----*- C++ -*-===//
//
// Lists of blocks, offsets of sequences, and what tells where rows lie are in
// the requests of C themselves, each behind what was there before it.  Callers
// whose struct_size ends before them have none.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_REQUESTARRAYS_H
#define ATTN_LIB_CAPI_REQUESTARRAYS_H

#include "Attention.h"

#include "attn-c/Attn.h"

#include "llvm/ADT/SmallVector.h"

namespace attn {

/// Whether there are lists of blocks of that size.
Outcome checkBlocks(const BlockSize &size);

/// Whether sequences may be as long.
Outcome checkLongest(const Lengths &longest);

/// Adds a place for each of these arrays, in the order of arraysOf
/// (ProblemText.h), and says what comes with them.
Outcome readOptional(const attn_forward_request &source,
                     AttentionRequest &request,
                     llvm::SmallVectorImpl<const attn_buffer *> &buffers);
Outcome readOptional(const attn_backward_request &source,
                     AttentionRequest &request,
                     llvm::SmallVectorImpl<const attn_buffer *> &buffers);

} // namespace attn

#endif
