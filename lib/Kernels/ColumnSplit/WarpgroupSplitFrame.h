//===- WarpgroupSplitFrame.h - What its roles share -------------*- C++ -*-===//
//
// Sizes, arguments, buffers and barriers of the kernel that WarpgroupSplit.cpp
// describes.
//
// **Pieces.**  The columns of Q and K are cut in pieces: the columns of V that
// each of two warpgroups owns, in halves if these are whole panels, and the
// rest.  Example, d = 576 and d_v = 512: columns 0 to 127, 128 to 255, 256 to
// 383, 384 to 511 and 512 to 575.  A warpgroup has a tile of 64 keys of every
// strip for its own.  Of that tile nobody else reads the rest and its own
// columns; those of the other warpgroup both do.  So there is a ring for each
// of the three, which hands its slots back by itself.  A slot is a piece of the
// tile of a stage and of a warpgroup.
//
// **Used keys.**  Of a cache (RowLocator.h) the columns of V come as values do,
// with zeros behind the keys that are used, the rest as keys.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_COLUMNSPLIT_WARPGROUPSPLITFRAME_H
#define ATTN_LIB_KERNELS_COLUMNSPLIT_WARPGROUPSPLITFRAME_H

#include "Build/Ring.h"
#include "Walk/Mask.h"
#include "Walk/RowLocator.h"
#include "Walk/TileBlocks.h"
#include "Walk/TileOrder.h"

#include "attn/Schedule/Census.h"

namespace attn {

struct WarpgroupSplitFrame {
  static constexpr int64_t kParts = 2; ///< warpgroups with the same rows
  static constexpr int64_t kRows = kGroupRows;
  static constexpr int64_t kConsumers = kParts * kWarpsPerGroup;
  static constexpr int64_t kKeys = 64; ///< of a strip, a warpgroup's own
  static constexpr int64_t kStrip = kParts * kKeys;
  /// Panels' rows of what one hands the other: weights of 16 bits, and two f32
  /// of every lane for each of its rows.
  static constexpr int64_t kImageRows =
      (kRows * kKeys * 2 + kRows * kThreadsPerRow * 2 * 4) / kPanelBytes;

  WarpgroupSplitFrame(TileBuilder &builder, const KernelRequest &request);

  /// The kernel with its arguments, buffers and barriers; the builder stands in
  /// it.
  tile::KernelOp declare();

  mlir::Value map(llvm::StringRef operand) const {
    return arguments.get(b, mapRole(operand));
  }
  KeyWalk walkOf(const Tile &tile) const {
    return blocks->walkOf(b, tile, /*goesUp=*/true);
  }
  /// The tile of 64 keys that a warpgroup has of a strip.
  Scalar keyTileOf(Scalar strip, Scalar part) const {
    return strip * kParts + part;
  }
  /// The slot of a ring for the tile of a warpgroup, from a place among stages.
  Place slotOf(Place stage, Scalar part) const {
    return {stage.slot * kParts + part, stage.parity};
  }
  /// That of a half of the columns of V of a warpgroup.
  Place pieceOf(Place slot, Scalar half) const {
    return {slot.slot * halves + half, slot.parity};
  }
  /// The next stage, and the one before.
  Place next(Place stage) const { return stage.next(b, stages); }
  Place before(Place stage) const;
  /// The parity of the number of a strip, among all of the block.
  Scalar parityOf(Place stage) const;

  TileBuilder &b;
  const Problem &problem;
  const KernelRequest &request;
  mlir::Type element;
  int64_t stages;     ///< strips in the rings
  int64_t columns;    ///< of V, that a warpgroup owns
  int64_t halves;     ///< that those come in, if they are wide enough
  int64_t piece;      ///< columns of a half
  int64_t rest;       ///< columns of K behind those of V
  int64_t lateHalves; ///< of products with the other's weights, behind S
  bool prefetches;    ///< tells L2 of keys ahead
  KeyParts parts;     ///< whose O and LSE another kernel makes whole

  Arguments arguments;
  std::optional<KeyBand> band;
  std::optional<RowLocator> locator; ///< of rows that lie where the device says
  std::optional<TileBlocks> blocks;
  std::optional<TileOrder> order;
  Scalar queries;
  TileQueue queue;
  mlir::Value queriesOfParts, queriesOfRest; ///< Q, piece by piece
  mlir::Value queryFull, queryEmpty;
  mlir::Value keysOwn, keysShared, keysRest; ///< pieces of K
  Ring ringOwn, ringShared, ringRest;
  mlir::Value image;     ///< weights and rows that one hands the other
  mlir::Value published; ///< told by each warpgroup that its image is there

private:
  void declareKeys();
  void reserve();
  mlir::Value buffer(llvm::StringRef name, int64_t stages, int64_t rows,
                     int64_t columns);
};

/// The body of the producer.
void produceKeyTiles(const WarpgroupSplitFrame &frame);

/// The kernel (WarpgroupSplit.cpp).
tile::KernelOp buildWarpgroupSplit(TileBuilder &builder,
                                   const KernelRequest &request);

} // namespace attn

#endif
