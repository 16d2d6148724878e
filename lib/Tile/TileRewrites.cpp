//===- TileRewrites.cpp - Constraints of 8-bit matrices, rewritten --------===//

#include "attn/Tile/Tile.h"

using namespace mlir;
using namespace attn::tile;

LogicalResult TransposeOp::verify() {
  SmemType source = getSource().getType(), target = getTarget().getType();
  if (source.getLayout() != SmemLayout::sw128 || source.elementBytes() != 1)
    return emitOpError("expects a source of 8-bit elements in layout sw128, "
                       "but got ")
           << source;
  if (source.getRows() % kRows != 0)
    return emitOpError("expects rows in multiples of ")
           << kRows << ", but got " << source;
  if (!target.isPaired() ||
      target.getElementType() != source.getElementType() ||
      target.getRows() != source.getColumns() ||
      target.getColumns() != source.getRows())
    return emitOpError("expects a target of ")
           << source.getColumns() << " x " << source.getRows() << " "
           << source.getElementType() << " in layout sw128_paired, but got "
           << target;
  return success();
}

/// Read and written.
Traffic TransposeOp::getTraffic(const TrafficScalars &) {
  SmemType source = getSource().getType();
  return {0, 2 * kRows * source.getColumns() * source.elementBytes()};
}

LogicalResult WidenRowsOp::verify() {
  SmemType source = getSource().getType(), target = getTarget().getType();
  if (source.getLayout() != SmemLayout::sw128 || source.elementBytes() != 1)
    return emitOpError("expects a source of 8-bit elements in layout sw128, "
                       "but got ")
           << source;
  if (target.getLayout() != SmemLayout::sw128 || target.elementBytes() != 2 ||
      target.getRows() != source.getRows() ||
      target.getColumns() != source.getColumns())
    return emitOpError("expects a target of ")
           << source.getRows() << " x " << source.getColumns()
           << " bf16 or f16 in layout sw128, but got " << target;
  return success();
}

/// Read once, and written.
Traffic WidenRowsOp::getTraffic(const TrafficScalars &scalars) {
  SmemType source = getSource().getType(), target = getTarget().getType();
  int64_t left = source.getColumns() - scalars.scalar(getColumn());
  int64_t elements = kRows * std::min(kColumns, left);
  return {0, elements * (source.elementBytes() + target.elementBytes())};
}

SmallVector<Value> WidenRowsOp::getTrafficOperands() { return {getColumn()}; }
