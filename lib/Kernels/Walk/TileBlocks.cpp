//===- TileBlocks.cpp - Which key blocks a tile and its parts see ---------===//

#include "Walk/TileBlocks.h"

using namespace mlir;
using namespace attn;

/// Blocks that some of the rows see; the first one, if they see nothing.
Run TileBlocks::of(TileBuilder &b, const KeyBand::Keys &seen) const {
  Scalar one = b.i32(1);
  Scalar all = b.max(b.ceilDiv(band.keys, key), one);
  Scalar end = all;
  if (band.hasLast)
    end = b.min(b.max(b.ceilDiv(b.max(seen.someEnd, b.i32(0)), key), one), all);
  if (!band.hasFirst)
    return {b.i32(0), end};
  Scalar isSeen = seen.someFirst < seen.someEnd;
  return {b.select(isSeen, seen.someFirst / key, b.i32(0)),
          b.select(isSeen, end, one)};
}

Run TileBlocks::ofTile(TileBuilder &b, Scalar row) const {
  Scalar last = b.min(row + query, queries) - 1;
  return of(b, band.seenBy(b, row, last));
}

Run TileBlocks::seenByTile(TileBuilder &b, Scalar row) const {
  Scalar last = b.min(row + query, queries) - 1;
  KeyBand::Keys seen = band.seenBy(b, row, last);
  Scalar isSeen =
      (b.i32(-1) < row) & (row <= last) & (seen.someFirst < seen.someEnd);
  Run all = of(b, seen);
  return {all.begin, b.select(isSeen, all.end, all.begin)};
}

GroupWalk TileBlocks::ofGroup(TileBuilder &b, const Tile &at,
                              Scalar groupRow) const {
  Run tile = ofTile(b, at.row);
  Scalar row = at.row + groupRow;
  Scalar last = b.min(row + kGroupRows, queries) - 1;
  KeyBand::Keys seen = band.seenBy(b, row, last);
  Run own = of(b, seen);
  // Rows behind the end: one block, the last that comes, so that what is to be
  // passed over is above it, as it mostly is.
  Scalar exists = row < queries;
  own.end = b.select(exists, b.min(own.end, tile.end), tile.begin + 1);
  own.begin = b.select(exists, b.max(own.begin, tile.begin), tile.begin);
  own.end = b.max(own.end, tile.begin + 1);
  own.begin = b.min(own.begin, own.end - 1);
  Run open;
  open.end = b.min(b.max(seen.allEnd / key, own.begin), own.end);
  open.begin =
      band.hasFirst
          ? b.min(b.max(b.ceilDiv(seen.allFirst, key), own.begin), open.end)
          : own.begin;
  return {band, key, tile, own, open};
}

Scalar TileBlocks::stepsBeforeNext(TileBuilder &b, const Tile &tile,
                                   Scalar steps) const {
  if (!passesOverLast())
    return steps;
  Scalar lastRow = b.min(b.i32(query), queries - tile.row) - 1;
  Scalar lastGroup = lastRow / kGroupRows * kGroupRows;
  return b.max(steps - ofGroup(b, tile, lastGroup).below, b.i32(1));
}

//===----------------------------------------------------------------------===//
// Warpgroups
//===----------------------------------------------------------------------===//

/// Whether blocks besides a warpgroup's first can be cut at the end of the keys
/// it sees.  With the diagonal at multiples of its rows they cannot.
static bool cutsMoreThanOne(const Mask &mask, int64_t key) {
  return mask.hidesBehind() && !(mask.endsAtCorners() && key % kGroupRows == 0);
}

void GroupWalk::forEachStretch(TileBuilder &b,
                               function_ref<void(const Stretch &)> walk) const {
  // The block after the first, and where stretches end, going down.
  Scalar from = own.end - 1;
  auto down = [&](Scalar to, bool isCut) {
    walk({KeyWalk({to, from}), isCut});
    from = to;
  };
  if (cutsMoreThanOne(band.mask, key))
    down(b.min(open.end, from), /*isCut=*/true);
  down(b.min(open.begin, from), /*isCut=*/false);
  if (band.hasFirst)
    down(own.begin, /*isCut=*/true);
}

Value GroupWalk::hide(TileBuilder &b, Value scores, Scalar row,
                      Scalar block) const {
  return band.hide(b, scores, row, block * key);
}

Value GroupWalk::hideFirst(TileBuilder &b, Value scores, const Tile &tile,
                           Scalar row) const {
  Scalar firstKey = (own.end - 1) * key;
  auto hide = [&] { return band.hide(b, scores, tile.row + row, firstKey); };
  if (!band.mask.isOpen())
    return hide();
  // Only the keys' end can cut it, and often does not.
  return b.choose(
      band.keys < firstKey + key, [&] { return SmallVector<Value>{hide()}; },
      [&] { return SmallVector<Value>{scores}; })[0];
}
