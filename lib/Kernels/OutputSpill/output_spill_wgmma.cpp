//===- output_spill_wgmma.cpp - Only P stays (sm_90a) ---------------------===//
//
// Rows are so wide that neither Q nor O stays in a multiprocessor, but P of a
// strip of keys does: 128 rows with 512 keys are 128 KiB of the register file.
// All else streams, through one ring (OutputSpillFrame.h), in the order of use:
//
//   scores    for every part of the strip: S, from panels of Q and K; softmax;
//             P in the registers that S had
//   outputs   for every tile of columns: O of the strips before from its place,
//             at the new maximum; O += P V, P from registers; O to its place,
//             or to the output behind the last strip
//
// With one strip nothing of S, P or O is ever read back.  O waits as the
// accumulators it is in: who reads it has written it, lane by lane.
//
// Maxima are whole powers of two (GroupSoftmax.h): when a part raises them, P
// of those before is multiplied by powers of two, which is exact.
//
// Turns.  Both warpgroups take the same units, which keeps them together.  Of a
// part's last panels, as many as the ring holds, the first warpgroup starts all
// products before the second starts any; so one makes P of its scores while the
// other multiplies.
//
//===----------------------------------------------------------------------===//

#include "ColumnSplit/GroupSoftmax.h"
#include "OutputSpill/OutputSpillFrame.h"
#include "Pipe/Epilogue.h"
#include "Pipe/Turns.h"

#include "attn/Schedule/Footprint.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Panels of scores written out one behind the other.
constexpr int64_t kMostPanels = 4;

class OutputSpill : OutputSpillFrame {
public:
  OutputSpill(TileBuilder &b, const KernelRequest &request)
      : OutputSpillFrame(b, request) {}

  KernelOp build() {
    KernelOp kernel = declare();
    RegisterBudget budget = registerBudget(kGroups);
    b.roles([&] {
      b.role("producer", kWarpsPerGroup, budget.producer, /*singleLane=*/true,
             [&] { produceHeldTiles(*this); });
      b.role("consumer", kConsumers, budget.consumer, /*singleLane=*/false,
             [&] { consume(); });
    });
    return kernel;
  }

private:
  /// P of a strip in pieces, and the rows; the place behind what made them.
  struct Weights {
    Place place;
    GroupSoftmax::Rows rows;
    SmallVector<Value> pieces;

    SmallVector<Value> pack() const {
      SmallVector<Value> all = {place.slot, place.parity, rows.max, rows.sum};
      llvm::append_range(all, pieces);
      return all;
    }
  };
  Weights unpack(ValueRange v) {
    return {{b.wrap(v[0]), b.wrap(v[1])},
            {v[2], v[3]},
            llvm::to_vector(v.drop_front(4))};
  }

  void consume() {
    Scalar warp = b.warpId();
    group = warp / kWarpsPerGroup - 1;
    groupRow = group * kGroupRows;
    consumer = warp - kWarpsPerGroup;
    warpRow = consumer * kWarpRows;
    leads = warp % kWarpsPerGroup == b.i32(0);
    turns = Turns(b, group, kGroups);
    softmax.emplace(b, arguments.get(b, "scale"), request.scale, problem.dtype);
    noWeights = CastOp::create(b, pieceType(),
                               b.fill(b.f32(0), b.accType(kWarpRows, kPiece)));
    Place start = Place::reader(b);
    // The units of a loop may be whole rounds of the ring.
    start.slot = start.slot + arguments.opaqueZero(b);
    forEachTile(b, queue, {start.slot, start.parity},
                [&](const Tile &tile, ValueRange p) -> SmallVector<Value> {
                  Place place = consumeTile(tile, {b.wrap(p[0]), b.wrap(p[1])});
                  return {place.slot, place.parity};
                });
    TmaStoreWaitOp::create(b, 0u);
  }

  Place consumeTile(const Tile &tile, Place place) {
    KeyWalk walk = walkOf(tile), strips = stripsOf(walk);
    GroupSoftmax::Rows none = softmax->start(b, kWarpRows);
    ValueRange last = strips.forEach(
        b, 0, {place.slot, place.parity, none.max, none.sum},
        [&](Scalar number, ValueRange s) -> SmallVector<Value> {
          Place place{b.wrap(s[0]), b.wrap(s[1])};
          Strip strip{strips.isFirst(number), strips.isLast(number),
                      ofStrip(walk, number), firstKeyOf(number)};
          Weights made = addStrip(tile, strip, place, {s[2], s[3]});
          return {made.place.slot, made.place.parity, made.rows.max,
                  made.rows.sum};
        });
    return {b.wrap(last[0]), b.wrap(last[1])};
  }

  /// What a tile sees of a strip, in halves from its first key on.
  struct Strip {
    Scalar isFirst, isLast;
    Run seen;
    Scalar key;
  };

  Weights addStrip(const Tile &tile, const Strip &strip, Place place,
                   const GroupSoftmax::Rows &before) {
    Weights weights{place, before,
                    SmallVector<Value>(halves * kPieces, noWeights)};
    for (int64_t part = 0; part < parts; ++part)
      weights = addPart(weights, tile, strip, part);
    GroupSoftmax::End end = softmax->finish(b, weights.rows, problem.lseLow);
    if (problem.lse)
      b.when(strip.isLast, [&] { storeRows(end.lse, tile, weights.place); });
    weights.place = addProduct(weights, before.max, end.inverse, tile, strip);
    return weights;
  }

  /// Places of two words are found here, for which they get a zero that only
  /// this round of the loop knows: in front of it they would take registers
  /// from the weights.
  void storeRows(const LogSumExp &lse, Tile tile, const Place &place) {
    Scalar row = tile.row + warpRow;
    if (problem.lseLow) {
      Scalar none = b.i32(0);
      Scalar zero = b.select(place.slot < none, b.i32(1), none);
      row = row + zero;
      tile.batch = tile.batch + zero;
    }
    storeLse(b, arguments, lse, tile, queries, row);
  }

  Type pieceType() { return b.lhsType(kWarpRows, kPiece, element); }

  //===--------------------------------------------------------------------===//
  // Scores
  //===--------------------------------------------------------------------===//

  /// P of a part as well: of both its halves, or one, or none.
  Weights addPart(const Weights &before, const Tile &tile, const Strip &strip,
                  int64_t part) {
    Run seen = ofPart(strip.seen, b.i32(part));
    int64_t first = part * ofWhole;
    Scalar key = strip.key + seen.begin * kHalf;
    auto add = [&](int64_t half, int64_t count) {
      return weigh(before, tile, key, half, count).pack();
    };
    auto addOne = [&]() -> SmallVector<Value> {
      if (!band->hasFirst || ofWhole == 1)
        return add(first, 1);
      return llvm::to_vector(b.choose(
          seen.begin == b.i32(first), [&] { return add(first, 1); },
          [&] { return add(first + 1, 1); }));
    };
    auto addSome = [&]() -> SmallVector<Value> {
      if (ofWhole == 1)
        return addOne();
      return llvm::to_vector(b.choose(
          seen.begin + 1 < seen.end, [&] { return add(first, 2); }, addOne));
    };
    return unpack(b.choose(seen.begin < seen.end, addSome,
                           [&] { return before.pack(); }));
  }

  /// Of so many halves from one on, whose first key is `key`.
  Weights weigh(const Weights &before, const Tile &tile, Scalar key,
                int64_t half, int64_t count) {
    Weights after = before;
    Value scores = softmax->orient(b, count == 1 ? multiplyOne(after.place)
                                                 : multiplyBoth(after.place));
    scores = band->hideCut(b, scores, tile.row + warpRow, key);
    auto weigh = [&](const GroupSoftmax::Raised &raised) {
      GroupSoftmax::Rows rows = raised.rows;
      Value weights = softmax->weigh(b, rows, raised.exponents);
      SmallVector<Value> values = {rows.max, rows.sum};
      for (int64_t i = 0; i < count * kPieces; ++i) {
        Value some = ExtractOp::create(b, b.accType(kWarpRows, kPiece), weights,
                                       uint64_t(i * kPiece));
        values.push_back(CastOp::create(b, pieceType(), some));
      }
      return values;
    };
    // Behind the branch code is a third smaller, and the instruction cache
    // holds it.  Both ends of a window leave no registers for exponents that
    // cross it.
    SmallVector<Value> made =
        problem.mask.hidesBefore()
            ? softmax->raise(b, before.rows, scores, weigh)
            : weigh(softmax->raise(b, before.rows, scores));
    after.rows = {made[0], made[1]};
    MutableArrayRef<Value> pieces = after.pieces;
    llvm::copy(llvm::drop_begin(made, 2), pieces.begin() + half * kPieces);
    // Weights of parts before stand at a lower maximum.
    Value exponents =
        GroupSoftmax::difference(b, before.rows.max, after.rows.max);
    for (Value &piece : pieces.take_front(half / ofWhole * ofWhole * kPieces))
      piece = ScaleRowsOp::create(b, pieceType(), piece, exponents);
    return after;
  }

  /// Panels that a warpgroup starts in its turn: the last ones, which the ring
  /// holds at once, behind whole pairs of them where they come in pairs.
  int64_t panelsInTurn(int64_t most, int64_t together) const {
    int64_t last = std::min({panels, most, kMostPanels});
    while (last > 1 && (panels - last) % together != 0)
      --last;
    return last;
  }

  /// S of one half, panel by panel; hands units back as they have been read.
  Value multiplyOne(Place &place) {
    return multiplyQK(place, panelsInTurn(slots / 2, 1), 1,
                      &OutputSpill::addPanels);
  }
  /// The same of both.
  Value multiplyBoth(Place &place) {
    return multiplyQK(place, panelsInTurn(slots / 3, 2), 2,
                      &OutputSpill::addPairs);
  }

  using AddPanels = Value (OutputSpill::*)(int64_t count, Place &place,
                                           Value sum,
                                           function_ref<void()> afterwards);
  Value multiplyQK(Place &place, int64_t last, int64_t halves,
                   AddPanels addPanels) {
    auto add = [&](int64_t count, Place &place, Value sum,
                   function_ref<void()> afterwards) {
      return (this->*addPanels)(count, place, sum, afterwards);
    };
    Value sum;
    int64_t before = panels - last;
    if (before >= kMostPanels) {
      Value none = b.fill(b.f32(0), b.accType(kWarpRows, halves * kHalf));
      ValueRange end = b.loop(b.i32(0), b.i32(before / kMostPanels),
                              {place.slot, place.parity, none},
                              [&](Scalar, ValueRange s) -> SmallVector<Value> {
                                Place place{b.wrap(s[0]), b.wrap(s[1])};
                                Value sum =
                                    add(kMostPanels, place, s[2], [] {});
                                return {place.slot, place.parity, sum};
                              });
      place = {b.wrap(end[0]), b.wrap(end[1])};
      sum = end[2];
    }
    if (before % kMostPanels)
      sum = add(before % kMostPanels, place, sum, [] {});
    turns.take(b);
    return add(last, place, sum, [&] { turns.pass(b); });
  }

  Place take(Place &place) {
    ring.awaitFull(b, place);
    Place taken = place;
    place = ring.next(b, place);
    return taken;
  }

  /// Products one behind the other: each is started, then the one before ended,
  /// and what that read handed back.
  struct Products {
    Value sum;
    SmallVector<Place> read;
  };
  void start(Products &products, Value sum, ArrayRef<Place> reads) {
    products.sum = sum;
    if (!products.read.empty()) {
      WgmmaWaitOp::create(b, TypeRange(), 1u, ValueRange());
      handBack(products);
    }
    llvm::append_range(products.read, reads);
  }
  void handBack(Products &products) {
    for (Place one : products.read)
      ring.release(b, one);
    products.read.clear();
  }
  Value end(Products &products, function_ref<void()> afterwards) {
    afterwards();
    Value result = b.await(products.sum);
    handBack(products);
    return result;
  }

  Value addPanels(int64_t count, Place &place, Value sum,
                  function_ref<void()> afterwards) {
    Products products{sum, {}};
    for (int64_t panel = 0; panel < count; ++panel) {
      Place left = take(place), right = take(place);
      start(products,
            WgmmaOp::create(b, b.pendingType(kHalf), units, left.slot, groupRow,
                            units, right.slot, /*transpose=*/true,
                            products.sum),
            {left, right});
    }
    return end(products, afterwards);
  }

  /// In the order of units (OutputSpillFrame.h), which are six from the oldest
  /// that a product reads to the youngest of the next one: a ring has as many
  /// at least.
  Value addPairs(int64_t count, Place &place, Value sum,
                 function_ref<void()> afterwards) {
    Products products{sum, {}};
    auto startPanel = [&](const Place &left, const Place &first,
                          const Place &second) {
      start(products,
            WgmmaOp::create(b, b.pendingType(2 * kHalf), units, left.slot,
                            groupRow, pairs, first.slot / 2,
                            /*transpose=*/true, products.sum),
            {first, second, left});
    };
    for (int64_t panel = 0; panel < count; panel += 2) {
      Place first = take(place), second = take(place), left = take(place);
      startPanel(left, first, second);
      left = take(place);
      if (panel + 1 == count) { // an empty unit
        products.read.push_back(left);
        break;
      }
      first = take(place), second = take(place);
      startPanel(left, first, second);
    }
    return end(products, afterwards);
  }

  //===--------------------------------------------------------------------===//
  // Outputs
  //===--------------------------------------------------------------------===//

  /// O, one tile of columns after the other, of which strips before have summed
  /// up something at the maxima `max`.
  Place addProduct(const Weights &weights, Value max, Value inverse,
                   const Tile &tile, const Strip &strip) {
    Strips strips{staging, map("o"), groupRow,
                  warpRow, leads,    /*barrier=*/group + (1 + kGroups)};
    return weights.place.loop(
        b, b.i32(0), b.i32(columnTiles), [&](Scalar number, Place place) {
          Value sum = takeUp(number, strip, max, weights.rows.max);
          sum = multiplyPV(sum, weights.pieces, strip.seen, place);
          b.when(strip.isLast, [&] {
            strips.column = number * column;
            storeOutputAsync(b, average(b, sum, inverse, element), strips,
                             tile);
          });
          b.when(strip.isLast == b.boolean(false), [&] {
            StoreRegistersOp::create(b, sum, arguments.get(b, kScratchRole),
                                     placeOf(number), /*near=*/true);
          });
          return place;
        });
  }

  /// Where a warp's rows of a tile of columns wait.  Of the widest rows a block
  /// has 32 MiB of them.
  Scalar placeOf(Scalar number) {
    return (b.programId(0) * columnTiles + number) * kConsumers + consumer;
  }

  /// What strips before have summed up, at the new maxima.
  Value takeUp(Scalar number, const Strip &strip, Value before, Value after) {
    Type type = b.accType(kWarpRows, column);
    return b.choose(
        strip.isFirst,
        [&]() -> SmallVector<Value> { return {b.fill(b.f32(0), type)}; },
        [&]() -> SmallVector<Value> {
          Value sum = LoadRegistersOp::create(b, TypeRange{type},
                                              arguments.get(b, kScratchRole),
                                              placeOf(number), /*near=*/true)
                          .getResult(0);
          Value exponents = GroupSoftmax::difference(b, before, after);
          return {scaleRows(b, sum, GroupSoftmax::powers(b, exponents))};
        })[0];
  }

  /// sum += P V of the halves that are seen, in one chain if they are all; else
  /// of those of one part after the other.  P is in registers, which must be
  /// named when the kernel is built.
  Value multiplyPV(Value sum, ArrayRef<Value> weights, const Run &seen,
                   Place &place) {
    SmallVector<Value> state = {place.slot, place.parity, sum};
    auto add = [&](int64_t half, int64_t count) -> SmallVector<Value> {
      Place after{b.wrap(state[0]), b.wrap(state[1])};
      Value sum = addPieces(weights.slice(half * kPieces, count * kPieces),
                            after, state[2]);
      return {after.slot, after.parity, sum};
    };
    auto addHalf = [&](int64_t half) {
      Scalar isSeen = (seen.begin <= b.i32(half)) & (b.i32(half) < seen.end);
      return llvm::to_vector(b.choose(
          isSeen, [&] { return add(half, 1); }, [&] { return state; }));
    };
    // Not both of them, or they are added up together.
    auto addOneOf = [&](int64_t first) {
      if (!band->hasFirst)
        return addHalf(first);
      return llvm::to_vector(b.choose(
          seen.begin <= b.i32(first), [&] { return addHalf(first); },
          [&] { return addHalf(first + 1); }));
    };
    auto addParts = [&] {
      for (int64_t first = 0; first < halves; first += 2) {
        Scalar areBoth =
            (seen.begin <= b.i32(first)) & (b.i32(first + 1) < seen.end);
        state = llvm::to_vector(b.choose(
            areBoth, [&] { return add(first, 2); },
            [&] { return addOneOf(first); }));
      }
      return state;
    };
    ValueRange last =
        b.choose((seen.begin == b.i32(0)) & (seen.end == b.i32(halves)),
                 [&] { return add(0, halves); }, addParts);
    place = {b.wrap(last[0]), b.wrap(last[1])};
    return last[2];
  }

  Value addPieces(ArrayRef<Value> weights, Place &place, Value sum) {
    Products products{sum, {}};
    for (Value piece : weights) {
      Place right = take(place);
      start(products,
            WgmmaOp::create(b, b.pendingType(column), piece,
                            /*lhsStage=*/Value(), /*lhsRow=*/Value(), pieces,
                            right.slot, /*transpose=*/false, products.sum),
            {right});
    }
    return end(products, [] {});
  }

  std::optional<GroupSoftmax> softmax;
  Scalar group, groupRow, consumer, warpRow, leads;
  Value noWeights;
  Turns turns;
};

} // namespace

namespace attn {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
KernelOp output_spill_wgmma(OpBuilder &builder, Location loc,
                            const KernelRequest &request);
} // namespace attn

KernelOp attn::output_spill_wgmma(OpBuilder &builder, Location loc,
                                  const KernelRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  return OutputSpill(b, request).build();
}
