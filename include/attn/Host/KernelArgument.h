//===- KernelArgument.h - What a launch passes to a kernel ------*- C++ -*-===//

#ifndef ATTN_HOST_KERNELARGUMENT_H
#define ATTN_HOST_KERNELARGUMENT_H

#include <array>
#include <cstdint>
#include <variant>

namespace attn {

/// A 4-D array [batch, heads, rows, columns] for a `!tile.tensor_map`; strides
/// in elements, that of the last dimension is 1.
struct TensorMapArgument {
  /// Of the element with index zero.
  uint64_t address = 0;
  std::array<int64_t, 4> sizes = {}, strides = {};
};

/// A value for an argument of a kernel: an address (for `!tile.ptr`), i32, i64,
/// f32, or an array (for `!tile.tensor_map`).
using KernelArgument =
    std::variant<uint64_t, int32_t, int64_t, float, TensorMapArgument>;

} // namespace attn

#endif
