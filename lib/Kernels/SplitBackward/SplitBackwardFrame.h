//===- SplitBackwardFrame.h - What its roles share --------------*- C++ -*-===//
//
// The frame of split_backward on wgmma (split_backward_wgmma.cpp): what a
// launch owns and what it streams, sizes, and the buffers and rings through
// which its roles hand them to each other.
//
// Rings.  `own` buffers hold a tile's rows, one each; the next tile's come when
// the results, which leave from there, have left.  What streams beside x has
// the statistics of queries with it, on the side of the keys.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_SPLITBACKWARD_SPLITBACKWARDFRAME_H
#define ATTN_LIB_KERNELS_SPLITBACKWARD_SPLITBACKWARDFRAME_H

#include "Gradients/GradientFrame.h"

namespace attn {

/// An array of rows, by its role and that of its gradient.
struct SplitRows {
  llvm::StringRef role, gradient;
  int64_t columns; ///< of the head
  int64_t padded;  ///< of a buffer
};

/// Which gradients a launch sums up: that of x, that of y.
struct SplitSide {
  bool hasX, hasY;
};

struct SplitBackwardFrame : GradientFrame {
  SplitBackwardFrame(TileBuilder &builder, const KernelRequest &request);

  /// Creates the kernel, and reserves shared memory.
  tile::KernelOp declare();
  /// Whether own rows of y have no gradient that takes their place.
  bool ownsBareY() const { return side.hasX && !side.hasY; }
  /// Where a box of rows of the side that tiles own begins.
  Corner cornerOfOwn(mlir::Value map, const Tile &tile, Scalar row) const {
    return ownsKeys ? Corner::ofKeys(b, map, tile, row)
                    : Corner::ofQueries(b, map, tile, row);
  }

  const SplitSide side;
  int64_t stagesX, stagesY;
  SplitRows x, y, streamedX, streamedY;

  mlir::Value bufferX, bufferY, bufferStreamedX, bufferStreamedY;
  mlir::Value stagedX, stagedY; ///< where gradients leave from
  /// `ringStaged` has a slot for the results of each warpgroup.
  Ring ringX, ringY, ringStreamedX, ringStreamedY, ringStaged;

private:
  void reserve();
};

/// The producer and the writer (SplitBackwardCopies.cpp): who draws tiles and
/// starts every load, and who starts what leaves.
void produceSplitTiles(const SplitBackwardFrame &frame);
void writeSplitGradients(const SplitBackwardFrame &frame);

} // namespace attn

#endif
