//===- TileTraffic.cpp - Bytes that each op moves -------------------------===//
//
// Copies through `copy_async` write whole tiles to shared memory, zeros
// included; what is clipped does not cross the border to global memory.
//
//===----------------------------------------------------------------------===//

#include "attn/Tile/Tile.h"

#include <algorithm>

using namespace mlir;
using namespace attn::tile;

int64_t attn::tile::clippedRows(int64_t first, int64_t count, int64_t rows) {
  int64_t begin = std::max<int64_t>(first, 0);
  int64_t end = std::min(first + count, rows);
  return std::max<int64_t>(end - begin, 0);
}

Traffic CopyAsyncOp::getTraffic(const TrafficScalars &scalars) {
  SmemType buffer = getBuffer().getType();
  ViewType view = getView().getType();
  int64_t rows =
      clippedRows(scalars.scalar(getRow()),
                  view.isVector() ? buffer.getColumns() : buffer.getRows(),
                  scalars.rows(getView()));
  return {rows * view.rowBytes(), buffer.tileBytes()};
}

SmallVector<Value> CopyAsyncOp::getTrafficOperands() {
  return {getView(), getRow()};
}

bool CopyAsyncOp::isCollective() { return true; }

Traffic LoadMatrixOp::getTraffic(const TrafficScalars &) {
  return {0, getResult().getType().bytes()};
}

Traffic StoreMatrixOp::getTraffic(const TrafficScalars &) {
  FragType fragment = getFragment().getType();
  return {0, fragment.getRows() * fragment.getColumns() *
                 getBuffer().getType().elementBytes()};
}

Traffic StoreTransposedOp::getTraffic(const TrafficScalars &) {
  return {0, getFragment().getType().bytes()};
}

static Traffic trafficOf(RowType row) {
  constexpr int64_t valueBytes = 4;
  return {0, row.getRows() * valueBytes};
}

Traffic PutRowOp::getTraffic(const TrafficScalars &) {
  return trafficOf(getValues().getType());
}

Traffic GetRowOp::getTraffic(const TrafficScalars &) {
  return trafficOf(getValues().getType());
}

Traffic GetColumnsOp::getTraffic(const TrafficScalars &) {
  return {0, getResult().getType().getColumns() *
                 getBuffer().getType().elementBytes()};
}

Traffic CopyOutOp::getTraffic(const TrafficScalars &scalars) {
  int64_t rows = clippedRows(scalars.scalar(getRow()), int32_t(getCount()),
                             scalars.rows(getView()));
  int64_t bytes = rows * getView().getType().rowBytes();
  return {bytes, bytes};
}

SmallVector<Value> CopyOutOp::getTrafficOperands() {
  return {getView(), getRow()};
}

Traffic StoreRowOp::getTraffic(const TrafficScalars &scalars) {
  int64_t rows =
      clippedRows(scalars.scalar(getRow()), getValues().getType().getRows(),
                  scalars.rows(getView()));
  return {rows * getView().getType().rowBytes(), 0};
}

SmallVector<Value> StoreRowOp::getTrafficOperands() {
  return {getView(), getRow()};
}

Traffic LoadRowOp::getTraffic(const TrafficScalars &scalars) {
  int64_t rows =
      clippedRows(scalars.scalar(getRow()), getValues().getType().getRows(),
                  scalars.rows(getView()));
  return {rows * getView().getType().rowBytes(), 0};
}

SmallVector<Value> LoadRowOp::getTrafficOperands() {
  return {getView(), getRow()};
}

Traffic RowDotOp::getTraffic(const TrafficScalars &scalars) {
  int64_t rows =
      clippedRows(scalars.scalar(getRow()), getValues().getType().getRows(),
                  scalars.rows(getLhs()));
  return {2 * rows * getLhs().getType().rowBytes(), 0};
}

SmallVector<Value> RowDotOp::getTrafficOperands() {
  return {getLhs(), getRow()};
}

//===----------------------------------------------------------------------===//
// TMA and wgmma
//===----------------------------------------------------------------------===//

Traffic TmaLoadOp::getTraffic(const TrafficScalars &scalars) {
  TensorMapType map = getMap().getType();
  SmemType buffer = getBuffer().getType();
  // The part that this block loads for all of its cluster.
  int64_t rank = getRank() ? scalars.scalar(getRank()) : 0;
  int64_t row = scalars.scalar(getRow());
  int64_t column = getColumn() ? scalars.scalar(getColumn()) : 0;
  int64_t width = panels() * buffer.panelColumns();
  if (hasPartsOfPanels()) {
    auto kernel = (*this)->getParentOfType<KernelOp>();
    width = ownPanels(kernel.getCluster()) * buffer.panelColumns();
    column += rank * width;
  } else {
    row += rank * map.getBoxRows();
  }
  int64_t rows = clippedRows(row, ownRows(), scalars.rows(getMap()));
  int64_t columns = clippedRows(column, width, scalars.columns(getMap()));
  return {rows * columns * buffer.elementBytes(),
          panels() * buffer.panelBytes()};
}

SmallVector<Value> TmaLoadOp::getTrafficOperands() {
  SmallVector<Value> operands = {getMap(), getRow()};
  for (Value extra : {getColumn(), getRank()})
    if (extra)
      operands.push_back(extra);
  return operands;
}

Traffic TmaLoadRowsOp::getTraffic(const TrafficScalars &scalars) {
  TensorMapType map = getMap().getType();
  SmemType buffer = getBuffer().getType();
  int64_t rows = clippedRows(scalars.scalar(getRow()), map.getBoxRows(),
                             scalars.rows(getMap()));
  int64_t column = getColumn() ? scalars.scalar(getColumn()) : 0;
  int64_t columns = clippedRows(column, panels() * buffer.panelColumns(),
                                scalars.columns(getMap()));
  return {rows * columns * buffer.elementBytes(),
          panels() * map.getBoxRows() * SmemType::kPanelBytes};
}

SmallVector<Value> TmaLoadRowsOp::getTrafficOperands() {
  SmallVector<Value> operands = {getMap(), getRow()};
  if (getColumn())
    operands.push_back(getColumn());
  return operands;
}

Traffic TmaStoreOp::getTraffic(const TrafficScalars &scalars) {
  TensorMapType map = getMap().getType();
  SmemType buffer = getBuffer().getType();
  int64_t rows = clippedRows(scalars.scalar(getRow()), map.getBoxRows(),
                             scalars.rows(getMap()));
  int64_t columns = clippedRows(scalars.scalar(getColumn()),
                                buffer.getColumns(), scalars.columns(getMap()));
  int64_t bytes = rows * columns * buffer.elementBytes();
  return {bytes, bytes};
}

SmallVector<Value> TmaStoreOp::getTrafficOperands() {
  return {getMap(), getRow(), getColumn()};
}

/// The share of one warp: its own 16 rows of the left factor, and a quarter of
/// the right one, which a warpgroup reads once.
Traffic WgmmaOp::getTraffic(const TrafficScalars &) {
  PendingType result = getResult().getType();
  int64_t bytes = getRhs().getType().elementBytes();
  int64_t rhs = depth() * result.getColumns() * bytes / 4;
  int64_t lhs = isa<SmemType>(getLhs().getType())
                    ? result.getRows() * depth() * bytes
                    : 0;
  return {0, lhs + rhs};
}
