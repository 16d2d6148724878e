//===- Epilogue.h - From accumulators to global memory ----------*- C++ -*-===//

#ifndef ATTN_LIB_KERNELS_EPILOGUE_H
#define ATTN_LIB_KERNELS_EPILOGUE_H

#include "Softmax.h"

namespace attn {

/// Scales a warp's strip of O by 1/l, stages it in `staging` (16-byte stores to
/// global memory instead of scattered ones) and stores it.  `warpRow` is the
/// strip's row in the tile, `row` its row in the view.
void storeOutput(TileBuilder &builder, mlir::Value accumulator,
                 mlir::Value inverse, mlir::Value staging, mlir::Value view,
                 Scalar warpRow, Scalar row);

} // namespace attn

#endif
