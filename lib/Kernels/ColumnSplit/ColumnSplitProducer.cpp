//===- ColumnSplitProducer.cpp - The role that feeds column_split ---------===//
//
// One lane: draws tiles for its team and starts every load, in the order in
// which the consumers use them.
//
//===----------------------------------------------------------------------===//

#include "ColumnSplit/ColumnSplitFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Producer {
public:
  explicit Producer(const ColumnSplitFrame &frame) : f(frame), b(frame.b) {}

  void produce() {
    Value flags = f.arguments.get(b, kFlagsRole);
    Place start = Place::writer(b);
    Scalar number = f.team->first(b, *f.order);
    Tile first = f.drawn(f.order->at(b, number));
    pushTile(b, f.queue, messageOf(b.i32(0)), first);
    b.when(exists(first), [&] { loadQueries(first, b.i32(0)); });
    SmallVector<Value> init = first.numbers();
    init.append({number, b.i32(0), start.slot, start.parity});
    b.repeat(
        init, [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) -> SmallVector<Value> {
          Tile tile = first.like(b, s.drop_back(kCarried));
          s = s.take_back(kCarried);
          auto at = [&](int i) { return b.wrap(s[i]); };
          Scalar count = at(1), slot = count & b.i32(kDrawnSlots - 1);
          Place place = loadStrips(tile, {at(2), at(3)}, [&] {
            b.when(f.team->leads, [&] { draw(flags, slot); });
          });
          // A flag holds the number plus 1.
          Scalar number = b.wrap(AwaitOp::create(
                              b, b.getI32Type(), flags,
                              f.drawnFlag(f.team->rowGroup, slot), at(0) + 2)) -
                          1;
          Tile next = f.drawn(f.order->at(b, number));
          pushTile(b, f.queue, messageOf(count + 1), next);
          // Under the last strip's output, which needs no queries any more.
          b.when(exists(next), [&] { loadQueries(next, count + 1); });
          KeyWalk walk = f.walkOf(tile);
          place = loadValues(tile, walk, walk.behind(walk.last()),
                             b.i32(kPieces), allPieces(), place);
          SmallVector<Value> carried = next.numbers();
          carried.append({number, count + 1, place.slot, place.parity});
          return carried;
        });
  }

private:
  /// Tells all groups of the team of its next tile.
  void draw(Value flags, Scalar slot) {
    Scalar drawn = f.order->draw(b, f.arguments);
    for (int64_t rank = 0; rank < f.cluster; ++rank)
      PublishOp::create(b, flags, f.drawnFlag(f.team->groupOf(rank), slot),
                        drawn + f.team->afterFirst() + 1)
          ->setAttr("relaxed", b.getUnitAttr());
  }

  Scalar exists(const Tile &tile) { return b.i32(-1) < tile.row; }

  /// Where the queue tells of a tile.  What follows from the tile's number
  /// among the block's is worked out anew, since 24 registers hold little.
  Place messageOf(Scalar count) {
    static_assert(kTileMessages == 2);
    return {count & b.i32(1), (count / 2) & b.i32(1)};
  }

  Scalar allPieces() { return b.i32(f.groupSize * kPieces); }

  /// The panels that stay for a tile.
  void loadQueries(const Tile &tile, Scalar count) {
    Scalar row = tile.row + f.team->rank * kRows;
    Scalar zero = b.i32(0);
    MbarrierWaitOp::create(b, f.queryEmpty, zero, f.parityOf(count) ^ 1);
    // A loop for the same reason.
    b.loop(zero, b.i32(f.panels), {zero},
           [&](Scalar panel, ValueRange p) -> SmallVector<Value> {
             Scalar stage = b.wrap(p[0]);
             Scalar stays = isStreamed(panel) == b.boolean(false);
             b.when(stays, [&] {
               TmaLoadOp::create(b, f.map("q"), tile.batch, tile.head, row,
                                 f.bufferQ, stage, f.queryFull, zero,
                                 panel * kPanel, /*rank=*/Value(),
                                 /*columns=*/IntegerAttr());
             });
             return {b.select(stays, stage + 1, stage)};
           });
  }

  /// What all strips of a tile read but the values of the last one.  Who is
  /// done first is to have the next tile, so that is drawn late: before the
  /// last strip's scores, which hide how long it takes.
  Place loadStrips(const Tile &tile, Place place, function_ref<void()> draw) {
    KeyWalk walk = f.walkOf(tile);
    return walk.forEach(b, place, [&](Scalar n, Place place) {
      b.when(walk.isLast(n), draw);
      place = loadScores(tile, n, place);
      Scalar most =
          b.select(walk.isBehindFirst(n), allPieces(), b.i32(kPieces));
      return loadValues(tile, walk, n, b.i32(0), most, place);
    });
  }

  Scalar keyHead(const Tile &tile) {
    return tile.head / f.arguments.get(b, "group");
  }

  /// Starts loading a unit; what all blocks of the cluster need they load
  /// together.
  Place loadUnit(Place place, StringRef operand, const Tile &tile, Scalar head,
                 Scalar row, Scalar column) {
    bool isShared = operand != "q" && f.cluster > 1;
    bool isValue = operand == "v";
    std::optional<int64_t> columns;
    if (isValue && f.columns < kMostColumns)
      columns = f.columns;
    if (f.keysAt && operand != "q") {
      if (isValue)
        f.valuesAt->loadValues(f.ring, place, tile, head, row / kPieceKeys,
                               f.pieces, {column, columns});
      else
        f.keysAt->loadKeys(f.ring, place, tile, head, row / kKeys, f.units,
                           {column, columns});
      return f.ring.next(b, place);
    }
    f.ring.load(b, place, f.map(operand), tile.batch, head, row,
                isValue ? f.pieces : f.units,
                isShared ? f.team->rank : Scalar(), column, columns);
    return f.ring.next(b, place);
  }

  /// What A(n) reads.
  Place loadScores(const Tile &tile, Scalar n, Place place) {
    Scalar row = tile.row + f.team->rank * kRows;
    Scalar keyHead = this->keyHead(tile);
    Scalar firstKey = f.keyOf(tile, n, f.team->part);
    auto loadQuery = [&](Scalar column, Place place) {
      return loadUnit(place, "q", tile, tile.head, row, column);
    };
    return place.loop(
        b, b.i32(0), b.i32(f.panels), [&](Scalar panel, Place place) {
          Scalar column = panel * kPanel;
          if (f.resident < f.panels)
            place = place.choose(
                b, isStreamed(panel),
                [&](Place place) { return loadQuery(column, place); },
                [](Place place) { return place; });
          return loadUnit(place, "k", tile, keyHead, firstKey, column);
        });
  }

  /// Whether a panel of Q is loaded anew for every strip, as `placeOf` says.
  Scalar isStreamed(Scalar panel) {
    int64_t streamed = f.panels - f.resident;
    return panel * streamed / f.panels < (panel + 1) * streamed / f.panels;
  }

  /// What the products behind the scores of strip n read, piece by piece:
  /// values of the own part, then those of the others in the strip before.
  Place loadValues(const Tile &tile, const KeyWalk &walk, Scalar n,
                   Scalar first, Scalar end, Place place) {
    Scalar keyHead = this->keyHead(tile);
    Scalar column = f.team->part * f.columns;
    if (f.lists)
      return loadListed(tile, walk, n, {first, end}, place);
    return place.loop(b, first, end, [&](Scalar piece, Place place) {
      Scalar distance = piece / kPieces;
      Scalar strip = b.select(piece < b.i32(kPieces), n, walk.before(n));
      Scalar key = strip * f.strip + f.team->partAfter(b, distance) * kKeys +
                   (piece & b.i32(kPieces - 1)) * kPieceKeys;
      return loadUnit(place, "v", tile, keyHead, key, column);
    });
  }

  /// The same of lists, whose entry is read once for all pieces of a part.
  Place loadListed(const Tile &tile, const KeyWalk &walk, Scalar n, Run pieces,
                   Place place) {
    Scalar keyHead = this->keyHead(tile);
    Scalar column = f.team->part * f.columns;
    return place.loop(
        b, pieces.begin / kPieces, pieces.end / kPieces,
        [&](Scalar distance, Place place) {
          Scalar strip = b.select(distance < b.i32(1), n, walk.before(n));
          Scalar first = f.keyOf(tile, strip, f.team->partAfter(b, distance));
          return place.loop(
              b, b.i32(0), b.i32(kPieces), [&](Scalar piece, Place place) {
                return loadUnit(place, "v", tile, keyHead,
                                first + piece * kPieceKeys, column);
              });
        });
  }

  /// Numbers that the role carries beside those of a tile.
  static constexpr size_t kCarried = 4;
  static constexpr int64_t kRows = ColumnSplitFrame::kRows;
  static constexpr int64_t kKeys = ColumnSplitFrame::kKeys;
  static constexpr int64_t kPanel = ColumnSplitFrame::kPanel;
  static constexpr int64_t kPieceKeys = ColumnSplitFrame::kPieceKeys;
  static constexpr int64_t kPieces = ColumnSplitFrame::kPieces;
  static constexpr int64_t kMostColumns = ColumnSplitFrame::kMostColumns;
  static constexpr int64_t kDrawnSlots = ColumnSplitFrame::kDrawnSlots;
  const ColumnSplitFrame &f;
  TileBuilder &b;
};

} // namespace

void attn::produceStrips(const ColumnSplitFrame &frame) {
  Producer(frame).produce();
}
