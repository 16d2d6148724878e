//===- Tiling.cpp - attn ops in upstream's tiling -------------------------===//
//
// What upstream asks of an op that it tiles, or fuses with what makes its
// inputs or takes its results (Tiles.h).
//
//===----------------------------------------------------------------------===//

#include "Tiles.h"

using namespace mlir;
using namespace attn;

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

} // namespace

void attn::registerTilingInterfaceExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    ForwardOp::attachInterface<TilingModel<ForwardOp>>(*context);
    attachPartialReduction(*context);
    BackwardOp::attachInterface<TilingModel<BackwardOp>>(*context);
  });
}
