//===- Mask.cpp - Which keys a query sees ---------------------------------===//

#include "Walk/Mask.h"

#include <limits>

using namespace mlir;
using namespace attn;

void attn::declareProblem(Arguments &arguments, TileBuilder &b,
                          const Mask &mask) {
  Type i32 = b.getI32Type();
  for (StringRef size : {"queries", "keys", "heads", "batch", "group"})
    arguments.scalar(size, i32);
  if (mask.hidesBefore())
    arguments.scalar("band_first", i32);
  if (mask.hidesBehind())
    arguments.scalar("band_last", i32);
  if (mask.opensKeys())
    arguments.scalar("open_keys", i32);
  arguments.scalar("scale", b.getF32Type());
}

KeyBand::KeyBand(TileBuilder &b, const Arguments &arguments, const Mask &mask)
    : KeyBand(mask, mask.hidesBefore(), mask.hidesBehind(),
              arguments.get(b, "keys")) {
  if (hasFirst)
    first = arguments.get(b, "band_first");
  if (hasLast)
    last = arguments.get(b, "band_last");
  if (mask.opensKeys())
    openKeys = arguments.get(b, "open_keys");
}

KeyBand KeyBand::seeing(TileBuilder &b, const Arguments &arguments,
                        const Mask &mask) {
  KeyBand band(mask, mask.hidesBehind(), mask.hidesBefore(),
               arguments.get(b, "queries"));
  if (band.hasFirst)
    band.first = b.i32(0) - arguments.get(b, "band_last");
  if (band.hasLast)
    band.last = b.i32(0) - arguments.get(b, "band_first");
  if (mask.opensKeys())
    band.openRows = arguments.get(b, "open_keys");
  return band;
}

KeyBand KeyBand::until(Scalar end) const {
  KeyBand band(mask, hasFirst, hasLast, end);
  band.first = first;
  band.last = last;
  band.openKeys = openKeys;
  band.openRows = openRows;
  return band;
}

// A side that is farther away than all keys still bounds nothing.
KeyBand KeyBand::ofUsed(Scalar used) const {
  KeyBand band = until(used);
  if (mask.kind == MaskKind::causal)
    return band;
  Scalar by = used - keys;
  if (hasFirst)
    band.first = first + by;
  if (hasLast)
    band.last = last + by;
  return band;
}

KeyBand KeyBand::ofSequence(TileBuilder &b, Scalar queries, Scalar keys) const {
  KeyBand band = until(keys);
  Scalar diagonal = keys - queries;
  if (hasFirst)
    band.first = first + diagonal;
  if (hasLast)
    band.last = last + diagonal;
  if (Value(openKeys))
    band.openKeys = b.min(openKeys, keys);
  return band;
}

KeyBand KeyBand::withoutMask() const {
  return {Mask(), /*hasFirst=*/false, /*hasLast=*/false, keys};
}

/// Farther than any row (Limits.h), and near enough for sums in 31 bits.
static constexpr int64_t kBeforeAll = -(int64_t(1) << 30);

KeyBand KeyBand::where(TileBuilder &b, Scalar condition) const {
  KeyBand band = until(keys);
  if (hasFirst)
    band.first = b.select(condition, first, b.i32(kBeforeAll));
  if (hasLast)
    band.last = b.select(condition, last, keys);
  return band;
}

Scalar KeyBand::firstSeen(TileBuilder &b, Scalar row) const {
  Scalar key = row + first;
  return Value(openRows) ? b.select(row < openRows, b.i32(0), key) : key;
}

Scalar KeyBand::lastSeen(TileBuilder &b, Scalar row) const {
  Scalar key = row + last;
  return Value(openKeys) ? b.max(key, openKeys - 1) : key;
}

KeyBand::Keys KeyBand::seenBy(TileBuilder &b, Scalar firstRow,
                              Scalar lastRow) const {
  Scalar zero = b.i32(0);
  Keys seen{zero, keys, zero, keys};
  if (hasFirst) {
    seen.someFirst = b.max(zero, firstSeen(b, firstRow));
    seen.allFirst = b.max(zero, firstSeen(b, lastRow));
  }
  if (hasLast) {
    seen.someEnd = b.min(keys, lastSeen(b, lastRow) + 1);
    seen.allEnd = b.max(zero, b.min(keys, lastSeen(b, firstRow) + 1));
  }
  return seen;
}

Scalar KeyBand::isOpen(const Keys &seen, Scalar key, int64_t count,
                       Scalar areWhole) const {
  Scalar isBefore = key + count <= seen.allEnd;
  if (Value(areWhole))
    isBefore = areWhole & isBefore;
  return hasFirst ? isBefore & (seen.allFirst <= key) : isBefore;
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
      Scalar end = lastKey;
      if (hasLast && Value(openKeys))
        end = b.min(lastSeen(b, row + r) - key, lastKey);
      else if (hasLast)
        end = b.min(base + r, lastKey);
      if (Value(endOfRows))
        end = b.select(row + r < endOfRows, end, b.i32(-1));
      return end;
    });
  }
  if (hasFirst)
    seen.firsts = b.map(
        {}, rowType,
        [&, base = row + first - key](Scalar r, Scalar, ArrayRef<Scalar>) {
          if (!Value(openRows))
            return base + r;
          return b.select(row + r < openRows, b.i32(0), base + r);
        });
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

Value KeyBand::hideEnd(TileBuilder &b, Value scores, Scalar key) const {
  KeyBand end = withoutMask();
  int64_t columns = cast<tile::FragType>(scores.getType()).getColumns();
  return b.choose(
      keys < key + columns,
      [&]() -> SmallVector<Value> {
        return {end.hide(b, scores, /*row=*/key, key)};
      },
      [&]() -> SmallVector<Value> { return {scores}; })[0];
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
