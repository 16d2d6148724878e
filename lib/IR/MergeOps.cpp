//===- MergeOps.cpp - Parts of an attention made whole --------------------===//

#include "attn/IR/Attn.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace attn;

#include "attn/IR/MergeInterface.cpp.inc"

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

static std::string partRole(StringRef array, size_t part) {
  return (array + "_" + Twine(part)).str();
}

Direction MergeOp::direction() { return Direction::forward; }
Direction MergeBackwardOp::direction() { return Direction::backward; }

/// In the order of the operands: first all parts, then all LSEs.
SmallVector<std::string> MergeOp::givenInputs() {
  SmallVector<std::string> roles;
  for (size_t i = 0; i < getParts().size(); ++i)
    roles.push_back(partRole("o", i));
  for (size_t i = 0; i < getPartLses().size(); ++i)
    roles.push_back(partRole("lse", i));
  return roles;
}

SmallVector<std::string> MergeBackwardOp::givenInputs() {
  SmallVector<std::string> roles = {"do", "o", "lse", partRole("o", 0),
                                    partRole("lse", 0)};
  if (getDlse())
    roles.push_back("dlse");
  return roles;
}

ArrayRef<StringLiteral> MergeOp::outputRoles() {
  static constexpr StringLiteral roles[] = {"o", "lse"};
  return roles;
}

ArrayRef<StringLiteral> MergeBackwardOp::outputRoles() {
  static constexpr StringLiteral roles[] = {"do_0", "dlse_0"};
  return roles;
}

size_t MergeOp::leastOutputs() { return 1; }
size_t MergeBackwardOp::leastOutputs() { return 2; }

SmallVector<AttentionArray> attn::arraysOf(Operation *op,
                                           ArrayRef<std::string> inputRoles,
                                           ValueRange inputs,
                                           ArrayRef<StringLiteral> outputRoles,
                                           ValueRange outputs) {
  SmallVector<AttentionArray> all;
  for (auto [role, value] : llvm::zip(inputRoles, inputs))
    all.push_back({StringAttr::get(op->getContext(), role).getValue(), value,
                   /*isOutput=*/false});
  for (auto [role, value] : llvm::zip(outputRoles, outputs))
    all.push_back({role, value, /*isOutput=*/true});
  return all;
}

bool attn::isStatisticOfMerge(StringRef role) { return role.contains("lse"); }

Merge attn::mergeOf(MergeOpInterface op, DynamicSizes assumed) {
  int64_t sizes[] = {ShapedType::kDynamic, ShapedType::kDynamic,
                     ShapedType::kDynamic, ShapedType::kDynamic};
  Merge merge;
  merge.direction = op.direction();
  merge.lse = merge.dlse = false;
  for (const AttentionArray &array : op.arrays()) {
    for (auto [known, size] : llvm::zip(sizes, array.type().getShape()))
      if (ShapedType::isDynamic(known))
        known = size;
    std::optional<DataType> type = dataTypeOf(array.type().getElementType());
    if (array.role == "o")
      merge.dtype = type.value_or(merge.dtype);
    if (array.role.starts_with("o_"))
      merge.parts.push_back(type.value_or(merge.dtype));
    merge.lse |= array.role == "lse" && array.isOutput;
    merge.dlse |= array.role == "dlse";
  }
  auto sizeOr = [&](unsigned dimension, int64_t assumedSize) {
    int64_t size = sizes[dimension];
    return ShapedType::isDynamic(size) ? assumedSize : size;
  };
  merge.heads = sizes[1];
  merge.headDim = sizes[3];
  auto assume = [&] {
    merge.batch = sizeOr(0, assumed.batch);
    merge.queries = sizeOr(2, assumed.rows);
  };
  // What is only assumed breaks no limit.
  for (assume(); check(limitsOf(merge)) && assumed.batch * assumed.rows > 1;
       assume())
    (assumed.batch > 1 ? assumed.batch : assumed.rows) /= 2;
  return merge;
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

LogicalResult attn::reifyShapes(MergeOpInterface op, OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &reified) {
  Value like = op->getOperand(0); // an array of rows
  for (const AttentionArray &array : op.arrays()) {
    if (!array.isOutput)
      continue;
    SmallVector<OpFoldResult> &sizes = reified.emplace_back();
    for (auto [dimension, size] : llvm::enumerate(array.type().getShape())) {
      if (ShapedType::isDynamic(size))
        sizes.push_back(
            builder.createOrFold<tensor::DimOp>(op->getLoc(), like, dimension));
      else
        sizes.push_back(builder.getIndexAttr(size));
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// `(%o0, %lse0), (%o1, %lse1)`.
ParseResult
attn::parseParts(OpAsmParser &parser,
                 SmallVectorImpl<OpAsmParser::UnresolvedOperand> &parts,
                 SmallVectorImpl<OpAsmParser::UnresolvedOperand> &lses) {
  return parser.parseCommaSeparatedList([&] {
    return failure(
        parser.parseLParen() || parser.parseOperand(parts.emplace_back()) ||
        parser.parseComma() || parser.parseOperand(lses.emplace_back()) ||
        parser.parseRParen());
  });
}

void attn::printParts(OpAsmPrinter &printer, Operation *, OperandRange parts,
                      OperandRange lses) {
  llvm::interleaveComma(llvm::zip(parts, lses), printer, [&](auto pair) {
    printer << '(' << std::get<0>(pair) << ", " << std::get<1>(pair) << ')';
  });
}

ParseResult attn::parsePartTypes(OpAsmParser &parser,
                                 SmallVectorImpl<Type> &parts,
                                 SmallVectorImpl<Type> &lses) {
  return parser.parseCommaSeparatedList([&] {
    return failure(
        parser.parseLParen() || parser.parseType(parts.emplace_back()) ||
        parser.parseComma() || parser.parseType(lses.emplace_back()) ||
        parser.parseRParen());
  });
}

void attn::printPartTypes(OpAsmPrinter &printer, Operation *, TypeRange parts,
                          TypeRange lses) {
  llvm::interleaveComma(llvm::zip(parts, lses), printer, [&](auto pair) {
    printer << '(' << std::get<0>(pair) << ", " << std::get<1>(pair) << ')';
  });
}
