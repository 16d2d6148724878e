//===- OutputSpillFrame.h - Weights of a strip in registers -----*- C++ -*-===//
//
// Sizes, arguments, buffers and barriers of output_spill on wgmma, which its
// two roles share, and what a tile reads.
//
// **Keys** are cut in *strips*, whose weights are held; these in *parts*, whose
// scores are worked out at once; and parts in *halves* of 128 keys, of which
// there is one or two.  A tile sees a run of halves, one at least; those of a
// part that it does not see neither come nor are multiplied.
//
// **Units** of the ring have 16 KiB: 128 rows of a panel of 64 columns of Q or
// K, or 64 rows of 128 columns of V.  In the order in which they are used:
//
//   for every part of two halves   for every two panels: K K | Q | Q | K K
//   or of one                      for every panel: Q | K
//   for every tile of columns      pieces of V, two for every half
//
// Both halves of K are one factor, so they begin with an even slot, of which
// there is an even number; where there is no second panel, a unit is empty
// instead of its Q.
//
// Queries stream anew for every part.  Every other time their columns come from
// the last to the first: of those that came last some are still in L2.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_OUTPUTSPILL_OUTPUTSPILLFRAME_H
#define ATTN_LIB_KERNELS_OUTPUTSPILL_OUTPUTSPILLFRAME_H

#include "Build/Ring.h"
#include "Walk/Mask.h"
#include "Walk/TileBlocks.h"
#include "Walk/TileOrder.h"

namespace attn {

struct OutputSpillFrame {
  static constexpr int64_t kGroups = 2; ///< consumer warpgroups
  static constexpr int64_t kRows = kGroups * kGroupRows;
  static constexpr int64_t kConsumers = kGroups * kWarpsPerGroup;
  static constexpr int64_t kPanel = 64; ///< columns of a panel
  static constexpr int64_t kHalf = 128; ///< keys of half a part
  static constexpr int64_t kPiece = 64; ///< keys of V in a unit
  static constexpr int64_t kPieces = kHalf / kPiece;

  OutputSpillFrame(TileBuilder &builder, const KernelRequest &request);

  /// The kernel with its arguments, buffers and barriers; the builder stands in
  /// it.
  tile::KernelOp declare();

  mlir::Value map(llvm::StringRef operand) const {
    return arguments.get(b, mapRole(operand));
  }
  /// The halves that a tile walks, and the strips that have some of them.
  KeyWalk walkOf(const Tile &tile) const {
    return blocks->walkOf(b, tile, /*goesUp=*/true);
  }
  KeyWalk stripsOf(const KeyWalk &walk) const {
    return walk.inGroups(b, halves);
  }
  /// Those of a strip, and of a part of it, all counted from its first one on.
  Run ofStrip(const KeyWalk &walk, Scalar strip) const {
    return walk.ofGroup(b, strip, halves);
  }
  Run ofPart(const Run &seenOfStrip, Scalar part) const;
  Scalar firstKeyOf(Scalar strip) const { return strip * (halves * kHalf); }

  TileBuilder &b;
  const Problem &problem;
  const KernelRequest &request;
  mlir::Type element;
  int64_t slots;
  int64_t halves;      ///< of a strip
  int64_t ofWhole;     ///< halves of a part
  int64_t parts;       ///< of a strip
  int64_t panels;      ///< of Q and K
  int64_t column;      ///< columns of a tile of O
  int64_t columnTiles; ///< of a row of O

  Arguments arguments;
  std::optional<KeyBand> band;
  std::optional<TileBlocks> blocks; ///< halves
  std::optional<TileOrder> order;
  Scalar queries;
  /// The ring; as factors of two units; and as units of V.
  mlir::Value units, pairs, pieces;
  mlir::Value queue;
  llvm::SmallVector<mlir::Value, 2> staging;
  Ring ring;

private:
  void reserve();
};

/// The role that draws tiles and starts every load.
void produceHeldTiles(const OutputSpillFrame &frame);

} // namespace attn

#endif
