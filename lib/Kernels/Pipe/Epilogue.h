//===- Epilogue.h - From accumulators to global memory ----------*- C++ -*-===//

#ifndef ATTN_LIB_KERNELS_PIPE_EPILOGUE_H
#define ATTN_LIB_KERNELS_PIPE_EPILOGUE_H

#include "Softmax/Softmax.h"
#include "Walk/RowsOfHeads.h"
#include "Walk/TileOrder.h"

namespace attn {

/// Scales a warp's strip of O, in parts side by side, by 1/l, stages it in
/// `staging` (16-byte stores to global memory instead of scattered ones) and
/// stores it.  `warpRow` is the strip's row in the tile, `row` its row in the
/// view.
void storeOutput(TileBuilder &builder, mlir::ValueRange parts,
                 mlir::Value inverse, mlir::Value staging, mlir::Value view,
                 Scalar warpRow, Scalar row);

/// Stores a warp's log-sum-exps from `row` of a tile's head on.
void storeLse(TileBuilder &builder, const Arguments &arguments,
              const LogSumExp &lse, const Tile &tile, Scalar queries,
              Scalar row);

/// How a warpgroup stages its rows for TMA.
struct Strips {
  /// One buffer or two, which take turns; their columns are those of a strip.
  llvm::ArrayRef<mlir::Value> staging;
  mlir::Value map;
  Scalar groupRow, warpRow; ///< rows of the warpgroup and of the warp in a tile
  Scalar leads;             ///< whether the warp starts the warpgroup's stores
  Scalar barrier;           ///< named barrier of the warpgroup
  Scalar firstStaged = {};  ///< row of the tile's, where tiles share staging
  Scalar column = {};       ///< of the output, where its first strip goes
  /// Where a tile has those of several heads: which, and of how many queries.
  const RowsOfHeads *ofHeads = nullptr;
  Scalar queries = {};
};

/// Stores a warp's rows of an output through shared memory, strip by strip.  A
/// strip is staged when the store that last read its buffer is done with it.
void storeOutputAsync(TileBuilder &builder, mlir::Value output,
                      const Strips &strips, const Tile &tile);

} // namespace attn

#endif
