//===- GradientFrame.h - What launches for gradients share ------*- C++ -*-===//
//
// What the launches of flash_backward and split_backward on wgmma have in
// common: the walk over blocks that stream past, and the statistics of queries,
// which a launch before the others leaves in scratch memory.
//
// **Statistics** go from launch to launch in blocks of queries, those of a head
// behind each other, then heads, then batch entries.  A block is, for each of
// its queries, what is added to a score, -log2(e) LSE, and then for each of
// them D.  That launch has its blocks for *strips* of 64 queries (Kernels.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_GRADIENTFRAME_H
#define ATTN_LIB_KERNELS_GRADIENTFRAME_H

#include "Mask.h"
#include "TileBlocks.h"
#include "TileOrder.h"

namespace attn {

/// What a tile walks: a run of blocks, from the last to the first, of one head
/// after the other.
struct Walk {
  Run blocks;
  Scalar firstHead; ///< of what streams past
  Scalar steps;     ///< in all heads; one at least, if anything streams
};

/// Where a walk is, as two scalars that loops carry.
struct Step {
  Scalar head, block;
};

struct GradientFrame {
  GradientFrame(TileBuilder &builder, const KernelRequest &request);

  void declareStatistics();
  /// The number of a block of queries in scratch memory.
  Scalar numberOf(Scalar batch, Scalar head, Scalar block) const;
  /// Some of the numbers of a block, those from `first` on, as a vector.
  mlir::Value statistics(Scalar number, int64_t first, Scalar count) const;

  Step firstStep(const Walk &walk) const;
  Step nextStep(const Walk &walk, const Step &step) const;

  TileBuilder &b;
  const Problem &problem;
  const KernelRequest &request;
  mlir::Type element;
  int64_t block; ///< queries of a block
  Arguments arguments;
};

/// The queries of a warp of the launches that have blocks for strips. `fromEnd`
/// takes strips, heads and batch entries from the last to the first.
struct StripRows {
  explicit StripRows(const GradientFrame &frame, bool fromEnd = false);

  Scalar tile, head, batch, warp, row;
  Scalar block, strip; ///< the number of the block, and which of its strips
};

/// The launch that leaves statistics (GradientStrips.cpp), and does what else
/// is to be done for the same queries; `declare` declares arguments for that.
tile::KernelOp
prepareStrips(GradientFrame &frame, llvm::function_ref<void()> declare = {},
              llvm::function_ref<void(const StripRows &)> more = {});

} // namespace attn

#endif
