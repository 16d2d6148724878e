//===- Reads.h - Whether regions read what is there -------------*- C++ -*-===//
//
// That indices of attn.read are within the array is a promise of whoever wrote
// the region.  Kernels rely on it, and a wrong one may read any memory, or 0
// where a tile is partial.  So the promise is checked on the arrays of a run,
// before anything is launched: pair by pair, as the reference sees them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_READS_H
#define ATTN_TOOLS_RUN_READS_H

#include "Arrays.h"
#include "Function.h"

namespace attn::run {

/// An error at the first op that reads outside of an array it captures; rows
/// are those that a comparison of so many multiply-adds looks at.
llvm::LogicalResult checkReads(const Function &function,
                               const std::vector<HostBytes> &arrays,
                               double budget);

} // namespace attn::run

#endif
