//===- FlashConsumer.h - A consumer of flash, and its rows ------*- C++ -*-===//
//
// Where a warp that multiplies stands: in which pair of warpgroups, if a block
// has several, and with which rows of its tile.  How those leave: through
// shared memory, or from registers what has f32 or is a part of the keys.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_FLASH_FLASHCONSUMER_H
#define ATTN_LIB_KERNELS_FLASH_FLASHCONSUMER_H

#include "Flash/FlashFrame.h"
#include "Softmax/LazySoftmax.h"

namespace attn {

struct FlashConsumer : FlashFrame {
  using FlashFrame::FlashFrame;

  /// Finds the rows of the warp, and its pair.
  void beginConsumer();
  /// The tile as this warp has it: of the head of its rows.
  Tile ownOf(const Tile &tile) const;
  /// The first of its rows, counted from those of the tile.
  Scalar queryOf(const Tile &tile) const;
  /// Stores the rows of the warp, of O in parts side by side, and its LSE.
  void storeTile(mlir::ValueRange output, const LazySoftmax::End &end,
                 const Tile &tile);

  Scalar warp;
  Scalar group, groupRow, warpRow; ///< of a tile

private:
  void storeParts(mlir::ValueRange output, mlir::Value inverse,
                  const Tile &tile);
  void storeParts(mlir::ValueRange output, mlir::Value inverse,
                  const Tile &tile, mlir::Value view);
  void storeKeyPart(mlir::ValueRange output, const LazySoftmax::End &end,
                    const Tile &tile);
  void storeStaged(mlir::Value output, mlir::Value inverse, const Tile &tile);

protected:
  /// Where a block has several pairs, of this one: its first warpgroup in the
  /// block, and row of the staging buffer.
  Scalar firstGroup, firstStaged;
};

} // namespace attn

#endif
