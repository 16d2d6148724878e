//===- TileOrder.cpp - In which order tiles are worked off ----------------===//

#include "Walk/TileOrder.h"

#include "attn/Schedule/Schedule.h"

#include <algorithm>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Heads that take turns, unless more are needed for one tile for everybody.
static constexpr int64_t kMostHeadsAtOnce = 16;

/// Lanes at least, if what streams past so many heads fits L2: the more there
/// are, the farther apart are tiles of one head.
static constexpr int64_t kMostLanesThatFit = 8;

/// Steps that tiles of one head which run at once are apart, on average: who
/// waits for the one before is two or three behind it.
static constexpr int64_t kStepsApart = 4;

/// Heads in a section at least: as many as keep what streams past in L2,
/// beside what passes through (32 of an H100's 50 MB were best).
static Scalar leastSection(TileBuilder &b, Scalar streamed,
                           const Problem &problem, int64_t l2Bytes) {
  int64_t rowBytes = bytesOfKey(problem);
  Scalar bytes = b.wide(b.max(streamed, b.i32(1))) * rowBytes;
  Scalar fit = b.constantLike(bytes, l2Bytes / 8 * 5) / bytes;
  fit = b.min(b.max(fit, b.constantLike(fit, 1)),
              b.constantLike(fit, kMostHeadsAtOnce));
  return b.narrow(fit);
}

/// Of the rows that stream past a head those that its tiles look at: lists that
/// heads share are of structure, as windows and documents, and tiles that run
/// at once look at the same blocks.
static Scalar lookedAt(TileBuilder &b, Scalar streamed,
                       const Problem &problem) {
  if (!problem.pattern || !problem.pattern->isShared())
    return streamed;
  double density = std::clamp(problem.pattern->density(), 1.0 / 64, 1.0);
  return streamed / int64_t(1 / density);
}

/// Heads in a section, unless more are needed for one tile for everybody.  On a
/// cache tiles of a sequence that run at once stream past together, and those
/// of several heads do no harm; with one head at a time its longest sequence
/// would be left for the end.
Scalar TileOrder::headsAtOnce(TileBuilder &b, const Rows &rows,
                              const Problem &problem, int64_t l2Bytes) {
  if (rows.ragged && !areKeysRagged(problem))
    return b.i32(kMostHeadsAtOnce);
  return leastSection(b, lookedAt(b, rows.streamed, problem), problem, l2Bytes);
}

TileOrder::TileOrder(TileBuilder &b, const Arguments &arguments,
                     const Problem &problem, int64_t query, int64_t atOnce,
                     int64_t l2Bytes, int64_t rowHeads)
    : TileOrder(b, arguments, problem,
                rowsOfQueries(b, arguments, problem, query, rowHeads), atOnce,
                l2Bytes) {}

TileOrder::Rows TileOrder::rowsOfQueries(TileBuilder &b,
                                         const Arguments &arguments,
                                         const Problem &problem, int64_t query,
                                         int64_t rowHeads) {
  Rows rows{query, arguments.get(b, "queries"), arguments.get(b, "heads"),
            arguments.get(b, "keys"), /*areKeys=*/false};
  rows.rowHeads = rowHeads;
  if (rowHeads > 1)
    rows.heads = rows.heads / rowHeads;
  makeSlots(b, arguments, problem, rows);
  return rows;
}

/// Of sequences, past which as much streams as on average.
void TileOrder::makeSlots(TileBuilder &b, const Arguments &arguments,
                          const Problem &problem, Rows &rows) {
  if (!problem.ragged)
    return;
  rows.ragged = RaggedRows(arguments, problem, rows.tile, rows.areKeys);
  if (areKeysRagged(problem))
    rows.streamed = rows.streamed / b.max(arguments.get(b, "batch"), b.i32(1));
}

TileOrder TileOrder::ofKeys(TileBuilder &b, const Arguments &arguments,
                            const Problem &problem, int64_t key, int64_t atOnce,
                            int64_t l2Bytes, const KeyOrder &how) {
  Scalar sharers = arguments.get(b, "group");
  Rows rows{key,
            arguments.get(b, "keys"),
            arguments.get(b, "heads") / sharers,
            arguments.get(b, "queries") * sharers,
            /*areKeys=*/true,
            how};
  makeSlots(b, arguments, problem, rows);
  return {b, arguments, problem, rows, atOnce, l2Bytes};
}

TileOrder::TileOrder(TileBuilder &b, const Arguments &arguments,
                     const Problem &problem, const Rows &rows, int64_t atOnce,
                     int64_t l2Bytes)
    : tileRows(rows.tile), rowHeads(rows.rowHeads), ragged(rows.ragged),
      hasSections(!problem.mask.isOpen() || rows.how.isBinding || rows.ragged),
      startsAtEnd(!rows.areKeys || rows.how.takesShortFirst),
      drawsAll(rows.how.drawsAll),
      hasLanes(rows.how.isBinding && !rows.how.takesShortFirst &&
               problem.mask.hidesBehind() && !problem.mask.hidesBefore()),
      takesFirstRows(problem.isListed() && !hasSections), heads(rows.heads),
      allHeads(ragged ? heads : heads * arguments.get(b, "batch")),
      tilesOfHead(ragged ? ragged->slots(b)
                         : b.ceilDiv(rows.count, rows.tile)) {
  count = tilesOfHead * allHeads;
  if (rows.how.mayBeNone) // and then nobody divides by none
    tilesOfHead = b.max(tilesOfHead, b.i32(1));
  if (!hasSections)
    return;
  Scalar tiles = b.max(tilesOfHead, b.i32(1));
  Scalar all = b.max(allHeads, b.i32(1));
  // One tile for everybody at least, or long ones are left for the end.
  Scalar least = (tiles + (atOnce - 1)) / tiles;
  if (hasLanes) {
    // An average tile sees half of what streams.
    Scalar half = rows.streamed / 2;
    Scalar fit = leastSection(b, half, problem, l2Bytes);
    least = b.max(least, b.min(fit, b.i32(kMostLanesThatFit)));
    chooseLanes(b, all, least, half / rows.how.step, atOnce);
    return;
  }
  Scalar section = b.max(headsAtOnce(b, rows, problem, l2Bytes), least);
  if (rows.how.isBinding)
    section = b.max(section, b.i32((atOnce + kMostInTurn - 1) / kMostInTurn));
  // As few as keep products of heads and sections in 31 bits.
  sections = b.max(b.min(all / section, b.i32(1 << 30) / all), b.i32(1));
}

Run TileOrder::sectionOf(TileBuilder &b, Scalar head) const {
  // Section s begins with head s * allHeads / sections, rounded down.
  Scalar section = ((head + 1) * sections - 1) / allHeads;
  return {section * allHeads / sections, (section + 1) * allHeads / sections};
}

Scalar TileOrder::headsOfFirst(TileBuilder &b, Scalar tiles) const {
  Scalar number = b.max(b.min(tiles, count) - 1, b.i32(0));
  if (hasLanes) // the first lane is ahead of the others
    return b.min((stepOf(b, number) / tilesOfHead + 1) * laneCount, allHeads);
  if (takesFirstRows)
    return allHeads;
  Scalar last = number / tilesOfHead;
  return hasSections ? sectionOf(b, last).end : last + 1;
}

TileOrder::Position TileOrder::positionOf(TileBuilder &b, Scalar number) const {
  if (takesFirstRows) {
    Scalar others = b.max(tilesOfHead - 1, b.i32(1));
    Scalar behind = b.max(number - allHeads, b.i32(0));
    Scalar head = behind / others, isFirst = number < allHeads;
    Scalar inHead = behind - head * others;
    Scalar row = startsAtEnd ? tilesOfHead - 1 - inHead : inHead + 1;
    return {b.select(isFirst, b.i32(0), row), b.select(isFirst, number, head)};
  }
  if (!hasSections) {
    Scalar head = number / tilesOfHead;
    return {number - head * tilesOfHead, head};
  }
  if (hasLanes)
    return positionInLanes(b, number);
  Run section = sectionOf(b, number / tilesOfHead);
  Scalar width = section.end - section.begin;
  Scalar rest = number - section.begin * tilesOfHead;
  Scalar row = rest / width;
  return {row, section.begin + (rest - row * width)};
}

Tile TileOrder::at(TileBuilder &b, Scalar number) const {
  Scalar inOrder = parts > 1 ? number / parts : number;
  auto [row, flat] = positionOf(b, inOrder);
  if (hasSections && startsAtEnd)
    row = tilesOfHead - 1 - row;
  if (ragged)
    return tileOfSlot(b, number, inOrder, {row, flat});
  Scalar entry = flat / heads;
  Tile tile{b.select(number < count, row * tileRows, b.i32(-1)),
            flat - entry * heads, entry};
  if (rowHeads > 1)
    tile.head = tile.head * rowHeads;
  if (parts > 1)
    tile.part = number - inOrder * parts;
  return tile;
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// Behind the last one nothing is looked at.
Tile TileOrder::tileOfSlot(TileBuilder &b, Scalar number, Scalar inOrder,
                           const Position &at) const {
  Tile like;
  Scalar head = rowHeads > 1 ? at.head * rowHeads : at.head;
  ValueRange found = b.choose(
      number < count,
      [&] {
        like = ragged->at(b, at.tile, head);
        if (parts > 1)
          like.part = number - inOrder * parts;
        return like.numbers();
      },
      [&] {
        SmallVector<Value> none(like.numbers().size(), b.i32(0));
        none.front() = b.i32(-1);
        return none;
      });
  return like.like(b, found);
}

Tile TileOrder::orNextWithRows(TileBuilder &b, const Arguments &arguments,
                               const Tile &tile) const {
  if (!ragged)
    return tile;
  ValueRange found = b.repeat(
      tile.numbers(),
      [&](ValueRange s) {
        Tile at = tile.like(b, s);
        return (b.i32(-1) < at.row) & ragged->hasNoRows(at);
      },
      [&](ValueRange) { return ofDrawn(b, draw(b, arguments)).numbers(); });
  return tile.like(b, found);
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

// Lanes come to the end of a head one after the other, all of them in the time
// in which as many tiles are drawn as run at once.
void TileOrder::chooseLanes(TileBuilder &b, Scalar heads, Scalar least,
                            Scalar steps, int64_t atOnce) {
  Scalar one = b.i32(1), walk = b.max(steps, one);
  Scalar apart = (walk + (atOnce * kStepsApart - 1)) / walk;
  Scalar width = b.max(b.min(apart, b.i32(kMostHeadsAtOnce)), least);
  Scalar rounds = b.max((heads + width / 2) / width, one);
  laneCount = (heads + (rounds - 1)) / rounds;
  Scalar few = b.min(laneCount, b.i32(atOnce)), square = few * few;
  lag = b.max((square / 2 + atOnce) / square, one);
}

std::array<TileOrder::Lanes, 2> TileOrder::lanes(TileBuilder &b) const {
  Scalar rounds = (allHeads + (laneCount - 1)) / laneCount;
  Scalar less = b.max(rounds - 1, b.i32(0));
  Scalar longer = allHeads - less * laneCount;
  return {Lanes{b.i32(0), longer, rounds * tilesOfHead, lag},
          Lanes{longer, laneCount - longer, less * tilesOfHead, lag}};
}

/// What so many lanes, each a lag behind the one before, take before a step if
/// they have no end.
static Scalar sumOfLanes(TileBuilder &b, Scalar step, Scalar lanes,
                         Scalar lag) {
  Scalar some = b.max(step, b.i32(0));
  Scalar begun = b.min((some + (lag - 1)) / lag, lanes);
  return begun * some - begun * (begun - 1) / 2 * lag;
}

Scalar TileOrder::Lanes::takenBefore(TileBuilder &b, Scalar step) const {
  Scalar own = step - first * lag;
  return sumOfLanes(b, own, count, lag) -
         sumOfLanes(b, own - length, count, lag);
}

Run TileOrder::Lanes::at(TileBuilder &b, Scalar step) const {
  Scalar ended = b.max(step - length + 1, b.i32(0));
  Scalar begin = b.max(first, (ended + (lag - 1)) / lag);
  Scalar end = b.min(first + count, step / lag + 1);
  return {begin, b.max(begin, end)};
}

/// By halving: what is taken before a step grows with it.
Scalar TileOrder::stepOf(TileBuilder &b, Scalar number) const {
  std::array<Lanes, 2> all = lanes(b);
  auto taken = [&](Scalar step) {
    return all[0].takenBefore(b, step) + all[1].takenBefore(b, step);
  };
  ValueRange found = b.repeat(
      {b.i32(0), laneCount * lag + all[0].length},
      [&](ValueRange s) { return b.wrap(s[0]) + 1 < b.wrap(s[1]); },
      [&](ValueRange s) -> SmallVector<Value> {
        Scalar from = b.wrap(s[0]), to = b.wrap(s[1]);
        Scalar middle = (from + to) / 2;
        Scalar isAbove = number < taken(middle);
        return {b.select(isAbove, from, middle), b.select(isAbove, middle, to)};
      });
  return b.wrap(found[0]);
}

TileOrder::Position TileOrder::positionInLanes(TileBuilder &b,
                                               Scalar number) const {
  Scalar step = stepOf(b, number);
  auto [longer, shorter] = lanes(b);
  Run first = longer.at(b, step), second = shorter.at(b, step);
  Scalar rest =
      number - longer.takenBefore(b, step) - shorter.takenBefore(b, step);
  Scalar ofFirst = first.end - first.begin;
  Scalar lane = b.select(rest < ofFirst, first.begin + rest,
                         second.begin + (rest - ofFirst));
  Scalar behind = b.max(step - lane * lag, b.i32(0));
  Scalar round = behind / tilesOfHead;
  return {behind - round * tilesOfHead, round * laneCount + lane};
}

/// Quotient and rest of numbers that are not negative.  Of unsigned ones LLVM
/// knows that they have no sign, which would take registers where they become
/// 64 bits (with a difference as the rest flash on mma.sync spills at d = 128).
static std::pair<Scalar, Scalar> divide(TileBuilder &b, Scalar number,
                                        Scalar by) {
  Scalar quotient = b.wrap(b.createOrFold<arith::DivUIOp>(number, by));
  return {quotient, b.wrap(b.createOrFold<arith::RemUIOp>(number, by))};
}

BlockOfHead BlockOfHead::of(TileBuilder &b, Scalar inGrid, Scalar ofHead,
                            Scalar heads) {
  auto [flat, number] = divide(b, inGrid, ofHead);
  auto [batch, head] = divide(b, flat, heads);
  return {number, head, batch};
}

Scalar TileOrder::draws(TileBuilder &b) const {
  // Every block finds the end once, and where first tiles are not drawn there
  // are as many numbers less.
  return drawsAll ? count + numberOfWorkers(b) : count;
}

Scalar TileOrder::draw(TileBuilder &b, const Arguments &arguments) const {
  return b.wrap(DrawOp::create(b, arguments.get(b, kCounterRole), draws(b)));
}

Tile TileOrder::ofDrawn(TileBuilder &b, Scalar number) const {
  return at(b, drawsAll ? number : number + numberOfWorkers(b));
}

Scalar TileOrder::numberOfWorker(TileBuilder &b) const {
  Scalar block = b.programId(0);
  return worker > 0 ? block + b.gridSize(0) * worker : block;
}

Scalar TileOrder::numberOfWorkers(TileBuilder &b) const {
  return workers > 1 ? b.gridSize(0) * workers : b.gridSize(0);
}

Tile TileOrder::drawNext(TileBuilder &b, const Arguments &arguments) const {
  return orNextWithRows(b, arguments, ofDrawn(b, draw(b, arguments)));
}

Tile TileOrder::first(TileBuilder &b, const Arguments &arguments,
                      bool goesOn) const {
  if (drawsAll)
    return drawNext(b, arguments);
  Tile tile = at(b, numberOfWorker(b));
  if (goesOn)
    return orNextWithRows(b, arguments, tile);
  if (ragged)
    tile.row = b.select(ragged->hasRows(tile), tile.row, b.i32(-1));
  return tile;
}

void TileOrder::feedTiles(TileBuilder &b, const Arguments &arguments,
                          const TileQueue &queue, ValueRange init,
                          TileBody body,
                          function_ref<Tile(const Tile &)> begin) const {
  auto begun = [&](const Tile &tile) { return begin ? begin(tile) : tile; };
  attn::feedTiles(
      b, queue, begun(first(b, arguments)), init, body,
      [&](SmallVector<Value> &) { return begun(drawNext(b, arguments)); });
}

void TileOrder::forEachTile(TileBuilder &b, const Arguments &arguments,
                            Value buffer,
                            function_ref<void(const Tile &)> workOff) const {
  assert(!drawsAll && "the first tiles would have to be drawn for all warps");
  Scalar draws = this->draws(b);
  b.repeat(
      at(b, b.programId(0)).numbers(),
      [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
      [&](ValueRange s) -> SmallVector<Value> {
        workOff(Tile::of(b, s));
        PutDrawOp::create(b, arguments.get(b, kCounterRole), draws, buffer);
        BarrierOp::create(b);
        Scalar number = b.wrap(GetDrawOp::create(b, b.getI32Type(), buffer));
        BarrierOp::create(b); // the next tile's copies may come there
        return ofDrawn(b, number).numbers();
      });
}
