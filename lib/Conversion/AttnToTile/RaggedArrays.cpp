//===- RaggedArrays.cpp - Rows of sequences as kernels see them -----------===//

#include "RaggedArrays.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace {

/// A memref in numbers; those that are static stay so.
struct View {
  OpFoldResult offset;
  SmallVector<OpFoldResult> sizes, strides;
};

} // namespace

static View viewOf(ImplicitLocOpBuilder &b, Value memref) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
  return {metadata.getConstifiedMixedOffset(),
          metadata.getConstifiedMixedSizes(),
          metadata.getConstifiedMixedStrides()};
}

static Value castTo(ImplicitLocOpBuilder &b, Value memref, const View &view) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> sizes, strides, offset;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(view.sizes, dynamic, sizes);
  dispatchIndexOpFoldResults(view.strides, dynamic, strides);
  dispatchIndexOpFoldResults(view.offset, dynamic, offset);
  auto layout = StridedLayoutAttr::get(b.getContext(), offset.front(), strides);
  return memref::ReinterpretCastOp::create(
      b,
      MemRefType::get(sizes, type.getElementType(), layout,
                      type.getMemorySpace()),
      memref, view.offset, view.sizes, view.strides);
}

Value attn::asOneEntry(ImplicitLocOpBuilder &b, Value memref) {
  View view = viewOf(b, memref);
  if (view.sizes.size() > 2) {
    std::swap(view.sizes[0], view.sizes[1]);
    std::swap(view.strides[0], view.strides[1]);
  }
  view.sizes.insert(view.sizes.begin(), b.getIndexAttr(1));
  view.strides.insert(view.strides.begin(), b.getIndexAttr(1)); // of one
  return castTo(b, memref, view);
}

static Value valueOf(ImplicitLocOpBuilder &b, OpFoldResult number) {
  return getValueOrCreateConstantIndexOp(b, b.getLoc(), number);
}

/// So many windows of which the first begins with the view's first element.
static Value windowsFrom(ImplicitLocOpBuilder &b, Value entry, View view,
                         OpFoldResult count, int64_t rows) {
  view.sizes[0] = count;
  view.strides[0] = view.strides[2];
  view.sizes[2] = b.getIndexAttr(rows);
  return castTo(b, entry, view);
}

Value attn::windowsOf(ImplicitLocOpBuilder &b, Value entry, int64_t rows) {
  View view = viewOf(b, entry);
  Value height = arith::ConstantIndexOp::create(b, rows);
  Value before =
      b.createOrFold<arith::MulIOp>(height, valueOf(b, view.strides[2]));
  // It may be negative, which a constant must not be: the highest bit of an
  // address, 0, is none.
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, entry);
  Value zero =
      arith::ShRUIOp::create(b, address, arith::ConstantIndexOp::create(b, 63));
  Value first = b.createOrFold<arith::SubIOp>(valueOf(b, view.offset), before);
  view.offset = arith::AddIOp::create(b, first, zero).getResult();
  // One that ends behind each row, and one in front of the first.
  OpFoldResult count = getAsOpFoldResult(b.createOrFold<arith::AddIOp>(
      valueOf(b, view.sizes[2]), arith::ConstantIndexOp::create(b, 1)));
  return windowsFrom(b, entry, view, count, rows);
}

Value attn::emptyWindowsOf(ImplicitLocOpBuilder &b, Value entry, int64_t rows,
                           int64_t columns) {
  View view = viewOf(b, entry);
  view.sizes[3] = b.getIndexAttr(columns);
  return windowsFrom(b, entry, view, view.sizes[2], rows);
}
