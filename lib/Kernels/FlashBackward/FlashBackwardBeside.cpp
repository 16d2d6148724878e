//===- FlashBackwardBeside.cpp - What is done beside flash_backward -------===//
//
// The list of parts, to prepare and to finish, from which warps of the main
// launch draw (FlashBackwardFrame.h).
//
//===----------------------------------------------------------------------===//

#include "FlashBackward/FlashBackwardFrame.h"

#include "attn/Schedule/Registry.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void FlashBackwardFrame::declareBeside() {
  if (preparesBeside)
    declareOrigins(*this);
  arguments.operand("dq", element);
  arguments.perLaunch(kFlagsRole, b.getI32Type(), kHeadFlags);
  arguments.pointer(kStripCounterRole, b.getI32Type());
}

//===----------------------------------------------------------------------===//
// Counts of key heads
//===----------------------------------------------------------------------===//

Scalar FlashBackwardFrame::keyHeadOf(const Tile &tile) const {
  return tile.batch * (arguments.get(b, "heads") / sharers) + tile.head;
}

FlashBackwardFrame::Flag FlashBackwardFrame::flagOf(Scalar keyHead) const {
  Scalar all = arguments.get(b, "heads") / sharers * arguments.get(b, "batch");
  Scalar together = b.ceilDiv(all, kHeadFlags), index = keyHead / together;
  return {index, b.min(together, all - index * together)};
}

void FlashBackwardFrame::count(Scalar keyHead) const {
  Flag flag = flagOf(keyHead);
  Scalar parts = partsOfKeyHead();
  CountOp::create(b, arguments.get(b, kFlagsRole), flag.index,
                  (tilesOfKeyHead() + parts + prepared(parts)) * flag.keyHeads);
}

AwaitOp FlashBackwardFrame::await(Scalar keyHead, Scalar least) const {
  Flag flag = flagOf(keyHead);
  return AwaitOp::create(b, b.getI32Type(), arguments.get(b, kFlagsRole),
                         flag.index, least * flag.keyHeads);
}

void FlashBackwardFrame::awaitPrepared(const Tile &tile) const {
  await(keyHeadOf(tile), partsOfKeyHead())
      ->setAttr("mostly_set", b.getUnitAttr());
}

void FlashBackwardFrame::countTile(Scalar keyHead) const {
  // Without queries there is nothing to finish, and no count.
  b.when(b.i32(0) < streamedRows, [&] { count(keyHead); });
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

FlashBackwardFrame::Part FlashBackwardFrame::partOf(Scalar number) const {
  Scalar heads = arguments.get(b, "heads"), ofHead = partsOfHead();
  Scalar flat = number / ofHead, batch = flat / heads;
  return {batch, flat - batch * heads, number - flat * ofHead, flat / sharers};
}

void FlashBackwardFrame::preparePart(Scalar number) const {
  Part part = partOf(number);
  StripRows at(*this, part.batch, part.head, part.number);
  leaveStatistics(*this, at);
  beginSums(*this, at);
  count(part.keyHead);
}

Scalar FlashBackwardFrame::finishPart(Scalar number, Scalar seen,
                                      int64_t columns) const {
  Part part = partOf(number);
  b.when(seen < part.keyHead, [&] {
    await(part.keyHead, tilesOfKeyHead() + prepared(partsOfKeyHead()));
  });
  storeSums(StripRows(*this, part.batch, part.head, part.number), columns);
  count(part.keyHead);
  return part.keyHead;
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

Scalar FlashBackwardFrame::drawPart() const {
  // Every warp that draws finds the end once.
  Scalar parts = allParts();
  Scalar draws = parts + prepared(parts) + b.gridSize(0) * drawers();
  return b.wrap(DrawOp::create(b, arguments.get(b, kStripCounterRole), draws));
}

Scalar FlashBackwardFrame::prepareFirst() const {
  Scalar heads = order().headsOfFirst(b, b.gridSize(0));
  Scalar first = heads * partsOfKeyHead(), all = allParts();
  // What they have drawn by then is as much.
  Scalar last = first - b.gridSize(0) * (kWarpsPerGroup * groups);
  ValueRange drawn = b.repeat(
      {drawPart()},
      [&](ValueRange s) {
        return (b.i32(kNothing) < b.wrap(s[0])) & (b.wrap(s[0]) < all);
      },
      [&](ValueRange s) -> SmallVector<Value> {
        Scalar number = b.wrap(s[0]);
        preparePart(number);
        auto next = b.choose(
            number < last, [&]() -> SmallVector<Value> { return {drawPart()}; },
            [&]() -> SmallVector<Value> { return {b.i32(kNothing)}; });
        return {next[0]};
      });
  return b.wrap(drawn[0]);
}

void FlashBackwardFrame::workBeside(Scalar drawn, int64_t columns) const {
  Scalar parts = allParts(), toPrepare = prepared(parts);
  // Who draws ahead holds back what others have time for, in the end the most.
  b.repeat(
      {drawn, b.i32(kNoHead)},
      [&](ValueRange s) { return b.wrap(s[0]) < toPrepare + parts; },
      [&](ValueRange s) -> SmallVector<Value> {
        Scalar number = b.wrap(s[0]), seen = b.wrap(s[1]);
        if (!preparesBeside) {
          seen = finishPart(number, seen, columns);
          return {drawPart(), seen};
        }
        auto now = b.choose(
            number < toPrepare,
            [&]() -> SmallVector<Value> {
              preparePart(number);
              return {seen};
            },
            [&]() -> SmallVector<Value> {
              return {finishPart(number - toPrepare, seen, columns)};
            });
        return {drawPart(), now[0]};
      });
}
