//===- column_split_wgmma.cpp - Rows wider than a block (sm_90a) ----------===//
//
// A row of O is too wide for the registers of one block, so the blocks of a
// group (Team.h) share 128 rows: each owns up to 256 columns of O, in registers
// for the whole key range.  A strip is G x 128 keys.  Of every strip each block
// works out S and P for the 128 keys of its part, over all of d; for O it needs
// P of the whole strip, so the parts of P are exchanged.  No score is computed
// twice: the group is one cache of G times the size.
//
//   iteration n:   A(n)      S of the own keys of strip n, softmax, P to
//   scratch
//                  B(n - 1)  for each part, the own one first: O += P V
//
// The lag of one strip hides the exchange.
//
// Exchange.  A warp's P leaves as the registers it is in (tile.store_registers)
// and comes back, in the warp of the same rows of another block, as the left
// factor of a product; beside it go maximum and sum of the rows
// (GroupSoftmax.h).  The scratch has kLag + 2 slots a block, which L2 holds
// whatever the number of rows and heads: when strip n + 4 is written, strip
// n + 2 of all others has been seen, so they are past B(n).
//
// Flags.  One per block and warpgroup: how many strips it has published,
// counted over all tiles of a launch.  A publisher, one lane per warpgroup,
// waits until its four warps have written, sets the flag, waits for those of
// the other parts and arrives at the block's barrier `ready`.  At the end
// everybody sets its flag to kLeft, and part 0 sets those of the group to 0
// when all have.
//
// Tiles.  The producer of a team's first block draws the next tile before the
// last strip of one, and tells the others through a flag per group: the tile's
// number, which only grows.  A message is written over three tiles later, when
// nobody can be so far behind.
//
// A parity tells only whether a phase is the current one or the last.  Strip n
// published lets `ready` of strip n end, so `ready` of n - 1 is waited for
// before that, although its data is needed only in B(n - 1).
//
// Clusters.  Blocks of equal part in neighbouring groups need the same K and V:
// each loads its part of a unit and multicasts it to all.
//
// Memory.  `resident` panels of Q (128 rows x 64 columns) stay for a tile; a
// ring of units of the same size serves all streams in the order of use: panels
// of K (128 keys x 64 columns), pieces of V (32 keys x 256 columns), and the
// other panels of Q anew for every strip, spread evenly between the resident
// ones, which spreads the load on L2.
//
//===----------------------------------------------------------------------===//

#include "ColumnFrame.h"
#include "Epilogue.h"
#include "GroupSoftmax.h"
#include "Softmax.h"

#include "attn/Schedule/Footprint.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class ColumnSplit : ColumnFrame {
public:
  ColumnSplit(TileBuilder &b, const KernelRequest &request)
      : ColumnFrame(b, request) {}

  KernelOp build() {
    KernelOp kernel = declare();
    auto roles = RolesOp::create(b);
    b.createBlock(&roles.getBody());
    RegisterBudget budget = registerBudget(kGroups);
    b.role("producer", 1, budget.producer, /*singleLane=*/true,
           [&] { produceStrips(*this); });
    b.role("publisher 0", 1, budget.producer, /*singleLane=*/true,
           [&] { publishStrips(*this, 0); });
    b.role("publisher 1", 2, budget.producer, /*singleLane=*/true,
           [&] { publishStrips(*this, 1); });
    b.role("consumer", kConsumers, budget.consumer, /*singleLane=*/false,
           [&] { consume(); });
    b.setInsertionPointAfter(roles);
    ReturnOp::create(b);
    return kernel;
  }

private:
  /// P of a warp, and its rows.
  struct Image {
    Value weights;
    GroupSoftmax::Rows rows;
  };
  /// What B sums up.
  struct Sums {
    GroupSoftmax::Rows rows;
    Value output;
  };

  void consume() {
    Scalar warp = b.warpId();
    group = warp / kWarpsPerGroup - 1;
    groupRow = group * kGroupRows;
    consumer = warp - kWarpsPerGroup;
    softmax.emplace(b, arguments.get(b, "scale"), request.scale, problem.dtype);
    Place start = Place::reader(b);
    forEachTile(b, queue, {start.slot, start.parity, start.parity, b.i32(0)},
                [&](const Tile &tile, ValueRange s) {
                  return consumeTile(tile, {b.wrap(s[0]), b.wrap(s[1])},
                                     b.wrap(s[2]), b.wrap(s[3]));
                });
  }

  SmallVector<Value> consumeTile(const Tile &tile, Place place,
                                 Scalar queryParity, Scalar count) {
    Run run = blocks->ofTile(b, tile.row);
    Scalar warpRow = tile.row + team->rank * kRows + consumer * kWarpRows;
    MbarrierWaitOp::create(b, queryFull, b.i32(0), queryParity);

    GroupSoftmax::Rows none = softmax->start(b, kWarpRows);
    SmallVector<Value> init = {place.slot,
                               place.parity,
                               none.max,
                               none.sum,
                               none.max,
                               none.sum,
                               b.fill(b.f32(0), outputType())};
    ValueRange end = b.loop(
        run.begin, run.end + 1, init,
        [&](Scalar n, ValueRange s) -> SmallVector<Value> {
          Place place{b.wrap(s[0]), b.wrap(s[1])};
          GroupSoftmax::Rows own{s[2], s[3]};
          Sums sums{{s[4], s[5]}, s[6]};
          Scalar number = count + (n - run.begin);
          Scalar hasBefore = run.begin < n;
          ValueRange a = b.choose(
              n < run.end,
              [&] {
                return scores(place, own, run, n, number, hasBefore, warpRow);
              },
              [&]() -> SmallVector<Value> {
                awaitReady(number - 1);
                return {place.slot, place.parity, own.max, own.sum};
              });
          place = {b.wrap(a[0]), b.wrap(a[1])};
          ValueRange output = b.choose(
              hasBefore, [&] { return multiply(place, sums, number - 1); },
              [&]() -> SmallVector<Value> {
                return {place.slot, place.parity, sums.rows.max, sums.rows.sum,
                        sums.output};
              });
          return {output[0], output[1], a[2],     a[3],
                  output[2], output[3], output[4]};
        });
    store(tile, warpRow, {{end[4], end[5]}, end[6]});
    return {end[0], end[1], queryParity ^ 1, count + (run.end - run.begin)};
  }

  Type outputType() { return b.accType(kWarpRows, columns); }

  /// Waits until only the youngest product is in flight.
  void awaitOlder() { WgmmaWaitOp::create(b, TypeRange(), 1u, ValueRange()); }
  void awaitReady(Scalar number) {
    MbarrierWaitOp::create(b, ready, group, parityOf(number));
  }

  /// A warp's place in the scratch for a strip and a part.
  Scalar imagePlace(Scalar number, Scalar part) {
    Scalar slot = number & b.i32(kExchangeSlots - 1);
    return ((team->rowGroup * kExchangeSlots + slot) * groupSize + part) *
               kConsumers +
           consumer;
  }

  /// A(n): S of the own keys, softmax, P to the scratch.
  SmallVector<Value> scores(Place place, GroupSoftmax::Rows own, const Run &run,
                            Scalar n, Scalar number, Scalar hasBefore,
                            Scalar warpRow) {
    Value product = startScores(place);
    Value scores = softmax->orient(b, product);
    MbarrierArriveOp::create(b, queryEmpty, b.i32(0), n == run.end - 1);
    scores = hide(scores, warpRow, n * strip + team->part * kKeys);
    GroupSoftmax::Step step = softmax->step(b, own, scores);
    Value weights =
        CastOp::create(b, b.lhsType(kWarpRows, kKeys, element), step.weights);
    StoreRegistersOp::create(
        b, ValueRange{weights, step.rows.max, step.rows.sum},
        arguments.get(b, kScratchRole), imagePlace(number, team->part));
    b.when(hasBefore, [&] { awaitReady(number - 1); });
    MbarrierArriveOp::create(b, written, group, /*condition=*/Value());
    return {place.slot, place.parity, step.rows.max, step.rows.sum};
  }

  /// S, panel by panel; hands units back as they have been read.
  Value startScores(Place &place) {
    Value sum;
    SmallVector<Place> before;
    for (int64_t panel = 0; panel < panels; ++panel) {
      SmallVector<Place> used;
      auto take = [&] {
        ring.awaitFull(b, place);
        used.push_back(place);
        place = ring.next(b, place);
        return used.back().slot;
      };
      std::optional<int64_t> stage = placeOf(panel);
      Scalar left = stage ? b.i32(*stage) : take();
      Scalar right = take();
      sum = WgmmaOp::create(b, b.pendingType(kKeys), stage ? bufferQ : units,
                            left, groupRow, units, right, /*transpose=*/true,
                            sum);
      if (panel > 0)
        awaitOlder();
      for (Place one : before)
        ring.release(b, one);
      before = used;
    }
    Value scores = b.await(sum);
    for (Place one : before)
      ring.release(b, one);
    return scores;
  }

  /// Hides what the mask or the end of the keys does, if there is something.
  Value hide(Value scores, Scalar row, Scalar key) {
    KeyBand::Keys seen = band->seenBy(b, row, row + (kWarpRows - 1));
    Scalar isCut = seen.allEnd < key + kKeys;
    if (band->hasFirst)
      isCut = b.wrap(arith::OrIOp::create(b, isCut, key < seen.allFirst));
    return b.choose(
        isCut,
        [&]() -> SmallVector<Value> {
          return {band->hide(b, scores, row, key)};
        },
        [&]() -> SmallVector<Value> { return {scores}; })[0];
  }

  Image load(Scalar number, Scalar part) {
    Type row = b.rowType(kWarpRows);
    auto op = LoadRegistersOp::create(
        b,
        TypeRange{b.lhsType(kWarpRows, kKeys, element), row,
                  b.rowType(kWarpRows, /*partial=*/true)},
        arguments.get(b, kScratchRole), imagePlace(number, part));
    return {op.getResult(0), {op.getResult(1), op.getResult(2)}};
  }

  /// B(n): O += P V, part by part.  Sums of rows count from the last strip
  /// only, whose sums are those of all keys.
  SmallVector<Value> multiply(Place place, Sums sums, Scalar number) {
    sums.rows.sum = b.fill(b.f32(0), b.rowType(kWarpRows, /*partial=*/true));
    Image image = load(number, team->part);
    auto pack = [](const Place &place, const Sums &sums) {
      return SmallVector<Value>{place.slot, place.parity, sums.rows.max,
                                sums.rows.sum, sums.output};
    };
    SmallVector<Value> init = pack(place, sums);
    init.append({image.weights, image.rows.max, image.rows.sum});
    ValueRange last =
        b.loop(b.i32(1), b.i32(groupSize), init,
               [&](Scalar distance, ValueRange s) -> SmallVector<Value> {
                 Place place{b.wrap(s[0]), b.wrap(s[1])};
                 Sums sums{{s[2], s[3]}, s[4]};
                 Image next;
                 addPart(place, sums, {s[5], {s[6], s[7]}}, [&] {
                   next = load(number, team->partAfter(b, distance));
                 });
                 SmallVector<Value> results = pack(place, sums);
                 results.append({next.weights, next.rows.max, next.rows.sum});
                 return results;
               });
    place = {b.wrap(last[0]), b.wrap(last[1])};
    sums = {{last[2], last[3]}, last[4]};
    addPart(place, sums, {last[5], {last[6], last[7]}}, [] {});
    return pack(place, sums);
  }

  /// O += P V of a part; `meanwhile` is written while the first product runs.
  void addPart(Place &place, Sums &sums, const Image &image,
               function_ref<void()> meanwhile) {
    GroupSoftmax::Join joined =
        softmax->join(b, sums.rows, sums.output, image.rows, image.weights);
    Type slice = b.lhsType(kWarpRows, kPieceKeys, element);
    Value sum = joined.output;
    Place before;
    for (int64_t piece = 0; piece < kPieces; ++piece) {
      Value weights = ExtractOp::create(b, slice, joined.weights,
                                        uint64_t(piece * kPieceKeys));
      ring.awaitFull(b, place);
      sum = WgmmaOp::create(b, b.pendingType(columns), weights,
                            /*lhs_stage=*/Value(),
                            /*lhs_row=*/Value(), pieces, place.slot,
                            /*transpose=*/false, sum);
      if (piece == 0) {
        meanwhile();
      } else {
        awaitOlder();
        ring.release(b, before);
      }
      before = place;
      place = ring.next(b, place);
    }
    sums = {joined.rows, b.await(sum)};
    ring.release(b, before);
  }

  void store(const Tile &tile, Scalar warpRow, const Sums &sums) {
    GroupSoftmax::End end = softmax->finish(b, sums.rows);
    auto type = ViewType::get(b.getContext(), problem.headDimV, element,
                              request.alignmentOf("o"));
    Value view = arguments.view(b, "o", type, tile.batch, tile.head, queries);
    StoreFragmentOp::create(b, scaleRows(b, sums.output, end.inverse), view,
                            warpRow, team->part * columns);
    if (!problem.lse)
      return;
    b.when(team->part == b.i32(0),
           [&] { storeLse(b, arguments, end.lse, tile, queries, warpRow); });
  }

  std::optional<GroupSoftmax> softmax;
  Scalar group, groupRow, consumer;
};

} // namespace

namespace attn {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
KernelOp column_split_wgmma(OpBuilder &builder, Location loc,
                            const KernelRequest &request);
} // namespace attn

KernelOp attn::column_split_wgmma(OpBuilder &builder, Location loc,
                                  const KernelRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  return ColumnSplit(b, request).build();
}
