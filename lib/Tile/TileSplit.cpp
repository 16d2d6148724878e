//===- TileSplit.cpp - Constraints of f32 in parts ------------------===//

#include "attn/Tile/Tile.h"

using namespace mlir;
using namespace attn::tile;

/// Weights as left factors of such a type.
static LogicalResult verifyParts(Operation *op, FragType source, FragType part,
                                 bool isType, const char *type) {
  if (source.getLayout() == FragmentLayout::acc &&
      part.getLayout() == FragmentLayout::lhs && isType &&
      source.getRows() == part.getRows() &&
      source.getColumns() == part.getColumns())
    return success();
  return op->emitOpError("expects an accumulator to left factors of ")
         << type << " of its shape, but got " << source << " to " << part;
}

LogicalResult SplitBf16Op::verify() {
  FragType part = getFirst().getType();
  return verifyParts(*this, getSource().getType(), part,
                     part.getElementType().isBF16(), "bf16");
}

LogicalResult SplitF16Op::verify() {
  FragType part = getFirst().getType();
  return verifyParts(*this, getSource().getType(), part,
                     part.getElementType().isF16(), "f16");
}

LogicalResult SplitRowsOp::verify() {
  SmemType source = getSource().getType();
  if (source.getLayout() != SmemLayout::sw128 ||
      !source.getElementType().isF32())
    return emitOpError("expects a source of f32 in layout sw128, but got ")
           << source;
  // Both halves of a target's panel are read.
  constexpr int64_t columnsOfHalf = kColumns / 2;
  if (source.getColumns() > columnsOfHalf &&
      source.getColumns() % kColumns != 0)
    return emitOpError("expects a source of at most ")
           << columnsOfHalf << " columns or a multiple of " << kColumns
           << ", but got " << source;
  SmemType first = getFirst().getType();
  for (SmemType target : {first, getSecond().getType(), getThird().getType()}) {
    if (target.getLayout() != SmemLayout::sw128 ||
        !target.getElementType().isBF16() ||
        target.getColumns() > source.getColumns())
      return emitOpError(
                 "expects targets of bf16 in layout sw128 with at most ")
             << source.getColumns() << " columns, but got " << target;
    if (target != first)
      return emitOpError("expects targets of one type, but got ")
             << first << " and " << target;
  }
  return success();
}

/// Read once, and written in three parts.
Traffic SplitRowsOp::getTraffic(const TrafficScalars &scalars) {
  SmemType target = getFirst().getType();
  int64_t left = target.getColumns() - scalars.scalar(getColumn());
  int64_t elements = kRows * std::min(kColumns, left);
  return {0, elements * (getSource().getType().elementBytes() +
                         3 * target.elementBytes())};
}

SmallVector<Value> SplitRowsOp::getTrafficOperands() { return {getColumn()}; }

LogicalResult SplitViewOp::verify() {
  constexpr int64_t pieceBytes = 16;
  ViewType source = getSource().getType(), target = getTarget().getType();
  if (source.isVector() || !source.getElementType().isF32())
    return emitOpError("expects a source of rows of f32, but got ") << source;
  int64_t columns = target.getColumns();
  if (target.isVector() || !target.getElementType().isF16() ||
      columns % (kParts * kColumns) != 0 ||
      columns < kParts * source.getColumns() || target.getAlign() < pieceBytes)
    return emitOpError("expects a target of f16 in ")
           << kParts << " times a multiple of " << kColumns
           << " columns, at least " << source.getColumns() << ", aligned to "
           << pieceBytes << " bytes, but got " << target;
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (kernel && kernel.getWarps() != kWarps)
    return emitOpError("expects ")
           << kWarps << " warps, but got " << kernel.getWarps();
  SmemType largest = getLargest().getType();
  if (largest.getRows() != 1 || largest.getColumns() != kNumbers ||
      !largest.getElementType().isF32())
    return emitOpError("expects a buffer of ")
           << kNumbers << " numbers of f32, but got " << largest;
  PtrType exponents = getExponents().getType();
  if (!exponents.getElementType().isInteger(32))
    return emitOpError("expects exponents of i32, but got ") << exponents;
  return success();
}

/// Rows are read twice, the second time on the way from L1 or L2.
Traffic SplitViewOp::getTraffic(const TrafficScalars &scalars) {
  int64_t rows = clippedRows(scalars.scalar(getRow()), kBlockRows,
                             scalars.rows(getSource()));
  return {rows * (getSource().getType().rowBytes() +
                  getTarget().getType().rowBytes()),
          0};
}

SmallVector<Value> SplitViewOp::getTrafficOperands() {
  return {getSource(), getRow()};
}

bool SplitViewOp::isCollective() { return true; }
