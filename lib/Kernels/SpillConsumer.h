//===- SpillConsumer.h - What consumers of plain products do ----*- C++ -*-===//
//
// What a consumer warpgroup does alike in all launches of plain products on
// wgmma, forward and backward: it has 64 rows of every tile, multiplies scores
// by slices of both factors, and leaves results in its part of the staging
// buffer.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_SPILLCONSUMER_H
#define ATTN_LIB_KERNELS_SPILLCONSUMER_H

#include "SpillFrame.h"

namespace attn {

struct SpillConsumer : SpillFrame {
  using SpillFrame::SpillFrame;

  /// What a warpgroup carries from tile to tile.
  struct State {
    Place place; ///< in the ring
    Scalar turn; ///< parity of the staging buffer
  };

  /// Finds out which rows of tiles are the warp's.
  void enterGroup();
  /// Works off the tiles that the queue tells of.
  void
  consumeTiles(llvm::function_ref<State(const Tile &, const State &)> consume);

  /// The first row of the warp in a tile.
  Scalar warpRow() const { return groupRow + warpOfGroup * kWarpRows; }
  /// Own rows times the transpose of a block's, 64 columns after the other.
  mlir::Value product(Place &place, int64_t columns) const;
  /// The next slices of such a product: all but the first start beside the one
  /// before.
  mlir::Value addSlices(mlir::Value sum, int64_t count, Place &place) const;
  /// The same of parts, slices added up in f32.
  mlir::Value productOfParts(Place &place, int64_t columns) const;
  /// Own rows of a slice of parts times those of the right factor, or their
  /// transposes, in one sum of so many columns.
  mlir::Value sliceOfParts(Place &place, int64_t columns,
                           bool isTransposed) const;
  /// Leaves what is to go in the warpgroup's part of the staging buffer.
  void put(mlir::Value fragment, Scalar &turn) const;

  Scalar group, groupRow, warpOfGroup;
};

} // namespace attn

#endif
