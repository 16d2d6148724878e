//===- TileOrder.cpp - In which order tiles are worked off ----------------===//

#include "TileOrder.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Heads in a section at least: as many as keep what streams past in L2,
/// beside what passes through (32 of an H100's 50 MB were best).
static Scalar sectionOf(TileBuilder &b, Scalar streamed, const Problem &problem,
                        int64_t l2Bytes) {
  constexpr int64_t most = 16;
  int64_t rowBytes =
      (problem.headDim + problem.headDimV) * bytesOf(problem.dtype);
  Scalar bytes = b.wide(b.max(streamed, b.i32(1))) * rowBytes;
  Scalar fit = b.constantLike(bytes, l2Bytes / 8 * 5) / bytes;
  fit = b.min(b.max(fit, b.constantLike(fit, 1)), b.constantLike(fit, most));
  return b.narrow(fit);
}

TileOrder::TileOrder(TileBuilder &b, const Arguments &arguments,
                     const Problem &problem, int64_t query, int64_t atOnce,
                     int64_t l2Bytes)
    : TileOrder(b, arguments, problem,
                {query, arguments.get(b, "queries"), arguments.get(b, "heads"),
                 arguments.get(b, "keys"), /*areKeys=*/false},
                atOnce, l2Bytes) {}

TileOrder TileOrder::ofKeys(TileBuilder &b, const Arguments &arguments,
                            const Problem &problem, int64_t key, int64_t atOnce,
                            int64_t l2Bytes) {
  Scalar sharers = arguments.get(b, "group");
  return {b,
          arguments,
          problem,
          {key, arguments.get(b, "keys"), arguments.get(b, "heads") / sharers,
           arguments.get(b, "queries") * sharers, /*areKeys=*/true},
          atOnce,
          l2Bytes};
}

TileOrder::TileOrder(TileBuilder &b, const Arguments &arguments,
                     const Problem &problem, const Rows &rows, int64_t atOnce,
                     int64_t l2Bytes)
    : tileRows(rows.tile), isMasked(problem.mask.kind != MaskKind::none),
      areKeys(rows.areKeys), heads(rows.heads),
      allHeads(heads * arguments.get(b, "batch")),
      tilesOfHead(b.ceilDiv(rows.count, rows.tile)) {
  count = tilesOfHead * allHeads;
  if (!isMasked)
    return;
  // One tile for everybody at least, or long ones are left for the end.
  Scalar tiles = b.max(tilesOfHead, b.i32(1));
  Scalar section = b.max(sectionOf(b, rows.streamed, problem, l2Bytes),
                         (tiles + (atOnce - 1)) / tiles);
  // As few as keep products of heads and sections in 31 bits.
  Scalar all = b.max(allHeads, b.i32(1));
  sections = b.max(b.min(all / section, b.i32(1 << 30) / all), b.i32(1));
}

Tile TileOrder::at(TileBuilder &b, Scalar number) const {
  Scalar row, flat;
  if (isMasked) {
    // Section s begins with head s * allHeads / sections, rounded down.
    Scalar head = number / tilesOfHead;
    Scalar section = ((head + 1) * sections - 1) / allHeads;
    Scalar begin = section * allHeads / sections;
    Scalar width = (section + 1) * allHeads / sections - begin;
    Scalar rest = number - begin * tilesOfHead;
    Scalar down = rest / width;
    row = areKeys ? down : tilesOfHead - 1 - down;
    flat = begin + (rest - down * width);
  } else {
    flat = number / tilesOfHead;
    row = number - flat * tilesOfHead;
  }
  Scalar entry = flat / heads;
  return {b.select(number < count, row * tileRows, b.i32(-1)),
          flat - entry * heads, entry};
}

Value attn::tileQueue(TileBuilder &b, int64_t readers) {
  auto type = QueueType::get(b.getContext(), kTileMessages, 3);
  return QueueOp::create(b, type, "tile", uint32_t(readers));
}

void attn::pushTile(TileBuilder &b, Value queue, Place message,
                    const Tile &tile) {
  PushOp::create(b, queue, message.slot, message.parity,
                 ValueRange{tile.row, tile.head, tile.batch});
}

attn::Tile attn::popTile(TileBuilder &b, Value queue, Place message) {
  SmallVector<Type> types(3, b.getI32Type());
  auto op = PopOp::create(b, types, queue, message.slot, message.parity);
  return {b.wrap(op.getResult(0)), b.wrap(op.getResult(1)),
          b.wrap(op.getResult(2))};
}

/// What a loop over tiles carries of them.
static SmallVector<Value> pack(const Tile &tile, Place message) {
  return {tile.row, tile.head, tile.batch, message.slot, message.parity};
}
static constexpr unsigned kPacked = 5;

static void repeatTiles(TileBuilder &b, SmallVector<Value> start,
                        ValueRange init, TileBody body,
                        function_ref<SmallVector<Value>(Place)> next) {
  llvm::append_range(start, init);
  b.repeat(
      start, [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
      [&](ValueRange s) {
        Tile tile{b.wrap(s[0]), b.wrap(s[1]), b.wrap(s[2])};
        SmallVector<Value> carried = body(tile, s.drop_front(kPacked));
        SmallVector<Value> after = next({b.wrap(s[3]), b.wrap(s[4])});
        llvm::append_range(after, carried);
        return after;
      });
}

void attn::forEachTile(TileBuilder &b, Value queue, ValueRange init,
                       TileBody body) {
  auto pop = [&](Place message) {
    Tile tile = popTile(b, queue, message);
    return pack(tile, message.next(b, kTileMessages));
  };
  repeatTiles(b, pop(Place::reader(b)), init, body, pop);
}

Scalar TileOrder::draw(TileBuilder &b, const Arguments &arguments) const {
  return b.wrap(
      DrawOp::create(b, b.getI32Type(), arguments.get(b, kCounterRole), count));
}

Tile TileOrder::drawNext(TileBuilder &b, const Arguments &arguments) const {
  return at(b, draw(b, arguments) + b.gridSize(0));
}

void TileOrder::feedTiles(TileBuilder &b, const Arguments &arguments,
                          Value queue, ValueRange init, TileBody body) const {
  auto push = [&](const Tile &tile, Place message) {
    pushTile(b, queue, message, tile);
    return pack(tile, message.next(b, kTileMessages));
  };
  repeatTiles(
      b, push(at(b, b.programId(0)), Place::reader(b)), init, body,
      [&](Place message) { return push(drawNext(b, arguments), message); });
}
