//===- MergedSpill.cpp - Scores and outputs in one launch -----------------===//

#include "MergedSpill.h"

#include "attn/Schedule/Registry.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void attn::declareFlags(TileBuilder &b, Arguments &arguments,
                        const KernelRequest &request) {
  arguments.perLaunch(kFlagsRole, b.getI32Type(),
                      mergedFlags(request.tiles, request.problem));
}

ValueRange
MergedSpill::choose(const Tile &queued,
                    function_ref<Values(const Tile &)> ofScores,
                    function_ref<Values(const Tile &)> ofOutputs) const {
  return b.choose(
      isOutput(b, queued), [&] { return ofOutputs(turned(queued)); },
      [&] { return ofScores(queued); });
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

MergedSpill::Flag MergedSpill::flagOf(const Tile &tile) const {
  SpillFrame::RoundHead head = outputs.inRound(tile.batch, tile.head);
  Run seen = outputs.blocksSeen(tile);
  Scalar number =
      (head.keyHead * outputs.sharers + head.sharer) * outputs.rowTiles +
      (tile.row - outputs.firstQuery) / SpillFrame::kRows;
  return {outputs.arguments.get(b, kFlagsRole), number,
          (seen.end - seen.begin) * outputs.writers};
}

void MergedSpill::count(const Flag &flag) const {
  CountOp::create(b, flag.flags, flag.index, flag.ofScores + outputs.parts);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

// Tiles ahead are two for each multiprocessor, and whole sections: those of the
// scores that an output waits for are then done, or nearly so, when it is
// drawn. Then come sections of outputs (`SpillFrame::sectionOf`), and before
// each the scores of as many heads, as long as there are any.
MergedSpill::Order::Order(const MergedSpill &tiles) : tiles(tiles) {
  TileBuilder &b = tiles.b;
  constexpr int64_t perMultiprocessor = 2;
  const SpillFrame &outputs = tiles.outputs;
  Scalar one = b.i32(1);
  scoresOfHead = b.max(tiles.scores.tilesOfHead(), one);
  ofHead = scoresOfHead + outputs.tilesOfHead();
  // Of whole sections, so many heads or more.
  auto wholeSections = [&](Scalar heads) {
    SpillFrame::Section last = outputs.sectionOf(heads - 1, one);
    return b.min(last.first + last.heads, outputs.heads);
  };
  int64_t tilesAhead = tiles.scores.request.sms * perMultiprocessor;
  Scalar headsAhead =
      wholeSections((scoresOfHead + (tilesAhead - 1)) / scoresOfHead);
  ahead = headsAhead * scoresOfHead;
  Scalar left = outputs.heads - headsAhead;
  mixed = b.select(b.i32(0) < left, wholeSections(left), b.i32(0));
  count = ahead + mixed * scoresOfHead + outputs.tileCount();
}

Tile MergedSpill::Order::at(Scalar number) const {
  TileBuilder &b = tiles.b;
  Scalar behind = b.max(number - ahead, b.i32(0));
  SpillFrame::Section section = tiles.outputs.sectionOf(behind, ofHead);
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

Tile MergedSpill::drawNext(const Order &order) const {
  // The first tiles are drawn too: who has one runs.  Every block finds the end
  // once.
  return order.at(b.wrap(DrawOp::create(b, b.getI32Type(),
                                        scores.arguments.get(b, kCounterRole),
                                        order.count + b.gridSize(0))));
}

Tile MergedSpill::ready(const Order &order, const Tile &queued) const {
  Tile next = skipIdle(
      b, queued,
      [&](const Tile &tile) {
        return (isOutput(b, tile) == b.boolean(false)) & scores.isIdle(tile);
      },
      [&] { return drawNext(order); });
  b.when((b.i32(-1) < next.row) & isOutput(b, next), [&] {
    Flag flag = flagOf(turned(next));
    AwaitOp::create(b, b.getI32Type(), flag.flags, flag.index, flag.ofScores);
    count(flag);
    FenceAsyncOp::create(b); // before the copy engine reads P
  });
  return next;
}

void MergedSpill::produce() const {
  Place start = Place::writer(b);
  Order order(*this);
  feedTiles(
      b, scores.queue, ready(order, drawNext(order)),
      {start.slot, start.parity},
      [&](const Tile &tile, ValueRange carried) -> SmallVector<Value> {
        Place place{b.wrap(carried[0]), b.wrap(carried[1])};
        auto load = [&](const SpillFrame &frame, const Tile &tile) -> Values {
          Place after = loadSpillTile(frame, tile, place);
          return {after.slot, after.parity};
        };
        return llvm::to_vector(choose(
            tile, [&](const Tile &tile) { return load(scores, tile); },
            [&](const Tile &tile) { return load(outputs, tile); }));
      },
      [&] { return ready(order, drawNext(order)); });
}

void MergedSpill::write(int64_t group) const {
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
