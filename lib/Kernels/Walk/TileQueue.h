//===- TileQueue.h - Tiles, and how roles hear of them ----------*- C++ -*-===//
//
// A tile is some rows of a head.  A producer draws tiles and tells other roles
// of them through a queue; everybody then works off the same ones, one after
// the other.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_TILEQUEUE_H
#define ATTN_LIB_KERNELS_WALK_TILEQUEUE_H

#include "Build/Ring.h"

namespace attn {

/// A tile: its first row, and whose it is.  `row` is negative when there is
/// none.
struct Tile {
  Scalar row, head, batch;
  Scalar part = {}; ///< where rows have several tiles side by side

  /// As loops and queues have it.
  static Tile of(TileBuilder &builder, mlir::ValueRange numbers);
  llvm::SmallVector<mlir::Value> numbers() const;
};

/// The queue through which a producer tells `readers` warps of tiles, of parts
/// as well if there are any, and how many its slots hold.
inline constexpr int64_t kTileMessages = 2;
mlir::Value tileQueue(TileBuilder &builder, int64_t readers,
                      bool hasParts = false);
void pushTile(TileBuilder &builder, mlir::Value queue, Place message,
              const Tile &tile);
Tile popTile(TileBuilder &builder, mlir::Value queue, Place message);

/// What a role does with a tile: from what it carries, what it carries on.
using TileBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    const Tile &tile, mlir::ValueRange carried)>;
/// Works off the tiles that the queue tells of, and asks for the next one
/// behind the body of each.  What is carried in the end.
mlir::ValueRange forEachTile(TileBuilder &builder, mlir::Value queue,
                             mlir::ValueRange init, TileBody body);
/// The next tile; it may change what is carried on.
using NextTile = llvm::function_ref<Tile(llvm::SmallVector<mlir::Value> &)>;
/// The loop of a producer: tells the queue of a tile, then does what is to be
/// done for it, and draws the next one last, so that who is done first has it.
void feedTiles(TileBuilder &builder, mlir::Value queue, const Tile &first,
               mlir::ValueRange init, TileBody body, NextTile drawNext);

} // namespace attn

#endif
