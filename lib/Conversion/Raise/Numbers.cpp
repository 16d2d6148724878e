//===- Numbers.cpp - Where a number comes from ----------------------------===//

#include "Numbers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace attn::raise;
using namespace mlir;
using linalg::LinalgOp;

Number Numbers::element(Value tensor, Indices at) {
  if (auto type = dyn_cast<RankedTensorType>(tensor.getType()))
    for (auto [size, index] : llvm::zip_equal(type.getShape(), at))
      if (size == 1)
        index = loops.zero();
  return {tensor, std::move(at)};
}

//===----------------------------------------------------------------------===//
// Through linalg ops
//===----------------------------------------------------------------------===//

Number Numbers::operand(LinalgOp op, unsigned index,
                        ArrayRef<Index> loopsOfOp) {
  OpOperand &operand = op->getOpOperand(index);
  AffineMap map = op.getMatchingIndexingMap(&operand);
  Indices at;
  for (AffineExpr expr : map.getResults())
    at.push_back(expr.replaceDims(loopsOfOp));
  return element(operand.get(), std::move(at));
}

std::optional<Indices> Numbers::loopsOf(LinalgOp op, Number result) {
  AffineMap map = op.getIndexingMapMatchingResult(cast<OpResult>(result.value));
  Indices found(op.getNumLoops());
  for (auto [expr, index] : llvm::zip_equal(map.getResults(), result.at)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      found[dim.getPosition()] = index;
    else if (!isa<AffineConstantExpr>(expr))
      return std::nullopt;
  }
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (auto [loop, iterator] : llvm::zip_equal(found, iterators))
    if (bool(loop) != (iterator == utils::IteratorType::parallel))
      return std::nullopt;
  return found;
}

/// What an op without reductions yields for a result.
std::optional<Number> Numbers::stepInto(LinalgOp op, Number result) {
  if (op.getNumReductionLoops() != 0)
    return std::nullopt;
  std::optional<Indices> inside = loopsOf(op, result);
  if (!inside)
    return std::nullopt;
  unsigned number = cast<OpResult>(result.value).getResultNumber();
  return Number{op.getBlock()->getTerminator()->getOperand(number), *inside};
}

/// The linalg op in whose body a scalar is an argument.
static LinalgOp bodyOf(BlockArgument argument) {
  auto op = dyn_cast_or_null<LinalgOp>(argument.getOwner()->getParentOp());
  return op && op.getBlock() == argument.getOwner() ? op : nullptr;
}

//===----------------------------------------------------------------------===//
// One step back
//===----------------------------------------------------------------------===//

/// The indices of the tensor before it was collapsed.
static std::optional<Indices> expanded(Loops &loops, tensor::CollapseShapeOp op,
                                       ArrayRef<Index> at) {
  Indices all(op.getSrcType().getRank(), loops.zero());
  for (auto [group, index] :
       llvm::zip_equal(op.getReassociationIndices(), at)) {
    SmallVector<int64_t> sizes = llvm::map_to_vector(
        group, [&](int64_t dim) { return op.getSrcType().getDimSize(dim); });
    std::optional<Indices> parts = loops.split(index, sizes);
    if (!parts)
      return std::nullopt;
    for (auto [dim, part] : llvm::zip_equal(group, *parts))
      all[dim] = part;
  }
  return all;
}

/// The indices of the tensor before it was expanded.
static Indices collapsed(Loops &loops, tensor::ExpandShapeOp op,
                         ArrayRef<Index> at) {
  Indices all;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    SmallVector<int64_t> sizes;
    Indices parts;
    for (int64_t dim : group) {
      sizes.push_back(op.getResultType().getDimSize(dim));
      parts.push_back(at[dim]);
    }
    all.push_back(loops.join(parts, sizes));
  }
  return all;
}

/// The number before the op that only moved it, if one did.
std::optional<Number> Numbers::step(Number number) {
  if (auto argument = dyn_cast<BlockArgument>(number.value)) {
    LinalgOp op = bodyOf(argument);
    if (!op || argument.getArgNumber() >= op->getNumOperands())
      return std::nullopt;
    return operand(op, argument.getArgNumber(), number.at);
  }
  Operation *op = number.value.getDefiningOp();
  if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    if (isa<RankedTensorType>(cast.getSource().getType()))
      return element(cast.getSource(), number.at);
    return std::nullopt;
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    std::optional<Indices> at = expanded(loops, collapse, number.at);
    if (!at)
      return std::nullopt;
    return element(collapse.getSrc(), *at);
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return element(expand.getSrc(), collapsed(loops, expand, number.at));
  auto linalg = dyn_cast<LinalgOp>(op);
  if (!linalg || !number.tensor())
    return std::nullopt;
  std::optional<Number> inside = stepInto(linalg, number);
  // What a scalar operation makes has its place here.
  if (!inside || (!isa<BlockArgument>(inside->value) &&
                  !matchPattern(inside->value, m_Constant())))
    return std::nullopt;
  return inside;
}

Number Numbers::source(Number number) {
  while (std::optional<Number> before = step(number))
    number = *before;
  return number;
}

Maker Numbers::maker(Number number) {
  number = source(number);
  Operation *op = number.value.getDefiningOp();
  if (!op)
    return {};
  if (number.tensor()) {
    if (auto linalg = dyn_cast<LinalgOp>(op)) {
      std::optional<Number> inside = stepInto(linalg, number);
      return inside ? maker(*inside) : Maker{};
    }
    if (!OpTrait::hasElementwiseMappableTraits(op))
      return {};
  }
  Maker made{op, {}, number.at};
  for (Value operand : op->getOperands())
    made.operands.push_back({operand, number.at});
  return made;
}

Number Numbers::uncast(Number number) {
  while (true) {
    Maker made = maker(number);
    if (!made.isAny("arith.extf", "arith.truncf"))
      return source(number);
    number = made.operands[0];
  }
}

//===----------------------------------------------------------------------===//
// What a number is
//===----------------------------------------------------------------------===//

static std::optional<double> attributeValue(Attribute attribute) {
  if (auto number = dyn_cast_or_null<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto number = dyn_cast_or_null<IntegerAttr>(attribute))
    return number.getType().isInteger(1)
               ? double(number.getValue().getZExtValue())
               : double(number.getValue().getSExtValue());
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(attribute))
    return attributeValue(splat.getSplatValue<Attribute>());
  return std::nullopt;
}

static std::optional<double> fold(const Maker &made, ArrayRef<double> of) {
  if (made.isAny("arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp",
                 "arith.index_cast", "arith.extsi", "arith.extui"))
    return of[0];
  if (made.is("math.sqrt"))
    return std::sqrt(of[0]);
  if (made.is("math.rsqrt"))
    return 1 / std::sqrt(of[0]);
  if (made.is("arith.negf"))
    return -of[0];
  if (made.is("arith.mulf"))
    return of[0] * of[1];
  if (made.is("arith.divf"))
    return of[0] / of[1];
  return std::nullopt;
}

std::optional<double> Numbers::constant(Number number) {
  number = source(number);
  Attribute attribute;
  if (matchPattern(number.value, m_Constant(&attribute)))
    return attributeValue(attribute);
  Maker made = maker(number);
  if (!made.op || made.operands.empty())
    return std::nullopt;
  SmallVector<double> values;
  for (const Number &operand : made.operands) {
    std::optional<double> value = constant(operand);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return fold(made, values);
}

/// Whether a number depends on where it is read.
static bool hasPlace(Number number) {
  Operation *around = number.value.getParentBlock()->getParentOp();
  return number.tensor() || isa<LinalgOp>(around);
}

bool Numbers::same(Number a, Number b) {
  a = source(a);
  b = source(b);
  if (a.value == b.value && (!hasPlace(a) || a.at == b.at))
    return true;
  std::optional<double> valueA = constant(a), valueB = constant(b);
  if (valueA || valueB)
    return valueA == valueB;
  Maker madeA = maker(a), madeB = maker(b);
  if (!madeA.op || !madeB.op || madeA.operands.empty() ||
      madeA.op->getName() != madeB.op->getName() ||
      madeA.op->getAttrDictionary() != madeB.op->getAttrDictionary() ||
      madeA.operands.size() != madeB.operands.size())
    return false;
  for (auto [first, second] : llvm::zip_equal(madeA.operands, madeB.operands))
    if (!same(first, second))
      return false;
  return true;
}
