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
// Tiles.  The producer of a team's first block draws the next tile when it
// begins one, and tells the others through a flag per group: the tile's number,
// which only grows.  A message is written over three tiles later, when nobody
// can be so far behind.
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

#include "GroupSoftmax.h"
#include "Mask.h"
#include "Ring.h"
#include "Softmax.h"
#include "Team.h"
#include "TileBlocks.h"

#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Schedule.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

constexpr int64_t kWarpRows = 16;
constexpr int64_t kGroups = 2; ///< consumer warpgroups
constexpr int64_t kRows = kGroups * kGroupRows;
constexpr int64_t kConsumers = kGroups * kWarpsPerGroup;
constexpr int64_t kKeys = 128;     ///< of a strip, a block's own
constexpr int64_t kPanel = 64;     ///< columns of Q and K in a unit
constexpr int64_t kPieceKeys = 32; ///< rows of V in a unit
constexpr int64_t kPieces = kKeys / kPieceKeys;
constexpr int64_t kMostColumns = 256; ///< of O, a block's own
constexpr int64_t kExchangeSlots = 4;
constexpr int64_t kDrawnSlots = 4; ///< messages of tiles between blocks
constexpr int64_t kMessages = 2;   ///< and in a block
constexpr int64_t kLeft = 1 << 30; ///< more than any number of strips

class ColumnSplit {
public:
  ColumnSplit(TileBuilder &b, const KernelRequest &request)
      : b(b), problem(request.problem), request(request),
        element(elementType(b.getContext(), problem.dtype)),
        groupSize(request.tiles.get("group")),
        cluster(request.tiles.get("cluster")),
        resident(request.tiles.get("resident")),
        slots(request.tiles.get("slots")),
        panels(llvm::divideCeil(problem.headDim, kPanel)),
        columns(equalPart(problem, Axis::HeadDimV, groupSize)),
        strip(groupSize * kKeys) {}

  KernelOp build() {
    KernelOp kernel = declare();
    kernel.setCooperative(true);
    kernel.setCluster(uint32_t(cluster));
    reserve();
    queries = arguments.get(b, "queries");
    band.emplace(b, arguments, problem.mask.kind);
    blocks.emplace(*band, queries, kRows * cluster, strip);
    order.emplace(b, arguments, problem, kRows * cluster, request.l2Bytes);
    team.emplace(b, groupSize, cluster);

    auto roles = RolesOp::create(b);
    b.createBlock(&roles.getBody());
    RegisterBudget budget = registerBudget(kGroups);
    role("producer", 1, budget.producer, /*singleLane=*/true,
         [&] { produce(); });
    role("publisher 0", 1, budget.producer, /*singleLane=*/true,
         [&] { publish(0); });
    role("publisher 1", 2, budget.producer, /*singleLane=*/true,
         [&] { publish(1); });
    role("consumer", kConsumers, budget.consumer, /*singleLane=*/false,
         [&] { consume(); });
    b.setInsertionPointAfter(roles);
    ReturnOp::create(b);
    return kernel;
  }

private:
  //===--------------------------------------------------------------------===//
  // The frame
  //===--------------------------------------------------------------------===//

  KernelOp declare() {
    MLIRContext *context = b.getContext();
    Type i32 = b.getI32Type();
    mapArgument("q", kRows, problem.headDim);
    mapArgument("k", kKeys / cluster, problem.headDim);
    mapArgument("v", kPieceKeys / cluster, problem.headDimV);
    arguments.operand("o", element);
    if (problem.lse)
      arguments.operand("lse", b.getF32Type());
    // P of a warp, and four numbers of every lane.
    int64_t imageWords = kWarpRows * kKeys / 2 + 4 * 32;
    arguments.perBlock(kScratchRole, i32,
                       kExchangeSlots * kConsumers * imageWords);
    arguments.perBlock(kFlagsRole, i32,
                       kGroups +
                           int64_t(llvm::divideCeil(kDrawnSlots, groupSize)));
    arguments.scalar(kCounterRole, PtrType::get(context, i32));
    for (StringRef size : {"queries", "keys", "heads", "batch", "group"})
      arguments.scalar(size, i32);
    declareBand(arguments, context, problem.mask.kind);
    arguments.scalar("scale", b.getF32Type());
    return arguments.createKernel(b, request, kWarpsPerGroup * (kGroups + 1));
  }

  void mapArgument(StringRef operand, int64_t rows, int64_t columns) {
    arguments.scalar(mapRole(operand), TensorMapType::get(b.getContext(), rows,
                                                          columns, element));
  }

  Value map(StringRef operand) { return arguments.get(b, mapRole(operand)); }

  SmemType bufferType(int64_t stages, int64_t rows, int64_t columns) {
    return SmemType::get(b.getContext(), stages, rows, columns, element,
                         SmemLayout::sw128);
  }

  Value barriers(StringRef name, int64_t count, int64_t arrivals) {
    return MbarrierOp::create(b, MbarrierType::get(b.getContext(), count), name,
                              uint32_t(arrivals));
  }

  void reserve() {
    bufferQ = AllocOp::create(b, bufferType(resident, kRows, kPanel), "query");
    units = AllocOp::create(b, bufferType(slots, kKeys, kPanel), "ring");
    pieces =
        AliasOp::create(b, bufferType(slots, kPieceKeys, kMostColumns), units);
    queryFull = barriers("query_full", 1, resident);
    queryEmpty = barriers("query_empty", 1, kConsumers);
    ring = Ring(b, "ring", slots, kConsumers * cluster,
                /*writers=*/1, cluster > 1);
    written = barriers("written", kGroups, kWarpsPerGroup);
    ready = barriers("ready", kGroups, 1);
    queue = QueueOp::create(b, QueueType::get(b.getContext(), kMessages, 3),
                            "tile", uint32_t(kConsumers + kGroups));
  }

  void role(StringRef name, int64_t warps, int64_t registers, bool singleLane,
            function_ref<void()> body) {
    auto op = RoleOp::create(b, name, uint32_t(warps), uint32_t(registers),
                             singleLane);
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&op.getBody());
    body();
  }

  /// Whether a panel of Q stays for the tile, and where.  The last one does not
  /// if any does not: it may have fewer columns.
  std::optional<int64_t> placeOf(int64_t panel) const {
    int64_t streamed = panels - resident, before = panel * streamed / panels;
    if ((panel + 1) * streamed / panels > before)
      return std::nullopt;
    return panel - before;
  }

  /// Works off the tiles that the producer tells of; `body` gives what it
  /// carries from one to the next, beginning with `init`.
  void
  forEachTile(ValueRange init,
              function_ref<SmallVector<Value>(const Tile &, ValueRange)> body) {
    auto pop = [&](Place message) -> SmallVector<Value> {
      SmallVector<Type> types(3, b.getI32Type());
      auto op = PopOp::create(b, types, queue, message.slot, message.parity);
      Place next = message.next(b, kMessages);
      return {op.getResult(0), op.getResult(1), op.getResult(2), next.slot,
              next.parity};
    };
    SmallVector<Value> start = pop(Place::reader(b));
    llvm::append_range(start, init);
    b.repeat(
        start, [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) {
          Tile tile{b.wrap(s[0]), b.wrap(s[1]), b.wrap(s[2])};
          SmallVector<Value> carried = body(tile, s.drop_front(5));
          SmallVector<Value> next = pop({b.wrap(s[3]), b.wrap(s[4])});
          llvm::append_range(next, carried);
          return next;
        });
  }

  //===--------------------------------------------------------------------===//
  // Producer
  //===--------------------------------------------------------------------===//

  void produce() {
    Value flags = arguments.get(b, kFlagsRole);
    Place start = Place::writer(b), message = Place::reader(b);
    Scalar number = team->first(b, *order);
    Tile first = order->at(b, number);
    push(message, first);
    message = message.next(b, kMessages);
    Scalar drawn = b.i32(0); // tiles that the team has been told of
    b.repeat(
        {first.row, first.head, first.batch, message.slot, message.parity,
         number, drawn, start.slot, start.parity, start.parity},
        [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) -> SmallVector<Value> {
          auto at = [&](int i) { return b.wrap(s[i]); };
          Scalar slot = at(6) & b.i32(kDrawnSlots - 1);
          b.when(team->leads, [&] { draw(flags, slot); });
          SmallVector<Value> carried =
              loadTile({at(0), at(1), at(2)}, {at(7), at(8)}, at(9));
          Scalar number =
              b.wrap(AwaitOp::create(b, b.getI32Type(), flags,
                                     drawnFlag(team->rowGroup, slot),
                                     // A flag holds the number plus 1.
                                     at(5) + 2)) -
              1;
          Tile next = order->at(b, number);
          Place message{at(3), at(4)};
          push(message, next);
          message = message.next(b, kMessages);
          SmallVector<Value> results = {
              next.row,       next.head, next.batch, message.slot,
              message.parity, number,    at(6) + 1};
          llvm::append_range(results, carried);
          return results;
        });
  }

  void push(Place place, const Tile &tile) {
    PushOp::create(b, queue, place.slot, place.parity,
                   ValueRange{tile.row, tile.head, tile.batch});
  }

  /// Tells all groups of the team of its next tile.
  void draw(Value flags, Scalar slot) {
    Scalar drawn = b.wrap(DrawOp::create(
        b, b.getI32Type(), arguments.get(b, kCounterRole), order->count));
    for (int64_t rank = 0; rank < cluster; ++rank)
      PublishOp::create(b, flags, drawnFlag(team->groupOf(rank), slot),
                        drawn + team->afterFirst() + 1);
  }

  /// Behind the flags of all blocks.
  Scalar drawnFlag(Scalar rowGroup, Scalar slot) {
    return b.gridSize(0) * kGroups + rowGroup * kDrawnSlots + slot;
  }

  SmallVector<Value> loadTile(const Tile &tile, Place place, Scalar parity) {
    Scalar keyHead = tile.head / arguments.get(b, "group");
    Scalar row = tile.row + team->rank * kRows;
    Scalar zero = b.i32(0);
    MbarrierWaitOp::create(b, queryEmpty, zero, parity);
    for (int64_t panel = 0; panel < panels; ++panel)
      if (std::optional<int64_t> stage = placeOf(panel))
        TmaLoadOp::create(b, map("q"), tile.batch, tile.head, row, bufferQ,
                          b.i32(*stage), queryFull, zero, b.i32(panel * kPanel),
                          /*rank=*/Value(), /*columns=*/IntegerAttr());
    Run run = blocks->ofTile(b, tile.row);
    ValueRange end =
        b.loop(run.begin, run.end + 1, {place.slot, place.parity},
               [&](Scalar n, ValueRange p) -> SmallVector<Value> {
                 Place place{b.wrap(p[0]), b.wrap(p[1])};
                 place = when(n < run.end, place, [&](Place place) {
                   return loadScores(tile, keyHead, row, n, place);
                 });
                 place = when(run.begin < n, place, [&](Place place) {
                   return loadValues(tile, keyHead, n - 1, place);
                 });
                 return {place.slot, place.parity};
               });
    return {end[0], end[1], parity ^ 1};
  }

  Place when(Scalar condition, Place place,
             function_ref<Place(Place place)> body) {
    ValueRange after = b.choose(
        condition,
        [&]() -> SmallVector<Value> {
          Place next = body(place);
          return {next.slot, next.parity};
        },
        [&]() -> SmallVector<Value> { return {place.slot, place.parity}; });
    return {b.wrap(after[0]), b.wrap(after[1])};
  }

  /// Starts loading a unit; what all blocks of the cluster need they load
  /// together.
  Place loadUnit(Place place, StringRef operand, const Tile &tile, Scalar head,
                 Scalar row, Scalar column) {
    ring.awaitEmpty(b, place);
    bool isShared = operand != "q" && cluster > 1;
    bool isValue = operand == "v";
    IntegerAttr some = isValue && columns < kMostColumns
                           ? b.getI64IntegerAttr(columns)
                           : IntegerAttr();
    TmaLoadOp::create(b, map(operand), tile.batch, head, row,
                      isValue ? pieces : units, place.slot, ring.fullBarrier(),
                      place.slot, column,
                      isShared ? Value(team->rank) : Value(), some);
    return ring.next(b, place);
  }

  /// What A(n) reads.
  Place loadScores(const Tile &tile, Scalar keyHead, Scalar row, Scalar n,
                   Place place) {
    Scalar firstKey = n * strip + team->part * kKeys;
    for (int64_t panel = 0; panel < panels; ++panel) {
      Scalar column = b.i32(panel * kPanel);
      if (!placeOf(panel))
        place = loadUnit(place, "q", tile, tile.head, row, column);
      place = loadUnit(place, "k", tile, keyHead, firstKey, column);
    }
    return place;
  }

  /// What B(n) reads: the values of the own part first.
  Place loadValues(const Tile &tile, Scalar keyHead, Scalar n, Place place) {
    Scalar column = team->part * columns;
    ValueRange end =
        b.loop(b.i32(0), b.i32(groupSize), {place.slot, place.parity},
               [&](Scalar distance, ValueRange p) -> SmallVector<Value> {
                 Place place{b.wrap(p[0]), b.wrap(p[1])};
                 Scalar key = n * strip + team->partAfter(b, distance) * kKeys;
                 for (int64_t piece = 0; piece < kPieces; ++piece)
                   place = loadUnit(place, "v", tile, keyHead,
                                    key + piece * kPieceKeys, column);
                 return {place.slot, place.parity};
               });
    return {b.wrap(end[0]), b.wrap(end[1])};
  }

  //===--------------------------------------------------------------------===//
  // Publishers
  //===--------------------------------------------------------------------===//

  Scalar flag(Scalar part, int64_t group) {
    return team->member(part) * kGroups + group;
  }
  Scalar parityOf(Scalar count) { return count & b.i32(1); }

  void publish(int64_t group) {
    Value flags = arguments.get(b, kFlagsRole);
    Scalar own = flag(team->part, group), slot = b.i32(group);
    forEachTile(Value(b.i32(0)), [&](const Tile &tile, ValueRange s) {
      Run run = blocks->ofTile(b, tile.row);
      Scalar first = b.wrap(s[0]), end = first + (run.end - run.begin);
      b.loop(first, end, {}, [&](Scalar count, ValueRange) {
        MbarrierWaitOp::create(b, written, slot, parityOf(count));
        PublishOp::create(b, flags, own, count + 1);
        forOthers([&](Scalar part) {
          AwaitOp::create(b, b.getI32Type(), flags, flag(part, group),
                          count + 1);
        });
        MbarrierArriveOp::create(b, ready, slot, /*condition=*/Value());
        return SmallVector<Value>();
      });
      return SmallVector<Value>{end};
    });
    b.when(team->isWhole, [&] { leave(flags, group); });
  }

  void forOthers(function_ref<void(Scalar part)> body) {
    for (int64_t distance = 1; distance < groupSize; ++distance)
      body(team->partAfter(b, b.i32(distance)));
  }

  /// Leaves the group's flags at 0, when nobody will read them any more.
  void leave(Value flags, int64_t group) {
    Scalar zero = b.i32(0), left = b.i32(kLeft);
    Scalar isFirst = team->part == zero;
    b.when(zero < team->part,
           [&] { PublishOp::create(b, flags, flag(team->part, group), left); });
    b.when(isFirst, [&] {
      forOthers([&](Scalar part) {
        AwaitOp::create(b, b.getI32Type(), flags, flag(part, group), left);
      });
      for (int64_t part = 0; part < groupSize; ++part)
        PublishOp::create(b, flags, flag(b.i32(part), group), zero);
      if (group > 0)
        return;
      for (int64_t slot = 0; slot < kDrawnSlots; ++slot)
        PublishOp::create(b, flags, drawnFlag(team->rowGroup, b.i32(slot)),
                          zero);
    });
  }

  //===--------------------------------------------------------------------===//
  // Consumers
  //===--------------------------------------------------------------------===//

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
    forEachTile({start.slot, start.parity, start.parity, b.i32(0)},
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

  PendingType pending(int64_t columns) {
    return PendingType::get(b.getContext(), kWarpRows, columns);
  }
  Value await(Value product) {
    int64_t columns = cast<PendingType>(product.getType()).getColumns();
    return WgmmaWaitOp::create(b, TypeRange(b.accType(kWarpRows, columns)), 0u,
                               product)
        .getResult(0);
  }
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
      sum = WgmmaOp::create(b, pending(kKeys), stage ? bufferQ : units, left,
                            groupRow, units, right, /*transpose=*/true, sum);
      if (panel > 0)
        awaitOlder();
      for (Place one : before)
        ring.release(b, one);
      before = used;
    }
    Value scores = await(sum);
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
      sum = WgmmaOp::create(b, pending(columns), weights, /*lhs_stage=*/Value(),
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
    sums = {joined.rows, await(sum)};
    ring.release(b, before);
  }

  void store(const Tile &tile, Scalar warpRow, const Sums &sums) {
    GroupSoftmax::End end = softmax->finish(b, sums.rows);
    auto type = ViewType::get(b.getContext(), problem.headDimV, element,
                              request.align.o);
    Value view = arguments.view(b, "o", type, tile.batch, tile.head, queries);
    StoreFragmentOp::create(b, scaleRows(b, sums.output, end.inverse), view,
                            warpRow, team->part * columns);
    if (!problem.lse)
      return;
    b.when(team->part == b.i32(0), [&] {
      auto vector = ViewType::get(b.getContext(), ViewType::kVector,
                                  b.getF32Type(), /*align=*/4);
      Value lse =
          arguments.view(b, "lse", vector, tile.batch, tile.head, queries);
      StoreRowOp::create(b, end.lse, lse, warpRow);
    });
  }

  TileBuilder &b;
  const Problem &problem;
  const KernelRequest &request;
  Type element;
  int64_t groupSize, cluster, resident, slots;
  int64_t panels;  ///< of Q and K
  int64_t columns; ///< of O, a block's own
  int64_t strip;   ///< keys

  Arguments arguments;
  std::optional<KeyBand> band;
  std::optional<TileBlocks> blocks;
  std::optional<TileOrder> order;
  std::optional<Team> team;
  std::optional<GroupSoftmax> softmax; // consumers
  Scalar queries;
  Scalar group, groupRow, consumer; // consumers
  Value bufferQ, units, pieces;
  Value queryFull, queryEmpty, written, ready, queue;
  Ring ring;
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
