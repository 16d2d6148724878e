//===- BlockOps.cpp - Lists of blocks -------------------------------------===//

#include "ClauseText.h"
#include "Constraints.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

static constexpr size_t kLists = 4; // counts and indices, partial and full

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

ParseResult attn::parseBlockSize(OpAsmParser &parser, DenseI64ArrayAttr &size) {
  int64_t queries, keys;
  if (parser.parseInteger(queries) || parser.parseKeyword("x") ||
      parser.parseInteger(keys))
    return failure();
  size = parser.getBuilder().getDenseI64ArrayAttr({queries, keys});
  return success();
}

void attn::printBlockSize(OpAsmPrinter &printer, Operation *,
                          DenseI64ArrayAttr size) {
  printer << size[0] << " x " << size[1];
}

ParseResult
attn::parseSees(OpAsmParser &parser,
                SmallVectorImpl<OpAsmParser::UnresolvedOperand> &captures,
                SmallVectorImpl<Type> &types, Region &sees) {
  if (succeeded(parser.parseOptionalKeyword("captures")) &&
      (parser.parseLParen() || parser.parseOperandList(captures) ||
       parser.parseColonTypeList(types) || parser.parseRParen()))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  return failure(parser.parseKeyword("sees") ||
                 parseFunction(parser, loc, /*isScore=*/false, types, sees));
}

void attn::printSees(OpAsmPrinter &printer, Operation *, OperandRange captures,
                     TypeRange, Region &sees) {
  printOperands(printer, "captures", captures);
  printFunction(printer, sees);
}

void BlockListsOp::getAsmBlockArgumentNames(Region &region,
                                            OpAsmSetValueNameFn name) {
  nameArguments(region, name);
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

/// Four lists, all tensors or all memrefs, as what comes in is.
template <typename OpTy>
static LogicalResult verifyForms(OpTy op, ValueRange arrays) {
  if (op.outputs().size() != kLists)
    return op.emitOpError("expects four lists, counts and indices of partial "
                          "and of full blocks, but got ")
           << op.outputs().size();
  if (op.getNumResults() != 0 && !op.getOuts().empty() &&
      !llvm::equal(op.getOuts().getTypes(), op->getResultTypes()))
    return op.emitOpError("expects outs to be absent or of the types of the "
                          "results, but got ")
           << op.getOuts().getTypes() << " and " << op->getResultTypes();
  SmallVector<Value> all(arrays);
  llvm::append_range(all, op.outputs());
  llvm::append_range(all, op.getOuts());
  for (Value array : all)
    if (isa<MemRefType>(array.getType()) == op.isOnTensors())
      return op.emitOpError(
                 "expects tensors, or memrefs, as the lists are, but "
                 "got ")
             << array.getType();
  return success();
}

static LogicalResult verifyList(Operation *op, Value list, StringRef name,
                                ArrayRef<int64_t> wanted) {
  auto type = cast<ShapedType>(list.getType());
  bool isRight =
      type.getElementType().isInteger(32) &&
      type.getRank() == int64_t(wanted.size()) &&
      llvm::all_of(llvm::zip(type.getShape(), wanted), [](auto pair) {
        return compatible(std::get<0>(pair), std::get<1>(pair));
      });
  if (isRight)
    return success();
  InFlightDiagnostic error = op->emitOpError("expects ");
  error << name << " of i32 and shape ";
  printShape(error, wanted);
  error << ", but got " << type;
  return error;
}

static LogicalResult verifyLists(Operation *op, ValueRange lists,
                                 ArrayRef<int64_t> wanted) {
  static constexpr StringLiteral names[] = {
      "counts of partial blocks", "indices of partial blocks",
      "counts of full blocks", "indices of full blocks"};
  for (auto [number, list] : llvm::enumerate(lists))
    if (failed(verifyList(op, list, names[number],
                          number % 2 ? wanted : wanted.drop_back())))
      return failure();
  return success();
}

/// The blocks of so many rows, which may not be known.
static int64_t countBlocks(Value rows, int64_t size) {
  std::optional<int64_t> count = getConstantIntValue(rows);
  if (!count || size <= 0)
    return ShapedType::kDynamic;
  return (*count + size - 1) / size;
}

LogicalResult BlockListsOp::verify() {
  if (failed(verifyForms(*this, getCaptures())))
    return failure();
  ArrayRef<int64_t> size = getBlocks();
  auto isSize = [](int64_t rows) {
    return rows > 0 && rows % kBlockMultiple == 0;
  };
  if (size.size() != 2 || !llvm::all_of(size, isSize))
    return emitOpError("expects blocks of two multiples of ")
           << kBlockMultiple << ", but got " << getBlocksAttr();
  for (int64_t each : {getBatch(), getHeads()})
    if (each <= 0)
      return emitOpError("expects batch and heads of 1 or more, but got ")
             << each;
  if (failed(verifyCaptures(*this, getCaptures())))
    return failure();
  return verifyLists(*this, outputs(),
                     {int64_t(getBatch()), int64_t(getHeads()),
                      countBlocks(getQueries(), size[0]),
                      countBlocks(getKeys(), size[1])});
}

LogicalResult BlockListsOp::verifyRegions() {
  if (failed(verifyRegion(*this, getSees(), getCaptures().getTypes())))
    return failure();
  auto rows = [](Value count) {
    return getConstantIntValue(count).value_or(ShapedType::kDynamic);
  };
  return verifyCaptureShapes(*this, getCaptures().getTypes(), getSees(),
                             {int64_t(getBatch()), int64_t(getHeads()),
                              rows(getQueries()), rows(getKeys())});
}

LogicalResult TransposeBlocksOp::verify() {
  ValueRange in = inputs();
  if (failed(verifyForms(*this, in)))
    return failure();
  auto like = dyn_cast<ShapedType>(in[1].getType());
  if (like.getRank() != 4)
    return emitOpError("expects indices of rank 4, but got ") << like;
  SmallVector<int64_t> shape(like.getShape());
  if (failed(verifyLists(*this, in, shape)))
    return failure();
  std::swap(shape[2], shape[3]);
  return verifyLists(*this, outputs(), shape);
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

void attn::addListEffects(
    Operation *op, size_t inputs,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    MemoryEffects::Effect *effect = MemoryEffects::Read::get();
    if (operand.getOperandNumber() >= inputs)
      effect = MemoryEffects::Write::get();
    effects.emplace_back(effect, &operand, SideEffects::DefaultResource::get());
  }
}

LogicalResult
BlockListsOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &reified) {
  auto blocks = [&](Value rows, int64_t size) -> OpFoldResult {
    Value by = arith::ConstantIndexOp::create(builder, getLoc(), size);
    return getAsOpFoldResult(
        builder.createOrFold<arith::CeilDivSIOp>(getLoc(), rows, by));
  };
  OpFoldResult sizes[] = {
      builder.getIndexAttr(getBatch()), builder.getIndexAttr(getHeads()),
      blocks(getQueries(), getBlocks()[0]), blocks(getKeys(), getBlocks()[1])};
  for (OpResult list : getLists())
    reified.emplace_back(
        ArrayRef(sizes).take_front(cast<ShapedType>(list.getType()).getRank()));
  // What a type says is what the op has.
  for (auto [list, shape] : llvm::zip_equal(getLists(), reified))
    for (auto [dim, size] :
         llvm::enumerate(cast<ShapedType>(list.getType()).getShape()))
      if (!ShapedType::isDynamic(size))
        shape[dim] = builder.getIndexAttr(size);
  return success();
}

LogicalResult
TransposeBlocksOp::reifyResultShapes(OpBuilder &builder,
                                     ReifiedRankedShapedTypeDims &reified) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, getLoc(), getPartialIndices());
  std::swap(sizes[2], sizes[3]);
  for (OpResult list : getLists()) {
    auto type = cast<ShapedType>(list.getType());
    auto &shape =
        reified.emplace_back(ArrayRef(sizes).take_front(type.getRank()));
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      if (!ShapedType::isDynamic(size))
        shape[dim] = builder.getIndexAttr(size);
  }
  return success();
}
