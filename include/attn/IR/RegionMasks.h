//===- RegionMasks.h - Named masks that regions of `sees` are ---*- C++ -*-===//
//
// A named mask is a band, whose tiles a kernel knows by arithmetic: hidden ones
// are never loaded, open ones have no code for a mask.  A region that is a band
// becomes the mask; of one that is within a band, as documents of tokens that
// see what is before them, the band still says which tiles are hidden.
//
// Examples: `j <= i` is `causal`; so is it `causal_bottom_right`, where there
// are as many queries as keys.  `j <= i and ids[i] == ids[j]` is within
// `causal`.  `j <= i and j > i - 128 or j < 4` is within `prefix<4>`, both of
// as many rows.  `(i - j) mod 2 == 0` is within no mask.
//
// Deliberately absent: bands without a name, as `j < i`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_REGIONMASKS_H
#define ATTN_IR_REGIONMASKS_H

#include "attn/Schedule/Problem.h"

#include "mlir/IR/Region.h"

#include <optional>

namespace attn {

/// A mask that shows what a region shows, and more unless it is exact.
struct RegionMask {
  Mask mask;
  bool isExact = false;
};

/// The mask of a region that the verifier has seen; queries and keys where they
/// are known.
RegionMask maskOfRegion(mlir::Region &sees, std::optional<int64_t> queries,
                        std::optional<int64_t> keys);

} // namespace attn

#endif
