//===- TensorMap.h - How TMA finds an array ---------------------*- C++ -*-===//
//
// The tensor memory accelerator of a GPU (compute capability 9.0 and newer)
// moves boxes of an array whose address, extents and strides it reads in a
// *tensor map*: 128 bytes that only the driver can write, and that a kernel
// takes as an argument by value.  Everything but the address is known before
// the launch, so a map is made once and written out with an address each time:
//
//   // [batch 2, heads 8, rows 1000, columns 96] of bf16, row-major; boxes of
//   // 128 rows, one panel of 128 bytes (64 columns) at a time.
//   TensorMapShape shape = {MapElement::bf16, {96, 1000, 8, 2},
//                           {192, 192000, 1536000}, 128};
//   Expected<TensorMap> map = gpu->tensorMap(shape);
//   alignas(TensorMap::kAlignment) char argument[TensorMap::kBytes];
//   map->write(address, argument);
//
// A box takes as many bytes of shared memory as it has room for, swizzled in
// groups of 128 bytes; what lies outside the array reads as zero and is not
// written.  DRAM fetches are 256 bytes long.
//
// Strides.  One of 0 repeats the dimension, which the driver and the hardware
// take as any other (tried on an H200 with driver 580, for heads and batch).
// Those of a dimension of one entry say nothing and may be anything.
//
// Empty arrays have no map, since extents must be 1 or more.  Theirs is that of
// a single zero in memory of the GPU object, whatever address is given: every
// box reads as zeros.  Nothing may be stored through it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_TENSORMAP_H
#define ATTN_RUNTIME_TENSORMAP_H

#include "attn/Runtime/Cuda.h"

namespace attn::runtime {

/// What an array holds; TMA converts nothing, but some fills depend on it.
enum class MapElement { bf16, f16, u8, f32 };

struct TensorMapShape {
  MapElement element = MapElement::bf16;
  /// Of columns, rows, heads and batch.
  std::array<int64_t, 4> extents = {};
  /// Bytes from one row, head and batch entry to the next.
  std::array<int64_t, 3> strides = {};
  int64_t boxRows = 0;

  int64_t elementBytes() const;
  bool isEmpty() const;
};

/// A map that waits for its address.
class TensorMap {
public:
  static constexpr size_t kBytes = 128, kAlignment = 64;
  /// What divides the array's address and its strides.
  static constexpr int64_t kArrayAlignment = 16;

  /// Writes the map of the array at an address to 128 bytes on the host.
  Status write(DeviceAddress address, void *place) const;

private:
  friend class Gpu;
  alignas(kAlignment) std::array<uint64_t, kBytes / 8> bits = {};
  std::shared_ptr<GpuState> gpu;
  /// The address is that of the zero.
  bool isFixed = false;
};

} // namespace attn::runtime

#endif
