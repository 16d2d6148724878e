//===- MergedSpillBackward.cpp - P, dS and their sums in one launch -------===//

#include "SpillBackward/MergedSpillBackward.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

KernelOp attn::prepareFlags(GradientFrame &f) {
  TileBuilder &b = f.b;
  return prepareStrips(
      f,
      [&] {
        declareLse(f.arguments, b, f.problem);
        f.declareStatistics();
        f.declareFlagsOfStrips();
      },
      [&](const StripRows &at) {
        leaveShift(f, at);
        Scalar zero = b.i32(0);
        b.when(at.warp == zero, [&] {
          for (int64_t word = 0; word < GradientFrame::kFlagWords; ++word)
            PublishOp::create(
                b, f.arguments.get(b, GradientFrame::kFlagsOfStrips),
                at.block * GradientFrame::kFlagWords + word, zero);
        });
      });
}

// Under a mask sums of several heads take turns: then long ones are not left
// for the end.  1024 causal rows of 256 columns took 520 us with two heads, 530
// with three and 535 with six.
MergedSpillBackward::MergedSpillBackward(const RoundsFrame &scores,
                                         const RoundsFrame &deltas,
                                         RoundsFrame &keySums,
                                         RoundsFrame &querySums)
    : scores(scores), deltas(deltas), keySums(keySums), querySums(querySums),
      b(scores.b), headsInTurn(b.i32(1)) {
  if (scores.problem.mask.isOpen())
    return;
  Scalar ofHead =
      keySums.tilesOfHead() + querySums.tilesOfHead() * scores.sharers;
  ofHead = b.max(ofHead, b.i32(1));
  headsInTurn = scores.headsInSection(ofHead);
  keySums.toldInTurn = headsInTurn;
  querySums.toldInTurn = headsInTurn * scores.sharers;
}

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

Tile MergedSpillBackward::queued(const RoundsFrame &frame,
                                 const Tile &tile) const {
  int64_t before = 0; // parts of the kinds before
  for (const RoundsFrame *kind : {&keySums, &querySums, &deltas}) {
    if (frame.is(kind->launch))
      return {tile.row, tile.head, tile.batch, tile.part * -1 - (before + 1)};
    before += kind->parts;
  }
  return tile;
}

ValueRange MergedSpillBackward::choose(
    const Tile &queued,
    function_ref<Values(const RoundsFrame &, const Tile &)> how) const {
  auto ofQueries = [&](Tile tile) -> Values {
    return llvm::to_vector(b.choose(
        tile.part < b.i32(querySums.parts),
        [&] { return how(querySums, tile); },
        [&] {
          tile.part = tile.part - querySums.parts;
          return how(deltas, tile);
        }));
  };
  auto others = [&]() -> Values {
    Tile tile = queued;
    tile.part = queued.part * -1 - 1;
    return llvm::to_vector(b.choose(
        tile.part < b.i32(keySums.parts), [&] { return how(keySums, tile); },
        [&] {
          tile.part = tile.part - keySums.parts;
          return ofQueries(tile);
        }));
  };
  return b.choose(queued.part < b.i32(0), others,
                  [&] { return how(scores, queued); });
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

MergedSpillBackward::Flag
MergedSpillBackward::flagOfRow(const Tile &tile) const {
  KeyWalk walk = querySums.blocksSeen(tile);
  Scalar strip = scores.numberOf(tile.batch, tile.head, tile.row / kStripRows);
  return {strip * GradientFrame::kFlagWords,
          walk.steps() * scores.writers + countsOfDelta(tile),
          b.i32(querySums.parts)};
}

Scalar MergedSpillBackward::countsOfDelta(const Tile &tile) const {
  constexpr int64_t warps = RoundsFrame::kGroups * kWarpsPerGroup;
  return b.select(scores.beginsHere(tile), b.i32(warps), b.i32(0));
}

void MergedSpillBackward::countDelta(const Tile &tile) const {
  count(flagOfRow(tile));
}

void MergedSpillBackward::awaitDelta(const Tile &tile) const {
  Flag flag = flagOfRow(tile);
  flag.isReady = countsOfDelta(tile);
  await(flag);
}

MergedSpillBackward::Flag
MergedSpillBackward::flagOfHead(const Tile &tile) const {
  Scalar strip = scores.numberOf(tile.batch, tile.head * scores.sharers,
                                 /*block=*/b.i32(0));
  return {strip * GradientFrame::kFlagWords + 1,
          scores.rowTiles * scores.sharers, keySums.tilesOfHead()};
}

void MergedSpillBackward::await(const Flag &flag) const {
  AwaitOp::create(b, b.getI32Type(),
                  scores.arguments.get(b, GradientFrame::kFlagsOfStrips),
                  flag.index, flag.isReady)
      ->setAttr("mostly_set", b.getUnitAttr());
}

void MergedSpillBackward::count(const Flag &flag) const {
  CountOp::create(b, scores.arguments.get(b, GradientFrame::kFlagsOfStrips),
                  flag.index, flag.isReady + flag.waiting);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

// Tiles ahead are one for each multiprocessor: those of the scores that a sum
// waits for are then done, or nearly so, when it is drawn.  Of two for each, P
// and dS would be 34 MB on an H100, beside what streams more than L2 keeps.
// Turns are whole, so what does not fill one is ahead as well.  D is one tile
// for each multiprocessor before its scores; of half as many 4 % less time were
// measured (512 columns, weights that were kept) and 3 % more (1024, causal).
MergedSpillBackward::Order::Order(const MergedSpillBackward &tiles)
    : tiles(tiles) {
  TileBuilder &b = tiles.b;
  Scalar one = b.i32(1), sharers = tiles.scores.sharers;
  Scalar sms = b.i32(tiles.scores.request.sms);
  rows = tiles.scores.rowTiles * tiles.scores.heads;
  ofRow = tiles.scores.partCount + 1;
  lead = b.min((sms + tiles.scores.partCount) / ofRow, rows);
  Scalar ofHead = b.max(tiles.scores.rowTiles * ofRow, one) * sharers;
  Scalar sumsOfHead =
      tiles.keySums.tilesOfHead() + tiles.querySums.tilesOfHead() * sharers;
  scoresInTurn = tiles.headsInTurn * ofHead;
  sumsInTurn = tiles.headsInTurn * b.max(sumsOfHead, one);
  Scalar all = rows * ofRow + lead;
  Scalar least = b.max(scoresInTurn, sms + lead);
  inTurns = b.max(all - least, b.i32(0)) / scoresInTurn;
  ahead = all - inTurns * scoresInTurn;
  count = all + tiles.keySums.tileCount() + tiles.querySums.tileCount();
}

Tile MergedSpillBackward::Order::at(Scalar number) const {
  TileBuilder &b = tiles.b;
  Scalar behind = b.max(number - ahead, b.i32(0));
  Scalar ofTurn = scoresInTurn + sumsInTurn;
  Scalar turn = b.min(behind / ofTurn, inTurns);
  Scalar rest = behind - turn * ofTurn;
  Scalar isAhead = number < ahead;
  Scalar isScores = b.wrap(arith::OrIOp::create(
      b, isAhead, (turn < inTurns) & (rest < scoresInTurn)));
  return Tile::of(
      b,
      b.choose(
          isScores,
          [&] {
            Scalar score =
                b.select(isAhead, number, ahead + turn * scoresInTurn + rest);
            return scoreAt(score).numbers();
          },
          [&] {
            Scalar isMixed = turn < inTurns;
            return sumAt(turn, rest - b.select(isMixed, scoresInTurn, b.i32(0)))
                .numbers();
          }));
}

/// Scores of a row come behind D of one that is `lead` rows further on; first
/// comes D of as many rows.
Tile MergedSpillBackward::Order::scoreAt(Scalar number) const {
  TileBuilder &b = tiles.b;
  const RoundsFrame &scores = tiles.scores;
  Scalar zero = b.i32(0);
  Scalar isFirst = number < lead;
  Scalar behind = b.max(number - lead, zero);
  Scalar row = behind / ofRow;
  Scalar part = behind - row * ofRow - 1;
  Scalar isDelta = b.wrap(arith::OrIOp::create(b, isFirst, part < zero));
  Scalar other = b.select(isFirst, number, row + lead);
  Scalar last = b.max(rows - 1, zero);
  row = b.select(isDelta, b.min(other, last), row);
  Tile tile = scores.tileAt(row * scores.partCount);
  // Behind the last row there is none: of a block behind all.
  Scalar ofDelta = b.select(other < rows, tiles.queued(tiles.deltas, tile).part,
                            scores.partBehindAll());
  tile.part = b.select(isDelta, ofDelta, part);
  return tile;
}

/// A sum of that turn or of one behind it.
Tile MergedSpillBackward::Order::sumAt(Scalar turn, Scalar number) const {
  TileBuilder &b = tiles.b;
  const RoundsFrame &ofKeys = tiles.keySums, &ofQueries = tiles.querySums;
  Scalar later = number / sumsInTurn;
  Scalar rest = number - later * sumsInTurn;
  Scalar first = (turn + later) * tiles.headsInTurn;
  // The last turn may have fewer heads.
  Scalar width =
      b.max(b.min(tiles.headsInTurn, ofKeys.heads - first), b.i32(1));
  Scalar queriesOfHead = ofQueries.tilesOfHead() * ofQueries.sharers;
  Scalar keySum = rest - width * queriesOfHead;
  return Tile::of(
      b, b.choose(
             keySum < b.i32(0),
             [&] {
               Tile tile = ofQueries.tileAt(first * queriesOfHead + rest);
               return tiles.queued(ofQueries, tile).numbers();
             },
             [&] {
               Tile tile = ofKeys.tileAt(first * ofKeys.tilesOfHead() + keySum);
               return tiles.queued(ofKeys, tile).numbers();
             }));
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

Tile MergedSpillBackward::drawNext(const Order &order) const {
  // The first tiles are drawn too: who has one runs.  Every block finds the end
  // once.
  return order.at(b.wrap(DrawOp::create(
      b, scores.arguments.get(b, kCounterRole), order.count + b.gridSize(0))));
}

Tile MergedSpillBackward::ready(const Order &order, const Tile &first) const {
  Tile next = skipIdle(
      b, first,
      [&](const Tile &queued) -> Scalar {
        return b.wrap(choose(
            queued, [&](const RoundsFrame &frame, const Tile &tile) -> Values {
              return {frame.isIdle(tile)};
            })[0]);
      },
      [&] { return drawNext(order); });
  b.when((b.i32(-1) < next.row) & (next.part < b.i32(0)), [&] {
    choose(next, [&](const RoundsFrame &frame, const Tile &tile) -> Values {
      if (frame.is(RoundsLaunch::querySums))
        awaitRow(tile);
      if (frame.is(RoundsLaunch::keySums)) {
        Flag flag = flagOfHead(tile);
        b.when(b.i32(0) < flag.isReady, [&] { await(flag); });
      }
      return {};
    });
    FenceAsyncOp::create(b, /*global=*/true); // before TMA loads P and dS
  });
  return next;
}

/// Tells the head at once: sums of keys should not wait for this one's loads.
void MergedSpillBackward::awaitRow(const Tile &tile) const {
  Flag flag = flagOfRow(tile);
  await(flag);
  Scalar isFirst = tile.part == b.i32(0);
  if (!scores.lists)
    isFirst = isFirst & (b.i32(0) < flag.isReady);
  b.when(isFirst, [&] {
    Tile ofKeys = tile;
    ofKeys.head = tile.head / scores.sharers;
    count(flagOfHead(ofKeys));
  });
}

Place MergedSpillBackward::load(const Tile &queued, Place place) const {
  ValueRange after =
      choose(queued, [&](const RoundsFrame &frame, const Tile &tile) -> Values {
        Place after = loadSpillTile(frame, tile, place);
        if (frame.is(RoundsLaunch::querySums))
          count(flagOfRow(tile));
        if (frame.is(RoundsLaunch::keySums)) {
          Flag flag = flagOfHead(tile);
          b.when(b.i32(0) < flag.isReady, [&] { count(flag); });
        }
        return {after.slot, after.parity};
      });
  return {b.wrap(after[0]), b.wrap(after[1])};
}

Tile MergedSpillBackward::nextOf(const Order &order, const Tile &before) const {
  Scalar next = before.part + scores.entriesApart();
  Tile same{before.row, before.head, before.batch, next};
  // Rows of other tiles may be those of keys, which have no such list.
  Scalar isScores = b.i32(-1) < before.part;
  Scalar entries = b.wrap(b.choose(
      isScores,
      [&]() -> Values { return {scores.entriesOf(scores.listed(before))}; },
      [&]() -> Values { return {b.i32(0)}; })[0]);
  return Tile::of(
      b, b.choose(
             isScores & (next < entries), [&] { return same.numbers(); },
             [&] { return ready(order, drawNext(order)).numbers(); }));
}

void MergedSpillBackward::produceLists() const {
  Order order(*this);
  feedTilesInTurn(
      b, scores.queue, ready(order, drawNext(order)),
      [&](const Tile &tile, Place place) { return load(tile, place); },
      [&](const Tile &before) { return nextOf(order, before); });
}

void MergedSpillBackward::produce() const {
  if (scores.lists)
    return produceLists();
  Place start = Place::writer(b);
  Order order(*this);
  feedTiles(
      b, scores.queue, ready(order, drawNext(order)),
      {start.slot, start.parity},
      [&](const Tile &tile, ValueRange carried) -> SmallVector<Value> {
        Place after = load(tile, {b.wrap(carried[0]), b.wrap(carried[1])});
        return {after.slot, after.parity};
      },
      [&](SmallVector<Value> &) { return ready(order, drawNext(order)); });
}

void MergedSpillBackward::write(int64_t group) const {
  forEachTile(
      b, scores.queue, Value(b.i32(0)),
      [&](const Tile &queued, ValueRange carried) -> SmallVector<Value> {
        Scalar turn = b.wrap(carried[0]);
        return llvm::to_vector(choose(
            queued, [&](const RoundsFrame &frame, const Tile &tile) -> Values {
              Scalar after = writeSpillTile(frame, group, tile, turn);
              if (frame.is(RoundsLaunch::scores)) {
                TmaStoreWaitOp::create(b, 0u, /*complete=*/true);
                count(flagOfRow(tile));
              }
              return {after};
            }));
      });
}
