//===- KeyBlocks.cpp - Which key blocks a query tile visits ---------------===//

#include "Walk/KeyBlocks.h"

using namespace mlir;
using namespace attn;

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

KeyBlocks::KeyBlocks(TileBuilder &b, const KeyBand &mask,
                     const TileLists &listed, const Tile &tile, int64_t size)
    : size(size), band(mask),
      lists(ListWalk(b, {listed.fullOf(tile), listed.partialOf(tile)})),
      mayEndInFull(listed.keysOfFull() != 0) {
  steps = lists->steps();
  openSteps = lists->lists.front().steps;
}

Scalar KeyBlocks::block(TileBuilder &b, Scalar step) const {
  if (lists)
    return lists->block(step);
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

Value KeyBlocks::hideOpen(TileBuilder &b, Value scores, Scalar block) const {
  return mayEndInFull ? band.hideEnd(b, scores, block * size) : scores;
}
