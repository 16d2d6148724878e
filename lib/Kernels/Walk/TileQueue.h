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
  /// Steps of lists (BlockLists.h); what a mask shows follows from the row.
  Scalar partialSteps = {}, fullSteps = {};
  /// Keys that its batch entry uses, where the device says so.
  Scalar usedKeys = {};
  /// Of one of ragged sequences (RaggedRows.h), which `batch` is the number of:
  /// its rows in the arrays.  Where its keys begin only who loads them knows.
  Scalar firstQuery = {}, queries = {}, keys = {}, firstKey = {};

  bool isOfSequence() const { return bool(mlir::Value(keys)); }
  /// The tile as others hear of it.
  Tile told() const;

  /// As loops and queues have it; with used keys, in the form of one.
  static Tile of(TileBuilder &builder, mlir::ValueRange numbers);
  Tile like(TileBuilder &builder, mlir::ValueRange numbers) const;
  llvm::SmallVector<mlir::Value> numbers() const;
  /// No tile, in the form of this one.
  Tile none(TileBuilder &builder) const;
};

/// A queue of tiles.  A message has four numbers; so a tile that has two
/// numbers more than its place has its head and batch entry in one.
struct TileQueue {
  TileQueue() = default;
  TileQueue(mlir::Value queue) : queue(queue) {}

  /// Of several queues in one: goes round in that one.
  void enter(Scalar number);
  Place reader(TileBuilder &b) const { return Place::reader(b).from(first); }
  Place next(TileBuilder &builder, Place message) const;

  mlir::Value queue;
  Scalar first;             ///< message, of several queues in one
  Scalar heads;             ///< of a batch entry, where those are one number
  bool hasUsedKeys = false; ///< behind its part, if it has one
  bool hasFirstKey = false; ///< of sequences, for who stores rows of keys
  bool hasPart = false;     ///< of sequences, which have no first key then
};

/// The queue through which a producer tells `readers` warps of tiles, of parts
/// as well if there are any, and how many its slots hold.  There may be several
/// such queues side by side.
inline constexpr int64_t kTileMessages = 2;
mlir::Value tileQueue(TileBuilder &builder, int64_t readers,
                      bool hasParts = false, int64_t queues = 1);
/// The same of tiles of ragged sequences, and of their keys, or of parts.
TileQueue tileQueueOfSequences(TileBuilder &builder, int64_t readers,
                               bool areKeys = false, bool hasParts = false,
                               int64_t queues = 1);
/// The same with the steps of lists, for so many heads.
TileQueue tileQueueOfLists(TileBuilder &builder, int64_t readers, Scalar heads,
                           int64_t queues = 1);
/// The same with used keys; of parts as well, with so many heads.
TileQueue tileQueueOfUsed(TileBuilder &builder, int64_t readers, Scalar heads,
                          int64_t queues = 1);
/// Of tiles of all keys or, where a cache says which are used, of those.
TileQueue tileQueueOf(TileBuilder &builder, const Arguments &arguments,
                      const Placement &place, int64_t readers, bool hasParts,
                      int64_t queues = 1);
void pushTile(TileBuilder &builder, const TileQueue &queue, Place message,
              const Tile &tile);
Tile popTile(TileBuilder &builder, const TileQueue &queue, Place message);

/// What a role does with a tile: from what it carries, what it carries on.
using TileBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    const Tile &tile, mlir::ValueRange carried)>;
/// Works off the tiles that the queue tells of, and asks for the next one
/// behind the body of each.  What is carried in the end.
mlir::ValueRange forEachTile(TileBuilder &builder, const TileQueue &queue,
                             mlir::ValueRange init, TileBody body);
/// The next tile; it may change what is carried on.
using NextTile = llvm::function_ref<Tile(llvm::SmallVector<mlir::Value> &)>;
/// The loop of a producer: tells the queue of a tile, then does what is to be
/// done for it, and draws the next one last, so that who is done first has it.
void feedTiles(TileBuilder &builder, const TileQueue &queue, const Tile &first,
               mlir::ValueRange init, TileBody body, NextTile drawNext);
/// The same where the next tile follows from the one before, which is carried
/// beside the place where `load` goes on.
void feedTilesInTurn(TileBuilder &builder, const TileQueue &queue,
                     const Tile &first,
                     llvm::function_ref<Place(const Tile &, Place)> load,
                     llvm::function_ref<Tile(const Tile &before)> next);

} // namespace attn

#endif
