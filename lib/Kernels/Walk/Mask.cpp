//===- Mask.cpp - Which key blocks a query tile visits --------------------===//

#include "Walk/Mask.h"

#include <limits>

using namespace mlir;
using namespace attn;

static bool boundsFirst(MaskKind kind) { return kind == MaskKind::window; }
static bool boundsLast(MaskKind kind) { return kind != MaskKind::none; }

void attn::declareProblem(Arguments &arguments, TileBuilder &b, MaskKind kind) {
  Type i32 = b.getI32Type();
  for (StringRef size : {"queries", "keys", "heads", "batch", "group"})
    arguments.scalar(size, i32);
  if (boundsFirst(kind))
    arguments.scalar("band_first", i32);
  if (boundsLast(kind))
    arguments.scalar("band_last", i32);
  arguments.scalar("scale", b.getF32Type());
}

KeyBand::KeyBand(TileBuilder &b, const Arguments &arguments, MaskKind kind)
    : hasFirst(boundsFirst(kind)), hasLast(boundsLast(kind)),
      keys(arguments.get(b, "keys")) {
  if (hasFirst)
    first = arguments.get(b, "band_first");
  if (hasLast)
    last = arguments.get(b, "band_last");
}

KeyBand KeyBand::seeing(TileBuilder &b, const Arguments &arguments,
                        MaskKind kind) {
  KeyBand band(boundsLast(kind), boundsFirst(kind),
               arguments.get(b, "queries"));
  if (band.hasFirst)
    band.first = b.i32(0) - arguments.get(b, "band_last");
  if (band.hasLast)
    band.last = b.i32(0) - arguments.get(b, "band_first");
  return band;
}

KeyBand::Keys KeyBand::seenBy(TileBuilder &b, Scalar firstRow,
                              Scalar lastRow) const {
  Scalar zero = b.i32(0);
  Keys seen{zero, keys, zero, keys};
  if (hasFirst) {
    seen.someFirst = b.max(zero, firstRow + first);
    seen.allFirst = b.max(zero, lastRow + first);
  }
  if (hasLast) {
    seen.someEnd = b.min(keys, lastRow + last + 1);
    seen.allEnd = b.max(zero, b.min(keys, firstRow + last + 1));
  }
  return seen;
}

KeyBlocks::KeyBlocks(TileBuilder &b, const KeyBand &mask, Scalar firstRow,
                     Scalar lastRow, int64_t size)
    : size(size), band(mask) {
  Scalar zero = b.i32(0);
  KeyBand::Keys seen = band.seenBy(b, firstRow, lastRow);
  begin = seen.someFirst / size;
  // An empty run must not turn negative.
  Scalar end = b.select(seen.someFirst < seen.someEnd,
                        b.ceilDiv(b.max(seen.someEnd, zero), size), begin);
  openBegin = b.min(b.ceilDiv(seen.allFirst, size), end);
  openEnd = b.min(b.max(seen.allEnd / size, openBegin), end);
  steps = end - begin;
  openSteps = openEnd - openBegin;
}

Scalar KeyBlocks::block(TileBuilder &b, Scalar step) const {
  if (!band.hasFirst)
    return step;
  Scalar left = openBegin - begin;
  Scalar cut = step - openSteps;
  Scalar atEdge = b.select(cut < left, begin + cut, openEnd + (cut - left));
  return b.select(step < openSteps, openBegin + step, atEdge);
}

Scalar KeyBlocks::isOpen(TileBuilder &b, Scalar block) const {
  return (openBegin <= block) & (block < openEnd);
}

Value KeyBlocks::hide(TileBuilder &b, Value scores, Scalar row, Scalar block,
                      Scalar inBlock) const {
  Scalar key = block * size;
  return band.hide(b, scores, row, Value(inBlock) ? key + inBlock : key);
}

KeyBand::Columns KeyBand::columnsOf(TileBuilder &b, int64_t rows, Scalar row,
                                    Scalar key, Scalar endOfRows) const {
  Type rowType = b.indexRowType(rows);
  Scalar lastKey = keys - key - 1;
  Columns seen;
  seen.lasts = b.fill(lastKey, rowType);
  if (hasLast || Value(endOfRows)) {
    Scalar base = hasLast ? row + last - key : Scalar();
    seen.lasts = b.map({}, rowType, [&](Scalar r, Scalar, ArrayRef<Scalar>) {
      Scalar end = hasLast ? b.min(base + r, lastKey) : lastKey;
      if (Value(endOfRows))
        end = b.select(row + r < endOfRows, end, b.i32(-1));
      return end;
    });
  }
  if (hasFirst)
    seen.firsts =
        b.map({}, rowType,
              [&, base = row + first - key](
                  Scalar r, Scalar, ArrayRef<Scalar>) { return base + r; });
  return seen;
}

Value KeyBand::hideCut(TileBuilder &b, Value scores, Scalar row,
                       Scalar key) const {
  auto type = cast<tile::FragType>(scores.getType());
  Keys seen = seenBy(b, row, row + (type.getRows() - 1));
  Scalar isCut = seen.allEnd < key + type.getColumns();
  if (hasFirst)
    isCut = b.wrap(arith::OrIOp::create(b, isCut, key < seen.allFirst));
  return b.choose(
      isCut,
      [&]() -> SmallVector<Value> { return {hide(b, scores, row, key)}; },
      [&]() -> SmallVector<Value> { return {scores}; })[0];
}

Value KeyBand::hide(TileBuilder &b, Value scores, Scalar row, Scalar key,
                    Scalar endOfRows) const {
  auto type = cast<tile::FragType>(scores.getType());
  Columns seen = columnsOf(b, type.getRows(), row, key, endOfRows);
  // Masks of bits for more rows would spill.
  if (type.getRows() == 16)
    return tile::KeepColumnsOp::create(b, type, scores, seen.firsts,
                                       seen.lasts);
  return keep(b, scores, seen, -std::numeric_limits<double>::infinity());
}

Value KeyBand::clear(TileBuilder &b, Value gradient, Scalar row, Scalar key,
                     Scalar endOfRows) const {
  auto type = cast<tile::FragType>(gradient.getType());
  return keep(b, gradient, columnsOf(b, type.getRows(), row, key, endOfRows),
              0);
}

Value KeyBand::keep(TileBuilder &b, Value fragment, const Columns &seen,
                    double hidden) const {
  SmallVector<Value> inputs = {fragment, seen.lasts};
  if (hasFirst)
    inputs.push_back(seen.firsts);
  return b.map(inputs, fragment.getType(),
               [&](Scalar, Scalar column, ArrayRef<Scalar> x) -> Value {
                 Scalar visible = column <= x[1];
                 if (hasFirst)
                   visible = visible & (x[2] <= column);
                 return b.select(visible, x[0], b.f32(hidden));
               });
}
