//===- PartialReduction.cpp - Attention over parts of its keys ------------===//
//
// A tile of keys is a part of the result, of which attn.merge makes the whole.
// Parts are stacked along a dimension in front, where each of them is an array
// like any other, and each is written by its own tile: nothing is initialised.
//
//===----------------------------------------------------------------------===//

#include "Tiles.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

/// A part of the loops.
static Box boxOf(ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  return {Numbers(offsets), Numbers(sizes)};
}

namespace {

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

void attn::attachPartialReduction(MLIRContext &context) {
  ForwardOp::attachInterface<PartsModel>(context);
}
