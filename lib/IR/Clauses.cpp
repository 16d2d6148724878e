//===- Clauses.cpp - What clauses add to an op of attention ---------------===//

#include "attn/IR/Attn.h"
#include "attn/IR/CaptureGradients.h"
#include "attn/IR/ScalarOps.h"
#include "mlir/IR/IRMapping.h"

#include <numeric>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

SmallVector<int32_t, kClauseGroups> attn::clauseSizes(Operation *op) {
  SmallVector<int32_t, kClauseGroups> sizes(kClauseGroups, 0);
  auto given = op->getAttrOfType<DenseI32ArrayAttr>(kClauseSizesAttr);
  if (given && given.size() == kClauseGroups)
    llvm::copy(given.asArrayRef(), sizes.begin());
  return sizes;
}

size_t attn::clauseOperandCount(Operation *op) {
  SmallVector<int32_t, kClauseGroups> sizes = clauseSizes(op);
  return std::accumulate(sizes.begin(), sizes.end(), size_t(0));
}

OperandRange attn::behindClauses(Operation *op, OperandRange rest) {
  // The verifier says so where there are fewer.
  return rest.drop_front(std::min(clauseOperandCount(op), rest.size()));
}

OperandRange attn::clauseInputs(Operation *op, OperandRange inputs) {
  return inputs.take_back(std::min(clauseOperandCount(op), inputs.size()));
}

OperandRange attn::clauseOperands(Operation *op, OperandRange inputs,
                                  ClauseGroup group) {
  SmallVector<int32_t, kClauseGroups> sizes = clauseSizes(op);
  size_t behind =
      std::accumulate(sizes.begin() + unsigned(group), sizes.end(), size_t(0));
  if (behind > inputs.size())
    return inputs.take_back(0);
  return inputs.take_back(behind).take_front(sizes[unsigned(group)]);
}

std::optional<BlockSize> attn::blockSizeOf(Operation *op) {
  auto sizes = op->getAttrOfType<DenseI64ArrayAttr>(kBlocksAttr);
  if (!sizes || sizes.size() != 2)
    return std::nullopt;
  return BlockSize{sizes[0], sizes[1]};
}

bool attn::isRagged(Operation *op) {
  return clauseSizes(op)[unsigned(ClauseGroup::offsets)] != 0;
}

int64_t attn::valueColumns(Operation *op) {
  auto columns = op->getAttrOfType<IntegerAttr>(kValuesAttr);
  return columns ? columns.getInt() : 0;
}

SmallVector<Value> attn::gradientTargetsOf(Operation *op, OperandRange inputs) {
  SmallVector<Value> values;
  auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(kGradientsAttr);
  if (!numbers)
    return values;
  SmallVector<Value> all(clauseOperands(op, inputs, ClauseGroup::captures));
  llvm::append_range(all, clauseOperands(op, inputs, ClauseGroup::sinks));
  for (int64_t number : numbers.asArrayRef())
    if (number >= 0 && number < int64_t(all.size()))
      values.push_back(all[number]);
  return values;
}

/// The name of an array of a group.
static std::string nameOf(ClauseGroup group, unsigned number) {
  const char *array = number == 0 ? "counts" : "indices";
  switch (group) {
  case ClauseGroup::captures:
    return "capture " + std::to_string(number);
  case ClauseGroup::partial:
    return std::string(array) + " of partial blocks";
  case ClauseGroup::full:
    return std::string(array) + " of full blocks";
  case ClauseGroup::transposedPartial:
    return std::string(array) + " of transposed partial blocks";
  case ClauseGroup::transposedFull:
    return std::string(array) + " of transposed full blocks";
  case ClauseGroup::sinks:
    return "sinks";
  case ClauseGroup::offsets:
    return number == 0 ? "cu_q" : "cu_k";
  case ClauseGroup::usedKeys:
    return "lengths of k";
  case ClauseGroup::pageTable:
    return "table of pages";
  case ClauseGroup::scaleQ:
    return "scale of q";
  case ClauseGroup::scaleK:
    return "scale of k";
  case ClauseGroup::scaleV:
    return "scale of v";
  }
  llvm_unreachable("closed enum");
}

SmallVector<AttentionArray>
attn::clauseArrays(Operation *op, OperandRange inputs, ValueRange outputs) {
  SmallVector<AttentionArray> all;
  auto add = [&](const Twine &name, Value value, bool isOutput) {
    StringRef role = StringAttr::get(op->getContext(), name).getValue();
    all.push_back({role, value, isOutput});
  };
  for (unsigned group = 0; group < kClauseGroups; ++group)
    for (auto [number, value] :
         llvm::enumerate(clauseOperands(op, inputs, ClauseGroup(group))))
      add(nameOf(ClauseGroup(group), number), value, /*isOutput=*/false);
  size_t count = gradientTargetsOf(op, inputs).size();
  for (auto [number, value] :
       llvm::enumerate(outputs.take_back(std::min(count, outputs.size()))))
    add("gradient " + Twine(number), value, /*isOutput=*/true);
  return all;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

bool attn::isScore(Region &region) {
  return !region.empty() && region.getNumArguments() != 0 &&
         isa<FloatType>(region.getArgument(0).getType());
}

Region *attn::seesOf(Operation *op) {
  for (Region &region : op->getRegions())
    if (!isScore(region))
      return &region;
  return nullptr;
}

Region *attn::scoreOf(Operation *op) {
  for (Region &region : op->getRegions())
    if (isScore(region))
      return &region;
  return nullptr;
}

SmallVector<Type> attn::argumentTypes(MLIRContext *context, bool isScore,
                                      TypeRange captures) {
  SmallVector<Type> types;
  if (isScore)
    types.push_back(Float32Type::get(context));
  types.append(kPositionCount, IndexType::get(context));
  llvm::append_range(types, captures);
  return types;
}

ArrayRef<BlockArgument> attn::capturesIn(Region &region) {
  return ArrayRef<BlockArgument>(region.getArguments())
      .drop_front(isScore(region) + kPositionCount);
}

void attn::retypeCaptures(Operation *op) {
  OperandRange captures = op->getOperands().take_front(0);
  if (auto attention = dyn_cast<AttentionOpInterface>(op))
    captures = attention.captures();
  if (auto lists = dyn_cast<BlockListsOp>(op))
    captures = lists.getCaptures();
  for (Region &region : op->getRegions())
    for (auto [argument, capture] :
         llvm::zip_equal(capturesIn(region), captures))
      BlockArgument(argument).setType(capture.getType());
}

void attn::nameArguments(Region &region, OpAsmSetValueNameFn name) {
  if (region.empty() ||
      region.getNumArguments() < isScore(region) + kPositionCount)
    return;
  if (isScore(region))
    name(region.getArgument(0), "z");
  ArrayRef<BlockArgument> positions =
      ArrayRef<BlockArgument>(region.getArguments())
          .drop_front(isScore(region))
          .take_front(kPositionCount);
  for (auto [argument, position] : llvm::zip_equal(positions, kPositions))
    name(argument, position);
  for (BlockArgument capture : capturesIn(region))
    name(capture, "x");
}

//===----------------------------------------------------------------------===//
// What kernels do not take
//===----------------------------------------------------------------------===//

std::string attn::firstClause(Operation *op) {
  auto attention = cast<AttentionOpInterface>(op);
  for (Region &region : op->getRegions()) {
    SmallVector<ShortForm> forms = shortFormsOf(region);
    if (!forms.empty())
      return keywordOf(forms.front().kind).str();
    return isScore(region) ? "score" : "sees";
  }
  if (attention.blockSize())
    return "blocks";
  if (!attention.clauseOperands(ClauseGroup::sinks).empty())
    return "sinks";
  if (isRagged(op))
    return "ragged";
  if (!attention.clauseOperands(ClauseGroup::usedKeys).empty())
    return "lengths";
  if (!attention.clauseOperands(ClauseGroup::pageTable).empty())
    return "pages";
  for (ClauseGroup scale : kScaleGroups)
    if (!attention.clauseOperands(scale).empty())
      return "scales";
  if (valueColumns(op))
    return "values";
  return attention.captures().empty() ? "" : "captures";
}

/// An op of a region, or an array that it reads, for which kernels have no
/// code.
static LogicalResult refuseRegion(Operation *op, Region &region) {
  if (Operation *without = withoutCode(region))
    return without->emitError("expects ops that kernels have code for, but "
                              "got '")
           << without->getName() << "'";
  for (auto [number, capture] : llvm::enumerate(capturesIn(region))) {
    auto type = cast<ShapedType>(capture.getType());
    if (!capture.use_empty() && type.getRank() > kMostCapturedDims)
      return op->emitOpError("expects captures of up to ")
             << kMostCapturedDims << " dimensions in kernels, but got capture "
             << number << " of " << type.getRank();
  }
  return success();
}

/// Kernels for gradients sum over queries, and walk the lists of their blocks.
static LogicalResult requireTransposed(AttentionOpInterface op) {
  auto has = [&](ClauseGroup group) {
    return !op.clauseOperands(group).empty();
  };
  bool hasAll =
      has(ClauseGroup::partial) == has(ClauseGroup::transposedPartial) &&
      has(ClauseGroup::full) == has(ClauseGroup::transposedFull);
  if (op.direction() == Direction::forward || hasAll)
    return success();
  InFlightDiagnostic error =
      op->emitOpError("expects transposed(..) lists beside blocks(..) for "
                      "gradients, but got none");
  error.attachNote() << "attn.transpose_blocks makes them";
  return error;
}

/// Gradients of captures, to which pairs add in any order, in arrays without
/// gaps.
static LogicalResult refuseGradients(AttentionOpInterface op) {
  SmallVector<Value> targets = op.gradientTargets();
  for (Value output : op.outputs().take_back(targets.size())) {
    auto type = dyn_cast<MemRefType>(output.getType());
    if (type && type.getRank() > kMostCapturedDims)
      return op->emitOpError("expects gradients of captures of up to ")
             << kMostCapturedDims << " dimensions in kernels, but got " << type;
    if (type && !type.getLayout().isIdentity() &&
        !(type.getRank() == 1 && type.getStridesAndOffset().first[0] == 1))
      return op->emitOpError("expects gradients of captures in arrays without "
                             "gaps, but got ")
             << type;
  }
  if (!op.isDeterministic())
    return success();
  std::optional<GradientRead> shared = sharedByPairs(op);
  if (!shared)
    return success();
  InFlightDiagnostic error =
      op->emitOpError("expects elements that one pair reads, or all of a head, "
                      "for deterministic gradients of captures, but got "
                      "gradient ")
      << shared->target << " of elements that several pairs read";
  error.attachNote(shared->read.getLoc()) << "the read is here";
  return error;
}

LogicalResult attn::refuseClauses(Operation *op) {
  auto attention = cast<AttentionOpInterface>(op);
  for (Region &region : op->getRegions())
    if (failed(refuseRegion(op, region)))
      return failure();
  if (failed(refuseGradients(attention)))
    return failure();
  return requireTransposed(attention);
}

Operation *attn::cloneWith(OpBuilder &b, Operation *op, ValueRange operands,
                           TypeRange results,
                           ArrayRef<NamedAttribute> attributes) {
  OperationState state(op->getLoc(), op->getName(), operands, results,
                       attributes);
  for (Region &region : op->getRegions()) {
    IRMapping mapping;
    region.cloneInto(state.addRegion(), mapping);
  }
  Operation *clone = b.create(state);
  retypeCaptures(clone);
  return clone;
}
