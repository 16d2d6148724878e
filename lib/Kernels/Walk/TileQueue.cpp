//===- TileQueue.cpp - Tiles, and how roles hear of them ------------------===//

#include "Walk/TileQueue.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Of a tile as others hear of it.
static constexpr size_t kNumbersOfSequences = 6;

attn::Tile attn::Tile::told() const {
  Tile tile = *this;
  tile.firstKey = {};
  return tile;
}

attn::Tile attn::Tile::of(TileBuilder &b, ValueRange numbers) {
  auto at = [&](size_t i) { return b.wrap(numbers[i]); };
  Tile tile{at(0), at(1), at(2)};
  if (numbers.size() == 4)
    tile.part = at(3);
  if (numbers.size() == 5) {
    tile.partialSteps = at(3);
    tile.fullSteps = at(4);
  }
  if (numbers.size() >= kNumbersOfSequences) {
    tile.firstQuery = at(3);
    tile.queries = at(4);
    tile.keys = at(5);
  }
  if (numbers.size() > kNumbersOfSequences)
    tile.firstKey = at(6);
  return tile;
}

/// What a tile has beside its place.
static constexpr Scalar attn::Tile::*kMore[] = {
    &attn::Tile::part,       &attn::Tile::partialSteps, &attn::Tile::fullSteps,
    &attn::Tile::firstQuery, &attn::Tile::queries,      &attn::Tile::keys,
    &attn::Tile::firstKey,   &attn::Tile::usedKeys};

attn::Tile attn::Tile::like(TileBuilder &b, ValueRange numbers) const {
  Tile tile{b.wrap(numbers[0]), b.wrap(numbers[1]), b.wrap(numbers[2])};
  size_t next = 3;
  for (Scalar Tile::*more : kMore)
    if (Value(this->*more))
      tile.*more = b.wrap(numbers[next++]);
  return tile;
}

SmallVector<Value> attn::Tile::numbers() const {
  SmallVector<Value> all = {row, head, batch};
  for (Scalar Tile::*more : kMore)
    if (Value(this->*more))
      all.push_back(this->*more);
  return all;
}

attn::Tile attn::Tile::none(TileBuilder &b) const {
  SmallVector<Value> all(numbers().size(), b.i32(0));
  all.front() = b.i32(-1);
  return like(b, all);
}

void TileQueue::enter(Scalar number) { first = number * kTileMessages; }

Place TileQueue::next(TileBuilder &b, Place message) const {
  return message.next(b, kTileMessages, first);
}

Value attn::tileQueue(TileBuilder &b, int64_t readers, bool hasParts,
                      int64_t queues) {
  auto type =
      QueueType::get(b.getContext(), kTileMessages * queues, hasParts ? 4 : 3);
  return QueueOp::create(b, type, "tile", uint32_t(readers), uint32_t(queues));
}

TileQueue attn::tileQueueOfSequences(TileBuilder &b, int64_t readers,
                                     bool areKeys, bool hasParts,
                                     int64_t queues) {
  assert(!(areKeys && hasParts) && "parts are of walks over keys");
  auto type = QueueType::get(b.getContext(), kTileMessages * queues,
                             kNumbersOfSequences + (areKeys || hasParts));
  TileQueue queue(
      QueueOp::create(b, type, "tile", uint32_t(readers), uint32_t(queues)));
  queue.hasFirstKey = areKeys;
  queue.hasPart = hasParts;
  return queue;
}

TileQueue attn::tileQueueOfLists(TileBuilder &b, int64_t readers, Scalar heads,
                                 int64_t queues) {
  TileQueue queue(tileQueue(b, readers, /*hasParts=*/true, queues));
  queue.heads = heads;
  return queue;
}

TileQueue attn::tileQueueOfUsed(TileBuilder &b, int64_t readers, Scalar heads,
                                int64_t queues) {
  TileQueue queue(tileQueue(b, readers, /*hasParts=*/true, queues));
  queue.heads = heads;
  queue.hasUsedKeys = true;
  return queue;
}

TileQueue attn::tileQueueOf(TileBuilder &b, const Arguments &arguments,
                            const Placement &place, int64_t readers,
                            bool hasParts, int64_t queues) {
  if (!place.any())
    return tileQueue(b, readers, hasParts, queues);
  Scalar heads = hasParts ? arguments.get(b, Role::heads) : Scalar();
  return tileQueueOfUsed(b, readers, heads, queues);
}

void attn::pushTile(TileBuilder &b, const TileQueue &queue, Place message,
                    const Tile &tile) {
  Tile told = queue.hasFirstKey ? tile : tile.told();
  SmallVector<Value> numbers = told.numbers();
  if (Value(queue.heads)) {
    numbers = {tile.row, tile.batch * queue.heads + tile.head};
    for (Scalar more :
         {tile.part, tile.partialSteps, tile.fullSteps, tile.usedKeys})
      if (Value(more))
        numbers.push_back(more);
  }
  PushOp::create(b, queue.queue, message.slot, message.parity, numbers);
}

attn::Tile attn::popTile(TileBuilder &b, const TileQueue &queue,
                         Place message) {
  SmallVector<Type> types(cast<QueueType>(queue.queue.getType()).getValues(),
                          b.getI32Type());
  auto op = PopOp::create(b, types, queue.queue, message.slot, message.parity);
  auto at = [&](size_t i) { return b.wrap(op.getResults()[i]); };
  if (!Value(queue.heads) && queue.hasUsedKeys) {
    Tile tile{at(0), at(1), at(2)};
    tile.usedKeys = at(3);
    return tile;
  }
  if (queue.hasPart) {
    Tile tile{at(0), at(1), at(2), at(3)};
    tile.firstQuery = at(4);
    tile.queries = at(5);
    tile.keys = at(6);
    return tile;
  }
  if (!Value(queue.heads))
    return Tile::of(b, op.getResults());
  Scalar batch = at(1) / queue.heads;
  Tile tile{at(0), at(1) - batch * queue.heads, batch};
  if (queue.hasUsedKeys) {
    tile.part = at(2);
    tile.usedKeys = at(3);
  } else {
    tile.partialSteps = at(2);
    tile.fullSteps = at(3);
  }
  return tile;
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
        Tile tile = first.first.like(b, s.take_front(numbers));
        s = s.drop_front(numbers);
        SmallVector<Value> carried = body(tile, s.drop_front(2));
        TileAndPlace after = next({b.wrap(s[0]), b.wrap(s[1])}, carried);
        return pack(after, carried);
      });
  return last.drop_front(numbers + 2);
}

ValueRange attn::forEachTile(TileBuilder &b, const TileQueue &queue,
                             ValueRange init, TileBody body) {
  auto pop = [&](Place message) -> TileAndPlace {
    Tile tile = popTile(b, queue, message);
    return {tile, queue.next(b, message)};
  };
  return repeatTiles(
      b, pop(Place::reader(b)), init, body,
      [&](Place message, SmallVector<Value> &) { return pop(message); });
}

void attn::feedTiles(TileBuilder &b, const TileQueue &queue, const Tile &first,
                     ValueRange init, TileBody body, NextTile drawNext) {
  auto push = [&](const Tile &tile, Place message) -> TileAndPlace {
    pushTile(b, queue, message, tile);
    return {tile, queue.next(b, message)};
  };
  repeatTiles(b, push(first, Place::reader(b)), init, body,
              [&](Place message, SmallVector<Value> &carried) {
                return push(drawNext(carried), message);
              });
}

void attn::feedTilesInTurn(TileBuilder &b, const TileQueue &queue,
                           const Tile &first,
                           function_ref<Place(const Tile &, Place)> load,
                           function_ref<Tile(const Tile &before)> next) {
  auto carry = [](const Tile &tile, Place place) {
    SmallVector<Value> all = tile.numbers();
    all.append({place.slot, place.parity});
    return all;
  };
  feedTiles(
      b, queue, first, carry(first, Place::writer(b)),
      [&](const Tile &tile, ValueRange carried) {
        Place place{b.wrap(carried.drop_back().back()), b.wrap(carried.back())};
        return carry(tile, load(tile, place));
      },
      [&](SmallVector<Value> &carried) {
        return next(Tile::of(b, ValueRange(carried).drop_back(2)));
      });
}
