//===- RoundsConsumer.h - What consumers of plain products do ---*- C++ -*-===//
//
// What a consumer warpgroup does alike in all launches of plain products on
// wgmma, forward and backward: it has 64 rows of every tile, multiplies scores
// by slices of both factors, and leaves results in its part of the staging
// buffer.
//
// **Turns.**  Both warpgroups take the same slots of one ring, which keeps them
// together: left alone they end their products at once, and the tensor cores
// wait until both have made of them what leaves.  So of the last slices, as
// many as the ring has slots, the first warpgroup starts all its products
// before the second starts any.  By then all of these slices are there or on
// their way.  While the first one is busy with its results, the second one
// multiplies; while that is busy with its own, the first one has begun the next
// tile, as far ahead as the ring lets it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_ROUNDS_ROUNDSCONSUMER_H
#define ATTN_LIB_KERNELS_ROUNDS_ROUNDSCONSUMER_H

#include "Pipe/Turns.h"
#include "Rounds/RoundsFrame.h"

namespace attn {

struct RoundsConsumer : RoundsFrame {
  using RoundsFrame::RoundsFrame;
  RoundsConsumer(const RoundsConsumer &other, RoundsLaunch launch)
      : RoundsFrame(other, launch) {}

  /// What a warpgroup carries from tile to tile.
  struct State {
    Place place; ///< in the ring
    Scalar turn; ///< parity of the staging buffer
  };

  /// Finds out which rows of tiles are the warp's.
  void enterGroup();
  /// Works off the tiles that the queue tells of.
  void
  consumeTiles(llvm::function_ref<State(const Tile &, const State &)> consume);

  /// The first row of the warp in a tile.
  Scalar warpRow() const { return groupRow + warpOfGroup * kWarpRows; }
  /// Own rows times the transpose of a block's, 64 columns after the other; or
  /// times that of the half that came of it.  `meanwhile` comes when all have
  /// been started.
  mlir::Value product(Place &place, int64_t columns, bool isHalf = false,
                      llvm::function_ref<void()> meanwhile = {}) const;
  /// The next slices of such a product: all but the first start beside the one
  /// before.  What is to be done then comes when all have been started.
  mlir::Value addSlices(mlir::Value sum, int64_t count, Place &place,
                        bool isHalf,
                        llvm::function_ref<void()> afterwards = {}) const;
  /// sum += left times right, so many steps of sums.
  mlir::Value addSteps(Scalar steps, Place &place, mlir::Value sum,
                       bool isTransposed) const;
  /// The next steps of a sum: each but the first starts beside the one before,
  /// whose slot goes back then.
  mlir::Value addRun(int64_t count, Place &place, mlir::Value sum,
                     llvm::function_ref<mlir::Value(Place, mlir::Value)> start,
                     llvm::function_ref<void()> afterwards = {}) const;
  /// So many runs.
  mlir::Value
  addRuns(Scalar runs, int64_t count, Place &place, mlir::Value sum,
          llvm::function_ref<mlir::Value(Place, mlir::Value)> start) const;
  /// Steps of sums that start beside those before, `most` if the ring has a
  /// slot for what comes meanwhile.
  int64_t slicesOfRun(int64_t most) const { return stages > 2 ? most : 1; }
  /// The first slices of a product.
  mlir::Value firstSlices(int64_t count, Place &place, bool isHalf) const;
  /// So many slices of a product of such a type, each but the first of a run
  /// starting beside the one before.
  mlir::Value addRunsOfSlices(
      int64_t count, Place &place, tile::FragType type,
      llvm::function_ref<mlir::Value(Place, mlir::Value)> start) const;
  /// Starts own rows of a slice times the transpose of a block's, or of a half.
  mlir::Value startSlice(const Place &place, mlir::Value sum,
                         bool isHalf) const;
  /// The same of parts, slices added up in f32.
  mlir::Value productOfParts(Place &place, int64_t columns) const;
  /// Own rows of a slice of parts times those of the right factor, or their
  /// transposes, in one sum of so many columns.
  mlir::Value sliceOfParts(Place &place, int64_t columns,
                           bool isTransposed) const;
  /// Leaves what is to go in the warpgroup's part of the staging buffer.
  void put(mlir::Value fragment, Scalar &turn) const;
  /// A piece of it, of the columns of a slot, where the buffer stood at `turn`
  /// before the first one; empty if nothing is to go.
  void putPiece(mlir::Value fragment, int64_t piece, Scalar turn) const;
  /// The same type with so many columns.
  static tile::FragType columnsOf(tile::FragType type, int64_t columns);

  Scalar group, groupRow, warpOfGroup;
  Turns turns;
};

} // namespace attn

#endif
