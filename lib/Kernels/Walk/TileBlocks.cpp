//===- TileBlocks.cpp - Which key blocks a tile and its parts see ---------===//

#include "Walk/TileBlocks.h"

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

Share TileBlocks::ofGroup(TileBuilder &b, Scalar tileRow,
                          Scalar groupRow) const {
  Run tile = ofTile(b, tileRow);
  Scalar row = tileRow + groupRow;
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
  return {own, open, tile.end - own.end, own.begin - tile.begin};
}

Scalar TileBlocks::stepsBeforeNext(TileBuilder &b, Scalar row,
                                   Scalar steps) const {
  if (!band.hasFirst)
    return steps;
  Scalar lastRow = b.min(b.i32(query), queries - row) - 1;
  Scalar lastGroup = lastRow / kGroupRows * kGroupRows;
  return b.max(steps - ofGroup(b, row, lastGroup).below, b.i32(1));
}
