//===- SpillBackwardTiles.h - Tiles of spill_backward -----------*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_SCHEDULE_SPILLBACKWARDTILES_H
#define ATTN_TEST_UNIT_SCHEDULE_SPILLBACKWARDTILES_H

#include "attn/Schedule/Tiles.h"

namespace attn {

struct SpillBackwardTiles {
  int64_t keyBlock = 256, column = 256, strip = 4096, heads = 4, stages = 3;
  bool merged = false, kept = false;

  operator Tiles() const {
    Tiles tiles = {{"query", 128},      {"key_block", keyBlock},
                   {"key", 128},        {"column", column},
                   {"query_block", 64}, {"strip", strip},
                   {"heads", heads}};
    if (kept)
      tiles.set("kept", 1);
    tiles.set("stages", stages);
    tiles.set("merged", merged);
    tiles.set("persistent", 1);
    return tiles;
  }
};

} // namespace attn

#endif
