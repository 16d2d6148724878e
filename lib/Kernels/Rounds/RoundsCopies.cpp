//===- RoundsCopies.cpp - What comes and goes in plain products -----------===//
//
// Roles of one lane each, in each of the launches.
//
// The producer draws tiles from a counter that the grid shares, tells the other
// roles (a queue), and starts every load: of each step a left and a right
// factor.  Each warpgroup has a writer of its own, which starts what leaves:
// the warpgroup has put it in its half of the staging buffer, whole or in
// pieces.  With one for both the second one's pieces wait for the first one's.
//
//===----------------------------------------------------------------------===//

#include "Rounds/RoundsFrame.h"

#include "attn/Schedule/Schedule.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

//===----------------------------------------------------------------------===//
// Producer
//===----------------------------------------------------------------------===//

class Producer {
public:
  explicit Producer(const RoundsFrame &frame) : f(frame), b(frame.b) {}

  void produce() {
    Place place = Place::writer(b);
    feedTiles(
        b, f.queue, busy(f.tileAt(b.programId(0))), {place.slot, place.parity},
        [&](const Tile &tile, ValueRange carried) -> SmallVector<Value> {
          Place place =
              loadTile(tile, {b.wrap(carried[0]), b.wrap(carried[1])});
          return {place.slot, place.parity};
        },
        [&](SmallVector<Value> &) { return busy(drawNext()); });
  }

  Place loadTile(const Tile &tile, Place start) {
    if (f.is(RoundsLaunch::deltas))
      return loadRows(tile, start);
    if (f.lists && !f.isForward && !f.is(RoundsLaunch::scores))
      return f.forEachStep(tile, start,
                           [&](const GradientStep &step, Place place) {
                             return loadStep(tile, step, place);
                           });
    Walk walk = f.walkInRound(tile);
    GradientStep first = f.firstStep(walk);
    ValueRange last =
        b.loop(b.i32(0), walk.steps,
               {start.slot, start.parity, first.head, first.block},
               [&](Scalar, ValueRange p) -> SmallVector<Value> {
                 auto at = [&](int i) { return b.wrap(p[i]); };
                 GradientStep step{at(2), at(3)};
                 Place place = loadStep(tile, step, {at(0), at(1)});
                 step = f.nextStep(walk, step);
                 return {place.slot, place.parity, step.head, step.block};
               });
    return {b.wrap(last[0]), b.wrap(last[1])};
  }

private:
  /// The tile, or the next one for which there is something to do: found here,
  /// ahead of those who compute.
  Tile busy(const Tile &tile) {
    if (f.is(RoundsLaunch::keySums))
      return tile;
    return skipIdle(
        b, tile, [&](const Tile &tile) { return f.isIdle(tile); },
        [&] { return drawNext(); });
  }

  Tile drawNext() {
    Scalar drawn = b.wrap(
        DrawOp::create(b, f.arguments.get(b, kCounterRole), f.tileCount()));
    // The first tiles went to the blocks by their numbers.
    return f.tileAt(drawn + b.gridSize(0));
  }

  /// Rows of dO and of O, 64 columns after the other.
  Place loadRows(const Tile &tile, Place start) {
    return loadEach(f.problem.headDimV, start, [&](Scalar column, Place place) {
      load("do", tile.batch, tile.head, tile.row, column, f.left, place);
      this->start("o", tile.batch, tile.head, tile.row, column, f.right,
                  f.stageOf(place, RoundsFrame::kRows), place);
    });
  }

  Place loadStep(const Tile &tile, GradientStep step, Place place) {
    if (f.lists && f.is(RoundsLaunch::scores))
      step.block = f.blockAt(f.listed(tile), step.block);
    switch (f.launch) {
    case RoundsLaunch::deltas:
      llvm_unreachable("walks along nothing");
    case RoundsLaunch::scores:
      if (f.splits)
        return loadPartsOfSlices(tile, step, place);
      if (f.halves)
        return loadSlicesOfHalves(tile, place);
      if (f.isForward || !f.keeps)
        place = loadSlices("q", "k", f.problem.headDim, tile, step, place);
      if (f.isForward)
        return place;
      place = loadSlices("do", "v", f.problem.headDimV, tile, step, place);
      return f.keeps ? loadKept(tile, step, place) : place;
    case RoundsLaunch::keySums: {
      Scalar isValue = f.isValuePart(tile);
      f.ring.awaitEmpty(b, place);
      b.when(isValue, [&] { loadPair("scratch_p", "do", tile, step, place); });
      b.when(isValue == b.boolean(false),
             [&] { loadPair("scratch_ds", "q", tile, step, place); });
      return f.ring.next(b, place);
    }
    case RoundsLaunch::querySums: {
      RoundsFrame::RoundHead head = f.inRound(tile.batch, tile.head);
      Scalar key = step.block * RoundsFrame::kStep;
      if (f.splits)
        return loadPartsOfWeights(head, tile, key, place);
      f.ring.awaitEmpty(b, place);
      if (f.isForward) {
        loadWeights(tile, key, place);
        return f.ring.next(b, place);
      }
      load("scratch_ds", head.keyHead, head.sharer, tile.row, key - f.firstKey,
           f.left, place);
      load("k", tile.batch, tile.head / f.sharers, key, f.columnOf(tile),
           f.right, place);
      return f.ring.next(b, place);
    }
    }
    llvm_unreachable("closed enum");
  }

  /// 64 keys: weights of the tile's queries, and rows of V.
  void loadWeights(const Tile &tile, Scalar key, Place place) {
    Scalar block = key / f.keyBlock;
    RoundsFrame::WeightsPlace at =
        f.weightsAt(tile, block, key - block * f.keyBlock);
    load(at.array, at.batch, at.head, at.row, at.column, f.left, place);
    load("v", tile.batch, tile.head / f.sharers, key, f.columnOf(tile), f.right,
         place);
    if (f.merged && f.halves) // the right factor of scores comes in two
      f.ring.handOver(b, place);
  }

  /// So many slices, part by part, each into a slot, the small ones first.  A
  /// loop, since a lane that loads has few registers.
  Place loadParts(int64_t slices, Place start,
                  function_ref<void(Scalar slice, Scalar part, Place)> load) {
    return start.loop(b, b.i32(0), b.i32(slices * kScaledParts),
                      [&](Scalar number, Place place) {
                        Scalar slice = number / kScaledParts;
                        f.ring.awaitEmpty(b, place);
                        Scalar last = slice * kScaledParts + (kScaledParts - 1);
                        load(slice, last - number, place);
                        return f.ring.next(b, place);
                      });
  }

  Place loadPartsOfWeights(const RoundsFrame::RoundHead &head, const Tile &tile,
                           Scalar key, Place start) {
    Scalar block = key / f.keyBlock, rowOfV = key;
    if (f.lists)
      rowOfV = key + (f.blockAt(f.listed(tile), block) - block) * f.keyBlock;
    return loadParts(1, start, [&](Scalar, Scalar part, Place place) {
      load("scratch_p", head.keyHead, f.blockInRound(head, block),
           tile.row - f.firstQuery, key + (part - block) * f.keyBlock, f.left,
           place);
      load("scratch_v", tile.batch, tile.head / f.sharers, rowOfV,
           f.columnOf(tile) + part * f.partColumns("v"), f.right, place);
    });
  }

  Place loadPartsOfSlices(const Tile &tile, const GradientStep &step,
                          Place start) {
    constexpr int64_t width = RoundsFrame::kStep;
    int64_t columns = f.partColumns("q");
    return loadParts(columns / width, start,
                     [&](Scalar slice, Scalar part, Place place) {
                       Scalar column = slice * width + part * columns;
                       load("scratch_q", tile.batch, tile.head, tile.row,
                            column, f.left, place);
                       load("scratch_k", tile.batch, tile.head / f.sharers,
                            step.block * f.keyBlock, column, f.right, place);
                     });
  }

  /// Both factors of a block of scores, or of dP, 64 columns after the other.
  Place loadSlices(StringRef own, StringRef streamed, int64_t columns,
                   const Tile &tile, const GradientStep &step, Place start) {
    return loadEach(columns, start, [&](Scalar column, Place place) {
      load(own, tile.batch, tile.head, tile.row, column, f.left, place);
      load(streamed, tile.batch, tile.head / f.sharers, step.block * f.keyBlock,
           column, f.right, place);
    });
  }

  /// Weights of a block, 128 columns in each slot, in the place of its right
  /// factor.
  Place loadKept(const Tile &tile, const GradientStep &step, Place start) {
    constexpr int64_t width = RoundsFrame::kStep;
    Scalar key = step.block * f.keyBlock;
    return loadEach(f.keyBlock / 2, start, [&](Scalar column, Place place) {
      for (int64_t half = 0; half < 2; ++half)
        this->start("weights", tile.batch, tile.head, tile.row,
                    key + (column * 2 + half * width), f.rightHalves,
                    place.slot * 2 + half, place);
    });
  }

  /// A slot for every 64 of so many columns.
  Place loadEach(int64_t columns, Place start,
                 function_ref<void(Scalar column, Place)> load) {
    constexpr int64_t width = RoundsFrame::kStep;
    return start.loop(b, b.i32(0), b.i32((columns + width - 1) / width),
                      [&](Scalar slice, Place place) {
                        f.ring.awaitEmpty(b, place);
                        load(slice * width, place);
                        return f.ring.next(b, place);
                      });
  }

  /// Q and both halves of a block of K, or the one that is seen.
  Place loadSlicesOfHalves(const Tile &tile, Place start) {
    constexpr int64_t rows = RoundsFrame::kRows;
    RoundsFrame::Half half = f.halfOf(tile);
    Scalar keyHead = tile.head / f.sharers;
    Scalar key =
        tile.part * f.keyBlock + b.select(half.isUpper, b.i32(rows), b.i32(0));
    return loadEach(f.problem.headDim, start, [&](Scalar column, Place place) {
      load("q", tile.batch, tile.head, tile.row, column, f.left, place);
      auto loadHalf = [&](int64_t which) {
        this->start("k", tile.batch, keyHead, key + which * rows, column,
                    f.rightHalves, place.slot * 2 + which, place);
      };
      loadHalf(0);
      b.when(half.isAlone == b.boolean(false), [&] { loadHalf(1); });
      b.when(half.isAlone, [&] { f.ring.handOver(b, place); });
    });
  }

  /// 64 queries: weights (or what is left of dP) of the tile's keys, and rows.
  void loadPair(StringRef weights, StringRef rows, const Tile &tile,
                const GradientStep &step, Place place) {
    RoundsFrame::RoundHead head = f.inRound(tile.batch, step.head);
    Scalar query = step.block * RoundsFrame::kStep;
    load(weights, head.keyHead, head.sharer, query, tile.row - f.firstKey,
         f.left, place);
    load(rows, tile.batch, step.head, query, f.columnOf(tile), f.right, place);
  }

  void load(StringRef operand, Scalar batch, Scalar head, Scalar row,
            Scalar column, Value buffer, Place place) {
    // Tiles of sums may be narrower than the slots of a merged ring.
    bool isNarrow = f.merged && !f.is(RoundsLaunch::scores) &&
                    buffer == f.right && f.column < f.keyBlock;
    IntegerAttr columns =
        isNarrow ? b.getI64IntegerAttr(f.column) : IntegerAttr();
    if (!f.leftHalves || buffer != f.left)
      return start(operand, batch, head, row, column, buffer, place.slot, place,
                   columns);
    for (int64_t half = 0; half < 2; ++half)
      start(operand, batch, head, row + half * kGroupRows, column, f.leftHalves,
            place.slot * 2 + half, place);
  }

  /// Into a stage of a buffer, for a slot of the ring.
  void start(StringRef operand, Scalar batch, Scalar head, Scalar row,
             Scalar column, Value buffer, Scalar stage, Place place,
             IntegerAttr columns = {}) {
    TmaLoadOp::create(b, f.map(operand), batch, head, row, buffer, stage,
                      f.ring.fullBarrier(), place.slot, column,
                      /*rank=*/Value(), columns);
  }

  const RoundsFrame &f;
  TileBuilder &b;
};

//===----------------------------------------------------------------------===//
// Writer
//===----------------------------------------------------------------------===//

class Writer {
public:
  Writer(const RoundsFrame &frame, int64_t group)
      : f(frame), b(frame.b), group(group) {}

  void write() {
    forEachTile(b, f.queue, Value(b.i32(0)),
                [&](const Tile &tile, ValueRange turn) -> SmallVector<Value> {
                  return {write(tile, b.wrap(turn[0]))};
                });
  }

  Scalar write(const Tile &tile, Scalar turn) {
    switch (f.launch) {
    case RoundsLaunch::deltas: // from registers
      return turn;
    case RoundsLaunch::scores:
      return writeScores(tile, turn);
    case RoundsLaunch::keySums: {
      Scalar isValue = f.isValuePart(tile);
      b.when(isValue, [&] { writeSums("dv", tile, turn); });
      b.when(isValue == b.boolean(false), [&] { writeSums("dk", tile, turn); });
      return f.turnAfter(turn);
    }
    case RoundsLaunch::querySums: {
      if (f.splits) // from registers
        return turn;
      if (f.isForward) {
        writeSums("o", tile, turn);
        return f.turnAfter(turn);
      }
      Scalar isLast = f.turnOf(tile).isLast;
      b.when(isLast, [&] { writeSums("dq", tile, turn); });
      return b.select(isLast, f.turnAfter(turn), turn);
    }
    }
    llvm_unreachable("closed enum");
  }

private:
  Scalar writeScores(const Tile &tile, Scalar turn) {
    if (f.isForward) {
      for (int64_t part = 0; part < (f.splits ? kScaledParts : 1); ++part) {
        RoundsFrame::WeightsPlace at =
            f.weightsAt(tile, tile.part, b.i32(part * f.keyBlock));
        write(at.array, at.batch, at.head, at.row, at.column, turn);
        turn = f.turnAfter(turn);
      }
      return turn;
    }
    RoundsFrame::RoundHead head = f.inRound(tile.batch, tile.head);
    Scalar column = f.blockAt(f.listed(tile), tile.part) * f.keyBlock;
    constexpr StringLiteral arrays[] = {"scratch_p", "scratch_ds"};
    if (f.keeps) { // a piece of each in turn
      writePieces(2 * f.stagedPieces(), turn, [&](int64_t piece) {
        store(arrays[piece % 2], head.keyHead, head.sharer, tile.row,
              column + piece / 2 * f.staging.columns, piece);
        return true;
      });
      return f.turnAfter(f.turnAfter(turn));
    }
    for (StringRef array : arrays) {
      write(array, head.keyHead, head.sharer, tile.row, column, turn);
      turn = f.turnAfter(turn);
    }
    return turn;
  }

  void writeSums(StringRef gradient, const Tile &tile, Scalar turn) {
    write(gradient, tile.batch, tile.head, tile.row, f.columnOf(tile), turn);
  }

  /// What the warpgroup has put there.
  void write(StringRef array, Scalar batch, Scalar head, Scalar row,
             Scalar column, Scalar turn) {
    writePieces(f.stagedPieces(), turn, [&](int64_t piece) {
      if (f.isEmptyPiece(piece))
        return false;
      store(array, batch, head, row, column + piece * f.staging.columns, piece);
      return true;
    });
  }

  /// Starts what takes the warpgroup's rows of a piece away.
  void store(StringRef array, Scalar batch, Scalar head, Scalar row,
             Scalar column, int64_t piece) {
    Scalar groupRow = b.i32(group * kGroupRows);
    TmaStoreOp::create(b, f.staged, groupRow, f.map(array), batch, head,
                       row + groupRow, column,
                       /*stage=*/b.i32(piece % f.staging.slots));
  }

  /// So many pieces, of which `start` starts the store, if there is one.
  void writePieces(int64_t pieces, Scalar turn,
                   function_ref<bool(int64_t piece)> start) {
    int64_t slots = f.staging.slots;
    auto placeOf = [&](int64_t piece) {
      return f.stagedAt(b.i32(group), piece, turn);
    };
    for (int64_t first = 0; first < pieces; first += slots) {
      int64_t younger = 0; // than that of a slot, in this round
      for (int64_t piece = first; piece < first + slots; ++piece)
        f.ringStaged.startFrom(b, placeOf(piece),
                               [&] { younger += start(piece); });
      for (int64_t piece = first; piece < first + slots; ++piece) {
        younger = std::max<int64_t>(younger - 1, 0);
        f.ringStaged.releaseStored(b, placeOf(piece), younger);
      }
    }
  }

  const RoundsFrame &f;
  TileBuilder &b;
  const int64_t group; ///< whose results they are
};

} // namespace

Tile attn::skipIdle(TileBuilder &b, const Tile &tile,
                    function_ref<Scalar(const Tile &)> isIdle,
                    function_ref<Tile()> drawNext) {
  return Tile::of(b, b.repeat(
                         tile.numbers(),
                         [&](ValueRange s) {
                           Tile tile = Tile::of(b, s);
                           return (b.i32(-1) < tile.row) & isIdle(tile);
                         },
                         [&](ValueRange) { return drawNext().numbers(); }));
}

void attn::produceSpillTiles(const RoundsFrame &frame) {
  Producer(frame).produce();
}

void attn::writeSpills(const RoundsFrame &frame, int64_t group) {
  Writer(frame, group).write();
}

Place attn::loadSpillTile(const RoundsFrame &frame, const Tile &tile,
                          Place start) {
  return Producer(frame).loadTile(tile, start);
}

Scalar attn::writeSpillTile(const RoundsFrame &frame, int64_t group,
                            const Tile &tile, Scalar turn) {
  return Writer(frame, group).write(tile, turn);
}
