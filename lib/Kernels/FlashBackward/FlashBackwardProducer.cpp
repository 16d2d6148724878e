//===- FlashBackwardProducer.cpp - The role that feeds flash_backward -----===//
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

#include "FlashBackward/FlashBackwardFrame.h"
#include "Gradients/ListedSteps.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Producer {
public:
  explicit Producer(const FlashBackwardFrame &frame) : f(frame), b(frame.b) {}

  void produce() {
    Place writer = Place::writer(b);
    TileOrder order = f.order();
    auto begin = [&](const Tile &tile) {
      if (f.preparesBeside)
        b.when(b.i32(-1) < tile.row, [&] { awaitStatistics(tile); });
      return f.drawn(tile);
    };
    SmallVector<Value> init = {writer.parity, writer.slot, writer.parity};
    if (f.lists)
      llvm::append_values(init, Place::reader(b).slot, Place::reader(b).parity);
    order.feedTiles(
        b, f.arguments, f.queue, init,
        [&](const Tile &tile, ValueRange s) {
          return f.lists ? produceListed(tile, s) : produceTile(tile, s);
        },
        begin);
  }

private:
  void loadKeys(Place once, const Tile &tile) {
    auto load = [&](const Ring &ring, StringRef array, Value buffer) {
      Corner at = Corner::ofKeys(b, f.map(array), tile, tile.row);
      ring.load(b, once, f.map(array), at.batch, tile.head, at.row, buffer);
    };
    load(f.ringK, "k", f.bufferK);
    load(f.ringV, "v", f.bufferV);
  }

  void loadQueries(const Ring &ring, StringRef array, Place place,
                   const Tile &tile, const GradientStep &step, Value buffer) {
    Corner at = Corner::ofQueries(b, f.map(array), tile, step.block * f.block);
    ring.load(b, place, f.map(array), at.batch, step.head, at.row, buffer);
  }

  void loadQuery(Place place, const Tile &tile, const GradientStep &step) {
    loadQueries(f.ringQ, "q", place, tile, step, f.bufferQ);
  }

  /// dO and the statistics of a step's queries.
  void loadGradient(Place place, const Tile &tile, const GradientStep &step) {
    loadQueries(f.ringGradient, "do", place, tile, step, f.bufferGradient);
    f.loadStatistics(f.ringGradient, place, tile, step);
  }

  /// Without queries nobody prepares.  Statistics were stored by whom the copy
  /// engine does not wait for by itself.
  void awaitStatistics(const Tile &tile) {
    b.when(b.i32(0) < f.streamedRows, [&] {
      f.awaitPrepared(tile);
      FenceAsyncOp::create(b, /*global=*/true);
    });
  }

  SmallVector<Value> produceTile(const Tile &tile, ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Place once{b.i32(0), at(0)}, place{at(1), at(2)};
    Walk walk = f.walkOf(tile);
    GradientStep first = f.firstStep(walk);
    ValueRange last =
        b.loop(b.i32(0), walk.steps,
               {place.slot, place.parity, first.head, first.block},
               [&](Scalar number, ValueRange p) -> SmallVector<Value> {
                 Place now{b.wrap(p[0]), b.wrap(p[1])};
                 GradientStep step{b.wrap(p[2]), b.wrap(p[3])};
                 loadQuery(now, tile, step);
                 loadGradient(now, tile, step);
                 b.when(number == b.i32(0), [&] { loadKeys(once, tile); });
                 now = f.ringQ.next(b, now);
                 step = f.nextStep(walk, step);
                 return {now.slot, now.parity, step.head, step.block};
               });
    return {f.parityBehind(once.parity, walk), last[0], last[1]};
  }

  SmallVector<Value> produceListed(const Tile &tile, ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Place once{b.i32(0), at(0)};
    StepsEnd end = feedSteps(
        f, tile, {at(3), at(4)}, {s[1], s[2], b.i32(1)},
        [&](const GradientStep &step, ValueRange p) -> SmallVector<Value> {
          Place now{b.wrap(p[0]), b.wrap(p[1])};
          loadQuery(now, tile, step);
          loadGradient(now, tile, step);
          b.when(b.i32(0) < b.wrap(p[2]), [&] { loadKeys(once, tile); });
          now = f.ringQ.next(b, now);
          return {now.slot, now.parity, b.i32(0)};
        });
    return {f.parityBehind(once.parity, tile), end.carried[0], end.carried[1],
            end.message.slot, end.message.parity};
  }

  const FlashBackwardFrame &f;
  TileBuilder &b;
};

} // namespace

void attn::produceGradientTiles(const FlashBackwardFrame &frame) {
  Producer(frame).produce();
}
