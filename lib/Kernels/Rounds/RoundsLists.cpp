//===- RoundsLists.cpp - Plain products of what lists name ----------------===//
//
// Entries of lists in the place of blocks of keys (RoundsFrame.h).
//
//===----------------------------------------------------------------------===//

#include "Rounds/RoundsFrame.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

/// Backward, where blocks are listed: a strip has all keys, and any row of
/// tiles may see something.
void RoundsFrame::enterLists() {
  firstTile = b.i32(0);
  rowTiles = b.ceilDiv(ownsKeys ? keys : queries, kRows);
  keyBlocks = b.ceilDiv(b.max(keys, b.i32(1)), keyBlock);
  partCount = is(RoundsLaunch::scores) ? partsOfEntries() : b.i32(parts);
}

// As many as leave several tiles to every multiprocessor, and no more than make
// one of eight blocks of keys, where so many are listed.
Scalar RoundsFrame::partsOfEntries() const {
  constexpr int64_t mostOfPart = 8, tilesOfSm = 8;
  Scalar rows = b.max(rowTiles * heads, b.i32(1));
  Scalar wanted = (rows + (tilesOfSm * request.sms - 1)) / rows;
  return b.min(b.max(wanted, b.ceilDiv(keyBlocks, mostOfPart)), keyBlocks);
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

KeyWalk RoundsFrame::blocksSeen(const Tile &tile) const {
  if (lists)
    return KeyWalk({b.i32(0), entriesOf(listed(tile))}, /*goesUp=*/true);
  return KeyWalk(seenBy(tile, queries, firstKey, endOfKeys, keyBlock),
                 /*goesUp=*/true);
}

Tile RoundsFrame::listed(const Tile &tile) const {
  bool isKnown = !lists || Value(tile.partialSteps);
  return isKnown ? tile : lists->counted(tile);
}

Scalar RoundsFrame::blockAt(const Tile &listed, Scalar entry) const {
  if (!lists)
    return entry;
  return ListWalk(b, {lists->partialOf(listed), lists->fullOf(listed)})
      .block(entry);
}

KeyBand RoundsFrame::bandAt(const Tile &listed, Scalar entry) const {
  return lists ? band->where(b, entry < listed.partialSteps) : *band;
}

//===----------------------------------------------------------------------===//
// Lists, backward
//===----------------------------------------------------------------------===//

Tile RoundsFrame::listedOfAll(const Tile &tile) const {
  return ownsKeys ? lists->countedOfAll(tile, sharers) : listed(tile);
}

Scalar RoundsFrame::existingSteps(Scalar firstStep) const {
  Scalar all = b.ceilDiv(ownsKeys ? queries : keys, step);
  return b.max(b.min(all - firstStep, b.i32(stepsOfEntry())), b.i32(0));
}

// Nobody needs to look at the blocks, unless some steps are behind the end.
Scalar RoundsFrame::stepsOfLists(const Tile &tile) const {
  Tile all = listedOfAll(tile);
  BlockSize size = problem.pattern->size();
  Scalar rows = ownsKeys ? queries : keys;
  int64_t block = ownsKeys ? size.queries : size.keys;
  Scalar isWhole =
      b.ceilDiv(rows, step) * step == b.ceilDiv(rows, block) * block;
  return b.wrap(b.choose(
      isWhole,
      [&]() -> SmallVector<Value> { return {entriesOf(all) * stepsOfEntry()}; },
      [&]() -> SmallVector<Value> {
        Scalar zero = b.i32(0);
        Scalar members = ownsKeys ? sharers : b.i32(1);
        return {
            b.loop(zero, members, {zero}, [&](Scalar member, ValueRange sum) {
              Tile own = tile;
              if (ownsKeys)
                own.head = tile.head * sharers + member;
              own = lists->counted({own.row, own.head, own.batch});
              ListWalk walk = walkOfLists(own);
              return llvm::to_vector(b.loop(
                  zero, walk.steps(), sum,
                  [&](Scalar entry, ValueRange sum) -> SmallVector<Value> {
                    return {b.wrap(sum[0]) +
                            existingSteps(firstStepOf(walk, entry))};
                  }));
            })[0]};
      })[0]);
}

Place RoundsFrame::forEachStep(
    const Tile &tile, Place start,
    function_ref<Place(const GradientStep &, Place)> body) const {
  Scalar zero = b.i32(0), members = ownsKeys ? sharers : b.i32(1);
  return start.loop(b, zero, members, [&](Scalar member, Place place) {
    Scalar head = ownsKeys ? tile.head * sharers + member : tile.head;
    Tile own = lists->counted({tile.row, head, tile.batch});
    ListWalk walk = walkOfLists(own);
    return place.loop(b, zero, walk.steps(), [&](Scalar entry, Place place) {
      Scalar first = firstStepOf(walk, entry);
      return place.loop(b, zero, existingSteps(first),
                        [&](Scalar number, Place place) {
                          return body({head, first + number}, place);
                        });
    });
  });
}
