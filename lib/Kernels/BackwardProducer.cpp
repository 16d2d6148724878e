//===- BackwardProducer.cpp - The role that feeds flash_backward ----------===//
//
// One lane.  Draws tiles from a counter that the grid shares, tells the other
// roles (a queue), and starts every load: Q dO K V | Q dO | Q dO ..  (dO with
// its statistics).  K and V have one buffer each, which the tile before has to
// its end; the first block comes meanwhile.
//
// It draws the next tile when it has started all loads of one: who is done
// first is to have the next.
//
//===----------------------------------------------------------------------===//

#include "BackwardFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Producer {
public:
  explicit Producer(const BackwardFrame &frame)
      : f(frame), b(frame.b),
        order(TileOrder::ofKeys(b, f.arguments, f.problem, f.key, f.request.sms,
                                f.request.l2Bytes)) {}

  void produce() {
    Tile first = order.at(b, b.programId(0));
    Place writer = Place::writer(b), message = Place::reader(b);
    pushTile(b, f.queue, message, first);
    message = message.next(b, kTileMessages);
    b.repeat(
        {first.row, first.head, first.batch, writer.parity, writer.slot,
         writer.parity, message.slot, message.parity},
        [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) { return produceTile(s); });
  }

private:
  void loadKeys(Place once, const Tile &tile) {
    f.ringK.load(b, once, f.map("k"), tile.batch, tile.head, tile.row,
                 f.bufferK);
    f.ringV.load(b, once, f.map("v"), tile.batch, tile.head, tile.row,
                 f.bufferV);
  }

  void loadQuery(Place place, const Tile &tile, const Step &step) {
    f.ringQ.load(b, place, f.map("q"), tile.batch, step.head,
                 step.block * f.block, f.bufferQ);
  }

  /// dO and the statistics of a step's queries.
  void loadGradient(Place place, const Tile &tile, const Step &step) {
    f.ringGradient.load(b, place, f.map("do"), tile.batch, step.head,
                        step.block * f.block, f.bufferGradient);
    LoadWordsOp::create(b, f.arguments.get(b, "scratch_statistics"),
                        f.numberOf(tile.batch, step.head, step.block),
                        f.bufferStatistics, place.slot,
                        f.ringGradient.fullBarrier(), place.slot);
  }

  SmallVector<Value> produceTile(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Tile tile{at(0), at(1), at(2)};
    Place once{b.i32(0), at(3)}, place{at(4), at(5)}, message{at(6), at(7)};
    Walk walk = f.walkOf(tile);
    Step first = f.firstStep(walk);
    ValueRange last =
        b.loop(b.i32(0), walk.steps,
               {place.slot, place.parity, first.head, first.block},
               [&](Scalar number, ValueRange p) -> SmallVector<Value> {
                 Place now{b.wrap(p[0]), b.wrap(p[1])};
                 Step step{b.wrap(p[2]), b.wrap(p[3])};
                 loadQuery(now, tile, step);
                 loadGradient(now, tile, step);
                 b.when(number == b.i32(0), [&] { loadKeys(once, tile); });
                 now = f.ringQ.next(b, now);
                 step = f.nextStep(walk, step);
                 return {now.slot, now.parity, step.head, step.block};
               });
    place = {b.wrap(last[0]), b.wrap(last[1])};

    Scalar drawn = b.wrap(DrawOp::create(
        b, b.getI32Type(), f.arguments.get(b, kCounterRole), order.count));
    // The first tiles went to the blocks by their numbers.
    Tile next = order.at(b, drawn + b.gridSize(0));
    pushTile(b, f.queue, message, next);
    message = message.next(b, kTileMessages);
    return {next.row,   next.head,    next.batch,   once.parity ^ 1,
            place.slot, place.parity, message.slot, message.parity};
  }

  const BackwardFrame &f;
  TileBuilder &b;
  TileOrder order;
};

} // namespace

void attn::produceGradientTiles(const BackwardFrame &frame) {
  Producer(frame).produce();
}
