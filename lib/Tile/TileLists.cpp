//===- TileLists.cpp - Lists of blocks, ranks of sequences ----------------===//

#include "attn/Tile/Tile.h"

using namespace mlir;
using namespace attn::tile;

LogicalResult AnyOp::verify() {
  RowType type = getValues().getType();
  if (type.getElementType().isF32())
    return success();
  return emitOpError("expects a row of f32, but got ") << type;
}

LogicalResult StoreNumberOp::verify() {
  PtrType base = getBase().getType();
  if (base.getElementType().isInteger(32))
    return success();
  return emitOpError("expects an array of i32, but got ") << base;
}

LogicalResult RankOp::verify() {
  for (PtrType array : {getOffsets().getType(), getLengths().getType()})
    if (!array.getElementType().isInteger(32) &&
        !array.getElementType().isInteger(64))
      return emitOpError("expects arrays of i32 or i64, but got ") << array;
  // Each thread ranks one.
  int64_t threads =
      int64_t(32) * cast<KernelOp>((*this)->getParentOp()).getWarps();
  if (entries() > threads)
    return emitOpError("expects a table of at most ")
           << threads << " entries, one for each thread, but got " << entries();
  return success();
}
