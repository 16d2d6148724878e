//===- BackwardFrame.h - What the roles of flash_backward share -*- C++ -*-===//
//
// The frame of flash_backward on wgmma (flash_backward_wgmma.cpp): sizes, the
// arguments of its three launches, and of the main one the buffers and the
// rings through which the roles hand them to each other.
//
// **Blocks of queries.**  A tile of keys walks blocks of queries.  Two arrays
// in scratch memory go from launch to launch, block by block: the statistics
// (GradientFrame.h) and dQ, sums in f32, as registers of accumulators hold
// them.
//
// **dQ of a block** (queries x d) is made of *parts*, one for each warpgroup: a
// run of columns, or 64 queries each where a block has as many for all.  A part
// is made of the images of its four warps, 16 queries each.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_BACKWARDFRAME_H
#define ATTN_LIB_KERNELS_BACKWARDFRAME_H

#include "GradientFrame.h"

namespace attn {

struct BackwardFrame : GradientFrame {
  BackwardFrame(TileBuilder &builder, const KernelRequest &request);

  /// Creates the kernel of the main launch, and reserves shared memory.
  tile::KernelOp declareMain();

  //===--------------------------------------------------------------------===//
  // Blocks of queries
  //===--------------------------------------------------------------------===//

  void declareSums();
  /// Images that 16 queries have.
  int64_t imagesOfWarp() const { return splitsColumns ? groups : 1; }
  tile::FragType imageType() const {
    return b.accType(kWarpRows, gradientColumns);
  }
  /// Elements of a part of dQ.
  int64_t partElements() const { return kGroupRows * gradientColumns; }

  //===--------------------------------------------------------------------===//
  // The main launch
  //===--------------------------------------------------------------------===//

  int64_t stages;
  bool overlap;
  int64_t dim, dimV;       ///< head dimensions, padded
  bool splitsColumns;      ///< how dQ is dealt out
  int64_t gradientColumns; ///< of a part of dQ

  mlir::Value bufferK, bufferV, bufferQ, bufferGradient;
  mlir::Value bufferScores; ///< of dS, two that take turns
  mlir::Value staging;      ///< a stage for each warpgroup
  /// `ringGradient` has dO and the statistics; `ringStaged` a slot for each
  /// warpgroup.
  Ring ringK, ringV, ringQ, ringGradient, ringStaged;

private:
  void reserve();
};

/// The producer (BackwardProducer.cpp): draws tiles, tells the other roles,
/// starts every load.
void produceGradientTiles(const BackwardFrame &frame);

/// The writer (BackwardWriter.cpp): starts everything that leaves.
void writeGradients(const BackwardFrame &frame);

/// The launches around the main one (GradientStrips.cpp, BackwardStrips.cpp).
tile::KernelOp prepareSums(BackwardFrame &frame);
tile::KernelOp finishStrips(BackwardFrame &frame);

} // namespace attn

#endif
