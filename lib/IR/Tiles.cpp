//===- Tiles.cpp - Tiles of attention -------------------------------------===//

#include "Tiles.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static bool isKnownMultiple(OpFoldResult number, int64_t of);

/// The same of an affine function of operands.
static bool isKnownMultiple(AffineMap map, ValueRange operands, int64_t of) {
  SmallVector<AffineExpr> dims, symbols;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    bool isDim = i < map.getNumDims();
    unsigned number = isDim ? i : i - map.getNumDims();
    AffineExpr expr = isDim ? getAffineDimExpr(number, map.getContext())
                            : getAffineSymbolExpr(number, map.getContext());
    if (isKnownMultiple(OpFoldResult(operand), of))
      expr = expr * of;
    (isDim ? dims : symbols).push_back(expr);
  }
  return llvm::all_of(map.getResults(), [&](AffineExpr result) {
    return result.replaceDimsAndSymbols(dims, symbols).isMultipleOf(of);
  });
}

/// Whether a number is known to be a multiple of another: where loops of
/// multiples lead to it.
static bool isKnownMultiple(OpFoldResult number, int64_t of) {
  if (std::optional<int64_t> constant = getConstantIntValue(number))
    return *constant % of == 0;
  auto value = cast<Value>(number);
  if (auto apply = value.getDefiningOp<affine::AffineApplyOp>())
    return isKnownMultiple(apply.getMap(), apply.getMapOperands(), of);
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    return isKnownMultiple(OpFoldResult(product.getLhs()), of) ||
           isKnownMultiple(OpFoldResult(product.getRhs()), of);
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return false;
  Operation *loop = argument.getOwner()->getParentOp();
  if (auto one = dyn_cast<scf::ForOp>(loop))
    return argument == one.getInductionVar() &&
           isKnownMultiple(OpFoldResult(one.getLowerBound()), of) &&
           isKnownMultiple(OpFoldResult(one.getStep()), of);
  auto all = dyn_cast<scf::ForallOp>(loop);
  if (!all || argument.getArgNumber() >= all.getRank())
    return false;
  unsigned dimension = argument.getArgNumber();
  return isKnownMultiple(all.getMixedLowerBound()[dimension], of) &&
         isKnownMultiple(all.getMixedStep()[dimension], of);
}

static OpFoldResult quotient(OpBuilder &b, Location loc, OpFoldResult number,
                             int64_t by) {
  if (by == 1)
    return number;
  if (std::optional<int64_t> constant = getConstantIntValue(number))
    return b.getIndexAttr(*constant / by);
  Value divisor = arith::ConstantIndexOp::create(b, loc, by);
  return b.createOrFold<arith::DivUIOp>(loc, cast<Value>(number), divisor);
}

static OpFoldResult product(OpBuilder &b, Location loc, OpFoldResult number,
                            int64_t by) {
  if (by == 1)
    return number;
  if (std::optional<int64_t> constant = getConstantIntValue(number))
    return b.getIndexAttr(*constant * by);
  Value factor = arith::ConstantIndexOp::create(b, loc, by);
  return b.createOrFold<arith::MulIOp>(loc, cast<Value>(number), factor);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

std::optional<unsigned> Tiled::loopOf(Extent extent) {
  std::optional<unsigned> loop;
  switch (extent) {
  case Extent::batch:
    loop = kBatch;
    break;
  case Extent::heads:
  case Extent::kvHeads:
    loop = kHeads;
    break;
  case Extent::queries:
    loop = kQueries;
    break;
  case Extent::keys:
    loop = kKeys;
    break;
  case Extent::headDim:
  case Extent::headDimV:
  case Extent::keptRows:
  case Extent::queryBlocks:
  case Extent::keyBlocks:
  case Extent::tablePages:
  case Extent::pages:
  case Extent::pageRows:
  case Extent::offsets:
    break;
  }
  return loop && *loop < loops() ? loop : std::nullopt;
}

std::pair<Value, unsigned> Tiled::lengthOf(unsigned loop) {
  return loop == kKeys ? std::pair(op.array("k"), 2u)
                       : std::pair(op.array("q"), loop);
}

OpFoldResult Tiled::sizeOf(OpBuilder &b, Value array, unsigned dimension) {
  auto result = dyn_cast<OpResult>(array);
  bool isOwn = result && result.getOwner() == op.getOperation();
  if (!isOwn || !cast<ShapedType>(array.getType()).isDynamicDim(dimension))
    return tensor::getMixedSize(b, op->getLoc(), array, dimension);
  ReifiedRankedShapedTypeDims shapes;
  (void)reifyShapes(op, b, shapes); // which never fails
  return shapes[result.getResultNumber()][dimension];
}

SmallVector<Range> Tiled::domain(OpBuilder &b) {
  SmallVector<Range> all;
  for (unsigned loop = 0; loop < loops(); ++loop) {
    auto [array, dimension] = lengthOf(loop);
    all.push_back(
        {b.getIndexAttr(0), sizeOf(b, array, dimension), b.getIndexAttr(1)});
  }
  return all;
}

/// Where a size is dynamic, upstream passes on what `domain` gave.
bool Tiled::isWholeExtent(Value array, unsigned dimension, OpFoldResult offset,
                          OpFoldResult size) {
  if (getConstantIntValue(offset) != 0)
    return false;
  int64_t whole = cast<ShapedType>(array.getType()).getDimSize(dimension);
  if (!ShapedType::isDynamic(whole))
    return getConstantIntValue(size) == whole;
  auto value = dyn_cast<Value>(size);
  auto asked = value ? value.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
  return asked && asked.getSource() == array &&
         asked.getConstantIndex() == int64_t(dimension);
}

bool Tiled::isWhole(unsigned loop, const Box &tile) {
  auto [array, dimension] = lengthOf(loop);
  return isWholeExtent(array, dimension, tile.offsets[loop], tile.sizes[loop]);
}

LogicalResult Tiled::check(const Box &tile, bool ofKeys) {
  if (!op.isOnTensors())
    return refuse("is tiled on tensors only, but has memrefs");
  if (op.hasClauses())
    return refuse("has " + firstClause(op) +
                  "(..), which tells batch entries, heads and rows by their "
                  "place in the whole: a tile needs one that is shifted, and "
                  "there is none yet");
  if (!isWhole(kHeads, tile)) {
    std::optional<int64_t> heads = getConstantIntValue(tile.sizes[kHeads]);
    if (!heads)
      return refuse("expects tiles of as many heads each, but their number is "
                    "not static: give one that divides " +
                    Twine(problemOf(op).heads));
    if (*heads == 0 || *heads % group != 0)
      return refuse("expects tiles of heads in multiples of " + Twine(group) +
                    ", which share a key head, but got " + Twine(*heads));
    if (!isKnownMultiple(tile.offsets[kHeads], group))
      return refuse("expects tiles of heads that begin at multiples of " +
                    Twine(group) +
                    ", which share a key head, but where they begin is not "
                    "known to be one");
  }
  bool hasMask = !op.maskOrNone().isOpen();
  auto isCut = [&](unsigned loop) {
    return loop < loops() && !isWhole(loop, tile);
  };
  if (hasMask && (isCut(kQueries) || isCut(kKeys)))
    return refuse(
        "has mask(" + Twine(str(op.maskOrNone())) +
        "), which tells rows by their place in the whole: a tile of " +
        (isCut(kQueries) ? "queries" : "keys") +
        " needs a mask that is shifted, and there is none yet");
  if (!ofKeys && isCut(kKeys))
    return refuse("sums up over keys, so that a tile of them is a part of the "
                  "result: split them with tile_reduction_using_forall");
  return success();
}

Box Tiled::boxOf(OpBuilder &b, StringRef role, const Box &tile) {
  Location loc = op->getLoc();
  Value array = op.array(role);
  Box box;
  for (auto [dimension, extent] : llvm::enumerate(shapeOf(role))) {
    std::optional<unsigned> loop = loopOf(extent);
    if (!loop) {
      box.offsets.push_back(b.getIndexAttr(0));
      box.sizes.push_back(sizeOf(b, array, dimension));
      continue;
    }
    int64_t by = extent == Extent::kvHeads ? group : 1;
    box.offsets.push_back(quotient(b, loc, tile.offsets[*loop], by));
    box.sizes.push_back(quotient(b, loc, tile.sizes[*loop], by));
  }
  return box;
}

FailureOr<Box> Tiled::tileOf(OpBuilder &b, StringRef role, const Box &part) {
  Location loc = op->getLoc();
  Box tile;
  for (const Range &loop : domain(b)) {
    tile.offsets.push_back(loop.offset);
    tile.sizes.push_back(loop.size);
  }
  for (auto [dimension, extent] : llvm::enumerate(shapeOf(role))) {
    OpFoldResult offset = part.offsets[dimension], size = part.sizes[dimension];
    std::optional<unsigned> loop = loopOf(extent);
    if (loop) {
      int64_t by = extent == Extent::kvHeads ? group : 1;
      tile.offsets[*loop] = product(b, loc, offset, by);
      tile.sizes[*loop] = product(b, loc, size, by);
    } else if (!isWholeExtent(op.array(role), dimension, offset, size)) {
      return refuse("gives rows of " + role +
                    " with all their columns, but a part of them was asked "
                    "for");
    }
  }
  return tile;
}

SmallVector<Value> Tiled::slices(OpBuilder &b, const Box &tile,
                                 ArrayRef<AttentionArray> arrays,
                                 SmallVectorImpl<Operation *> &made) {
  SmallVector<Value> all;
  for (const AttentionArray &array : arrays) {
    Box box = boxOf(b, array.role, tile);
    Numbers steps(box.sizes.size(), b.getIndexAttr(1));
    auto slice = tensor::ExtractSliceOp::create(b, op->getLoc(), array.value,
                                                box.offsets, box.sizes, steps);
    made.push_back(slice);
    all.push_back(slice);
  }
  return all;
}

Operation *attn::cloneOn(OpBuilder &b, AttentionOpInterface op,
                         ValueRange inputs, ValueRange outs) {
  SmallVector<Value> operands(inputs);
  llvm::append_range(operands, outs);
  return cloneWith(b, op, operands, TypeRange(outs),
                   attributesWithOuts(op, outs.size()));
}

FailureOr<TilingResult> Tiled::implement(OpBuilder &b, const Box &tile) {
  if (failed(check(tile)))
    return failure();
  SmallVector<AttentionArray> inputs, outs;
  for (const AttentionArray &array : op.arrays())
    (array.isOutput ? outs : inputs).push_back(array);
  TilingResult result;
  SmallVector<Value> operands = slices(b, tile, inputs, result.generatedSlices);
  SmallVector<Value> destinations;
  if (op.getOuts().empty()) {
    // With a destination that is nothing yet: it is found where the result is
    // put (-eliminate-empty-tensors), and no tile is copied.
    for (const AttentionArray &array : outs)
      destinations.push_back(tensor::EmptyOp::create(
          b, op->getLoc(), boxOf(b, array.role, tile).sizes,
          array.type().getElementType()));
  } else {
    for (auto [array, out] : llvm::zip_equal(outs, op.getOuts()))
      array.value = out;
    destinations = slices(b, tile, outs, result.generatedSlices);
  }
  Operation *tiled = cloneOn(b, op, operands, destinations);
  result.tiledOps = {tiled};
  result.tiledValues.assign(tiled->result_begin(), tiled->result_end());
  return result;
}
