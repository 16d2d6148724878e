//===- FlashProducer.cpp - The role that feeds a flash kernel -------------===//
//
// One lane.  Draws tiles from a counter that the grid shares, tells the other
// roles (a queue), and starts every load, in this order:
// K[last] Q | K[n] V[n + 1] ... | K' V[first] Q' (' = next tile).
//
// It draws a tile as late as the answer is still there in time: who is done
// first is to have the next.
//
//===----------------------------------------------------------------------===//

#include "Flash/FlashFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Producer {
public:
  Producer(const FlashFrame &frame, int64_t pair)
      : f(frame), b(frame.b), order(frame.order().ofWorker(pair, f.pairs)) {}

  void produce() {
    Tile first = f.blocks->drawn(order.first(b, f.arguments, f.persistent));
    Place writer = f.ringLoadedK.writer(b), query = f.ringQ.writer(b),
          message = f.queue.reader(b);
    pushTile(b, f.queue, message, first);
    like = first;
    // Of sequences there may be none that has rows.
    auto load = [&] {
      KeyWalk walk = f.blocks->walkOf(b, first);
      loadKey(writer, first, keyHead(first), walk.first());
      loadQuery(query, first);
    };
    if (f.problem.ragged || f.pairs > 1)
      b.when(b.i32(-1) < first.row, load);
    else
      load();

    Place k = f.ringLoadedK.next(b, writer), q = f.ringQ.next(b, query);
    message = f.queue.next(b, message);
    SmallVector<Value> init = first.numbers();
    init.append({k.slot, k.parity, writer.slot, writer.parity, q.slot, q.parity,
                 message.slot, message.parity});
    b.repeat(
        init, [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) { return produceTile(s); });
  }

private:
  Scalar keyHead(const Tile &tile) {
    return tile.head / f.arguments.get(b, "group");
  }

  void loadKey(Place place, const Tile &tile, Scalar head, Scalar block) {
    if (f.locator)
      return f.locator->loadKeys(f.ringLoadedK, place, tile, head, block,
                                 f.bufferLoadedK);
    loadBlock(f.ringLoadedK, place, f.map("k"), tile, head, block,
              f.bufferLoadedK);
  }
  void loadValue(Place place, const Tile &tile, Scalar head, Scalar block) {
    if (f.locator)
      return f.locator->loadValues(f.ringLoadedV, place, tile, head, block,
                                   f.bufferLoadedV);
    loadBlock(f.ringLoadedV, place, f.map("v"), tile, head, block,
              f.bufferLoadedV);
  }
  /// Of keys or values that lie in order.
  void loadBlock(const Ring &ring, Place place, Value map, const Tile &tile,
                 Scalar head, Scalar block, Value buffer) {
    Corner at = Corner::ofKeys(b, map, tile, block * f.key);
    at.load(b, map, f.emptyMap(Role::k), [&](Value map) {
      ring.load(b, place, map, at.batch, head, at.row, buffer);
    });
  }
  void loadQuery(Place place, const Tile &tile) {
    Value map = f.map("q");
    if (f.heads.areSeveral())
      return loadQueryOfHeads(place, tile, map);
    Corner at = Corner::ofQueries(b, map, tile, tile.row);
    f.ringQ.load(b, place, map, at.batch, tile.head, at.row,
                 f.buffersQ.front());
  }

  /// Boxes of rows of one head.
  void loadQueryOfHeads(Place place, const Tile &tile, Value map) {
    f.ringQ.announce(b, place, f.buffersQ.front());
    int64_t rows = f.heads.boxRows(f.query);
    for (int64_t row = 0; row < f.query; row += rows) {
      RowsOfHeads::Place of = f.heads.of(b, tile, f.queries, b.i32(row));
      Corner at = Corner::ofQueries(b, map, tile, tile.row + of.query);
      at.load(b, map, f.emptyMap(Role::q), [&](Value map) {
        f.ringQ.loadRows(b, place, map, at.batch, tile.head + of.head, at.row,
                         f.buffersQ.front(), b.i32(row));
      });
    }
  }

  SmallVector<Value> produceTile(ValueRange s) {
    Tile tile = like.like(b, s.drop_back(kPlaces));
    s = s.take_back(kPlaces);
    auto at = [&](int i) { return b.wrap(s[i]); };
    Place k{at(0), at(1)}, v{at(2), at(3)}, q{at(4), at(5)},
        message{at(6), at(7)};
    Scalar head = keyHead(tile);
    KeyWalk walk = f.blocks->walkOf(b, tile);
    auto load = [&](Scalar step, ValueRange p) -> SmallVector<Value> {
      Place k{b.wrap(p[0]), b.wrap(p[1])}, v{b.wrap(p[2]), b.wrap(p[3])};
      Scalar block = walk.block(step);
      loadKey(k, tile, head, block);
      loadValue(v, tile, head, walk.blockBefore(step, block));
      k = f.ringLoadedK.next(b, k);
      v = f.ringLoadedV.next(b, v);
      return {k.slot, k.parity, v.slot, v.parity};
    };
    Scalar steps = walk.steps();
    Scalar drawAt = f.blocks->stepsBeforeNext(b, tile, steps);
    ValueRange places =
        b.loop(b.i32(1), drawAt, {k.slot, k.parity, v.slot, v.parity}, load);
    Tile next = drawNext(tile);
    pushTile(b, f.queue, message, next);
    if (f.blocks->passesOverLast())
      places = b.loop(drawAt, steps, llvm::to_vector(places), load);
    k = {b.wrap(places[0]), b.wrap(places[1])};
    v = {b.wrap(places[2]), b.wrap(places[3])};
    Scalar more = b.i32(-1) < next.row;
    b.when(more, [&] {
      loadKey(k, next, keyHead(next), f.blocks->walkOf(b, next).first());
    });
    loadValue(v, tile, head, walk.last());
    b.when(more, [&] { loadQuery(q, next); });
    k = f.ringLoadedK.next(b, k);
    v = f.ringLoadedV.next(b, v);
    q = f.ringQ.next(b, q);
    message = f.queue.next(b, message);
    SmallVector<Value> result = next.numbers();
    result.append({k.slot, k.parity, v.slot, v.parity, q.slot, q.parity,
                   message.slot, message.parity});
    return result;
  }

  Tile drawNext(const Tile &tile) {
    if (!f.persistent)
      return tile.none(b);
    return f.blocks->drawn(order.drawNext(b, f.arguments));
  }

  /// Numbers that say where the role stands, behind those of its tile.
  static constexpr size_t kPlaces = 8;

  const FlashFrame &f;
  TileBuilder &b;
  TileOrder order;
  Tile like; ///< the first one, whose form all have
};

} // namespace

void attn::produceTiles(const FlashFrame &frame, int64_t pair) {
  Producer(frame, pair).produce();
}
