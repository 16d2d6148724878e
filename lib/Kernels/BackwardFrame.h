//===- BackwardFrame.h - What the roles of flash_backward share -*- C++ -*-===//
//
// The frame of flash_backward on wgmma (flash_backward_wgmma.cpp): sizes, the
// arguments of its three launches, and of the main one the buffers and the
// rings through which the roles hand them to each other.
//
// **Blocks of queries.**  A tile of keys walks blocks of queries.  Two arrays
// in scratch memory go from launch to launch, block by block, those of a head
// behind each other, then heads, then batch entries:
//
//   statistics  for each of its queries what is added to a score, -log2(e) LSE,
//               then for each of them D
//   dQ          sums in f32, as registers of accumulators hold them
//
// **dQ of a block** (queries x d) is made of *parts*, one for each warpgroup: a
// run of columns, or 64 queries each where a block has as many for all.  A part
// is made of the images of its four warps, 16 queries each.
//
// The launches around the main one have their blocks for *strips* of 64 queries
// (Kernels.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_BACKWARDFRAME_H
#define ATTN_LIB_KERNELS_BACKWARDFRAME_H

#include "Mask.h"
#include "Ring.h"
#include "TileBlocks.h"
#include "TileOrder.h"

#include <optional>

namespace attn {

/// What a tile of keys walks: a run of blocks, from the last to the first, of
/// one query head after the other.
struct Walk {
  Run blocks;
  Scalar firstHead; ///< of those that share the key head
  Scalar steps;     ///< in all heads; one at least, if there are queries
};

/// Where a walk is, as two scalars that loops carry.
struct Step {
  Scalar head, block;
};

struct BackwardFrame {
  BackwardFrame(TileBuilder &builder, const KernelRequest &request);

  /// Creates the kernel of the main launch, and reserves shared memory.
  tile::KernelOp declareMain();
  mlir::Value map(llvm::StringRef operand) const;

  //===--------------------------------------------------------------------===//
  // Blocks of queries
  //===--------------------------------------------------------------------===//

  void declareStatistics();
  void declareSums();
  /// The number of a block in both arrays.
  Scalar numberOf(Scalar batch, Scalar head, Scalar block) const;
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

  Walk walkOf(const Tile &tile) const;
  Step firstStep(const Walk &walk) const;
  Step nextStep(const Walk &walk, const Step &step) const;
  Tile pop(Place message) const { return popTile(b, queue, message); }

  static constexpr int64_t kWarpRows = 16;

  TileBuilder &b;
  const Problem &problem;
  const KernelRequest &request;
  mlir::Type element;
  int64_t key, block, stages; ///< keys of a tile, queries of a block
  bool overlap;
  int64_t groups;          ///< consumer warpgroups
  int64_t dim, dimV;       ///< head dimensions, padded
  bool splitsColumns;      ///< how dQ is dealt out
  int64_t gradientColumns; ///< of a part of dQ

  Arguments arguments;
  Scalar queries, keys;
  Scalar sharers;              ///< query heads that share a key head
  std::optional<KeyBand> band; ///< from the side of the keys
  std::optional<TileBlocks> blocks;
  mlir::Value bufferK, bufferV, bufferQ, bufferGradient, bufferStatistics;
  mlir::Value bufferScores; ///< of dS, two that take turns
  mlir::Value staging;      ///< a stage for each warpgroup
  mlir::Value queue;
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

/// The launches around the main one (BackwardStrips.cpp).
tile::KernelOp prepareStrips(BackwardFrame &frame);
tile::KernelOp finishStrips(BackwardFrame &frame);

} // namespace attn

#endif
