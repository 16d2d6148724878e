//===- FlashSplitter.cpp - The roles that feed wgmma with f32 -------------===//
//
// A producer of one lane loads rows of f32 into a small ring, a few at a time;
// warps beside it read them there and write the three parts of bf16 that
// consumers multiply, as the tensor copy engine would have laid them out.
//
// Both go through the operands in one order, that of FlashProducer.cpp:
// K[last] Q | K[n] V[n + 1] ... | K' V[first] Q' (' = next tile).
//
// Example: blocks of 64 keys of d = 128 come in four pieces of 16 rows, each
// two strips of 8 rows by two panels.  Of the 16 units that makes, seven warps
// take two or three each.
//
//===----------------------------------------------------------------------===//

#include "Flash/FlashFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

enum Operand { kKeys, kValues, kQueries };

/// Where a role stands in the rings: of operands and of what lands.
struct Places {
  std::array<Place, 3> operands; ///< by `Operand`
  Place landing;

  SmallVector<Value> pack() const {
    SmallVector<Value> all;
    for (const Place &place : operands)
      all.append({place.slot, place.parity});
    all.append({landing.slot, landing.parity});
    return all;
  }
  static Places of(TileBuilder &b, ValueRange all) {
    auto at = [&](size_t i) {
      return Place{b.wrap(all[2 * i]), b.wrap(all[2 * i + 1])};
    };
    return {{at(0), at(1), at(2)}, at(3)};
  }
};

/// What both roles go through.
class Feeder {
public:
  explicit Feeder(const FlashFrame &frame) : f(frame), b(frame.b) {}
  virtual ~Feeder() = default;

  void run(const Places &start) {
    Place message = Place::reader(b);
    Tile first = like = firstTile(message);
    Places places = start;
    auto begin = [&] {
      keys(places, first, f.blocks->walkOf(b, first).first());
      feed(places, kQueries, first, first.row);
    };
    // Of sequences there may be none that has rows.
    if (f.problem.ragged)
      when(b.i32(-1) < first.row, places, begin);
    else
      begin();

    message = f.queue.next(b, message);
    SmallVector<Value> init = first.numbers();
    init.append({message.slot, message.parity});
    init.append(places.pack());
    b.repeat(
        init, [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) { return tile(s); });
  }

protected:
  virtual Tile firstTile(Place message) = 0;
  virtual Tile nextTile(Place message, const Tile &tile) = 0;
  /// Steps of a tile before the next one is asked for.
  virtual Scalar stepsBefore(const Tile &tile, Scalar steps) = 0;
  /// Does what the role does with rows of an operand.
  virtual void feed(Places &places, Operand operand, const Tile &tile,
                    Scalar row) = 0;

  int64_t piecesOf(Operand operand) const {
    return (operand == kQueries ? f.query : f.key) / f.landing.rows;
  }

  int64_t columnsOf(Operand operand) const {
    return operand == kValues ? f.dimV : f.dim;
  }

  const FlashFrame &f;
  TileBuilder &b;

private:
  /// Numbers that say where the role stands, behind those of its tile.
  static constexpr size_t kPlaces = 10;
  Tile like; ///< the first one, whose form all have

  void keys(Places &places, const Tile &tile, Scalar block) {
    feed(places, kKeys, tile, block * f.key);
  }
  void values(Places &places, const Tile &tile, Scalar block) {
    feed(places, kValues, tile, block * f.key);
  }
  /// If there is such a tile.
  void when(Scalar more, Places &places, function_ref<void()> body) {
    SmallVector<Value> before = places.pack();
    places = Places::of(b, b.choose(
                               more,
                               [&] {
                                 body();
                                 return places.pack();
                               },
                               [&] { return before; }));
  }

  SmallVector<Value> tile(ValueRange s) {
    Tile tile = like.like(b, s.drop_back(kPlaces));
    s = s.take_back(kPlaces);
    Place message{b.wrap(s[0]), b.wrap(s[1])};
    KeyWalk walk = f.blocks->walkOf(b, tile);
    Scalar steps = walk.steps();
    auto step = [&](Scalar i, ValueRange carried) {
      Places places = Places::of(b, carried);
      Scalar block = walk.block(i);
      keys(places, tile, block);
      values(places, tile, walk.blockBefore(i, block));
      return places.pack();
    };
    Scalar askAt = stepsBefore(tile, steps);
    SmallVector<Value> carried = llvm::to_vector(s.drop_front(2));
    carried = llvm::to_vector(b.loop(b.i32(1), askAt, carried, step));
    Tile next = nextTile(message, tile);
    if (Value(askAt) != Value(steps))
      carried = llvm::to_vector(b.loop(askAt, steps, carried, step));

    Places places = Places::of(b, carried);
    Scalar more = b.i32(-1) < next.row;
    when(more, places,
         [&] { keys(places, next, f.blocks->walkOf(b, next).first()); });
    values(places, tile, walk.last());
    when(more, places, [&] { feed(places, kQueries, next, next.row); });
    message = f.queue.next(b, message);
    SmallVector<Value> result = next.numbers();
    result.append({message.slot, message.parity});
    result.append(places.pack());
    return result;
  }
};

/// Draws tiles and starts loads.
class Lander : public Feeder {
public:
  explicit Lander(const FlashFrame &frame)
      : Feeder(frame), order(frame.order()) {}

private:
  Tile firstTile(Place message) override {
    return push(message,
                f.blocks->drawn(order.first(b, f.arguments, f.persistent)));
  }
  Tile nextTile(Place message, const Tile &tile) override {
    if (!f.persistent)
      return push(message, tile.none(b));
    return push(message, f.blocks->drawn(order.drawNext(b, f.arguments)));
  }
  Tile push(Place message, Tile tile) {
    pushTile(b, f.queue, message, tile);
    return tile;
  }
  Scalar stepsBefore(const Tile &tile, Scalar steps) override {
    return f.blocks->stepsBeforeNext(b, tile, steps);
  }

  void feed(Places &places, Operand operand, const Tile &tile,
            Scalar row) override {
    bool isQuery = operand == kQueries;
    Scalar head = isQuery ? tile.head : tile.head / f.arguments.get(b, "group");
    int64_t columns = columnsOf(operand);
    places.landing =
        places.landing.loop(b, b.i32(0), b.i32(piecesOf(operand)),
                            [&](Scalar piece, Place landing) {
                              load(landing, operand, tile, head,
                                   row + piece * f.landing.rows, columns);
                              return f.ringLanding.next(b, landing);
                            });
  }

  /// Loads a piece, of as many panels as the operand has.
  void load(Place landing, Operand operand, const Tile &tile, Scalar head,
            Scalar row, int64_t columns) {
    constexpr StringLiteral names[] = {"k", "v", "q"};
    auto type = cast<SmemType>(f.bufferLanding.getType());
    int64_t wanted = llvm::alignTo(columns, type.panelColumns());
    std::optional<int64_t> some;
    if (wanted < type.getColumns())
      some = wanted;
    Value map = f.map(names[operand]);
    Corner at = operand == kQueries ? Corner::ofQueries(b, map, tile, row)
                                    : Corner::ofKeys(b, map, tile, row);
    at.load(b, map, f.emptyMap(operand == kQueries ? Role::q : Role::k),
            [&](Value map) {
              f.ringLanding.load(b, landing, map, at.batch, head, at.row,
                                 f.bufferLanding, /*rank=*/{},
                                 /*column=*/b.i32(0), some);
            });
  }

  TileOrder order;
};

/// Writes the parts of what has landed.
class Splitter : public Feeder {
public:
  explicit Splitter(const FlashFrame &frame)
      : Feeder(frame), worker(b.warpId() - FlashFrame::kProducerWarps) {}

private:
  Tile firstTile(Place message) override { return f.pop(message); }
  Tile nextTile(Place message, const Tile &) override { return f.pop(message); }
  Scalar stepsBefore(const Tile &, Scalar steps) override { return steps; }

  void feed(Places &places, Operand operand, const Tile &, Scalar) override {
    const Ring &ring = operand == kKeys     ? f.ringK
                       : operand == kValues ? f.ringV
                                            : f.ringQ;
    Place &place = places.operands[operand];
    ring.awaitEmpty(b, place);
    places.landing =
        places.landing.loop(b, b.i32(0), b.i32(piecesOf(operand)),
                            [&](Scalar number, Place landing) {
                              piece(landing, number, operand, place);
                              return f.ringLanding.next(b, landing);
                            });
    FenceAsyncOp::create(b);
    ring.handOver(b, place);
    place = ring.next(b, place);
  }

  /// The warp's share of a piece: units of a few rows and a panel.
  void piece(Place landing, Scalar number, Operand operand, Place place) {
    constexpr int64_t rows = SplitRowsOp::kRows;
    constexpr int64_t columns = SplitRowsOp::kColumns;
    int64_t warps = f.helperWarps;
    int64_t strips = f.landing.rows / rows;
    int64_t panels = llvm::divideCeil(columnsOf(operand), columns);
    int64_t units = strips * panels;
    ArrayRef<Value> parts = operand == kKeys     ? f.buffersK
                            : operand == kValues ? f.buffersV
                                                 : f.buffersQ;
    f.ringLanding.awaitFull(b, landing);
    // Of all units of the operand the warp's are those with its remainder.
    Scalar first = (worker + warps * units - number * units % warps) % warps;
    b.loop(b.i32(0), (b.i32(units + warps - 1) - first) / warps, {},
           [&](Scalar i, ValueRange) -> SmallVector<Value> {
             Scalar unit = first + i * warps;
             Scalar strip = unit / panels;
             SplitRowsOp::create(b, f.bufferLanding, landing.slot, strip * rows,
                                 (unit - strip * panels) * columns, parts[0],
                                 parts[1], parts[2], place.slot,
                                 (number * strips + strip) * rows);
             return {};
           });
    f.ringLanding.release(b, landing);
  }

  Scalar worker; ///< number of the warp in the role
};

} // namespace

void attn::landOperands(const FlashFrame &frame) {
  Place reader = Place::reader(frame.b), writer = Place::writer(frame.b);
  Lander(frame).run({{reader, reader, reader}, writer});
}

void attn::splitOperands(const FlashFrame &frame) {
  Place reader = Place::reader(frame.b), writer = Place::writer(frame.b);
  Splitter(frame).run({{writer, writer, writer}, reader});
}
