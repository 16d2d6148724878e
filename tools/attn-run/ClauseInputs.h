//===- ClauseInputs.h - Arrays that clauses take, drawn ---------*- C++ -*-===//
//
// Captured floats and sinks are normal numbers.  Captured integers are numbers
// of runs, as ids of documents are: along the last dimension they begin at 0
// and rise by one now and then, so that each is an index into an array as long.
//
// Lists of blocks have each block with probability 1/2 and in any order; of
// every fifth row none, and of another fifth all.  Behind as many as are
// counted indices stay poison.  Transposed lists follow from the others.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_CLAUSEINPUTS_H
#define ATTN_TOOLS_RUN_CLAUSEINPUTS_H

#include "Arrays.h"
#include "Function.h"

namespace attn::run {

/// Fills a captured array, and counts and indices of the partial blocks (0) or
/// the full ones (1) of both lists.
void drawCapture(HostBytes &array, uint64_t seed);
void drawBlocks(HostBytes &counts, HostBytes &indices, unsigned kind,
                uint64_t seed);

/// Fills what an attention's clauses take.
void drawClauseInputs(const Attention &attention,
                      std::vector<HostBytes> &arrays, uint64_t seed);

} // namespace attn::run

#endif
