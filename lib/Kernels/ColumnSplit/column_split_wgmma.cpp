//===- column_split_wgmma.cpp - Rows wider than a block (sm_90a) ----------===//
//
// A row of O is too wide for the registers of one block, so the blocks of a
// group (Team.h) share 128 rows: each owns up to 256 columns of O, in registers
// for the whole key range.  A strip is G x 128 keys.  Of every strip each block
// works out S and P for the 128 keys of its part, over all of d; for O it needs
// P of the whole strip, so the parts of P are exchanged.  No score is computed
// twice: the group is one cache of G times the size.
//
//   iteration n:   A(n)      S of the own keys of strip n, softmax, P to the
//                            scratch and, from the registers, O += P V
//                  B(n - 1)  for each other part: O += P V
//
// The lag of one strip hides the exchange.  From the first product of A to the
// last of the next part nothing is waited for: the weights of 32 keys are
// worked out while the product of the 32 before runs, and the reference of the
// rows (GroupSoftmax.h) is chosen for all parts at once, whose maxima are
// loaded while S is worked out.
//
// Further parts are a loop, each with an end of its own, at which the other
// warpgroup has products in flight.  Written out, d = 2048 takes 10,000
// instructions (160 KB) of which every tile runs all, more than an instruction
// cache holds; so it takes 8,000, and 4 to 6 % less time with 4096 rows.
//
// Exchange.  A warp's P leaves as the registers it is in (tile.store_registers)
// and comes back, in the warp of the same rows of another block, as the left
// factor of a product; beside it go maximum and sum of the rows.  The scratch
// has kLag + 2 slots a block, which L2 holds whatever the number of rows and
// heads: when strip n + 4 is written, strip n + 2 of all others has been seen,
// so they are past B(n).
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

#include "ColumnSplit/ColumnSplitFrame.h"
#include "ColumnSplit/GroupSoftmax.h"
#include "ColumnSplit/WarpgroupSplitFrame.h"
#include "Flash/PartsMerge.h"
#include "Pipe/Epilogue.h"
#include "Softmax/Softmax.h"

#include "attn/Schedule/Footprint.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class ColumnSplit : ColumnSplitFrame {
public:
  ColumnSplit(TileBuilder &b, const KernelRequest &request)
      : ColumnSplitFrame(b, request) {}

  KernelOp build() {
    KernelOp kernel = declare();
    // Who locates rows needs as many registers as who transposes.
    RegisterBudget budget = registerBudget(
        kGroups, problem.place.any() ? Helper::transposer : Helper::none);
    b.roles([&] {
      b.role("producer", 1, budget.producer, /*singleLane=*/true,
             [&] { produceStrips(*this); });
      b.role("publisher 0", 1, budget.producer, /*singleLane=*/true,
             [&] { publishStrips(*this, 0); });
      b.role("publisher 1", 2, budget.producer, /*singleLane=*/true,
             [&] { publishStrips(*this, 1); });
      b.role("consumer", kConsumers, budget.consumer, /*singleLane=*/false,
             [&] { consume(); });
    });
    return kernel;
  }

private:
  /// A strip of a tile, and its number among all strips of the block.
  struct Strip {
    Scalar n, number;
    bool isFirst;
  };
  /// What is summed up, and the reference of its rows.
  struct Sums {
    Value max, sum, output;
  };
  /// Products that add to the output, one behind the other: where they stand in
  /// the ring, and what they will not have read before the next has begun.
  struct Chain {
    Place place;
    Value output;
    std::optional<Place> running, read;
  };
  /// P of a part: the weights of a piece of keys each, and the rows.
  struct Image {
    SmallVector<Value> slices;
    GroupSoftmax::Rows rows;

    SmallVector<Value> pack() const {
      SmallVector<Value> values = slices;
      values.append({rows.max, rows.sum});
      return values;
    }
    static Image unpack(ValueRange v) {
      return {llvm::to_vector(v.take_front(kPieces)),
              {v[kPieces], v[kPieces + 1]}};
    }
  };

  void consume() {
    Scalar warp = b.warpId();
    group = warp / kWarpsPerGroup - 1;
    groupRow = group * kGroupRows;
    consumer = warp - kWarpsPerGroup;
    softmax.emplace(b, arguments.get(b, "scale"), request.scale, problem.dtype);
    Place start = Place::reader(b);
    // The units of a strip may be whole rounds of the ring.
    start.slot = start.slot + arguments.opaqueZero(b);
    forEachTile(b, queue, {start.slot, start.parity, start.parity, b.i32(0)},
                [&](const Tile &tile, ValueRange s) {
                  return consumeTile(tile, {b.wrap(s[0]), b.wrap(s[1])},
                                     b.wrap(s[2]), b.wrap(s[3]));
                });
  }

  SmallVector<Value> consumeTile(const Tile &tile, Place place,
                                 Scalar queryParity, Scalar count) {
    KeyWalk walk = walkOf(tile);
    Scalar warpRow = tile.row + team->rank * kRows + consumer * kWarpRows;
    MbarrierWaitOp::create(b, queryFull, b.i32(0), queryParity);

    GroupSoftmax::Rows none = softmax->start(b, kWarpRows);
    Sums nothing{none.max, none.sum, b.fill(b.f32(0), outputType())};
    SmallVector<Value> first = addStrip(place, none, nothing, tile,
                                        {walk.first(), count, true}, warpRow);
    ValueRange end = walk.forEach(
        b, 1, first, [&](Scalar n, ValueRange s) -> SmallVector<Value> {
          return addStrip({b.wrap(s[0]), b.wrap(s[1])}, {s[2], s[3]},
                          {s[4], s[5], s[6]}, tile,
                          {n, count + walk.stepOf(n), false}, warpRow);
        });
    count = count + walk.steps();
    SmallVector<Value> last =
        addLast({b.wrap(end[0]), b.wrap(end[1])}, {end[2], end[3]},
                {end[4], end[5], end[6]}, count - 1);
    end = last;
    GroupSoftmax::Rows rows =
        softmax->add(b, {end[4], end[5]}, {end[2], end[3]});
    store(tile, warpRow, rows, end[6]);
    return {end[0], end[1], queryParity ^ 1, count};
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

  /// Likewise of its rows, which lie behind the weights of all blocks.
  Scalar rowsPlace(Scalar number, Scalar part) {
    int64_t sizes = kWarpRows * kKeys / 2 / (4 * 32);
    return b.gridSize(0) * (kExchangeSlots * kConsumers * sizes) +
           imagePlace(number, part);
  }

  SmallVector<Value> pack(const Place &place, const GroupSoftmax::Rows &own,
                          const Sums &sums) {
    return {place.slot, place.parity, own.max,    own.sum,
            sums.max,   sums.sum,     sums.output};
  }

  /// A(n): S of the own keys, softmax, P to the scratch, and O += P V of these
  /// keys, P as it is in the registers.  Slice by slice: while a product runs,
  /// the next slice's weights are worked out.  Then B(n - 1).
  SmallVector<Value> addStrip(Place place, GroupSoftmax::Rows own, Sums sums,
                              const Tile &tile, const Strip &at,
                              Scalar warpRow) {
    Value highest;
    Value product = startScores(place, [&] {
      if (at.isFirst)
        return;
      awaitReady(at.number - 1);
      highest = highestOf(loadRowsOfOthers(at.number - 1));
    });
    Value scores = softmax->orient(b, product);
    MbarrierArriveOp::create(b, queryEmpty, b.i32(0),
                             at.n == walkOf(tile).last());
    scores = bandOf(tile, at.n)
                 .hideCut(b, scores, warpRow, keyOf(tile, at.n, team->part));
    GroupSoftmax::Move moved =
        softmax->move(b, own, sums.max, sums.output, scores, highest);
    own = moved.own;
    GroupSoftmax::Join joined = moved.joined;
    Value exponents = softmax->exponents(b, own.max, joined.max);
    Chain chain{place, joined.output, {}, {}};
    SmallVector<Value> slices;
    for (int64_t piece = 0; piece < kPieces; ++piece) {
      if (piece > 0)
        endRead(chain);
      Value some = ExtractOp::create(b, b.accType(kWarpRows, kPieceKeys),
                                     moved.exponents.scores,
                                     uint64_t(piece * kPieceKeys));
      Value weights = softmax->weigh(b, own, moved.exponents, some);
      slices.push_back(CastOp::create(b, sliceType(), weights));
      multiply(chain, slices.back(), exponents);
    }
    StoreRegistersOp::create(b, slices, arguments.get(b, kScratchRole),
                             imagePlace(at.number, team->part));
    StoreRegistersOp::create(b, ValueRange{own.max, own.sum},
                             arguments.get(b, kScratchRole),
                             rowsPlace(at.number, team->part));
    MbarrierArriveOp::create(b, written, group, /*condition=*/Value());
    if (!at.isFirst)
      addOthers(chain, joined.max, at.number - 1);
    end(chain);
    return pack(chain.place, own, {joined.max, sums.sum, chain.output});
  }

  /// B(n - 1) alone, behind the last strip, whose rows' sums are those of all
  /// keys.
  SmallVector<Value> addLast(Place place, GroupSoftmax::Rows own, Sums sums,
                             Scalar number) {
    awaitReady(number);
    Chain chain{place, sums.output, {}, {}};
    GroupSoftmax::Rows none = softmax->start(b, kWarpRows);
    GroupSoftmax::Rows all =
        addFrom(1, chain, load(number, b.i32(1)), {sums.max, none.sum}, number,
                /*joins=*/true);
    return pack(chain.place, own, {all.max, all.sum, chain.output});
  }

  /// S, panel by panel; hands units back as they have been read.  `meanwhile`
  /// is written while the first half runs.
  Value startScores(Place &place, function_ref<void()> meanwhile) {
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
      if (panel == panels / 2)
        meanwhile();
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

  Type sliceType() { return b.lhsType(kWarpRows, kPieceKeys, element); }

  GroupSoftmax::Rows loadRows(Scalar number, Scalar distance) {
    auto op = LoadRegistersOp::create(
        b,
        TypeRange{b.rowType(kWarpRows), b.rowType(kWarpRows, /*partial=*/true)},
        arguments.get(b, kScratchRole),
        rowsPlace(number, team->partAfter(b, distance)));
    return {op.getResult(0), op.getResult(1)};
  }

  /// Of the part that is so many further.
  Image load(Scalar number, Scalar distance) {
    SmallVector<Type> types(kPieces, sliceType());
    auto op = LoadRegistersOp::create(
        b, types, arguments.get(b, kScratchRole),
        imagePlace(number, team->partAfter(b, distance)));
    return {llvm::to_vector_of<Value>(op.getResults()),
            loadRows(number, distance)};
  }

  SmallVector<GroupSoftmax::Rows> loadRowsOfOthers(Scalar number) {
    SmallVector<GroupSoftmax::Rows> all;
    for (int64_t distance = 1; distance < groupSize; ++distance)
      all.push_back(loadRows(number, b.i32(distance)));
    return all;
  }

  Value highestOf(ArrayRef<GroupSoftmax::Rows> all) {
    Value max = all.front().max;
    for (const GroupSoftmax::Rows &rows : all.drop_front())
      max = softmax->higher(b, max, rows.max);
    return max;
  }

  /// B(n): O += P V of the other parts, of which the next one is in the chain.
  void addOthers(Chain &chain, Value max, Scalar number) {
    Image further;
    addPart(chain, load(number, b.i32(1)), max, [&] {
      if (groupSize > 2)
        further = load(number, b.i32(2));
    });
    if (groupSize == 2)
      return;
    end(chain);
    addFrom(2, chain, further, {max, Value()}, number, /*joins=*/false);
  }

  /// O += P V of the parts from that distance on, each a chain of its own, the
  /// first of which is loaded.  Where it `joins`, the output's reference moves
  /// if they ask for it, and sums of rows are added.
  GroupSoftmax::Rows addFrom(int64_t distance, Chain &chain, const Image &first,
                             const GroupSoftmax::Rows &all, Scalar number,
                             bool joins) {
    auto pack = [&](const Chain &chain, const GroupSoftmax::Rows &all,
                    const Image &image) {
      SmallVector<Value> values = {chain.place.slot, chain.place.parity,
                                   chain.output};
      llvm::append_range(values, image.pack());
      if (joins)
        values.append({all.max, all.sum});
      return values;
    };
    auto rowsOf = [&](ValueRange s) -> GroupSoftmax::Rows {
      return joins ? GroupSoftmax::Rows{s.take_back(2)[0], s.back()} : all;
    };
    ValueRange end =
        b.loop(b.i32(distance), b.i32(groupSize), pack(chain, all, first),
               [&](Scalar distance, ValueRange s) -> SmallVector<Value> {
                 Image image = Image::unpack(s.drop_front(3)), next;
                 Chain part{{b.wrap(s[0]), b.wrap(s[1])}, s[2], {}, {}};
                 GroupSoftmax::Rows rows = rowsOf(s);
                 if (joins)
                   rows = join(part, rows, image.rows);
                 addPart(part, image, rows.max, [&] {
                   next = Image::unpack(b.choose(
                       distance < b.i32(groupSize - 1),
                       [&] { return load(number, distance + 1).pack(); },
                       [&] { return image.pack(); }));
                 });
                 this->end(part);
                 return pack(part, rows, next);
               });
    chain = {{b.wrap(end[0]), b.wrap(end[1])}, end[2], {}, {}};
    return rowsOf(end);
  }

  GroupSoftmax::Rows join(Chain &chain, const GroupSoftmax::Rows &all,
                          const GroupSoftmax::Rows &other) {
    GroupSoftmax::Join joined =
        softmax->join(b, all.max, chain.output, other.max);
    chain.output = joined.output;
    GroupSoftmax::Rows none = softmax->start(b, kWarpRows);
    return softmax->add(b, softmax->add(b, {joined.max, none.sum}, all), other);
  }

  /// O += P V of a part; `meanwhile` is written while the first product runs.
  void addPart(Chain &chain, const Image &image, Value max,
               function_ref<void()> meanwhile) {
    Value exponents = softmax->exponents(b, image.rows.max, max);
    for (int64_t piece = 0; piece < kPieces; ++piece) {
      endRead(chain);
      multiply(chain, image.slices[piece], exponents);
      if (piece == 0)
        meanwhile();
    }
  }

  /// Begins O += P V of a slice.
  void multiply(Chain &chain, Value weights, Value exponents) {
    Value scaled = ScaleRowsOp::create(b, sliceType(), weights, exponents);
    ring.awaitFull(b, chain.place);
    chain.output = WgmmaOp::create(b, b.pendingType(columns), scaled,
                                   /*lhsStage=*/Value(),
                                   /*lhsRow=*/Value(), pieces, chain.place.slot,
                                   /*transpose=*/false, chain.output);
    chain.read = chain.running;
    chain.running = chain.place;
    chain.place = ring.next(b, chain.place);
  }

  /// Waits for the product before the one that runs.
  void endRead(Chain &chain) {
    if (!chain.read)
      return;
    awaitOlder();
    ring.release(b, *chain.read);
    chain.read.reset();
  }

  /// Waits for all, if there are some.
  void end(Chain &chain) {
    if (!chain.running)
      return;
    endRead(chain);
    chain.output = b.await(chain.output);
    ring.release(b, *chain.running);
    chain.running.reset();
  }

  void store(const Tile &tile, Scalar warpRow, const GroupSoftmax::Rows &rows,
             Value output) {
    GroupSoftmax::End end = softmax->finish(b, rows, problem.lseLow);
    if (parts.areSeveral())
      return storeKeyPart(tile, warpRow, end, output);
    auto type = ViewType::get(b.getContext(), problem.headDimV, element,
                              request.alignmentOf("o"));
    Value view = arguments.view(b, "o", type, tile.batch, tile.head, queries);
    StoreFragmentOp::create(b, average(b, output, end.inverse, element), view,
                            warpRow, team->part * columns);
    if (!problem.lse)
      return;
    b.when(team->part == b.i32(0),
           [&] { storeLse(b, arguments, end.lse, tile, queries, warpRow); });
  }

  /// Of a part of the keys, O and LSE in f32.
  void storeKeyPart(const Tile &tile, Scalar warpRow,
                    const GroupSoftmax::End &end, Value output) {
    KeyParts::Owner owner = KeyParts::ownerOf(tile);
    StoreFragmentOp::create(b, scaleRows(b, output, end.inverse),
                            parts.output(b, arguments, problem, owner), warpRow,
                            team->part * columns);
    b.when(team->part == b.i32(0), [&] {
      StoreRowOp::create(b, end.lse.high, parts.lse(b, arguments, owner),
                         warpRow);
    });
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
  if (request.launch > 0)
    return buildPartsMerge(b, request);
  if (request.tiles.has("warpgroups"))
    return buildWarpgroupSplit(b, request);
  return ColumnSplit(b, request).build();
}
