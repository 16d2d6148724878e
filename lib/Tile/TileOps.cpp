//===- TileOps.cpp - Constraints of the tile ops --------------------------===//

#include "attn/Tile/Tile.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn::tile;

#include "attn/Tile/TrafficInterface.cpp.inc"
#define GET_OP_CLASSES
#include "attn/Tile/TileOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

LogicalResult ViewOp::verify() {
  if (getBase().getType().getElementType() !=
      getResult().getType().getElementType())
    return emitOpError("expects a view of ")
           << getBase().getType().getElementType() << ", but got "
           << getResult().getType();
  return success();
}

LogicalResult LoadNumberOp::verify() {
  PtrType base = getBase().getType();
  Type element = base.getElementType();
  if (!element.isInteger(32) && !element.isInteger(64))
    return emitOpError("expects an array of i32 or i64, but got ") << base;
  return success();
}

Type ReadOp::resultOf(Type element) {
  MLIRContext *context = element.getContext();
  if (isa<FloatType>(element))
    return Float32Type::get(context);
  return IntegerType::get(context, element.isInteger(64) ? 64 : 32);
}

LogicalResult ReadOp::verify() {
  Type element = getBase().getType().getElementType();
  unsigned bits = element.getIntOrFloatBitWidth();
  bool isRead =
      isa<FloatType>(element)
          ? bits >= 16
          : bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64;
  if (!isRead)
    return emitOpError("expects elements of i1, i8, i16, i32, i64, bf16, f16 "
                       "or f32, but got ")
           << element;
  if (getResult().getType() != resultOf(element))
    return emitOpError("expects a result of ")
           << resultOf(element) << ", but got " << getResult().getType();
  return success();
}

LogicalResult AllocOp::verify() {
  if (getName().empty())
    return emitOpError("expects a name for the buffer");
  return success();
}

LogicalResult AliasOp::verify() {
  int64_t have = getBuffer().getType().totalBytes();
  int64_t want = getResult().getType().totalBytes();
  if (want > have)
    return emitOpError("expects at most the ")
           << have << " bytes of the buffer, but got " << want;
  return success();
}

LogicalResult CopyAsyncOp::verify() {
  ViewType view = getView().getType();
  SmemType buffer = getBuffer().getType();
  if (view.getElementType() != buffer.getElementType())
    return emitOpError("expects rows of ")
           << buffer.getElementType() << ", but got " << view;
  if (view.isVector() && buffer.getRows() != 1)
    return emitOpError("expects a buffer of one row for a vector, but got ")
           << buffer;
  if (view.getColumns() > buffer.getColumns())
    return emitOpError("expects at most ")
           << buffer.getColumns() << " columns, but got " << view.getColumns();
  return success();
}

LogicalResult LoadMatrixOp::verify() {
  SmemType buffer = getBuffer().getType();
  if (buffer.elementBytes() == 1)
    return emitOpError("expects a buffer of 16-bit or 32-bit elements, but "
                       "got ")
           << buffer;
  FragType fragment = getResult().getType();
  if (fragment.getLayout() == FragmentLayout::acc)
    return emitOpError("expects a fragment in layout lhs or rhs, but got acc");
  if (buffer.isSwizzled() && buffer.elementBytes() != 2)
    return emitOpError("expects 16-bit elements in a swizzled buffer, but got ")
           << buffer;
  if (buffer.elementBytes() == 4 && fragment.isLhs() && getTranspose() &&
      !fragment.isPaired())
    return emitOpError("expects f32 in layout lhs_paired from rows along k, "
                       "but got lhs");
  if (buffer.elementBytes() == 4 && fragment.isRhs() &&
      fragment.isPaired() == getTranspose())
    return emitOpError("expects f32 in layout ")
           << (getTranspose() ? "rhs, from rows along k"
                              : "rhs_paired, from rows across k")
           << ", but got " << stringifyFragmentLayout(fragment.getLayout());
  if (fragment.getElementType() != buffer.getElementType())
    return emitOpError("expects elements of ")
           << buffer.getElementType() << ", but got "
           << fragment.getElementType();
  int64_t rows = getTranspose() ? fragment.getColumns() : fragment.getRows();
  int64_t columns = getTranspose() ? fragment.getRows() : fragment.getColumns();
  if (rows > buffer.getRows() || columns > buffer.getColumns())
    return emitOpError("expects a part of ")
           << buffer << ", but got " << rows << " x " << columns;
  return success();
}

LogicalResult StoreMatrixOp::verify() {
  SmemType buffer = getBuffer().getType();
  FragType fragment = getFragment().getType();
  bool isFactor = buffer.isSwizzled() &&
                  fragment.getLayout() == FragmentLayout::lhs &&
                  fragment.getElementType() == buffer.getElementType();
  if (fragment.getLayout() != FragmentLayout::acc && !isFactor)
    return emitOpError("expects a fragment in layout acc, but got ")
           << stringifyFragmentLayout(fragment.getLayout());
  if (buffer.elementBytes() == 1)
    return emitOpError("expects a buffer of 16-bit or 32-bit elements, but "
                       "got ")
           << buffer;
  if (fragment.getRows() > buffer.getRows() ||
      fragment.getColumns() > buffer.getColumns())
    return emitOpError("expects a fragment inside ")
           << buffer << ", but got " << fragment;
  if (getColumn() && buffer.isSwizzled())
    return emitOpError("expects no column in panels, but got ") << buffer;
  return success();
}

LogicalResult StoreTransposedOp::verify() {
  SmemType buffer = getBuffer().getType();
  FragType fragment = getFragment().getType();
  if (fragment.getLayout() != FragmentLayout::lhs ||
      fragment.elementBytes() != 2)
    return emitOpError("expects a fragment of 16-bit elements in layout lhs, "
                       "but got ")
           << fragment;
  if (fragment.getElementType() != buffer.getElementType())
    return emitOpError("expects a buffer of ")
           << fragment.getElementType() << ", but got " << buffer;
  if (fragment.getColumns() > buffer.getRows() ||
      fragment.getRows() > buffer.getColumns())
    return emitOpError("expects a fragment whose transpose is inside ")
           << buffer << ", but got " << fragment;
  return success();
}

LogicalResult CopyOutOp::verify() {
  ViewType view = getView().getType();
  SmemType buffer = getBuffer().getType();
  if (view.isVector() || view.getElementType() != buffer.getElementType())
    return emitOpError("expects a view of ")
           << buffer.getElementType() << " rows, but got " << view;
  if (view.getColumns() > buffer.getColumns())
    return emitOpError("expects at most ")
           << buffer.getColumns() << " columns, but got " << view.getColumns();
  int64_t count = int32_t(getCount());
  if (count < 1 || count > buffer.getRows())
    return emitOpError("expects 1 to ")
           << buffer.getRows() << " rows, but got " << count;
  return success();
}

LogicalResult StoreRowOp::verify() {
  ViewType view = getView().getType();
  RowType row = getValues().getType();
  if (row.getPartial())
    return emitOpError("expects a whole row, but got ")
           << row << "; combine it first";
  if (!view.isVector() || view.getElementType() != row.getElementType())
    return emitOpError("expects a vector of ")
           << row.getElementType() << ", but got " << view;
  return success();
}

LogicalResult LoadRowOp::verify() {
  ViewType view = getView().getType();
  RowType row = getValues().getType();
  if (row.getPartial())
    return emitOpError("expects a whole row, but got ") << row;
  if (!view.isVector() || view.getElementType() != row.getElementType())
    return emitOpError("expects a vector of ")
           << row.getElementType() << ", but got " << view;
  return success();
}

LogicalResult RowDotOp::verify() {
  ViewType view = getLhs().getType();
  RowType row = getValues().getType();
  if (row.getPartial() || !row.getElementType().isF32())
    return emitOpError("expects a whole row of f32, but got ") << row;
  if (view.isVector() || view.getElementType().getIntOrFloatBitWidth() == 8)
    return emitOpError("expects views of 16-bit or 32-bit elements, but got ")
           << view;
  ViewType other = getRhs().getType();
  if (view.getColumns() != other.getColumns() ||
      view.getElementType() != other.getElementType())
    return emitOpError("expects views of as many columns and one element type, "
                       "but got ")
           << view << " and " << other;
  return success();
}

//===----------------------------------------------------------------------===//
// Barriers and queues
//===----------------------------------------------------------------------===//

/// The op is reached by every warp: not in a role, loop or branch.
static LogicalResult verifyAtTop(Operation *op) {
  if (isa<KernelOp>(op->getParentOp()))
    return success();
  return op->emitOpError("expects to stand at the top of a kernel");
}

LogicalResult MbarrierOp::verify() {
  if (getName().empty())
    return emitOpError("expects a name for the barrier");
  return verifyAtTop(*this);
}

LogicalResult QueueOp::verify() {
  if (getName().empty())
    return emitOpError("expects a name for the queue");
  if (int64_t slots = getResult().getType().getSlots(); slots % getRings() != 0)
    return emitOpError("expects rings that divide the ")
           << slots << " slots, but got " << getRings();
  return verifyAtTop(*this);
}

LogicalResult PushOp::verify() {
  if (int64_t(getValues().size()) == getQueue().getType().getValues())
    return success();
  return emitOpError("expects ") << getQueue().getType().getValues()
                                 << " values, but got " << getValues().size();
}

LogicalResult PopOp::verify() {
  if (int64_t(getValues().size()) == getQueue().getType().getValues())
    return success();
  return emitOpError("expects ") << getQueue().getType().getValues()
                                 << " values, but got " << getValues().size();
}

static LogicalResult verifyCounter(Operation *op, PtrType counter) {
  if (counter.getElementType().isInteger(32))
    return success();
  return op->emitOpError("expects a counter of i32, but got ") << counter;
}

LogicalResult DrawOp::verify() {
  return verifyCounter(*this, getCounter().getType());
}

LogicalResult PutDrawOp::verify() {
  return verifyCounter(*this, getCounter().getType());
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Element type of a fragment or row.
static Type typeOfElements(Type type) {
  if (auto fragment = dyn_cast<FragType>(type))
    return fragment.getElementType();
  return cast<RowType>(type).getElementType();
}

/// Rows of a fragment or row.
static int64_t rowsOf(Type type) {
  if (auto fragment = dyn_cast<FragType>(type))
    return fragment.getRows();
  return cast<RowType>(type).getRows();
}

LogicalResult FillOp::verify() {
  Type type = getResult().getType();
  if (auto fragment = dyn_cast<FragType>(type);
      fragment && fragment.getLayout() != FragmentLayout::acc)
    return emitOpError("expects a fragment in layout acc, but got ")
           << fragment;
  if (typeOfElements(type) != getValue().getType())
    return emitOpError("expects a value of type ")
           << typeOfElements(type) << ", but got " << getValue().getType();
  return success();
}

LogicalResult MmaOp::verify() {
  FragType lhs = getLhs().getType(), rhs = getRhs().getType(),
           acc = getAcc().getType();
  if (!lhs.isLhs() || !rhs.isRhs() || acc.getLayout() != FragmentLayout::acc)
    return emitOpError("expects operands in layouts lhs, rhs and acc");
  if (lhs.isPaired() != rhs.isPaired())
    return emitOpError("expects factors that are both paired or both not, but "
                       "got ")
           << lhs << " and " << rhs;
  Type element = lhs.getElementType();
  if (element != rhs.getElementType() ||
      (lhs.elementBytes() != 2 && !isa<FloatTF32Type>(element)))
    return emitOpError("expects factors of one 16-bit type or of tf32, but "
                       "got ")
           << element << " and " << rhs.getElementType();
  if (lhs.getColumns() != rhs.getRows() || lhs.getRows() != acc.getRows() ||
      rhs.getColumns() != acc.getColumns())
    return emitOpError("expects an m x k, a k x n and an m x n fragment, but "
                       "got ")
           << lhs.getRows() << " x " << lhs.getColumns() << ", "
           << rhs.getRows() << " x " << rhs.getColumns() << " and "
           << acc.getRows() << " x " << acc.getColumns();
  return success();
}

static LogicalResult verifyShape(Operation *op, FragType source,
                                 FragType result) {
  if (source.getRows() == result.getRows() &&
      source.getColumns() == result.getColumns())
    return success();
  return op->emitOpError("expects the same shape, but got ")
         << source << " to " << result;
}

/// What an accumulator or a factor of f32 becomes in tf32.
static LogicalResult verifyToTf32(Operation *op, FragType source,
                                  FragType result) {
  bool isAcc = source.getLayout() == FragmentLayout::acc;
  FragmentLayout layout =
      isAcc ? FragmentLayout::lhs_paired : source.getLayout();
  if (source.getElementType().isF32() && result.getLayout() == layout &&
      isa<FloatTF32Type>(result.getElementType()))
    return verifyShape(op, source, result);
  return op->emitOpError("expects f32 to tf32 in layout ")
         << stringifyFragmentLayout(layout) << ", but got " << source << " to "
         << result;
}

LogicalResult CastOp::verify() {
  FragType source = getSource().getType(), result = getResult().getType();
  if (isa<FloatTF32Type>(result.getElementType()))
    return verifyToTf32(*this, source, result);
  bool rounds = source.getLayout() == FragmentLayout::acc &&
                result.getLayout() == FragmentLayout::lhs &&
                result.elementBytes() != 4;
  bool widens = source.getLayout() == FragmentLayout::lhs &&
                source.elementBytes() == 2 &&
                result.getLayout() == FragmentLayout::acc;
  if (!rounds && !widens)
    return emitOpError("expects acc to lhs, lhs of 16 bits to acc, or f32 to "
                       "tf32, but got ")
           << source << " to " << result;
  return verifyShape(*this, source, result);
}

LogicalResult SplitOp::verify() {
  return verifyToTf32(*this, getSource().getType(), getHigh().getType());
}

LogicalResult ExtractOp::verify() {
  FragType source = getSource().getType(), result = getResult().getType();
  if (source.getLayout() != result.getLayout() ||
      source.getElementType() != result.getElementType() ||
      source.getRows() != result.getRows())
    return emitOpError("expects the same layout, type and rows, but got ")
           << source << " to " << result;
  if (source.isRhs())
    return emitOpError("expects a fragment in layout acc or lhs, but got rhs");
  int64_t step = source.columnStep();
  int64_t column = getColumn();
  if (column < 0 || column % step != 0 ||
      column > source.getColumns() - result.getColumns())
    return emitOpError("expects a column in steps of ")
           << step << " from 0 to " << source.getColumns() - result.getColumns()
           << ", but got " << column;
  return success();
}

LogicalResult ConcatOp::verify() {
  FragType result = getResult().getType();
  if (result.isRhs())
    return emitOpError("expects a fragment in layout acc or lhs, but got rhs");
  int64_t columns = 0;
  for (FragType part : {getLeft().getType(), getRight().getType()}) {
    if (part.getLayout() != result.getLayout() ||
        part.getElementType() != result.getElementType() ||
        part.getRows() != result.getRows())
      return emitOpError("expects the same layout, type and rows, but got ")
             << part << " to " << result;
    columns += part.getColumns();
  }
  if (columns != result.getColumns())
    return emitOpError("expects a result of ")
           << columns << " columns, but got " << result;
  return success();
}

/// A partial row is one lane's part of a sum: only linear functions of it have
/// a meaning.  Accepts sums of partial values and products with whole ones.
static LogicalResult verifyLinear(MapOp map) {
  llvm::SmallDenseSet<Value> partial;
  Block &body = map.getBody().front();
  for (auto [input, argument] :
       llvm::zip(map.getInputs(),
                 body.getArguments().take_back(map.getInputs().size())))
    if (auto row = dyn_cast<RowType>(input.getType()); row && row.getPartial())
      partial.insert(argument);
  for (Operation &op : body) {
    int64_t count = llvm::count_if(
        op.getOperands(), [&](Value v) { return partial.contains(v); });
    if (isa<arith::AddFOp, arith::SubFOp>(op)) {
      if (count == 1)
        return op.emitOpError("expects partial values on both sides of a sum");
    } else if (isa<arith::MulFOp>(op)) {
      if (count == 2)
        return op.emitOpError("expects at most one partial factor");
    } else if (isa<YieldOp>(op)) {
      bool want = isa<RowType>(map.getResult().getType()) &&
                  cast<RowType>(map.getResult().getType()).getPartial();
      if ((count == 1) != want)
        return map.emitOpError("expects a partial result exactly when the "
                               "yielded value is partial");
      continue;
    } else if (count != 0) {
      return op.emitOpError("expects whole values, but got a partial one");
    }
    if (count != 0)
      partial.insert(op.getResult(0));
  }
  return success();
}

LogicalResult MapOp::verify() {
  Type result = getResult().getType();
  bool fragment = isa<FragType>(result);
  Block &body = getBody().front();
  Type i32 = IntegerType::get(getContext(), 32);
  SmallVector<Type> expected(fragment ? 2 : 1, i32);
  for (Value input : getInputs()) {
    Type type = input.getType();
    if (rowsOf(type) != rowsOf(result))
      return emitOpError("expects ")
             << rowsOf(result) << " rows in every operand, but got " << type;
    auto operand = dyn_cast<FragType>(type);
    if (operand && !fragment)
      return emitOpError("expects rows for a result that is a row, but got ")
             << type;
    if (operand && operand != result)
      return emitOpError("expects fragments of type ")
             << result << ", but got " << type;
    expected.push_back(typeOfElements(type));
  }
  if (fragment && cast<FragType>(result).getLayout() != FragmentLayout::acc)
    return emitOpError("expects a result in layout acc, but got ") << result;
  if (TypeRange(expected) != TypeRange(body.getArgumentTypes()))
    return emitOpError("expects block arguments (")
           << expected << "), but got (" << body.getArgumentTypes() << ")";
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield || yield.getValue().getType() != typeOfElements(result))
    return emitOpError("expects to yield a value of type ")
           << typeOfElements(result);
  for (Operation &op : body)
    if (op.getNumRegions() != 0 || !isMemoryEffectFree(&op) ||
        isa<gpu::BarrierOp>(op))
      return op.emitOpError("expects a scalar op without effects inside "
                            "tile.map");
  return verifyLinear(*this);
}

LogicalResult RowReduceOp::verify() {
  FragType source = getSource().getType();
  RowType result = getResult().getType();
  if (source.getLayout() != FragmentLayout::acc)
    return emitOpError("expects a fragment in layout acc, but got ") << source;
  bool sum = getKind() == Reduction::add;
  if (result.getRows() != source.getRows() || (sum && !result.getPartial()) ||
      !result.getElementType().isF32())
    return emitOpError("expects a ")
           << (sum ? "partial" : "whole or partial") << " row of "
           << source.getRows() << " f32, but got " << result;
  if (getInit() && getInit().getType() != result)
    return emitOpError("expects init of type ")
           << result << ", but got " << getInit().getType();
  return success();
}

LogicalResult RowCombineOp::verify() {
  RowType source = getSource().getType(), result = getResult().getType();
  if (!source.getPartial() || result.getPartial() ||
      source.getRows() != result.getRows())
    return emitOpError("expects a partial row and the whole row of its sums "
                       "or maxima, but got ")
           << source << " and " << result;
  return success();
}

LogicalResult KeepColumnsOp::verify() {
  FragType source = getSource().getType();
  if (source.getLayout() != FragmentLayout::acc)
    return emitOpError("expects a fragment in layout acc, but got ") << source;
  auto wanted =
      RowType::get(getContext(), source.getRows(),
                   IntegerType::get(getContext(), 32), /*partial=*/false);
  for (Value bound : getOperands().drop_front())
    if (bound.getType() != wanted)
      return emitOpError("expects bounds of type ")
             << wanted << ", but got " << bound.getType();
  return success();
}

LogicalResult AnyAboveOp::verify() {
  Type values = getValues().getType();
  RowType limits = getLimits().getType();
  auto fragment = dyn_cast<FragType>(values);
  if (limits.getPartial() || rowsOf(values) != limits.getRows() ||
      !typeOfElements(values).isF32() || !limits.getElementType().isF32() ||
      (fragment && fragment.getLayout() != FragmentLayout::acc))
    return emitOpError("expects f32 values and a whole row of limits, but got ")
           << values << " and " << limits;
  return success();
}
