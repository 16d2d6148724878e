//===- TileLists.cpp - What makes lists of blocks -------------------------===//

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
