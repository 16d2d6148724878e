//===- SplitBackwardCopies.cpp - What comes and goes in split_backward ----===//
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

#include "Gradients/ListedSteps.h"
#include "SplitBackward/SplitBackwardFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Producer {
public:
  explicit Producer(const SplitBackwardFrame &frame) : f(frame), b(frame.b) {}

  void produce() {
    Place writer = Place::writer(b);
    SmallVector<Value> init = {writer.parity, writer.slot, writer.parity,
                               writer.slot, writer.parity};
    if (f.lists)
      llvm::append_values(init, Place::reader(b).slot, Place::reader(b).parity);
    f.order().feedTiles(
        b, f.arguments, f.queue, init,
        [&](const Tile &tile, ValueRange s) {
          return f.lists ? produceListed(tile, s) : produceTile(tile, s);
        },
        [&](const Tile &tile) { return f.drawn(tile); });
  }

private:
  void loadOwn(const Ring &ring, Place once, const SplitRows &rows,
               const Tile &tile, Value buffer) {
    Corner at = f.cornerOfOwn(f.map(rows.role), tile, tile.row);
    ring.load(b, once, f.map(rows.role), at.batch, tile.head, at.row, buffer);
  }

  void loadBlock(const Ring &ring, Place place, const SplitRows &rows,
                 const Tile &tile, const GradientStep &step, Value buffer) {
    Value map = f.map(rows.role);
    Scalar row = step.block * f.streamed;
    Corner at = f.ownsKeys ? Corner::ofQueries(b, map, tile, row)
                           : Corner::ofKeys(b, map, tile, row);
    ring.load(b, place, map, at.batch, step.head, at.row, buffer);
  }

  /// What a step needs, with the tile's own rows if it is the first.
  std::pair<Place, Place> loadStep(const Tile &tile, const GradientStep &step,
                                   Place once, Place placeX, Place placeY,
                                   Scalar isFirst) {
    loadBlock(f.ringStreamedX, placeX, f.streamedX, tile, step,
              f.bufferStreamedX);
    if (f.ownsKeys)
      f.loadStatistics(f.ringStreamedX, placeX, tile, step);
    b.when(isFirst, [&] { loadOwn(f.ringX, once, f.x, tile, f.bufferX); });
    loadBlock(f.ringStreamedY, placeY, f.streamedY, tile, step,
              f.bufferStreamedY);
    if (f.side.hasX)
      b.when(isFirst, [&] { loadOwn(f.ringY, once, f.y, tile, f.bufferY); });
    return {f.ringStreamedX.next(b, placeX), f.ringStreamedY.next(b, placeY)};
  }

  void handOverOwn(Place once) {
    f.ringX.awaitEmpty(b, once);
    f.ringX.handOver(b, once);
    if (!f.side.hasX)
      return;
    f.ringY.awaitEmpty(b, once);
    f.ringY.handOver(b, once);
  }

  /// A tile without steps has no rows of its own either; but its places are
  /// handed over, since its results leave from there.
  SmallVector<Value> produceListed(const Tile &tile, ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Place once{b.i32(0), at(0)};
    StepsEnd end = feedSteps(
        f, tile, {at(5), at(6)}, {s[1], s[2], s[3], s[4], b.i32(1)},
        [&](const GradientStep &step, ValueRange p) -> SmallVector<Value> {
          auto at = [&](int i) { return b.wrap(p[i]); };
          auto [x, y] = loadStep(tile, step, once, {at(0), at(1)},
                                 {at(2), at(3)}, b.i32(0) < at(4));
          return {x.slot, x.parity, y.slot, y.parity, b.i32(0)};
        });
    b.when(f.hasSteps(tile) == b.boolean(false), [&] { handOverOwn(once); });
    SmallVector<Value> next = {once.parity ^ 1};
    llvm::append_range(next, end.carried.drop_back());
    llvm::append_values(next, end.message.slot, end.message.parity);
    return next;
  }

  SmallVector<Value> produceTile(const Tile &tile, ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Place once{b.i32(0), at(0)}, placeX{at(1), at(2)}, placeY{at(3), at(4)};
    Walk walk = f.walkOf(tile);
    GradientStep first = f.firstStep(walk);
    ValueRange last =
        b.loop(b.i32(0), walk.steps,
               {placeX.slot, placeX.parity, placeY.slot, placeY.parity,
                first.head, first.block},
               [&](Scalar number, ValueRange p) -> SmallVector<Value> {
                 auto at = [&](int i) { return b.wrap(p[i]); };
                 Place nowX{at(0), at(1)}, nowY{at(2), at(3)};
                 GradientStep step{at(4), at(5)};
                 std::tie(nowX, nowY) =
                     loadStep(tile, step, once, nowX, nowY, number == b.i32(0));
                 step = f.nextStep(walk, step);
                 return {nowX.slot,   nowX.parity, nowY.slot,
                         nowY.parity, step.head,   step.block};
               });

    if (f.problem.ragged) // and there are others
      b.when(walk.steps == b.i32(0), [&] { handOverOwn(once); });
    return {once.parity ^ 1, last[0], last[1], last[2], last[3]};
  }

  const SplitBackwardFrame &f;
  TileBuilder &b;
};

class Writer {
public:
  explicit Writer(const SplitBackwardFrame &frame) : f(frame), b(frame.b) {}

  void write() {
    forEachTile(b, f.queue, Value(Place::reader(b).parity),
                [&](const Tile &tile, ValueRange s) -> SmallVector<Value> {
                  writeTile(tile, {b.i32(0), b.wrap(s[0])});
                  return {b.wrap(s[0]) ^ 1};
                });
  }

private:
  void store(Value buffer, StringRef gradient, const Tile &tile,
             int64_t group) {
    Scalar row = b.i32(int32_t(group * kGroupRows));
    Corner at = f.cornerOfOwn(f.map(gradient), tile, tile.row + row);
    TmaStoreOp::create(b, buffer, row, f.map(gradient), at.batch, tile.head,
                       at.row, /*column=*/b.i32(0), /*stage=*/b.i32(0));
  }

  void writeTile(const Tile &tile, Place own) {
    for (int64_t group = 0; group < f.groups; ++group) {
      f.ringStaged.storeFrom(b, {b.i32(group), own.parity}, [&] {
        if (f.side.hasX)
          store(f.stagedX, f.x.gradient, tile, group);
        if (f.side.hasY)
          store(f.stagedY, f.y.gradient, tile, group);
      });
      f.ringX.release(b, own);
      if (f.side.hasX && f.side.hasY)
        f.ringY.release(b, own);
    }
  }

  const SplitBackwardFrame &f;
  TileBuilder &b;
};

} // namespace

void attn::produceSplitTiles(const SplitBackwardFrame &frame) {
  Producer(frame).produce();
}

void attn::writeSplitGradients(const SplitBackwardFrame &frame) {
  Writer(frame).write();
}
