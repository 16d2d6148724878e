//===- Epilogue.cpp - From accumulators to global memory ------------------===//

#include "Epilogue.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void attn::storeOutput(TileBuilder &b, Value accumulator, Value inverse,
                       Value staging, Value view, Scalar warpRow, Scalar row) {
  Value output = scaleRows(b, accumulator, inverse);
  int64_t rows = cast<FragType>(output.getType()).getRows();
  StoreMatrixOp::create(b, output, staging, warpRow);
  CopyOutOp::create(b, staging, warpRow, view, row, uint32_t(rows));
}
