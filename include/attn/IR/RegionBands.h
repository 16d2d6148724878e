//===- RegionBands.h - Unions of bands that regions show --------*- C++ -*-===//
//
// What a region of `sees` shows is a union of pieces.  Where each of them is a
// band between diagonals, keys and queries, kernels walk the runs of blocks
// that a tile sees of them (Bands.h): hidden tiles are not touched, and open
// ones have no code for the region.  What a piece demands besides makes its
// band one in part, whose tiles are all cut.
//
// Example: `j < 4 or j <= i and i - j < 128` has two bands.
//
// Deliberately absent: bands of each head, as of windows that widen with it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_REGIONBANDS_H
#define ATTN_IR_REGIONBANDS_H

#include "attn/Schedule/Problem.h"

#include "mlir/IR/Region.h"

namespace attn {

/// The bands of a region that the verifier has seen, of what a mask shows; none
/// where runs save nothing: of too many pieces, or of one that is not whole.
Bands bandsOfRegion(mlir::Region &sees, const Mask &mask);

/// Why an op with a region has no runs, for who asks; nothing if it may have.
std::optional<std::string> whyNoRuns(const Problem &problem);

} // namespace attn

#endif
