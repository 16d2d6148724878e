//===- Grid.h - How many blocks a launch may have ---------------*- C++ -*-===//

#ifndef ATTN_TILE_GRID_H
#define ATTN_TILE_GRID_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace attn::tile {

/// A sentence when a grid has more blocks along a dimension than CUDA allows,
/// 2^31 - 1 along the first and 65535 along the others, or fewer than none.
std::optional<std::string> checkGrid(const std::array<int64_t, 3> &grid);

} // namespace attn::tile

#endif // ATTN_TILE_GRID_H
