//===- GradientTiles.h - Tiles that walk what is listed, or runs -*- C++
//-*-===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_HARNESS_GRADIENTTILES_H
#define ATTN_TEST_UNIT_INTERPRETER_HARNESS_GRADIENTTILES_H

#include "attn/Schedule/Tiles.h"

#include <array>
#include <utility>

namespace attn {

/// With the head dimension of each.
using TilesOfDim = std::pair<Tiles, int64_t>;

inline Tiles flashBackwardTiles(int64_t key, int64_t queryBlock, int64_t stages,
                                int64_t overlap, int64_t beside) {
  return {{"key", key},       {"query_block", queryBlock}, {"beside", beside},
          {"stages", stages}, {"overlap", overlap},        {"ordered", 0},
          {"short_first", 0}, {"first_stores", 0},         {"persistent", 1}};
}

/// dQ is dealt out by columns, by rows and not at all; finished in launches and
/// beside; blocks are weighed whole and in halves.
inline std::array<TilesOfDim, 5> flashBackwardChoices() {
  return {{{flashBackwardTiles(128, 64, 2, 1, 0), 80},
           {flashBackwardTiles(128, 128, 2, 0, 1), 32},
           {flashBackwardTiles(64, 64, 3, 1, 2), 32},
           {flashBackwardTiles(128, 64, 3, 0, 2), 80},
           {flashBackwardTiles(128, 128, 2, 2, 1), 32}}};
}

inline Tiles splitMmaSyncTiles(int64_t stages, int64_t separate,
                               int64_t queryBlock = 32) {
  return {{"query", 64},      {"key_block", 32},           {"query_warps", 4},
          {"key", 64},        {"query_block", queryBlock}, {"key_warps", 4},
          {"stages", stages}, {"separate", separate}};
}

} // namespace attn

#endif
