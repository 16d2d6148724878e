//===- TileQueue.cpp - Tiles, and how roles hear of them ------------------===//

#include "Walk/TileQueue.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

attn::Tile attn::Tile::of(TileBuilder &b, ValueRange numbers) {
  auto at = [&](size_t i) { return b.wrap(numbers[i]); };
  Tile tile{at(0), at(1), at(2)};
  if (numbers.size() > 3)
    tile.part = at(3);
  return tile;
}

SmallVector<Value> attn::Tile::numbers() const {
  SmallVector<Value> all = {row, head, batch};
  if (Value(part))
    all.push_back(part);
  return all;
}

Value attn::tileQueue(TileBuilder &b, int64_t readers, bool hasParts) {
  auto type = QueueType::get(b.getContext(), kTileMessages, hasParts ? 4 : 3);
  return QueueOp::create(b, type, "tile", uint32_t(readers));
}

void attn::pushTile(TileBuilder &b, Value queue, Place message,
                    const Tile &tile) {
  PushOp::create(b, queue, message.slot, message.parity, tile.numbers());
}

attn::Tile attn::popTile(TileBuilder &b, Value queue, Place message) {
  SmallVector<Type> types(cast<QueueType>(queue.getType()).getValues(),
                          b.getI32Type());
  auto op = PopOp::create(b, types, queue, message.slot, message.parity);
  return Tile::of(b, op.getResults());
}

/// A tile, and where the message behind its own will be.
using TileAndPlace = std::pair<Tile, Place>;

/// Loops over tiles until there is none.
static ValueRange
repeatTiles(TileBuilder &b, const TileAndPlace &first, ValueRange init,
            TileBody body,
            function_ref<TileAndPlace(Place, SmallVector<Value> &)> next) {
  auto pack = [](const TileAndPlace &at, ValueRange carried) {
    SmallVector<Value> all = at.first.numbers();
    llvm::append_values(all, at.second.slot, at.second.parity);
    llvm::append_range(all, carried);
    return all;
  };
  size_t numbers = first.first.numbers().size();
  ValueRange last = b.repeat(
      pack(first, init), [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
      [&](ValueRange s) {
        Tile tile = Tile::of(b, s.take_front(numbers));
        s = s.drop_front(numbers);
        SmallVector<Value> carried = body(tile, s.drop_front(2));
        TileAndPlace after = next({b.wrap(s[0]), b.wrap(s[1])}, carried);
        return pack(after, carried);
      });
  return last.drop_front(numbers + 2);
}

ValueRange attn::forEachTile(TileBuilder &b, Value queue, ValueRange init,
                             TileBody body) {
  auto pop = [&](Place message) -> TileAndPlace {
    Tile tile = popTile(b, queue, message);
    return {tile, message.next(b, kTileMessages)};
  };
  return repeatTiles(
      b, pop(Place::reader(b)), init, body,
      [&](Place message, SmallVector<Value> &) { return pop(message); });
}

void attn::feedTiles(TileBuilder &b, Value queue, const Tile &first,
                     ValueRange init, TileBody body, NextTile drawNext) {
  auto push = [&](const Tile &tile, Place message) -> TileAndPlace {
    pushTile(b, queue, message, tile);
    return {tile, message.next(b, kTileMessages)};
  };
  repeatTiles(b, push(first, Place::reader(b)), init, body,
              [&](Place message, SmallVector<Value> &carried) {
                return push(drawNext(carried), message);
              });
}
