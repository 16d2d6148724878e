//===- Tiling.cpp - attn ops in upstream's tiling -------------------------===//
//
// The loops of attn.forward are batch, heads, queries and keys, of which the
// last is a reduction; those of attn.backward are batch and heads.  A tile is
// the same op on slices of its arrays:
//
//   * heads come in multiples of the group that shares a key head, and as the
//     op wants them, so many for every tile;
//   * queries and keys come in any number.  A mask tells them by their place in
//     the whole, which a tile does not know: then they are not tiled;
//   * a tile of keys is a part of the result, of which attn.merge makes the
//     whole.  Parts are stacked along a dimension in front, where each of them
//     is an array like any other.
//
// What cannot be tiled is refused with a remark that says why.
//
//===----------------------------------------------------------------------===//

#include "attn/IR/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/TilingInterface.h"

using namespace mlir;
using namespace attn;

/// The loops, by number.
static constexpr unsigned kBatch = 0, kHeads = 1, kQueries = 2, kKeys = 3;

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

namespace {

using Numbers = SmallVector<OpFoldResult>;

/// A part of the loops of an op, or of an array.
struct Box {
  Numbers offsets, sizes;
};

/// An op whose tiles are asked for.
class Tiled {
public:
  explicit Tiled(Operation *op)
      : op(cast<AttentionOpInterface>(op)),
        group(problemOf(this->op).heads / problemOf(this->op).kvHeads) {}

  unsigned loops() {
    return op.direction() == Direction::forward ? kKeys + 1 : kHeads + 1;
  }
  SmallVector<utils::IteratorType> iterators() {
    SmallVector<utils::IteratorType> all(loops(),
                                         utils::IteratorType::parallel);
    if (loops() > kKeys)
      all[kKeys] = utils::IteratorType::reduction;
    return all;
  }
  SmallVector<Range> domain(OpBuilder &b);

  /// A remark and failure where there is no such tile.
  LogicalResult check(const Box &tile, bool ofKeys = false);
  /// What a tile has of an array.
  Box boxOf(OpBuilder &b, StringRef role, const Box &tile);
  /// The tile that has a part of an array; failure if it has other columns or
  /// rows than the loops go through.
  FailureOr<Box> tileOf(OpBuilder &b, StringRef role, const Box &part);

  /// Slices of the inputs, and of the destinations if there are any.
  SmallVector<Value> slices(OpBuilder &b, const Box &tile,
                            ArrayRef<AttentionArray> arrays,
                            SmallVectorImpl<Operation *> &made);
  FailureOr<TilingResult> implement(OpBuilder &b, const Box &tile);
  LogicalResult refuse(const Twine &why) {
    op->emitRemark() << why;
    return failure();
  }

  AttentionOpInterface op;
  int64_t group; ///< query heads that share a key head

private:
  /// Which loop goes through an extent of an array, if one does.
  std::optional<unsigned> loopOf(Extent extent);
  bool isWhole(unsigned loop, const Box &tile);
  bool isWholeExtent(Value array, unsigned dimension, OpFoldResult offset,
                     OpFoldResult size);
  /// The array and the dimension that tell how long a loop is.
  std::pair<Value, unsigned> lengthOf(unsigned loop);
  /// All of a dimension of an array; of a result as the operands tell, for the
  /// tile stands in place of it.
  OpFoldResult sizeOf(OpBuilder &b, Value array, unsigned dimension);
};

} // namespace

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
  bool hasMask = op.maskOrNone().kind != MaskKind::none;
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

/// The op on other operands, with a destination for each result.
static Operation *cloneOn(OpBuilder &b, AttentionOpInterface op,
                          ValueRange inputs, ValueRange outs) {
  SmallVector<Value> operands(inputs);
  llvm::append_range(operands, outs);
  return b.create(OperationState(op->getLoc(), op->getName(), operands,
                                 TypeRange(outs),
                                 attributesWithOuts(op, outs.size())));
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

//===----------------------------------------------------------------------===//
// TilingInterface
//===----------------------------------------------------------------------===//

static Box boxOf(ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  return {Numbers(offsets), Numbers(sizes)};
}

namespace {

template <typename OpTy>
struct TilingModel : TilingInterface::ExternalModel<TilingModel<OpTy>, OpTy> {
  SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op) const {
    return Tiled(op).iterators();
  }

  SmallVector<Range> getIterationDomain(Operation *op, OpBuilder &b) const {
    return Tiled(op).domain(b);
  }

  FailureOr<TilingResult>
  getTiledImplementation(Operation *op, OpBuilder &b,
                         ArrayRef<OpFoldResult> offsets,
                         ArrayRef<OpFoldResult> sizes) const {
    return Tiled(op).implement(b, boxOf(offsets, sizes));
  }

  LogicalResult getResultTilePosition(Operation *op, OpBuilder &b,
                                      unsigned result,
                                      ArrayRef<OpFoldResult> offsets,
                                      ArrayRef<OpFoldResult> sizes,
                                      Numbers &resultOffsets,
                                      Numbers &resultSizes) const {
    Tiled tiled(op);
    Box box =
        tiled.boxOf(b, tiled.op.givenOutputs()[result], boxOf(offsets, sizes));
    resultOffsets = box.offsets;
    resultSizes = box.sizes;
    return success();
  }

  LogicalResult getIterationDomainTileFromResultTile(
      Operation *op, OpBuilder &b, unsigned result,
      ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
      SmallVectorImpl<OpFoldResult> &tileOffsets,
      SmallVectorImpl<OpFoldResult> &tileSizes) const {
    Tiled tiled(op);
    return take(
        tiled.tileOf(b, tiled.op.givenOutputs()[result], boxOf(offsets, sizes)),
        tileOffsets, tileSizes);
  }

  FailureOr<TilingResult>
  generateResultTileValue(Operation *op, OpBuilder &b, unsigned result,
                          ArrayRef<OpFoldResult> offsets,
                          ArrayRef<OpFoldResult> sizes) const {
    Tiled tiled(op);
    FailureOr<Box> tile =
        tiled.tileOf(b, tiled.op.givenOutputs()[result], boxOf(offsets, sizes));
    if (failed(tile))
      return failure();
    FailureOr<TilingResult> made = tiled.implement(b, *tile);
    if (succeeded(made))
      made->tiledValues = {made->tiledValues[result]};
    return made;
  }

  LogicalResult getIterationDomainTileFromOperandTiles(
      Operation *op, OpBuilder &b, ArrayRef<unsigned> operands,
      ArrayRef<Numbers> offsets, ArrayRef<Numbers> sizes,
      SmallVectorImpl<OpFoldResult> &tileOffsets,
      SmallVectorImpl<OpFoldResult> &tileSizes) const {
    Tiled tiled(op);
    SmallVector<StringLiteral> roles = tiled.op.givenInputs();
    if (operands.size() != 1 || operands.front() >= roles.size())
      return tiled.refuse("is fused with the producer of one of its inputs, "
                          "but got " +
                          Twine(operands.size()) + " operands");
    return take(tiled.tileOf(b, roles[operands.front()],
                             boxOf(offsets.front(), sizes.front())),
                tileOffsets, tileSizes);
  }

  FailureOr<TilingResult> getTiledImplementationFromOperandTiles(
      Operation *op, OpBuilder &b, ArrayRef<unsigned> operands,
      ArrayRef<Numbers> offsets, ArrayRef<Numbers> sizes) const {
    Numbers tileOffsets, tileSizes;
    if (failed(getIterationDomainTileFromOperandTiles(
            op, b, operands, offsets, sizes, tileOffsets, tileSizes)))
      return failure();
    return getTiledImplementation(op, b, tileOffsets, tileSizes);
  }

private:
  static LogicalResult take(FailureOr<Box> tile,
                            SmallVectorImpl<OpFoldResult> &offsets,
                            SmallVectorImpl<OpFoldResult> &sizes) {
    if (failed(tile))
      return failure();
    offsets.assign(tile->offsets.begin(), tile->offsets.end());
    sizes.assign(tile->sizes.begin(), tile->sizes.end());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// PartialReductionOpInterface
//===----------------------------------------------------------------------===//

/// Roles of the results of a part.
constexpr StringLiteral kPartRoles[] = {"o", "lse"};

struct PartsModel
    : PartialReductionOpInterface::ExternalModel<PartsModel, ForwardOp> {
  /// An array of parts for O and one for LSE, of which every part is written.
  FailureOr<SmallVector<Value>> generateInitialTensorForPartialReduction(
      Operation *op, OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
      const SetVector<unsigned> &reductions) const {
    Tiled tiled(op);
    if (reductions.size() != 1 || !reductions.contains(kKeys))
      return tiled.refuse("has parts over keys, which are loop " +
                          Twine(kKeys));
    if (op->getNumResults() > std::size(kPartRoles))
      return tiled.refuse("expects O and LSE as results to split its keys, of "
                          "which there is a merge, but has " +
                          Twine(op->getNumResults()));
    std::optional<int64_t> parts = getConstantIntValue(sizes[kKeys]);
    if (!parts || *parts < 1)
      return tiled.refuse("expects a static number of parts of its keys: give "
                          "num_threads, or a tile size of static keys");
    SmallVector<Value> all;
    for (StringRef role : kPartRoles) {
      Numbers shape = {b.getIndexAttr(*parts)};
      llvm::append_range(shape, wholeOf(b, tiled, role).sizes);
      all.push_back(
          tensor::EmptyOp::create(b, loc, shape, elementOf(b, tiled, role)));
    }
    return all;
  }

  FailureOr<TilingResult>
  tileToPartialReduction(Operation *op, OpBuilder &b, Location loc,
                         ReductionTilingStrategy strategy, ValueRange init,
                         ArrayRef<OpFoldResult> offsets,
                         ArrayRef<OpFoldResult> sizes,
                         const SetVector<unsigned> &reductions,
                         ArrayRef<OpFoldResult> parts) const {
    Tiled tiled(op);
    if (strategy != ReductionTilingStrategy::PartialReductionOuterParallel)
      return tiled.refuse("has parts that are computed beside each other: "
                          "split keys with tile_reduction_using_forall");
    Box tile = boxOf(offsets, sizes);
    if (failed(tiled.check(tile, /*ofKeys=*/true)))
      return failure();
    TilingResult result;
    SmallVector<AttentionArray> inputs;
    for (const AttentionArray &array : tiled.op.arrays())
      if (!array.isOutput)
        inputs.push_back(array);
    SmallVector<Value> operands =
        tiled.slices(b, tile, inputs, result.generatedSlices);
    SmallVector<Value> destinations;
    for (auto [role, all] : llvm::zip_equal(kPartRoles, init)) {
      Box box = placeOf(b, tiled, role, tile, parts.front());
      destinations.push_back(partAt(b, loc, all, box));
      result.generatedSlices.push_back(destinations.back().getDefiningOp());
    }
    Operation *part = cloneOn(b, tiled.op, operands, destinations);
    result.tiledOps = {part};
    result.tiledValues.assign(part->result_begin(), part->result_end());
    return result;
  }

  FailureOr<MergeResult>
  mergeReductions(Operation *op, OpBuilder &b, Location loc, ValueRange init,
                  const SetVector<unsigned> &reductions) const {
    Tiled tiled(op);
    auto o = cast<RankedTensorType>(init.front().getType());
    Numbers sizes[2];
    for (auto [size, role] : llvm::zip_equal(sizes, kPartRoles))
      size = wholeOf(b, tiled, role).sizes;
    SmallVector<Value> parts[2];
    for (int64_t part = 0; part < o.getDimSize(0); ++part)
      for (unsigned i = 0; i < 2; ++i) {
        Box box = {Numbers(sizes[i].size(), b.getIndexAttr(0)), sizes[i]};
        box.offsets.insert(box.offsets.begin(), b.getIndexAttr(part));
        box.sizes.insert(box.sizes.begin(), b.getIndexAttr(1));
        parts[i].push_back(partAt(b, loc, init[i], box));
      }
    auto forward = cast<ForwardOp>(op);
    Operation *merge =
        MergeOp::create(b, loc, op->getResultTypes(), parts[0], parts[1],
                        forward.getOuts(), forward.getAlignmentAttr());
    return MergeResult{{merge}, merge->getResults()};
  }

  LogicalResult getPartialResultTilePosition(
      Operation *op, OpBuilder &b, unsigned result,
      ReductionTilingStrategy strategy, ArrayRef<OpFoldResult> offsets,
      ArrayRef<OpFoldResult> sizes, const SetVector<unsigned> &reductions,
      ArrayRef<OpFoldResult> parts, Numbers &resultOffsets,
      Numbers &resultSizes) const {
    Tiled tiled(op);
    Box box = placeOf(b, tiled, kPartRoles[result], boxOf(offsets, sizes),
                      parts.front());
    resultOffsets = box.offsets;
    resultSizes = box.sizes;
    return success();
  }

private:
  /// LSE of a part is there also where the op gives none; it has the rows of Q,
  /// as O has.
  static Box boxOfResult(OpBuilder &b, Tiled &tiled, StringRef role,
                         const Box &tile) {
    Box box = tiled.boxOf(b, "o", tile);
    if (role == "lse") {
      box.offsets.pop_back();
      box.sizes.pop_back();
    }
    return box;
  }

  static Box wholeOf(OpBuilder &b, Tiled &tiled, StringRef role) {
    Box tile;
    for (const Range &loop : tiled.domain(b)) {
      tile.offsets.push_back(loop.offset);
      tile.sizes.push_back(loop.size);
    }
    return boxOfResult(b, tiled, role, tile);
  }

  static Type elementOf(OpBuilder &b, Tiled &tiled, StringRef role) {
    if (role == "lse")
      return b.getF32Type();
    return cast<ShapedType>(tiled.op.array(role).getType()).getElementType();
  }

  /// Where a part is in the array of all.
  static Box placeOf(OpBuilder &b, Tiled &tiled, StringRef role,
                     const Box &tile, OpFoldResult part) {
    Box box = boxOfResult(b, tiled, role, tile);
    box.offsets.insert(box.offsets.begin(), part);
    box.sizes.insert(box.sizes.begin(), b.getIndexAttr(1));
    return box;
  }

  /// A part of the array of all, without the dimension of parts.
  static Value partAt(OpBuilder &b, Location loc, Value all, const Box &box) {
    auto type = cast<RankedTensorType>(all.getType());
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamic;
    dispatchIndexOpFoldResults(ArrayRef(box.sizes).drop_front(), dynamic,
                               shape);
    Numbers steps(box.sizes.size(), b.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(
        b, loc, RankedTensorType::get(shape, type.getElementType()), all,
        box.offsets, box.sizes, steps);
  }
};

} // namespace

void attn::registerTilingInterfaceExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    ForwardOp::attachInterface<TilingModel<ForwardOp>>(*context);
    ForwardOp::attachInterface<PartsModel>(*context);
    BackwardOp::attachInterface<TilingModel<BackwardOp>>(*context);
  });
}
