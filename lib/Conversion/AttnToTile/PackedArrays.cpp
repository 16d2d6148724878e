//===- PackedArrays.cpp - An op's arrays as its kernels see them ----------===//

#include "PackedArrays.h"

#include "Bands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

namespace {

/// Views of memrefs; numbers that are static stay so.
class Packer {
public:
  Packer(ImplicitLocOpBuilder &b, AttentionOpInterface op,
         const Packing &packing)
      : b(b), packing(packing) {
    if (packing.cutsKeys)
      findKeys(op);
  }

  Value packed(const AttentionArray &array) {
    if (hasRowsOfQueries(array.role))
      return withRows(array.value);
    if (packing.cutsKeys && shapeOf(array.role)[2] == Extent::keys)
      return withKeys(array.value);
    return array.value;
  }

  /// Its first columns.
  Value narrowed(Value memref, int64_t columns) {
    View view = viewOf(memref);
    view.sizes.back() = b.getIndexAttr(columns);
    return cast(memref, view);
  }

private:
  /// A memref in numbers.
  struct View {
    SmallVector<OpFoldResult> sizes, strides;
    OpFoldResult offset;
  };
  View viewOf(Value memref) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
    return {metadata.getConstifiedMixedSizes(),
            metadata.getConstifiedMixedStrides(),
            metadata.getConstifiedMixedOffset()};
  }
  Value cast(Value memref, const View &view) {
    auto type = llvm::cast<MemRefType>(memref.getType());
    SmallVector<int64_t> sizes, strides, offset;
    SmallVector<Value> dynamic;
    dispatchIndexOpFoldResults(view.sizes, dynamic, sizes);
    dispatchIndexOpFoldResults(view.strides, dynamic, strides);
    dispatchIndexOpFoldResults(view.offset, dynamic, offset);
    auto layout =
        StridedLayoutAttr::get(b.getContext(), offset.front(), strides);
    return memref::ReinterpretCastOp::create(
        b,
        MemRefType::get(sizes, type.getElementType(), layout,
                        type.getMemorySpace()),
        memref, view.offset, view.sizes, view.strides);
  }

  /// Heads of a group one after the other as rows of one.
  Value withRows(Value memref) {
    View view = viewOf(memref);
    bool isOne = packing.asked.queries == 1;
    OpFoldResult ofHeads = view.strides[1];
    view.sizes[1] = b.getIndexAttr(packing.problem.heads);
    view.sizes[2] = times(view.sizes[2], packing.heads);
    view.strides[1] = times(ofHeads, packing.heads);
    if (isOne)
      view.strides[2] = ofHeads;
    return cast(memref, view);
  }

  /// The keys that are seen.
  Value withKeys(Value memref) {
    View view = viewOf(memref);
    Value skipped =
        b.createOrFold<arith::MulIOp>(begin, valueOf(view.strides[2]));
    view.offset = getAsOpFoldResult(
        b.createOrFold<arith::AddIOp>(valueOf(view.offset), skipped));
    view.sizes[2] = getAsOpFoldResult(count);
    return cast(memref, view);
  }

  /// Those that the only query sees, from `begin` on.
  void findKeys(AttentionOpInterface op) {
    Value zero = index(0),
          keys = b.createOrFold<memref::DimOp>(op.array("k"), 2);
    BandValues seen = bandOf(b, packing.asked.mask, keys, index(1));
    begin = zero;
    if (seen.first)
      begin = b.createOrFold<arith::MaxSIOp>(seen.first, zero);
    Value end = keys;
    if (seen.last)
      end = b.createOrFold<arith::MinSIOp>(
          b.createOrFold<arith::AddIOp>(seen.last, index(1)), keys);
    count = b.createOrFold<arith::MaxSIOp>(
        b.createOrFold<arith::SubIOp>(end, begin), zero);
  }

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value valueOf(OpFoldResult number) {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), number);
  }
  OpFoldResult times(OpFoldResult number, int64_t factor) {
    return getAsOpFoldResult(
        b.createOrFold<arith::MulIOp>(valueOf(number), index(factor)));
  }

  ImplicitLocOpBuilder &b;
  const Packing &packing;
  Value begin, count;
};

} // namespace

SmallVector<AttentionArray> attn::packedArrays(ImplicitLocOpBuilder &b,
                                               AttentionOpInterface op,
                                               const Packing &packing) {
  SmallVector<AttentionArray> arrays = op.arrays();
  Packer packer(b, op, packing);
  for (AttentionArray &array : arrays) {
    if (packing)
      array.value = packer.packed(array);
    if (array.columns != 0)
      array.value = packer.narrowed(array.value, array.columns);
  }
  return arrays;
}
