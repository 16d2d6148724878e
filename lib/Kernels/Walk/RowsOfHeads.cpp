//===- RowsOfHeads.cpp - Where a tile has rows of several heads -----------===//

#include "Walk/RowsOfHeads.h"

#include "attn/Schedule/SharedTiles.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace attn;

RowsOfHeads::RowsOfHeads(int64_t heads, int64_t tileRows)
    : heads(heads), rows(tileRows / heads),
      closeEnd(rowsOfClose(heads, tileRows)) {}

int64_t RowsOfHeads::boxRows(int64_t most) const {
  return mayBeClose() ? kCloseRows : std::gcd(rows, most);
}

Scalar RowsOfHeads::isClose(TileBuilder &b, const Tile &tile,
                            Scalar queries) const {
  Scalar all = tile.isOfSequence() ? tile.queries : queries;
  return all - tile.row <= b.i32(kCloseRows);
}

RowsOfHeads::Place RowsOfHeads::of(TileBuilder &b, const Tile &tile,
                                   Scalar queries, Scalar row) const {
  Place place = {row / rows, row % rows};
  if (!mayBeClose())
    return place;
  Scalar close = isClose(b, tile, queries), head = row / kCloseRows;
  Scalar isOfHead = head < b.i32(heads);
  return {b.select(close, b.select(isOfHead, head, b.i32(0)), place.head),
          b.select(close,
                   b.select(isOfHead, row % kCloseRows, b.i32(kCloseRows)),
                   place.query)};
}
