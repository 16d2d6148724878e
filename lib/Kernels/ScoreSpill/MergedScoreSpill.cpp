//===- MergedScoreSpill.cpp - Scores and outputs in one launch ------------===//

#include "ScoreSpill/MergedScoreSpill.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

ValueRange
MergedScoreSpill::choose(const Tile &queued,
                         function_ref<Values(const Tile &)> ofScores,
                         function_ref<Values(const Tile &)> ofOutputs) const {
  return b.choose(
      isOutput(b, queued), [&] { return ofOutputs(turned(queued)); },
      [&] { return ofScores(queued); });
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

MergedScoreSpill::Flag MergedScoreSpill::flagOf(const Tile &tile) const {
  RoundsFrame::RoundHead head = outputs.inRound(tile.batch, tile.head);
  KeyWalk walk = outputs.blocksSeen(tile);
  Scalar number =
      (head.keyHead * outputs.sharers + head.sharer) * outputs.rowTiles +
      (tile.row - outputs.firstQuery) / RoundsFrame::kRows;
  return {outputs.arguments.get(b, kFlagsRole), number,
          walk.steps() * outputs.writers};
}

void MergedScoreSpill::count(const Flag &flag) const {
  CountOp::create(b, flag.flags, flag.index, flag.ofScores + outputs.parts);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

// Tiles ahead are those of whole sections, at least one for each block: those
// of the scores that an output waits for are then done, or nearly so, when it
// is drawn.  Then come sections of outputs (`RoundsFrame::sectionOf`), and
// before each the scores of as many heads, as long as there are any.  With
// twice as many ahead, as where factors are in parts, 512 rows without a mask
// took 2 to 5 % more, since less of device memory's work was beside products.
MergedScoreSpill::Order::Order(const MergedScoreSpill &tiles) : tiles(tiles) {
  TileBuilder &b = tiles.b;
  const RoundsFrame &outputs = tiles.outputs;
  Scalar one = b.i32(1);
  scoresOfHead = b.max(tiles.scores.tilesOfHead(), one);
  ofHead = scoresOfHead + outputs.tilesOfHead();
  // Of whole sections, so many heads or more.
  auto wholeSections = [&](Scalar heads) {
    RoundsFrame::Section last = outputs.sectionOf(heads - 1, one);
    return b.min(last.first + last.heads, outputs.heads);
  };
  int64_t tilesAhead = outputs.blocksAtOnce() * (outputs.splits ? 2 : 1);
  Scalar headsAhead =
      wholeSections((scoresOfHead + (tilesAhead - 1)) / scoresOfHead);
  ahead = headsAhead * scoresOfHead;
  Scalar left = outputs.heads - headsAhead;
  mixed = b.select(b.i32(0) < left, wholeSections(left), b.i32(0));
  count = ahead + mixed * scoresOfHead + outputs.tileCount();
}

Tile MergedScoreSpill::Order::at(Scalar number) const {
  TileBuilder &b = tiles.b;
  Scalar behind = b.max(number - ahead, b.i32(0));
  RoundsFrame::Section section = tiles.outputs.sectionOf(behind, ofHead);
  Scalar isMixed = section.first < mixed;
  Scalar rest = behind - section.first * ofHead;
  Scalar isBefore = isMixed & (rest < section.heads * scoresOfHead);
  Scalar isAhead = number < ahead;
  Scalar isScores = b.wrap(arith::OrIOp::create(b, isAhead, isBefore));
  Scalar score =
      b.select(isAhead, number, ahead + section.first * scoresOfHead + rest);
  // Outputs come behind the scores of their section, or of all.
  Scalar output =
      behind -
      b.select(isMixed, section.first + section.heads, mixed) * scoresOfHead;
  Scalar all = tiles.scores.tileCount();
  Tile ofScores = tiles.scores.tileAt(b.min(score, all));
  Tile ofOutputs = turned(tiles.outputs.tileAt(output));
  // The last turn may have numbers for which there are no scores: of a block
  // behind all.
  Scalar exists = score < all;
  auto select = [&](Scalar score, Scalar output) {
    return b.select(isScores, score, output);
  };
  return {select(b.select(exists, ofScores.row, b.i32(0)), ofOutputs.row),
          select(ofScores.head, ofOutputs.head),
          select(ofScores.batch, ofOutputs.batch),
          select(b.select(exists, ofScores.part, tiles.scores.keyBlocks),
                 ofOutputs.part)};
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

Tile MergedScoreSpill::drawFrom(Scalar lane) const {
  if (scores.hasLanes) {
    scores.enterLane(lane);
    outputs.enterLane(lane);
  }
  Order order(*this);
  // The first tiles are drawn too: who has one runs.  Every block finds the end
  // once.
  return order.at(b.wrap(DrawOp::create(
      b, b.getI32Type(), scores.arguments.get(b, kCounterRole),
      scores.hasLanes ? Value(lane) : Value(), order.count + b.gridSize(0))));
}

Tile MergedScoreSpill::ready(Scalar &lane, Scalar own) const {
  auto draw = [&](Scalar lane) {
    Values drawn = drawFrom(lane).numbers();
    drawn.push_back(lane);
    return drawn;
  };
  Scalar none = b.i32(-1);
  ValueRange found = b.repeat(
      draw(lane),
      [&](ValueRange drawn) -> Scalar {
        Tile tile = Tile::of(b, drawn.drop_back());
        Scalar isIdle = (none < tile.row) &
                        (isOutput(b, tile) == b.boolean(false)) &
                        scores.isIdle(tile);
        if (!scores.hasLanes)
          return isIdle;
        Scalar isOver = (tile.row == none) & (b.wrap(drawn.back()) == own);
        return b.wrap(arith::OrIOp::create(b, isIdle, isOver));
      },
      [&](ValueRange drawn) {
        Scalar row = b.wrap(drawn.front()), lane = b.wrap(drawn.back());
        if (scores.hasLanes)
          lane = b.select(row == none, b.i32(1) - own, lane);
        return draw(lane);
      });
  Tile next = Tile::of(b, found.drop_back());
  lane = b.wrap(found.back());
  b.when((none < next.row) & isOutput(b, next), [&] {
    Flag flag = flagOf(turned(next));
    AwaitOp::create(b, b.getI32Type(), flag.flags, flag.index, flag.ofScores);
    count(flag);
    FenceAsyncOp::create(b, /*global=*/true); // before TMA loads P
  });
  return next;
}

Place MergedScoreSpill::load(const Tile &queued, Place start) const {
  auto loadOf = [&](const RoundsFrame &frame, const Tile &tile) -> Values {
    Place after = loadSpillTile(frame, tile, start);
    return {after.slot, after.parity};
  };
  ValueRange after = choose(
      queued, [&](const Tile &tile) { return loadOf(scores, tile); },
      [&](const Tile &tile) { return loadOf(outputs, tile); });
  return {b.wrap(after[0]), b.wrap(after[1])};
}

Tile MergedScoreSpill::nextOf(const Tile &before) const {
  Scalar next = before.part + scores.entriesApart();
  Tile same{before.row, before.head, before.batch, next};
  Scalar isScores = isOutput(b, before) == b.boolean(false);
  // A row that there is: `before` is a tile.
  ValueRange found = b.choose(
      isScores & (next < scores.entriesOf(scores.listed(before))),
      [&] { return same.numbers(); },
      [&] {
        Scalar lane = b.i32(0);
        return ready(lane, lane).numbers();
      });
  return Tile::of(b, found);
}

void MergedScoreSpill::produceLists() const {
  Scalar lane = b.i32(0);
  feedTilesInTurn(
      b, scores.queue, ready(lane, lane),
      [&](const Tile &tile, Place place) { return load(tile, place); },
      [&](const Tile &before) { return nextOf(before); });
}

void MergedScoreSpill::produce() const {
  if (scores.lists)
    return produceLists();
  Place start = Place::writer(b);
  Scalar own = b.i32(0);
  if (scores.hasLanes)
    own = b.wrap(SideOp::create(b, b.getI32Type()));
  Scalar lane = own;
  Tile first = ready(lane, own);
  feedTiles(
      b, scores.queue, first, {start.slot, start.parity, lane},
      [&](const Tile &tile, ValueRange carried) -> SmallVector<Value> {
        Place after = load(tile, {b.wrap(carried[0]), b.wrap(carried[1])});
        return {after.slot, after.parity, carried[2]};
      },
      [&](SmallVector<Value> &carried) {
        Scalar lane = b.wrap(carried[2]);
        Tile next = ready(lane, own);
        carried[2] = lane;
        return next;
      });
}

void MergedScoreSpill::write(int64_t group) const {
  forEachTile(b, scores.queue, Value(b.i32(0)),
              [&](const Tile &tile, ValueRange carried) -> SmallVector<Value> {
                Scalar turn = b.wrap(carried[0]);
                return llvm::to_vector(choose(
                    tile,
                    [&](const Tile &tile) -> Values {
                      Scalar after = writeSpillTile(scores, group, tile, turn);
                      TmaStoreWaitOp::create(b, 0u, /*complete=*/true);
                      count(flagOf(tile));
                      return {after};
                    },
                    [&](const Tile &tile) -> Values {
                      return {writeSpillTile(outputs, group, tile, turn)};
                    }));
              });
}
