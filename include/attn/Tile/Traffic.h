//===- Traffic.h - Bytes per memory level, counted in tile IR ---*- C++ -*-===//
//
// A plan promises how many bytes its kernel moves at each level of memory.
// This analysis counts them in the kernel itself: it runs the kernel's scalar
// control flow, block by block, and adds what every op with the traffic
// interface says it moves.  Fragments, products and data are not looked at, so
// counting costs microseconds a block.
//
// Blocks that differ only in head and batch move the same bytes.  That is not
// assumed but shown: dimensions 1 and 2 of the grid enter as unknown values,
// and a count that depends on one of them is an error.
//
// Example.  A kernel that copies a 64 x 128 bf16 tile of a view with 100 rows
// in a grid of (2, 4, 1): block 0 copies 64 rows, block 1 the 36 that are left,
// so global = (64 + 36) * 256 * 4 = 102400 bytes and smem = 2 * 64 * 256 * 4 =
// 131072 bytes (zeros are written too).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_TRAFFIC_H
#define ATTN_TILE_TRAFFIC_H

#include "mlir/IR/Value.h"
#include "mlir/Support/LLVM.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

namespace attn::tile {

class KernelOp;

/// Bytes moved, by level.
struct Traffic {
  /// Between global memory (L2) and the multiprocessors, both directions.
  int64_t global = 0;
  /// Between shared memory and registers or the copy unit, both directions.
  int64_t smem = 0;

  Traffic &operator+=(const Traffic &other) {
    global += other.global;
    smem += other.smem;
    return *this;
  }
  Traffic operator*(int64_t times) const {
    return {global * times, smem * times};
  }
  bool operator==(const Traffic &other) const {
    return global == other.global && smem == other.smem;
  }
};

/// What an op may ask for when it says its traffic.
class TrafficScalars {
public:
  virtual ~TrafficScalars() = default;
  /// The value of a scalar.
  virtual int64_t scalar(mlir::Value value) const = 0;
  /// The number of rows of a view, or of the array of a tensor map.
  virtual int64_t rows(mlir::Value array) const = 0;
  /// The number of columns of the array of a tensor map.
  virtual int64_t columns(mlir::Value map) const = 0;
};

/// What stands for an array among the arguments that `countTraffic` is given,
/// if its map is for any number of columns.
inline constexpr int64_t kColumnsOfMap = int64_t(1) << 32;
inline constexpr int64_t extentsOfMap(int64_t rows, int64_t columns) {
  return columns * kColumnsOfMap + rows;
}

/// Rows of `first .. first + count - 1` that lie in `0 .. rows - 1`.
int64_t clippedRows(int64_t first, int64_t count, int64_t rows);

/// The number at an offset of the array that an argument of the kernel points
/// to, or nothing if it is not known.
using ReadNumber =
    std::function<std::optional<int64_t>(unsigned argument, int64_t offset)>;

/// Counts the traffic of a launch.  `arguments` holds the value of each scalar
/// argument of the kernel, and for a tensor map the rows of its array, or its
/// `extentsOfMap` (those of pointers are not read).  Fails with a located error
/// when a count depends on data, but for numbers that `read` knows, or on grid
/// dimension 1 or 2.
mlir::FailureOr<Traffic> countTraffic(KernelOp kernel,
                                      std::array<int64_t, 3> grid,
                                      mlir::ArrayRef<int64_t> arguments,
                                      const ReadNumber &read = {});

} // namespace attn::tile

#endif
