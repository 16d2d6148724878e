//===- TileBlocks.cpp - Which key blocks a tile and its parts see ---------===//

#include "Walk/TileBlocks.h"

using namespace mlir;
using namespace attn;

/// Blocks that some of the rows see; the first one, if they see nothing.
Run TileBlocks::of(TileBuilder &b, const KeyBand &band,
                   const KeyBand::Keys &seen) const {
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

Run TileBlocks::ofTile(TileBuilder &b, const Tile &tile) const {
  Scalar last = b.min(tile.row + query, queries) - 1;
  KeyBand band = bandOf(tile);
  return of(b, band, band.seenBy(b, tile.row, last));
}

Run TileBlocks::seenByTile(TileBuilder &b, Scalar row) const {
  Scalar last = b.min(row + query, queries) - 1;
  KeyBand::Keys seen = band.seenBy(b, row, last);
  Scalar isSeen =
      (b.i32(-1) < row) & (row <= last) & (seen.someFirst < seen.someEnd);
  Run all = of(b, band, seen);
  return {all.begin, b.select(isSeen, all.end, all.begin)};
}

TileBlocks TileBlocks::ofSequence(TileBuilder &b, const Tile &tile) const {
  Scalar rows = ownsKeys ? tile.keys : tile.queries;
  Scalar streamed = ownsKeys ? tile.queries : tile.keys;
  TileBlocks one(band.ofSequence(b, rows, streamed), rows, query, key,
                 /*lists=*/nullptr, parts, locator, heads);
  one.isSequence = true;
  return one;
}

KeyWalk TileBlocks::walkOf(TileBuilder &b, const Tile &tile,
                           bool goesUp) const {
  if (isOfOther(tile))
    return ofSequence(b, tile).walkOf(b, tile, goesUp);
  if (parts.areSeveral())
    return KeyWalk(ofPart(b, tile).first, goesUp);
  if (!lists)
    return KeyWalk(ofTile(b, tile), goesUp);
  ListWalk walk(b, {lists->partialOf(tile), lists->fullOf(tile)});
  return KeyWalk(walk, b.max(walk.steps(), b.i32(1)));
}

GroupWalk TileBlocks::ofGroup(TileBuilder &b, const Tile &at,
                              Scalar groupRow) const {
  if (isOfOther(at))
    return ofSequence(b, at).ofGroup(b, at, groupRow);
  if (lists)
    return {b,
            band,
            key,
            {lists->partialOf(at), lists->fullOf(at), lists->keysOfFull()}};
  if (parts.areSeveral())
    return ofGroupInPart(b, at, groupRow);
  Run tile = ofTile(b, at);
  KeyBand band = bandOf(at);
  if (heads)
    return ofShared(b, at, band, tile, groupRow);
  Scalar row = at.row + groupRow;
  Scalar last = b.min(row + kGroupRows, queries) - 1;
  KeyBand::Keys seen = band.seenBy(b, row, last);
  Run own = of(b, band, seen);
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

std::pair<Run, Scalar> TileBlocks::ofPart(TileBuilder &b,
                                          const Tile &tile) const {
  Run all = ofTile(b, tile);
  Run steps = parts.of(b, all.count(), tile.part);
  Scalar hasSome = steps.begin < steps.end;
  return {{b.select(hasSome, all.begin + steps.begin, b.i32(0)),
           b.select(hasSome, all.begin + steps.end, b.i32(1))},
          hasSome};
}

KeyBand TileBlocks::bandOfPart(TileBuilder &b, const Tile &tile) const {
  KeyBand band = bandOf(tile);
  if (!parts.areSeveral())
    return band;
  Scalar hasSome = ofPart(b, tile).second;
  return band.until(b.select(hasSome, band.keys, b.i32(0)));
}

/// Of blocks, those that every query sees.
static Run openOf(TileBuilder &b, const KeyBand &band,
                  const KeyBand::Keys &seen, const Run &all, int64_t key) {
  Run open;
  open.end = b.min(b.max(seen.allEnd / key, all.begin), all.end);
  open.begin =
      band.hasFirst
          ? b.min(b.max(b.ceilDiv(seen.allFirst, key), all.begin), open.end)
          : all.begin;
  return open;
}

GroupWalk TileBlocks::ofGroupInPart(TileBuilder &b, const Tile &at,
                                    Scalar groupRow) const {
  auto [part, hasSome] = ofPart(b, at);
  Scalar row = heads ? at.row : at.row + groupRow;
  int64_t rows = heads ? query : kGroupRows;
  Scalar last = b.min(row + rows, queries) - 1;
  KeyBand band = bandOf(at);
  KeyBand seeing = band.until(b.select(hasSome, band.keys, b.i32(0)));
  KeyBand::Keys seen = seeing.seenBy(b, row, last);
  Run own = ofBusy(b, at, part, groupRow);
  return {b,
          seeing,
          key,
          part,
          own,
          openOf(b, seeing, seen, own, key),
          heads != nullptr || query > kGroupRows};
}

Run TileBlocks::ofBusy(TileBuilder &b, const Tile &at, const Run &all,
                       Scalar groupRow) const {
  if (!heads || !heads->mayBeClose())
    return all;
  Scalar rests =
      heads->isClose(b, at, queries) & (b.i32(heads->closeEnd) <= groupRow);
  return {all.begin, b.select(rests, all.begin + 1, all.end)};
}

GroupWalk TileBlocks::ofShared(TileBuilder &b, const Tile &at,
                               const KeyBand &band, const Run &all,
                               Scalar groupRow) const {
  Scalar last = b.min(at.row + query, queries) - 1;
  KeyBand::Keys seen = band.seenBy(b, at.row, last);
  Run own = ofBusy(b, at, all, groupRow);
  return {b, band, key, all, own, openOf(b, band, seen, own, key), true};
}

Scalar TileBlocks::stepsBeforeNext(TileBuilder &b, const Tile &tile,
                                   Scalar steps) const {
  if (!passesOverLast())
    return steps;
  if (isOfOther(tile))
    return ofSequence(b, tile).stepsBeforeNext(b, tile, steps);
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
  if (lists)
    return forEachOfLists(b, walk);
  // The block after the first, and where stretches end, going down.
  Scalar from = own.end - 1;
  auto down = [&](Scalar to, bool isCut) {
    walk({KeyWalk({to, from}), isCut});
    from = to;
  };
  if (isShared ? band.mask.hidesBehind() : cutsMoreThanOne(band.mask, key))
    down(b.min(open.end, from), /*isCut=*/true);
  down(b.min(open.begin, from), /*isCut=*/false);
  if (band.hasFirst)
    down(own.begin, /*isCut=*/true);
}

StretchStep GroupWalk::at(const Stretch &stretch, Scalar step) const {
  StretchStep at{stretch, step};
  if (!lists || stretch.isCut)
    at.block = stretch.walk.block(step);
  return at;
}

Scalar GroupWalk::isLast(TileBuilder &b, const StretchStep &step) const {
  if (!lists)
    return step.block == own.begin;
  Scalar endsStretch = step.number + 1 == step.stretch.walk.steps();
  if (!step.stretch.isCut)
    return endsStretch;
  return endsStretch & (lists->full.steps == b.i32(0));
}

Scalar GroupWalk::isSingle(TileBuilder &b) const {
  if (!lists)
    return own.end - 1 == own.begin;
  return lists->partial.steps + lists->full.steps <= b.i32(1);
}

Scalar GroupWalk::keyOf(const StretchStep &step) const {
  Scalar block =
      Value(step.block) ? step.block : step.stretch.walk.block(step.number);
  return block * key;
}

Scalar GroupWalk::firstKey(TileBuilder &b) const {
  if (!lists)
    return (own.end - 1) * key;
  return ListWalk(b, {lists->partial, lists->full}).firstIfAny() * key;
}

Value GroupWalk::hide(TileBuilder &b, Value scores, Scalar row,
                      const StretchStep &step) const {
  bool isMasked = step.stretch.isCut && !(lists && band.mask.isOpen());
  if (isMasked)
    return band.hide(b, scores, row, step.block * key);
  if (!lists)
    return scores;
  bool mayEndBehind = step.stretch.isCut || lists->keysOfFull != 0;
  if (!mayEndBehind)
    return scores;
  // Which block it is matters only where the last one is not whole.
  int64_t size = lists->keysOfFull ? lists->keysOfFull : key;
  Scalar isRagged = b.i32(0) < band.keys % size;
  return b.choose(
      isRagged,
      [&]() -> SmallVector<Value> {
        return {band.hideEnd(b, scores, keyOf(step))};
      },
      [&]() -> SmallVector<Value> { return {scores}; })[0];
}

Value GroupWalk::hideFirst(TileBuilder &b, Value scores, const Tile &tile,
                           Scalar row) const {
  if (lists)
    return hideFirstOfLists(b, scores, tile.row + row);
  Scalar firstKey = (own.end - 1) * key;
  if (!band.mask.isOpen())
    return band.hide(b, scores, tile.row + row, firstKey);
  // Only the keys' end can cut it, and often does not.
  return band.hideEnd(b, scores, firstKey);
}

//===----------------------------------------------------------------------===//
// Warpgroups that walk lists
//===----------------------------------------------------------------------===//

// The first step is of the partial blocks, if there are any.
void GroupWalk::forEachOfLists(TileBuilder &b,
                               function_ref<void(const Stretch &)> walk) const {
  auto go = [&](const BlockList &list, bool isCut) {
    walk({KeyWalk(ListWalk(b, list), list.steps), isCut});
  };
  Scalar zero = b.i32(0), one = b.i32(1);
  go(lists->partial.from(b, one), /*isCut=*/true);
  Scalar taken = b.select(lists->partial.steps == zero, one, zero);
  go(lists->full.from(b, taken), /*isCut=*/false);
}

// For a tile that sees nothing keys end before the first one.
Value GroupWalk::hideFirstOfLists(TileBuilder &b, Value scores,
                                  Scalar row) const {
  ListWalk walk(b, {lists->partial, lists->full});
  Scalar zero = b.i32(0), firstKey = walk.firstIfAny() * key;
  KeyBand seen = band.until(b.select(walk.steps() == zero, zero, band.keys));
  auto hideEnd = [&]() -> SmallVector<Value> {
    return {seen.hideEnd(b, scores, firstKey)};
  };
  if (band.mask.isOpen())
    return hideEnd()[0];
  return b.choose(
      zero < lists->partial.steps,
      [&]() -> SmallVector<Value> {
        return {band.hide(b, scores, row, firstKey)};
      },
      hideEnd)[0];
}
