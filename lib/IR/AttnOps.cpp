//===- AttnOps.cpp - The ops of the attn dialect --------------------------===//
//
// What tells the ops apart, which is little, and what they share besides their
// constraints.
//
//===----------------------------------------------------------------------===//

#include "attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include <cmath>

using namespace mlir;
using namespace attn;

#include "attn/IR/AttentionInterface.cpp.inc"

#define GET_OP_CLASSES
#include "attn/IR/AttnOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

Direction ForwardOp::direction() { return Direction::forward; }

ArrayRef<StringLiteral> ForwardOp::inputRoles() {
  static constexpr StringLiteral roles[] = {"q", "k", "v"};
  return roles;
}

ArrayRef<OperandClause> ForwardOp::operandClauses() { return {}; }

ArrayRef<StringLiteral> ForwardOp::outputRoles() {
  static constexpr StringLiteral roles[] = {"o", "lse", "lse_low", "weights",
                                            "block_rows"};
  return roles;
}

/// O; LSE is asked for or not, its low word with it or not, and both arrays of
/// weights with it or not.
SmallVector<StringLiteral> ForwardOp::rolesOfOutputs(size_t count) {
  SmallVector<StringLiteral> all(outputRoles());
  if (count == 0 || count > all.size())
    return {};
  constexpr size_t withoutLow = 4;
  if (count == withoutLow)
    llvm::erase(all, "lse_low");
  all.truncate(count);
  return all;
}

Direction BackwardOp::direction() { return Direction::backward; }

ArrayRef<StringLiteral> BackwardOp::inputRoles() {
  static constexpr StringLiteral roles[] = {
      "do",  "q",       "k",    "v",       "o",
      "lse", "lse_low", "dlse", "weights", "block_rows"};
  return roles;
}

ArrayRef<OperandClause> BackwardOp::operandClauses() {
  static constexpr StringLiteral low[] = {"lse_low"}, dlse[] = {"dlse"},
                                 kept[] = {"weights", "block_rows"};
  static const OperandClause clauses[] = {
      {"lse_low", low}, {"dlse", dlse}, {"weights", kept}};
  return clauses;
}

SmallVector<StringLiteral> BackwardOp::givenInputs() {
  SmallVector<StringLiteral> roles(inputRoles());
  if (!getLseLow())
    llvm::erase(roles, "lse_low");
  if (!getDlse())
    llvm::erase(roles, "dlse");
  if (getKept().empty())
    roles.pop_back_n(2);
  return roles;
}

ArrayRef<StringLiteral> BackwardOp::outputRoles() {
  static constexpr StringLiteral roles[] = {"dq", "dk", "dv"};
  return roles;
}

ArrayRef<Extent> attn::shapeOf(StringRef role) {
  if (std::optional<Role> array = findArray(std::string_view(role)))
    return factsOf(*array).shape;
  return {};
}

SmallVector<Extent> attn::shapeOf(StringRef role, bool isRagged,
                                  const Placement &place) {
  std::optional<Role> array = findArray(std::string_view(role));
  if (!array)
    return {};
  std::vector<Extent> shape = attn::shapeOf(*array, isRagged, place);
  return SmallVector<Extent>(shape.begin(), shape.end());
}

Placement attn::placeOf(Operation *op, OperandRange inputs) {
  Placement place;
  OperandRange used = clauseOperands(op, inputs, ClauseGroup::usedKeys);
  if (!used.empty())
    place.usedKeysBits =
        cast<ShapedType>(used.front().getType()).getElementTypeBitWidth();
  // The verifier says so if they are not known.
  constexpr unsigned k = 1, rows = 2;
  auto type = dyn_cast<ShapedType>(op->getOperand(k).getType());
  if (!clauseOperands(op, inputs, ClauseGroup::pageTable).empty() && type &&
      type.hasRank() && type.getRank() > rows)
    place.pageRows = type.getDimSize(rows);
  return place;
}

Placement attn::placeOf(AttentionOpInterface op) {
  return placeOf(op, op.inputs());
}

bool attn::isStatistic(StringRef role) {
  std::optional<Role> array = findArray(std::string_view(role));
  return array && factsOf(*array).element == Element::f32;
}

double attn::defaultScale(Type q) {
  return 1 / std::sqrt(double(cast<ShapedType>(q).getShape().back()));
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

void attn::addEffects(
    Operation *op, size_t inputs,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (isa<RankedTensorType>(op->getOperand(0).getType()))
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    bool isWritten = operand.getOperandNumber() >= inputs;
    MemoryEffects::Effect *effect = MemoryEffects::Read::get();
    if (isWritten)
      effect = MemoryEffects::Write::get();
    effects.emplace_back(effect, &operand, /*stage=*/0,
                         /*effectOnFullRegion=*/true,
                         SideEffects::DefaultResource::get());
  }
}

SmallVector<NamedAttribute> attn::attributesWithOuts(Operation *op,
                                                     size_t count) {
  NamedAttrList attributes(op->getAttrs());
  if (op->hasTrait<OpTrait::AttrSizedOperandSegments>()) {
    auto segments = cast<DenseI32ArrayAttr>(attributes.get(kSegmentsAttr));
    SmallVector<int32_t> sizes(segments.asArrayRef());
    sizes.back() = int32_t(count + clauseOperandCount(op));
    attributes.set(kSegmentsAttr,
                   DenseI32ArrayAttr::get(op->getContext(), sizes));
  }
  return llvm::to_vector(attributes.getAttrs());
}

/// The first size of an input that counts the same.
static Value sizeOf(OpBuilder &builder, AttentionOpInterface op,
                    Extent extent) {
  if (extent == Extent::keptRows) {
    Location loc = op->getLoc();
    auto index = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    Value blocks = builder.createOrFold<arith::CeilDivSIOp>(
        loc, sizeOf(builder, op, Extent::keys), index(kKeptKeys));
    return builder.createOrFold<arith::MulIOp>(loc, blocks, index(2));
  }
  for (const AttentionArray &array : op.arrays())
    for (auto [dimension, each] : llvm::enumerate(op.shapeOf(array.role)))
      if (each == extent && !array.isOutput)
        return builder.createOrFold<tensor::DimOp>(op->getLoc(), array.value,
                                                   dimension);
  llvm_unreachable("sizes of outputs are sizes of inputs");
}

LogicalResult attn::reifyShapes(AttentionOpInterface op, OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &reified) {
  for (const AttentionArray &array : op.arrays()) {
    if (!array.isOutput)
      continue;
    SmallVector<OpFoldResult> &sizes = reified.emplace_back();
    for (auto [extent, size] :
         llvm::zip_equal(op.shapeOf(array.role), array.type().getShape())) {
      if (ShapedType::isDynamic(size))
        sizes.push_back(sizeOf(builder, op, extent));
      else
        sizes.push_back(builder.getIndexAttr(size));
    }
  }
  // Behind them are gradients of what clauses take.
  for (Value target : op.gradientTargets())
    reified.push_back(tensor::getMixedSizes(builder, op->getLoc(), target));
  return success();
}

//===----------------------------------------------------------------------===//
// Canonicalization
//===----------------------------------------------------------------------===//

namespace {

/// An op on tensors computes no more outputs than it may have and somebody
/// uses: an LSE, its low word, or weights, that nobody looks at are not asked
/// for.  An op of which nobody uses anything has no effect, and goes as all
/// such ops do.  With a schedule weights stay: only schedules that keep them
/// were asked.
struct DropUnusedOutputs : OpInterfaceRewritePattern<AttentionOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(AttentionOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (!op.isOnTensors() || (op->hasAttr("schedule") && op.array("weights")))
      return failure();
    if (!op.gradientTargets().empty())
      return failure(); // DropUnusedGradients first
    SmallVector<StringLiteral> roles = op.givenOutputs(), fewer = fewest(op);
    if (fewer.size() == roles.size())
      return failure();
    auto numberOf = [&](StringRef role) {
      return llvm::find(roles, role) - roles.begin();
    };
    SmallVector<Value> operands(op.inputs());
    SmallVector<Type> types;
    for (StringRef role : fewer) {
      types.push_back(op->getResult(numberOf(role)).getType());
      if (!op.getOuts().empty())
        operands.push_back(op.getOuts()[numberOf(role)]);
    }
    Operation *smaller = cloneWith(
        rewriter, op, operands, types,
        attributesWithOuts(op, op.getOuts().empty() ? 0 : fewer.size()));
    for (auto [number, role] : llvm::enumerate(fewer))
      rewriter.replaceAllUsesWith(op->getResult(numberOf(role)),
                                  smaller->getResult(number));
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The fewest outputs that there may be, with all that are used.
  static SmallVector<StringLiteral> fewest(AttentionOpInterface op) {
    SmallVector<StringLiteral> roles = op.givenOutputs();
    for (size_t count = 1; count < roles.size(); ++count) {
      SmallVector<StringLiteral> some = op.rolesOfOutputs(count);
      bool hasAll = llvm::all_of(
          llvm::zip_equal(roles, op->getResults()), [&](auto output) {
            auto [role, value] = output;
            return value.use_empty() || llvm::is_contained(some, role);
          });
      if (hasAll && !some.empty())
        return some;
    }
    return roles;
  }
};

/// Nor does it compute gradients of captures and sinks that nobody uses.
struct DropUnusedGradients : OpInterfaceRewritePattern<AttentionOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(AttentionOpInterface op,
                                PatternRewriter &rewriter) const override {
    auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(kGradientsAttr);
    if (!op.isOnTensors() || !numbers)
      return failure();
    size_t before = op->getNumResults() - numbers.size();
    SmallVector<int64_t> kept;
    SmallVector<unsigned> results =
        llvm::to_vector(llvm::seq<unsigned>(before));
    for (auto [place, number] : llvm::enumerate(numbers.asArrayRef())) {
      if (op->getResult(before + place).use_empty())
        continue;
      kept.push_back(number);
      results.push_back(before + place);
    }
    if (results.size() == op->getNumResults())
      return failure();
    SmallVector<Value> operands(op.inputs());
    SmallVector<Type> types;
    for (unsigned result : results) {
      types.push_back(op->getResult(result).getType());
      if (!op.getOuts().empty())
        operands.push_back(op.getOuts()[result]);
    }
    NamedAttrList attributes(
        attributesWithOuts(op, op.getOuts().empty() ? 0 : results.size()));
    attributes.erase(kGradientsAttr);
    if (!kept.empty())
      attributes.set(kGradientsAttr, rewriter.getDenseI64ArrayAttr(kept));
    Operation *smaller =
        cloneWith(rewriter, op, operands, types, attributes.getAttrs());
    for (auto [number, result] : llvm::enumerate(results))
      rewriter.replaceAllUsesWith(op->getResult(result),
                                  smaller->getResult(number));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void AttnDialect::getCanonicalizationPatterns(
    RewritePatternSet &patterns) const {
  patterns.add<DropUnusedOutputs, DropUnusedGradients>(patterns.getContext());
}
