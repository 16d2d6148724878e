//===- TileExchange.cpp - Constraints of what blocks exchange -------------===//

#include "attn/Tile/Tile.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Registers as they are
//===----------------------------------------------------------------------===//

/// 32-bit registers that a lane has of all the values.
static int64_t registersOf(TypeRange types) {
  int64_t count = 0;
  for (Type type : types)
    count += isa<FragType>(type) ? cast<FragType>(type).registers()
                                 : cast<RowType>(type).registers();
  return count;
}

static int64_t imageBytes(TypeRange types) {
  constexpr int64_t lanes = 32, registerBytes = 4;
  return registersOf(types) * lanes * registerBytes;
}

static LogicalResult verifyImage(Operation *op, TypeRange types) {
  int64_t count = registersOf(types);
  if (count == 0 || count % 2 != 0)
    return op->emitOpError("expects values with registers in multiples of 2, "
                           "but got ")
           << count;
  return success();
}

LogicalResult StoreRegistersOp::verify() {
  return verifyImage(*this, getValues().getTypes());
}

Traffic StoreRegistersOp::getTraffic(const TrafficScalars &) {
  return {imageBytes(getValues().getTypes()), 0};
}

LogicalResult LoadRegistersOp::verify() {
  return verifyImage(*this, getValues().getTypes());
}

Traffic LoadRegistersOp::getTraffic(const TrafficScalars &) {
  return {imageBytes(getValues().getTypes()), 0};
}

/// An image of these values that lies in a stage of a buffer.
static LogicalResult verifyImageIn(Operation *op, SmemType buffer,
                                   TypeRange types) {
  if (failed(verifyImage(op, types)))
    return failure();
  int64_t bytes = imageBytes(types);
  if (bytes > buffer.stageBytes())
    return op->emitOpError("expects at most the ")
           << buffer.stageBytes() << " bytes of a stage of " << buffer
           << ", but got " << bytes;
  return success();
}

LogicalResult PutRegistersOp::verify() {
  return verifyImageIn(*this, getBuffer().getType(), getValues().getTypes());
}

int64_t PutRegistersOp::bytes() { return imageBytes(getValues().getTypes()); }

Traffic PutRegistersOp::getTraffic(const TrafficScalars &) {
  return {0, bytes()};
}

LogicalResult GetRegistersOp::verify() {
  return verifyImageIn(*this, getBuffer().getType(), getValues().getTypes());
}

int64_t GetRegistersOp::bytes() { return imageBytes(getValues().getTypes()); }

Traffic GetRegistersOp::getTraffic(const TrafficScalars &) {
  return {0, bytes()};
}

LogicalResult ScaleRowsOp::verify() {
  FragType fragment = getFragment().getType();
  RowType exponents = getExponents().getType();
  Type element = fragment.getElementType();
  if (fragment.getLayout() != FragmentLayout::lhs ||
      element.getIntOrFloatBitWidth() != 16)
    return emitOpError("expects a fragment of 16-bit elements in layout lhs, "
                       "but got ")
           << fragment;
  if (exponents.getPartial() || !exponents.getElementType().isF32() ||
      exponents.getRows() != fragment.getRows())
    return emitOpError("expects a whole row of ")
           << fragment.getRows() << " f32, but got " << exponents;
  return success();
}

/// An accumulator, and a view of numbers that it can be of.
static LogicalResult verifyAccumulator(Operation *op, FragType fragment,
                                       ViewType view) {
  if (fragment.getLayout() != FragmentLayout::acc)
    return op->emitOpError("expects a fragment in layout acc, but got ")
           << stringifyFragmentLayout(fragment.getLayout());
  if (view.isVector() || view.getElementType().getIntOrFloatBitWidth() == 8)
    return op->emitOpError("expects a view of 16-bit or 32-bit elements, but "
                           "got ")
           << view;
  return success();
}

/// What an accumulator covers of a view.
static Traffic trafficOfAccumulator(const TrafficScalars &scalars,
                                    FragType fragment,
                                    TypedValue<ViewType> view, Value row,
                                    Value column) {
  ViewType type = view.getType();
  int64_t rows =
      clippedRows(scalars.scalar(row), fragment.getRows(), scalars.rows(view));
  int64_t columns = clippedRows(scalars.scalar(column), fragment.getColumns(),
                                type.getColumns());
  return {rows * columns * type.getElementType().getIntOrFloatBitWidth() / 8,
          0};
}

LogicalResult StoreFragmentOp::verify() {
  return verifyAccumulator(*this, getFragment().getType(), getView().getType());
}

Traffic StoreFragmentOp::getTraffic(const TrafficScalars &scalars) {
  return trafficOfAccumulator(scalars, getFragment().getType(), getView(),
                              getRow(), getColumn());
}

SmallVector<Value> StoreFragmentOp::getTrafficOperands() {
  return {getView(), getRow(), getColumn()};
}

LogicalResult LoadFragmentOp::verify() {
  return verifyAccumulator(*this, getResult().getType(), getView().getType());
}

Traffic LoadFragmentOp::getTraffic(const TrafficScalars &scalars) {
  return trafficOfAccumulator(scalars, getResult().getType(), getView(),
                              getRow(), getColumn());
}

SmallVector<Value> LoadFragmentOp::getTrafficOperands() {
  return {getView(), getRow(), getColumn()};
}

//===----------------------------------------------------------------------===//
// Statistics in shared memory
//===----------------------------------------------------------------------===//

static LogicalResult verifyRow(Operation *op, RowType row, SmemType buffer) {
  if (row.getPartial() || !row.getElementType().isF32() ||
      !buffer.getElementType().isF32())
    return op->emitOpError("expects a whole row and a buffer of f32, but got ")
           << row << " and " << buffer;
  if (row.getRows() > buffer.getColumns())
    return op->emitOpError("expects at most ")
           << buffer.getColumns() << " values, but got " << row;
  return success();
}

LogicalResult PutRowOp::verify() {
  return verifyRow(*this, getValues().getType(), getBuffer().getType());
}

LogicalResult GetRowOp::verify() {
  return verifyRow(*this, getValues().getType(), getBuffer().getType());
}

LogicalResult GetColumnsOp::verify() {
  SmemType buffer = getBuffer().getType();
  FragType fragment = getResult().getType();
  if (fragment.getLayout() != FragmentLayout::acc ||
      !buffer.getElementType().isF32())
    return emitOpError("expects a fragment in layout acc and a buffer of f32, "
                       "but got ")
           << fragment << " and " << buffer;
  if (fragment.getColumns() > buffer.getColumns())
    return emitOpError("expects at most ")
           << buffer.getColumns() << " columns, but got " << fragment;
  return success();
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

static LogicalResult verifyFlags(Operation *op, PtrType flags) {
  if (!flags.getElementType().isInteger(32))
    return op->emitOpError("expects flags of i32, but got ") << flags;
  return success();
}

LogicalResult PublishOp::verify() {
  return verifyFlags(*this, getFlags().getType());
}

LogicalResult CountOp::verify() {
  return verifyFlags(*this, getFlags().getType());
}

LogicalResult AwaitOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  bool isCounted = llvm::any_of(getFlags().getUsers(), [](Operation *user) {
    return isa<CountOp>(user);
  });
  auto draws = [&] {
    return kernel
        .walk([](Operation *op) {
          return isa<DrawOp, PutDrawOp>(op) ? WalkResult::interrupt()
                                            : WalkResult::advance();
        })
        .wasInterrupted();
  };
  if (!isCounted && (!kernel || (!kernel.getCooperative() && !draws())))
    return emitOpError(
        "expects a cooperative kernel, whose blocks all run, one "
        "whose blocks draw what they do, or a flag that they "
        "count");
  return verifyFlags(*this, getFlags().getType());
}

//===----------------------------------------------------------------------===//
// Launches that overlap
//===----------------------------------------------------------------------===//

bool attn::tile::touchesGlobalMemory(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        bool isAccess = llvm::any_of(inner->getOperandTypes(), [](Type type) {
          return isa<PtrType, ViewType, TensorMapType>(type);
        });
        return isAccess && !isPure(inner) ? WalkResult::interrupt()
                                          : WalkResult::advance();
      })
      .wasInterrupted();
}

bool KernelOp::awaitsLaunch() {
  return !getBody().front().getOps<AwaitLaunchOp>().empty();
}

LogicalResult AwaitLaunchOp::verify() {
  for (Operation &op : *(*this)->getBlock()) {
    if (&op == *this)
      return success();
    if (isa<AwaitLaunchOp>(op))
      return emitOpError("expects to be the only one of its kernel");
    if (isa<ReleaseLaunchOp>(op))
      return op.emitOpError("expects to stand behind the kernel's own wait");
    if (touchesGlobalMemory(&op))
      return op.emitOpError("expects to touch global memory behind "
                            "tile.await_launch only");
  }
  return success();
}
