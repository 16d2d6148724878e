//===- StripFrame.h - Strips of keys on mma.sync, O in places ---*- C++ -*-===//
//
// For heads so wide that a block keeps neither rows of Q nor of O.  A block
// works off tiles of `query` rows, one after the other, and draws the next one
// behind each, since under a mask tiles differ in length; of each the keys in
// strips of whole blocks:
//
//   A   S of every block, from slices of Q and K
//   B   for every tile of `column` columns: O of the strip, V in pieces
//
// Between strips O waits in scratch memory, as the accumulators it is in.  Who
// reads it has written it, lane by lane (tile.store_registers): there is
// nothing to wait for, and no other block looks at it.
//
// What passes through shared memory comes in *units*, in order of use: slices
// of Q and K, then pieces of V, for all strips of a tile.  Copies run
// `stages - 1` units ahead of the products; a cursor says where they are.
// Slices and pieces have `stages` slots each, and unit n of a tile takes slot n
// modulo `stages` of its kind.  There is one barrier a unit: behind it nobody
// reads the unit before, whose slot of either kind is free.  With one stage a
// unit comes when it is waited for.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_MMASYNC_STRIPFRAME_H
#define ATTN_LIB_KERNELS_MMASYNC_STRIPFRAME_H

#include "MmaSync/MmaSyncFrame.h"
#include "Walk/TileOrder.h"

namespace attn {

struct StripFrame : MmaSyncFrame {
  /// With pieces of so many keys and strips of so many blocks.
  StripFrame(TileBuilder &builder, const KernelRequest &request, int64_t piece,
             int64_t blocksOfStrip);

  /// The next unit to copy.  In phase A `column` is -1 and `unit` a slice of
  /// `block`; in phase B they are a tile of columns and a piece, counted from
  /// key 0 on.  The strip has the blocks `first .. end - 1`; none is left when
  /// it is empty.
  struct Cursor {
    Scalar first, end, block, unit, column;

    static constexpr size_t kSize = 5;
    llvm::SmallVector<mlir::Value> pack() const {
      return {first, end, block, unit, column};
    }
  };
  /// What units carry through loops: the slot of the next one, and the cursor.
  static constexpr size_t kState = 1 + Cursor::kSize;
  static llvm::SmallVector<mlir::Value> pack(Scalar slot, const Cursor &cursor);

  /// Declares what every kernel is passed; then, behind what one wants besides,
  /// the places of O.  Creates the kernel and reserves shared memory.
  void declareArguments();
  tile::KernelOp declare();
  /// Finds out where this warp is, and calls `workOff` for every tile that the
  /// block has.
  void forEachTile(llvm::function_ref<void(const Tile &tile)> workOff);

  /// Enters a tile and starts the copies of its first units.
  Cursor enter(const Tile &tile);

  /// Waits for the next unit and starts the copies of another.  Gives its slot.
  Scalar await(llvm::SmallVectorImpl<mlir::Value> &units);

  /// S of a block.  `units` goes on to the first one behind it.
  mlir::Value multiplyQK(llvm::SmallVectorImpl<mlir::Value> &units);
  /// Sets the scores of a block that the mask hides to -inf.
  mlir::Value hide(mlir::Value scores, Scalar block);
  /// O += P V for a piece, part by part; `weights` has P of its keys from
  /// column `at` on.
  llvm::SmallVector<mlir::Value> addPV(mlir::ValueRange sums, Scalar slot,
                                       const Products::Factor &weights,
                                       int64_t at = 0);

  /// A tile of columns of O: stores it to its place, or takes it up from there.
  void spillOutput(mlir::ValueRange sums, Scalar column);
  llvm::SmallVector<mlir::Value> absorbOutput(Scalar column);
  /// Times a number a row, to the output.
  void storeOutput(mlir::ValueRange sums, mlir::Value factors, Scalar column);

  /// The place of this warp's image `number` of as many as the block has.
  Scalar placeOf(Scalar number, int64_t count);
  static constexpr llvm::StringLiteral kOutput = "scratch_output";

  int64_t slice;           ///< columns of a slice of Q and K
  int64_t piece;           ///< keys of a piece of V
  int64_t slices;          ///< of a head
  int64_t pieces;          ///< of a block of keys
  int64_t column, columns; ///< of a tile of O: in memory, and in registers
  int64_t columnTiles, blocksOfStrip;
  int64_t rows; ///< of a warp

  std::optional<KeyBand> band;
  Scalar warp, warpRow, block;
  Scalar end, allPieces, firstStrip; ///< of the tile
  mlir::Value bufferQ, bufferK, bufferV;

private:
  void allocate();
  Cursor bring(const Cursor &at, Scalar slot);
  void bringSlice(const Cursor &at, Scalar slot);
  void bringPiece(const Cursor &at, Scalar slot);
  void cut(Scalar number, int64_t parts, int64_t extent, int64_t whole,
           llvm::function_ref<void(int64_t columns)> copies);
  mlir::Value addQK(mlir::Value sum, Scalar slot);
};

} // namespace attn

#endif
