//===- SplitBackwardTiles.h - Tiles of split_backward on wgmma --*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_SCHEDULE_SPLITBACKWARDTILES_H
#define ATTN_TEST_UNIT_SCHEDULE_SPLITBACKWARDTILES_H

#include "attn/Schedule/Tiles.h"

namespace attn {

struct SplitBackwardTiles {
  int64_t query = 128, keyBlock = 64, key = 128, queryBlock = 64, separate = 0,
          stages = 2, valueStages = 1;

  operator Tiles() const {
    return {{"query", query},
            {"key_block", keyBlock},
            {"key", key},
            {"query_block", queryBlock},
            {"separate", separate},
            {"stages", stages},
            {"value_stages", valueStages},
            {"persistent", 1}};
  }
};

} // namespace attn

#endif
