//===- TileTma.cpp - Constraints of the ops of the copy engine ------------===//

#include "attn/Tile/Tile.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// The buffer can hold boxes of the map, `rows` rows high.
static LogicalResult verifyBox(Operation *op, TensorMapType map,
                               SmemType buffer) {
  if (buffer.getLayout() != SmemLayout::sw128)
    return op->emitOpError("expects a buffer in layout sw128, but got ")
           << buffer;
  if (buffer.getElementType() != map.getElementType())
    return op->emitOpError("expects a buffer of ")
           << map.getElementType() << ", but got " << buffer;
  return success();
}

/// Panels of a buffer that have so many columns, or all.
static int64_t panelsOf(SmemType buffer, std::optional<int64_t> columns) {
  return columns ? *columns / buffer.panelColumns() : buffer.panels();
}

/// So many columns are panels of the buffer.
static LogicalResult verifyColumns(Operation *op, SmemType buffer,
                                   std::optional<int64_t> columns) {
  if (!columns || (*columns > 0 && *columns <= buffer.getColumns() &&
                   *columns % buffer.panelColumns() == 0))
    return success();
  return op->emitOpError("expects columns in steps of ")
         << buffer.panelColumns() << " up to " << buffer.getColumns()
         << ", but got " << *columns;
}

/// One lane executes the op.
static LogicalResult verifySingleLane(Operation *op) {
  RoleOp role = RoleOp::of(op);
  if (!role || !role.getSingleLane())
    return op->emitOpError("expects to stand in a role of a single lane");
  return success();
}

LogicalResult TmaLoadOp::verify() {
  TensorMapType map = getMap().getType();
  SmemType buffer = getBuffer().getType();
  if (failed(verifySingleLane(*this)) || failed(verifyBox(*this, map, buffer)))
    return failure();
  int64_t blocks =
      getRank() ? (*this)->getParentOfType<KernelOp>().getCluster() : 1;
  int64_t parts = hasPartsOfPanels() ? 1 : blocks;
  bool areWhole = getRank() ? buffer.getRows() == parts * map.getBoxRows()
                            : buffer.getRows() % map.getBoxRows() == 0;
  if (!getColumn() && map.hasAnyColumns())
    return emitOpError("expects a column of ") << map << ", but got none";
  if (!areWhole || (!getColumn() && buffer.getColumns() < map.getColumns()))
    return emitOpError("expects a buffer for ")
           << (parts == 1 ? "" : std::to_string(parts) + " ") << "boxes of "
           << map.getBoxRows() << " x " << map.getColumns() << ", but got "
           << buffer;
  constexpr int64_t swizzledRows = 8;
  if (parts > 1 && map.getBoxRows() % swizzledRows != 0)
    return emitOpError("expects parts of ")
           << swizzledRows << " rows or a multiple, but got "
           << map.getBoxRows();
  if (failed(verifyColumns(*this, buffer, getColumns())))
    return failure();
  if (hasPartsOfPanels() && panels() % blocks != 0)
    return emitOpError("expects panels for ")
           << blocks << " blocks, but got " << panels();
  return success();
}

LogicalResult MbarrierExpectOp::verify() {
  return success(
      succeeded(verifySingleLane(*this)) &&
      succeeded(verifyColumns(*this, getBuffer().getType(), getColumns())));
}

int64_t MbarrierExpectOp::panels() {
  return panelsOf(getBuffer().getType(), getColumns());
}

LogicalResult TmaLoadRowsOp::verify() {
  TensorMapType map = getMap().getType();
  SmemType buffer = getBuffer().getType();
  if (failed(verifySingleLane(*this)) ||
      failed(verifyBox(*this, map, buffer)) ||
      failed(verifyColumns(*this, buffer, getColumns())))
    return failure();
  if (!getColumn() && map.hasAnyColumns())
    return emitOpError("expects a column of ") << map << ", but got none";
  if (buffer.getRows() % map.getBoxRows() == 0 &&
      (getColumn() || buffer.getColumns() >= map.getColumns()))
    return success();
  return emitOpError("expects a buffer for boxes of ")
         << map.getBoxRows() << " x " << map.getColumns() << ", but got "
         << buffer;
}

bool TmaLoadOp::hasPartsOfPanels() {
  return getRank() &&
         getMap().getType().getBoxRows() == getBuffer().getType().getRows();
}

int64_t TmaLoadOp::ownPanels(int64_t blocks) {
  return hasPartsOfPanels() ? panels() / blocks : panels();
}

int64_t TmaLoadOp::ownRows() {
  return getRank() ? getMap().getType().getBoxRows()
                   : getBuffer().getType().getRows();
}

int64_t TmaLoadOp::boxes() {
  return ownRows() / getMap().getType().getBoxRows();
}

int64_t TmaLoadOp::panels() {
  return panelsOf(getBuffer().getType(), getColumns());
}

int64_t TmaLoadRowsOp::panels() {
  return panelsOf(getBuffer().getType(), getColumns());
}

int64_t TmaPrefetchOp::panelColumns() {
  Type element = getMap().getType().getElementType();
  return SmemType::kPanelBytes * 8 / element.getIntOrFloatBitWidth();
}

int64_t TmaPrefetchOp::panels() {
  return int64_t(getColumns()) / panelColumns();
}

LogicalResult TmaPrefetchOp::verify() {
  if (failed(verifySingleLane(*this)))
    return failure();
  auto columns = int64_t(getColumns());
  if (columns > 0 && columns % panelColumns() == 0)
    return success();
  return emitOpError("expects columns in steps of ")
         << panelColumns() << ", but got " << columns;
}

LogicalResult TmaStoreOp::verify() {
  TensorMapType map = getMap().getType();
  SmemType buffer = getBuffer().getType();
  if (failed(verifyBox(*this, map, buffer)))
    return failure();
  if (buffer.getRows() < map.getBoxRows())
    return emitOpError("expects a buffer for boxes of ")
           << map.getBoxRows() << " rows, but got " << buffer;
  std::optional<int64_t> column = getConstantIntValue(getColumn());
  bool isBehind = column && !map.hasAnyColumns() && *column >= map.getColumns();
  if (column &&
      (*column < 0 || isBehind || *column % buffer.panelColumns() != 0))
    return emitOpError("expects a column in steps of ")
           << buffer.panelColumns() << " below " << map.getColumns()
           << ", but got " << *column;
  return success();
}

int64_t TmaStoreOp::columns() {
  int64_t columns = getBuffer().getType().getColumns();
  TensorMapType map = getMap().getType();
  std::optional<int64_t> first = getConstantIntValue(getColumn());
  return first && !map.hasAnyColumns()
             ? std::min(columns, map.getColumns() - *first)
             : columns;
}

//===----------------------------------------------------------------------===//
// Words in one piece
//===----------------------------------------------------------------------===//

static LogicalResult verifyArray(Operation *op, PtrType base) {
  if (!base.getElementType().isF32())
    return op->emitOpError("expects an array of f32, but got ") << base;
  return success();
}

LogicalResult LoadWordsOp::verify() {
  SmemType buffer = getBuffer().getType();
  if (failed(verifySingleLane(*this)))
    return failure();
  if (buffer.getRows() != 1 || !buffer.getElementType().isF32())
    return emitOpError("expects a buffer of one row of f32, but got ")
           << buffer;
  return verifyArray(*this, getBase().getType());
}

Traffic LoadWordsOp::getTraffic(const TrafficScalars &) {
  int64_t bytes = getBuffer().getType().tileBytes();
  return {bytes, bytes};
}

/// What the copy engine takes from a stage.
template <typename Op> static int64_t wordBytes(Op op) {
  return int32_t(op.getCount()) * int64_t(sizeof(float));
}

template <typename Op> static LogicalResult verifyWords(Op op) {
  SmemType buffer = op.getBuffer().getType();
  int64_t bytes = wordBytes(op);
  if (bytes > buffer.stageBytes())
    return op.emitOpError("expects at most the ")
           << buffer.stageBytes() << " bytes of a stage of " << buffer
           << ", but got " << bytes;
  // What the copy engine moves.
  constexpr int64_t unit = 16;
  if (bytes <= 0 || bytes % unit != 0)
    return op.emitOpError("expects bytes in multiples of ")
           << unit << ", but got " << bytes;
  return verifyArray(op, op.getBase().getType());
}

LogicalResult AddWordsOp::verify() { return verifyWords(*this); }

Traffic AddWordsOp::getTraffic(const TrafficScalars &) {
  return {wordBytes(*this), wordBytes(*this)};
}

LogicalResult StoreWordsOp::verify() { return verifyWords(*this); }

Traffic StoreWordsOp::getTraffic(const TrafficScalars &) {
  return {wordBytes(*this), wordBytes(*this)};
}
