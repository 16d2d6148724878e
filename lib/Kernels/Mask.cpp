//===- Mask.cpp - Which key blocks a query tile visits --------------------===//

#include "Mask.h"

#include <limits>

using namespace mlir;
using namespace attn;

static bool boundsFirst(MaskKind kind) { return kind == MaskKind::window; }
static bool boundsLast(MaskKind kind) { return kind != MaskKind::none; }

void attn::declareBand(Arguments &arguments, MLIRContext *context,
                       MaskKind kind) {
  Type i32 = IntegerType::get(context, 32);
  if (boundsFirst(kind))
    arguments.scalar("band_first", i32);
  if (boundsLast(kind))
    arguments.scalar("band_last", i32);
}

KeyBlocks::KeyBlocks(TileBuilder &b, const Arguments &arguments, MaskKind kind,
                     Scalar firstRow, Scalar lastRow, int64_t size)
    : size(size), hasFirst(boundsFirst(kind)), hasLast(boundsLast(kind)),
      keys(arguments.get(b, "keys")) {
  Scalar zero = b.i32(0);
  // Keys seen by some row, and keys seen by every row.
  Scalar someFirst = zero, someEnd = keys, allFirst = zero, allEnd = keys;
  if (hasFirst) {
    bandFirst = arguments.get(b, "band_first");
    someFirst = b.max(zero, firstRow + bandFirst);
    allFirst = b.max(zero, lastRow + bandFirst);
  }
  if (hasLast) {
    bandLast = arguments.get(b, "band_last");
    someEnd = b.min(keys, lastRow + bandLast + 1);
    allEnd = b.max(zero, b.min(keys, firstRow + bandLast + 1));
  }
  begin = someFirst / size;
  // An empty run must not turn negative.
  Scalar end = b.select(someFirst < someEnd,
                        b.ceilDiv(b.max(someEnd, zero), size), begin);
  openBegin = b.min(b.ceilDiv(allFirst, size), end);
  openEnd = b.min(b.max(allEnd / size, openBegin), end);
  steps = end - begin;
  openSteps = openEnd - openBegin;
}

Scalar KeyBlocks::block(TileBuilder &b, Scalar step) const {
  if (!hasFirst)
    return step;
  Scalar left = openBegin - begin;
  Scalar cut = step - openSteps;
  Scalar atEdge = b.select(cut < left, begin + cut, openEnd + (cut - left));
  return b.select(step < openSteps, openBegin + step, atEdge);
}

Value KeyBlocks::hide(TileBuilder &b, Value scores, Scalar row,
                      Scalar block) const {
  auto type = cast<tile::FragType>(scores.getType());
  Type rowType = b.indexRowType(type.getRows());
  Scalar key = block * size;
  // Columns first[row] .. last[row] of the fragment are visible.
  Scalar lastKey = keys - key - 1;
  Value last = hasLast ? b.map({}, rowType,
                               [&, base = row + bandLast - key](
                                   Scalar r, Scalar, ArrayRef<Scalar>) {
                                 return b.min(base + r, lastKey);
                               })
                       : b.fill(lastKey, rowType);
  SmallVector<Value> inputs = {scores, last};
  if (hasFirst)
    inputs.push_back(
        b.map({}, rowType,
              [&, base = row + bandFirst - key](
                  Scalar r, Scalar, ArrayRef<Scalar>) { return base + r; }));
  return b.map(inputs, type,
               [&](Scalar, Scalar column, ArrayRef<Scalar> x) -> Value {
                 Scalar visible = column <= x[1];
                 if (hasFirst)
                   visible = visible & (x[2] <= column);
                 double hidden = -std::numeric_limits<double>::infinity();
                 return b.select(visible, x[0], b.f32(hidden));
               });
}
