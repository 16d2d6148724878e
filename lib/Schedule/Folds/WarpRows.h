//===- WarpRows.h - How rows are dealt out to warps -------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_FOLDS_WARPROWS_H
#define ATTN_LIB_SCHEDULE_FOLDS_WARPROWS_H

#include "attn/Schedule/Verbs.h"

#include <cstdint>
#include <optional>
#include <string>

namespace attn {

/// A sentence unless each warp has 16 or 32 of so many rows, which `across`
/// warps have in common: fragments have 16 rows, and a warp at most two.
inline std::optional<std::string> checkWarpRows(int64_t rows, int64_t warps,
                                                int64_t across = 1) {
  int64_t shared = rows * across, ofWarp = shared / warps;
  if (warps % across == 0 && shared % warps == 0 &&
      (ofWarp == 16 || ofWarp == 32))
    return std::nullopt;
  return "expects 16 or 32 rows per warp, but got " + std::to_string(rows) +
         " rows and " + std::to_string(warps) + " warps";
}

/// Whether the warpgroups of a pipeline do it, each for its own rows.
inline bool isGroupWork(const Node &node) {
  using namespace verb;
  return node.match(
      // Of what is held by all, a warpgroup writes its part.
      [](OneOf<Hold, Multiply, Softmax, Weigh, Differentiate, Rescale>) {
        return true;
      },
      [](OneOf<Loop, Share, Load, Stream, Absorb, Transpose, Widen, Split,
               Spill, Reduce, Store>) { return false; });
}

} // namespace attn

#endif
