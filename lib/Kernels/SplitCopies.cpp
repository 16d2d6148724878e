//===- SplitCopies.cpp - What comes and goes in split_backward ------------===//
//
// Two roles of one lane each.
//
// The producer draws tiles from a counter that the grid shares, tells the other
// roles (a queue), and starts every load, in the order in which it is needed:
// what streams first, since own rows must wait for the results of the tile
// before to leave.
//
// The writer starts what leaves, which each warpgroup has put in place of its
// own rows, and hands those places back when they have been read.
//
//===----------------------------------------------------------------------===//

#include "SplitFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Producer {
public:
  explicit Producer(const SplitFrame &frame)
      : f(frame), b(frame.b), order(orderOf(frame)) {}

  void produce() {
    Tile first = order.at(b, b.programId(0));
    Place writer = Place::writer(b), message = Place::reader(b);
    pushTile(b, f.queue, message, first);
    message = message.next(b, kTileMessages);
    b.repeat(
        {first.row, first.head, first.batch, writer.parity, writer.slot,
         writer.parity, writer.slot, writer.parity, message.slot,
         message.parity},
        [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) { return produceTile(s); });
  }

private:
  static TileOrder orderOf(const SplitFrame &f) {
    if (f.side.ownsKeys)
      return TileOrder::ofKeys(f.b, f.arguments, f.problem, f.own,
                               f.request.sms, f.request.l2Bytes);
    return TileOrder(f.b, f.arguments, f.problem, f.own, f.request.sms,
                     f.request.l2Bytes);
  }

  void loadOwn(const Ring &ring, Place once, const SplitRows &rows,
               const Tile &tile, Value buffer) {
    ring.load(b, once, f.map(rows.role), tile.batch, tile.head, tile.row,
              buffer);
  }

  void loadBlock(const Ring &ring, Place place, const SplitRows &rows,
                 const Tile &tile, const Step &step, Value buffer) {
    ring.load(b, place, f.map(rows.role), tile.batch, step.head,
              step.block * f.streamed, buffer);
  }

  void loadStatistics(Place place, const Tile &tile, const Step &step) {
    LoadWordsOp::create(b, f.arguments.get(b, "scratch_statistics"),
                        f.numberOf(tile.batch, step.head, step.block),
                        f.bufferStatistics, place.slot,
                        f.ringStreamedX.fullBarrier(), place.slot);
  }

  SmallVector<Value> produceTile(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Tile tile{at(0), at(1), at(2)};
    Place once{b.i32(0), at(3)}, placeX{at(4), at(5)}, placeY{at(6), at(7)};
    Place message{at(8), at(9)};
    Walk walk = f.walkOf(tile);
    Step first = f.firstStep(walk);
    ValueRange last =
        b.loop(b.i32(0), walk.steps,
               {placeX.slot, placeX.parity, placeY.slot, placeY.parity,
                first.head, first.block},
               [&](Scalar number, ValueRange p) -> SmallVector<Value> {
                 auto at = [&](int i) { return b.wrap(p[i]); };
                 Place nowX{at(0), at(1)}, nowY{at(2), at(3)};
                 Step step{at(4), at(5)};
                 Scalar isFirst = number == b.i32(0);
                 loadBlock(f.ringStreamedX, nowX, f.streamedX, tile, step,
                           f.bufferStreamedX);
                 if (f.side.ownsKeys)
                   loadStatistics(nowX, tile, step);
                 b.when(isFirst,
                        [&] { loadOwn(f.ringX, once, f.x, tile, f.bufferX); });
                 loadBlock(f.ringStreamedY, nowY, f.streamedY, tile, step,
                           f.bufferStreamedY);
                 if (f.side.hasX)
                   b.when(isFirst, [&] {
                     loadOwn(f.ringY, once, f.y, tile, f.bufferY);
                   });
                 nowX = f.ringStreamedX.next(b, nowX);
                 nowY = f.ringStreamedY.next(b, nowY);
                 step = f.nextStep(walk, step);
                 return {nowX.slot,   nowX.parity, nowY.slot,
                         nowY.parity, step.head,   step.block};
               });

    Scalar drawn = b.wrap(DrawOp::create(
        b, b.getI32Type(), f.arguments.get(b, kCounterRole), order.count));
    // The first tiles went to the blocks by their numbers.
    Tile next = order.at(b, drawn + b.gridSize(0));
    pushTile(b, f.queue, message, next);
    message = message.next(b, kTileMessages);
    return {next.row, next.head, next.batch, once.parity ^ 1, last[0],
            last[1],  last[2],   last[3],    message.slot,    message.parity};
  }

  const SplitFrame &f;
  TileBuilder &b;
  TileOrder order;
};

class Writer {
public:
  explicit Writer(const SplitFrame &frame) : f(frame), b(frame.b) {}

  void write() {
    Place start = Place::reader(b);
    Tile first = f.pop(start);
    Place message = start.next(b, kTileMessages);
    b.repeat(
        {first.row, first.head, first.batch, message.slot, message.parity,
         start.parity},
        [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) { return writeTile(s); });
  }

private:
  void store(Value buffer, StringRef gradient, const Tile &tile,
             int64_t group) {
    Scalar row = b.i32(int32_t(group * kGroupRows));
    TmaStoreOp::create(b, buffer, row, f.map(gradient), tile.batch, tile.head,
                       tile.row + row, /*column=*/0, /*stage=*/b.i32(0));
  }

  SmallVector<Value> writeTile(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Tile tile{at(0), at(1), at(2)};
    Place message{at(3), at(4)}, own{b.i32(0), at(5)};
    for (int64_t group = 0; group < f.groups; ++group) {
      Place place{b.i32(int32_t(group)), own.parity};
      f.ringStaged.awaitFull(b, place);
      FenceAsyncOp::create(b);
      if (f.side.hasX)
        store(f.stagedX, f.x.gradient, tile, group);
      if (f.side.hasY)
        store(f.stagedY, f.y.gradient, tile, group);
      TmaStoreWaitOp::create(b, 0u);
      f.ringStaged.release(b, place);
      f.ringX.release(b, own);
      if (f.side.hasX && f.side.hasY)
        f.ringY.release(b, own);
    }
    Tile next = f.pop(message);
    message = message.next(b, kTileMessages);
    return {next.row,     next.head,      next.batch,
            message.slot, message.parity, own.parity ^ 1};
  }

  const SplitFrame &f;
  TileBuilder &b;
};

} // namespace

void attn::produceSplitTiles(const SplitFrame &frame) {
  Producer(frame).produce();
}

void attn::writeSplitGradients(const SplitFrame &frame) {
  Writer(frame).write();
}
