//===- flash_wgmma.cpp - FlashAttention on wgmma (sm_90a) -----------------===//
//
// One block per multiprocessor, which works off tiles: `query` rows of one head
// each.  Keys and values stream past in blocks of `key` rows, from the last to
// the first, so that a causal mask cuts the first blocks only.
//
// Roles.  A producer, one lane, draws tiles from a counter that the grid
// shares, tells the others (a queue), and starts every load.  Each consumer
// warpgroup owns 64 rows of the tile; P and O stay in its registers.
//
// Overlap.  A consumer starts S = Q K[n]^T and O += P V[n + 1] back to back and
// works out the softmax of block n while the second product runs.  Without
// `overlap` it waits for each, which saves the registers of P beside S.
//
// Boundary.  At the end of a tile the first S of the next one is started beside
// the last P V of this one, and its softmax runs before this tile is written:
// neither a prologue nor the store is exposed.  A warpgroup that cannot do so
// (no next tile, or blocks to pass over first) ends its tile and starts the
// next one afresh.
//
// Passing over.  A tile loads what some of its rows see; a warpgroup multiplies
// only the blocks that some of its own rows see, one at least, and hands the
// others back unread.
//
// Order of loads: K[last] Q | K[n] V[n + 1] ... | K' V[first] Q' (' = next
// tile).
//
//===----------------------------------------------------------------------===//

#include "LazySoftmax.h"
#include "Mask.h"
#include "Ring.h"
#include "Softmax.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

constexpr int64_t kGroupRows = 64, kWarpRows = 16, kWarpsPerGroup = 4;
/// Columns of one wgmma step along the contracted dimension.
constexpr int64_t kStep = 16;
/// Most heads whose tiles are mixed under a mask.
constexpr int64_t kMaxSection = 16;

/// A run of key blocks, `begin .. end - 1`.
struct Run {
  Scalar begin, end;
};

/// A tile as the queue tells it; `row` is negative when there is none.
struct Tile {
  Scalar row, head, batch;
};

class FlashWgmma {
public:
  FlashWgmma(TileBuilder &b, const KernelRequest &request)
      : b(b), problem(request.problem), request(request),
        element(elementType(b.getContext(), problem.dtype)),
        query(request.tiles.get("query")), key(request.tiles.get("key")),
        stages(request.tiles.get("stages")),
        queryStages(request.tiles.get("query_stages")),
        staging(request.tiles.get("staging")),
        overlap(request.tiles.get("overlap") != 0),
        pingPong(request.tiles.get("ping_pong") != 0),
        persistent(request.tiles.get("persistent") != 0),
        groups(query / kGroupRows), dim(llvm::alignTo(problem.headDim, kStep)),
        dimV(llvm::alignTo(problem.headDimV, kStep)) {}

  KernelOp build() {
    KernelOp kernel = declare();
    reserve();
    queries = arguments.get(b, "queries");
    band.emplace(b, arguments, problem.mask.kind);
    warp = b.warpId();

    auto roles = RolesOp::create(b);
    b.createBlock(&roles.getBody());
    role("producer", kWarpsPerGroup, groups == 3 ? 32 : 24,
         /*singleLane=*/true, [&] { produce(); });
    role("consumer", kWarpsPerGroup * groups, groups == 3 ? 160 : 240,
         /*singleLane=*/false, [&] { consume(); });
    b.setInsertionPointAfter(roles);
    ReturnOp::create(b);
    return kernel;
  }

private:
  //===--------------------------------------------------------------------===//
  // The frame
  //===--------------------------------------------------------------------===//

  KernelOp declare() {
    Type i32 = b.getI32Type();
    mapArgument("q", query, problem.headDim);
    mapArgument("k", key, problem.headDim);
    mapArgument("v", key, problem.headDimV);
    mapArgument("o", kGroupRows, problem.headDimV);
    if (problem.lse)
      arguments.operand("lse", b.getF32Type());
    if (persistent)
      arguments.scalar("counter", PtrType::get(b.getContext(), i32));
    for (StringRef size : {"queries", "keys", "heads", "batch", "group"})
      arguments.scalar(size, i32);
    declareBand(arguments, b.getContext(), problem.mask.kind);
    arguments.scalar("scale", b.getF32Type());
    return arguments.createKernel(b, request, kWarpsPerGroup * (groups + 1));
  }

  void mapArgument(StringRef operand, int64_t rows, int64_t columns) {
    arguments.scalar(mapRole(operand), TensorMapType::get(b.getContext(), rows,
                                                          columns, element));
  }

  Value map(StringRef operand) { return arguments.get(b, mapRole(operand)); }

  void reserve() {
    auto alloc = [&](StringRef name, int64_t stages, int64_t rows,
                     int64_t columns) -> Value {
      auto type = SmemType::get(b.getContext(), stages, rows, columns, element,
                                SmemLayout::sw128);
      return AllocOp::create(b, type, name);
    };
    bufferQ = alloc("query", queryStages, query, dim);
    bufferK = alloc("key", stages, key, dim);
    bufferV = alloc("value", stages, key, dimV);
    bufferO = alloc("staging", 1, query, staging);
    int64_t readers = kWarpsPerGroup * groups;
    ringQ = Ring(b, "query", queryStages, readers);
    ringK = Ring(b, "key", stages, readers);
    ringV = Ring(b, "value", stages, readers);
    queue = QueueOp::create(b, QueueType::get(b.getContext(), 2, 3), "tile",
                            uint32_t(readers));
  }

  void role(StringRef name, int64_t warps, int64_t registers, bool singleLane,
            function_ref<void()> body) {
    auto op = RoleOp::create(b, name, uint32_t(warps), uint32_t(registers),
                             singleLane);
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&op.getBody());
    body();
  }

  //===--------------------------------------------------------------------===//
  // Which blocks
  //===--------------------------------------------------------------------===//

  /// Blocks that some of the rows see, one at least.
  Run blocksOf(KeyBand::Keys seen) {
    Scalar one = b.i32(1);
    Scalar all = b.max(b.ceilDiv(band->keys, key), one);
    if (!band->hasLast)
      return {b.i32(0), all};
    Scalar end = b.max(seen.someEnd, b.i32(0));
    end = b.min(b.max(b.ceilDiv(end, key), one), all);
    Scalar begin =
        band->hasFirst ? b.min(seen.someFirst / key, end - 1) : b.i32(0);
    return {begin, end};
  }

  /// Blocks that a tile loads.
  Run blocksOfTile(Scalar row) {
    Scalar last = b.min(row + query, queries) - 1;
    return blocksOf(band->seenBy(b, row, last));
  }

  /// What a warpgroup does with the blocks of a tile, last block first: passes
  /// over `above`, multiplies those of `own`, passes over `below`.  Of its own
  /// blocks those in `open` need no mask.
  struct Share {
    Run own, open;
    Scalar above, below;
  };
  Share shareOf(Scalar tileRow) {
    Run tile = blocksOfTile(tileRow);
    Scalar row = tileRow + groupRow;
    Scalar last = b.min(row + kGroupRows, queries) - 1;
    KeyBand::Keys seen = band->seenBy(b, row, last);
    Run own = blocksOf(seen);
    // Rows behind the end: one block, the first that comes.
    Scalar exists = row < queries;
    own.end = b.select(exists, b.min(own.end, tile.end), tile.end);
    own.begin = b.select(exists, b.max(own.begin, tile.begin), tile.end - 1);
    own.end = b.max(own.end, tile.begin + 1);
    own.begin = b.min(own.begin, own.end - 1);
    Run open;
    open.end = b.min(b.max(seen.allEnd / key, own.begin), own.end);
    open.begin =
        band->hasFirst
            ? b.min(b.max(b.ceilDiv(seen.allFirst, key), own.begin), open.end)
            : own.begin;
    return {own, open, tile.end - own.end, own.begin - tile.begin};
  }

  /// Whether blocks besides the first of a warpgroup can be cut at the end of
  /// the keys it sees.  With the diagonal at multiples of its rows they cannot.
  bool cutsMoreThanOne() const {
    if (problem.mask.kind == MaskKind::none)
      return false;
    return problem.mask.kind != MaskKind::causal || key % kGroupRows != 0;
  }

  //===--------------------------------------------------------------------===//
  // Producer
  //===--------------------------------------------------------------------===//

  /// The tile of that number, or none behind the last.
  Tile decode(Scalar number) {
    Scalar tilesOfHead = b.ceilDiv(queries, query);
    Scalar heads = arguments.get(b, "heads");
    Scalar row, flat;
    if (problem.mask.kind == MaskKind::none) {
      // The tiles of a head one after the other: its keys stay in L2.
      flat = number / tilesOfHead;
      row = number - flat * tilesOfHead;
    } else {
      // The longest first, within a section of heads whose keys fit L2.
      Scalar all = heads * arguments.get(b, "batch");
      Scalar perSection = tilesOfHead * section;
      Scalar before = number / perSection * section;
      Scalar rest = number - number / perSection * perSection;
      Scalar width = b.max(b.min(section, all - before), b.i32(1));
      Scalar down = rest / width;
      row = tilesOfHead - 1 - down;
      flat = before + (rest - down * width);
    }
    Scalar batch = flat / heads;
    Scalar none = b.i32(-1);
    return {b.select(number < tiles, row * query, none), flat - batch * heads,
            batch};
  }

  /// Heads in a section: as many as keep their keys and values in L2, beside
  /// queries and outputs that pass through (32 of an H100's 50 MB were best).
  Scalar sectionOf() {
    int64_t rowBytes = (problem.headDim + problem.headDimV) *
                       element.getIntOrFloatBitWidth() / 8;
    Scalar bytes = b.wide(b.max(band->keys, b.i32(1))) * rowBytes;
    Scalar fit = b.constantLike(bytes, request.l2Bytes / 8 * 5) / bytes;
    fit = b.min(b.max(fit, b.constantLike(fit, 1)),
                b.constantLike(fit, kMaxSection));
    return b.narrow(fit);
  }

  Scalar keyHead(const Tile &tile) {
    return tile.head / arguments.get(b, "group");
  }

  void loadKey(Place place, const Tile &tile, Scalar head, Scalar block) {
    ringK.load(b, place, map("k"), tile.batch, head, block * key, bufferK);
  }
  void loadValue(Place place, const Tile &tile, Scalar head, Scalar block) {
    ringV.load(b, place, map("v"), tile.batch, head, block * key, bufferV);
  }
  void loadQuery(Place place, const Tile &tile) {
    ringQ.load(b, place, map("q"), tile.batch, tile.head, tile.row, bufferQ);
  }

  void push(Place place, const Tile &tile) {
    PushOp::create(b, queue, place.slot, place.parity,
                   ValueRange{tile.row, tile.head, tile.batch});
  }

  void produce() {
    tiles = b.ceilDiv(queries, query) * arguments.get(b, "heads") *
            arguments.get(b, "batch");
    if (problem.mask.kind != MaskKind::none)
      section = sectionOf();
    Tile first = decode(b.programId(0));
    Place writer = Place::writer(b), message = Place::reader(b);
    push(message, first);
    Run run = blocksOfTile(first.row);
    loadKey(writer, first, keyHead(first), run.end - 1);
    loadQuery(writer, first);

    Place k = ringK.next(b, writer), q = ringQ.next(b, writer);
    message = nextMessage(message);
    b.repeat(
        {first.row, first.head, first.batch, k.slot, k.parity, writer.slot,
         writer.parity, q.slot, q.parity, message.slot, message.parity},
        [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) { return produceTile(s); });
  }

  SmallVector<Value> produceTile(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Tile tile{at(0), at(1), at(2)};
    Place k{at(3), at(4)}, v{at(5), at(6)}, q{at(7), at(8)},
        message{at(9), at(10)};
    Tile next = drawNext();
    push(message, next);

    Scalar head = keyHead(tile);
    Run run = blocksOfTile(tile.row);
    ValueRange places = b.loop(
        b.i32(1), run.end - run.begin, {k.slot, k.parity, v.slot, v.parity},
        [&](Scalar step, ValueRange p) -> SmallVector<Value> {
          Place k{b.wrap(p[0]), b.wrap(p[1])}, v{b.wrap(p[2]), b.wrap(p[3])};
          Scalar block = run.end - 1 - step;
          loadKey(k, tile, head, block);
          loadValue(v, tile, head, block + 1);
          k = ringK.next(b, k);
          v = ringV.next(b, v);
          return {k.slot, k.parity, v.slot, v.parity};
        });
    k = {b.wrap(places[0]), b.wrap(places[1])};
    v = {b.wrap(places[2]), b.wrap(places[3])};
    Scalar more = b.i32(-1) < next.row;
    b.when(more, [&] {
      loadKey(k, next, keyHead(next), blocksOfTile(next.row).end - 1);
    });
    loadValue(v, tile, head, run.begin);
    b.when(more, [&] { loadQuery(q, next); });
    k = ringK.next(b, k);
    v = ringV.next(b, v);
    q = ringQ.next(b, q);
    message = nextMessage(message);
    return {next.row, next.head,    next.batch,    k.slot,
            k.parity, v.slot,       v.parity,      q.slot,
            q.parity, message.slot, message.parity};
  }

  Tile drawNext() {
    if (!persistent)
      return {b.i32(-1), b.i32(0), b.i32(0)};
    Scalar drawn = b.wrap(
        DrawOp::create(b, b.getI32Type(), arguments.get(b, "counter"), tiles));
    // The first tiles went to the blocks by their numbers.
    return decode(drawn + b.gridSize(0));
  }

  /// The queue has two slots.
  static Place nextMessage(Place place) {
    return {place.slot ^ 1, place.parity ^ place.slot};
  }

  //===--------------------------------------------------------------------===//
  // Consumers: products
  //===--------------------------------------------------------------------===//

  PendingType pending(int64_t columns) {
    return PendingType::get(b.getContext(), kWarpRows, columns);
  }

  Value startScores(Place q, Place k) {
    return WgmmaOp::create(b, pending(key), bufferQ, q.slot, groupRow, bufferK,
                           k.slot, /*transpose=*/true, /*acc=*/Value());
  }

  Value startOutput(Value weights, Place v, Value output) {
    return WgmmaOp::create(b, pending(dimV), weights, /*lhs_stage=*/Value(),
                           /*lhs_row=*/Value(), bufferV, v.slot,
                           /*transpose=*/false, output);
  }

  /// Waits for the product, with so many younger ones left in flight.
  Value await(Value product, int64_t younger) {
    int64_t columns = cast<PendingType>(product.getType()).getColumns();
    Type type = b.accType(kWarpRows, columns);
    return WgmmaWaitOp::create(b, type, uint32_t(younger), product)
        .getResult(0);
  }

  Value cast16(Value weights) {
    return CastOp::create(b, b.lhsType(kWarpRows, key, element), weights);
  }

  /// The turn at the tensor cores goes round the warpgroups.
  void takeTurn() {
    if (pingPong)
      BarSyncOp::create(b, group + 1, uint32_t(2 * kWarpsPerGroup));
  }
  void passTurn() {
    if (pingPong)
      BarArriveOp::create(b, nextGroup + 1, uint32_t(2 * kWarpsPerGroup));
  }

  //===--------------------------------------------------------------------===//
  // Consumers: a tile
  //===--------------------------------------------------------------------===//

  /// What a warpgroup carries from block to block and from tile to tile.
  struct State {
    Place k, v; ///< v: the value block that goes with `weights`
    LazySoftmax::Rows rows;
    Value weights; ///< of the last block, not yet multiplied
  };
  static SmallVector<Value> pack(const State &s) {
    return {s.k.slot,         s.k.parity, s.v.slot, s.v.parity,
            s.rows.reference, s.rows.sum, s.weights};
  }
  State unpack(ValueRange s) {
    return {{b.wrap(s[0]), b.wrap(s[1])},
            {b.wrap(s[2]), b.wrap(s[3])},
            {s[4], s[5]},
            s[6]};
  }

  void consume() {
    group = warp / kWarpsPerGroup - 1;
    groupRow = group * kGroupRows;
    warpRow = groupRow + (warp % kWarpsPerGroup) * kWarpRows;
    if (pingPong) {
      nextGroup = b.select(group == b.i32(groups - 1), b.i32(0), group + 1);
      b.when(group == b.i32(0), [&] {
        BarArriveOp::create(b, group + 1, uint32_t(2 * kWarpsPerGroup));
      });
    }
    softmax.emplace(b, arguments.get(b, "scale"), request.scale);

    Place start = Place::reader(b);
    Tile first = pop(start);
    Place message = nextMessage(start);
    Value zeroRow = b.fill(b.f32(0), b.rowType(kWarpRows));
    Value zeroSum = b.fill(b.f32(0), b.rowType(kWarpRows, /*partial=*/true));
    zeroWeights = cast16(b.fill(b.f32(0), b.accType(kWarpRows, key)));
    State state{start, start, {zeroRow, zeroSum}, zeroWeights};
    SmallVector<Value> init = {first.row,      first.head,      first.batch,
                               start.slot,     start.parity,    message.slot,
                               message.parity, b.boolean(false)};
    init.append(pack(state));
    b.repeat(
        init, [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) { return consumeTile(s); });
    TmaStoreWaitOp::create(b);
  }

  Tile pop(Place place) {
    SmallVector<Type> types(3, b.getI32Type());
    auto op = PopOp::create(b, types, queue, place.slot, place.parity);
    return {b.wrap(op.getResult(0)), b.wrap(op.getResult(1)),
            b.wrap(op.getResult(2))};
  }

  SmallVector<Value> consumeTile(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Tile tile{at(0), at(1), at(2)};
    Place q{at(3), at(4)}, message{at(5), at(6)};
    Scalar started = at(7);
    ValueRange carried = s.drop_front(8);
    Share share = shareOf(tile.row);
    State state = unpack(b.choose(
        started, [&] { return llvm::to_vector(carried); },
        [&] { return pack(startTile(unpack(carried), q, tile, share)); }));

    Value output = b.fill(b.f32(0), b.accType(kWarpRows, dimV));
    walk(state, output, q, tile, share);
    if (queryStages > 1)
      ringQ.release(b, q);

    Tile next = pop(message);
    message = nextMessage(message);
    Place nextQ = ringQ.next(b, q);
    LazySoftmax::End end = softmax->finish(b, state.rows);
    Share nextShare = shareOf(next.row);
    // The loads of the next tile's blocks come before this tile's last value
    // block is handed back, as many as the ring has slots.
    Scalar joins = (b.i32(-1) < next.row) & (share.below == b.i32(0)) &
                   (nextShare.above < b.i32(stages + 1)) & b.boolean(overlap);
    ValueRange after = b.choose(
        joins,
        [&]() -> SmallVector<Value> {
          SmallVector<Value> results = {output};
          State crossed =
              crossBoundary(state, results[0], nextQ, next, nextShare);
          results.append(pack(crossed));
          return results;
        },
        [&]() -> SmallVector<Value> {
          SmallVector<Value> results = {output};
          State ended = endTile(state, results[0], share);
          results.append(pack(ended));
          return results;
        });
    storeTile(after[0], end, tile);

    SmallVector<Value> result = {next.row,       next.head,    next.batch,
                                 nextQ.slot,     nextQ.parity, message.slot,
                                 message.parity, joins};
    llvm::append_range(result, after.drop_front());
    return result;
  }

  /// Hands `count` blocks of K back unread, with the turns they stand for.
  Place passKeys(Place k, Scalar count) {
    ValueRange place = b.loop(b.i32(0), count, {k.slot, k.parity},
                              [&](Scalar, ValueRange p) -> SmallVector<Value> {
                                Place k{b.wrap(p[0]), b.wrap(p[1])};
                                ringK.awaitFull(b, k);
                                takeTurn();
                                passTurn();
                                ringK.release(b, k);
                                k = ringK.next(b, k);
                                return {k.slot, k.parity};
                              });
    return {b.wrap(place[0]), b.wrap(place[1])};
  }

  /// Hands `count` blocks of V back unread.
  Place passValues(Place v, Scalar count) {
    ValueRange place = b.loop(b.i32(0), count, {v.slot, v.parity},
                              [&](Scalar, ValueRange p) -> SmallVector<Value> {
                                Place v{b.wrap(p[0]), b.wrap(p[1])};
                                ringV.awaitFull(b, v);
                                ringV.release(b, v);
                                v = ringV.next(b, v);
                                return {v.slot, v.parity};
                              });
    return {b.wrap(place[0]), b.wrap(place[1])};
  }

  /// Both, block by block: the producer loads them in turns.
  std::pair<Place, Place> passBlocks(Place k, Place v, Scalar count) {
    ValueRange places =
        b.loop(b.i32(0), count, {k.slot, k.parity, v.slot, v.parity},
               [&](Scalar, ValueRange p) -> SmallVector<Value> {
                 Place k{b.wrap(p[0]), b.wrap(p[1])},
                     v{b.wrap(p[2]), b.wrap(p[3])};
                 ringK.awaitFull(b, k);
                 takeTurn();
                 passTurn();
                 ringK.release(b, k);
                 ringV.awaitFull(b, v);
                 ringV.release(b, v);
                 k = ringK.next(b, k);
                 v = ringV.next(b, v);
                 return {k.slot, k.parity, v.slot, v.parity};
               });
    return {{b.wrap(places[0]), b.wrap(places[1])},
            {b.wrap(places[2]), b.wrap(places[3])}};
  }

  /// Hides what the warpgroup's first block has beyond the mask or the keys.
  Value hideFirst(Value scores, const Tile &tile, const Share &share) {
    Scalar firstKey = (share.own.end - 1) * key;
    auto hide = [&] {
      return band->hide(b, scores, tile.row + warpRow, firstKey);
    };
    if (problem.mask.kind != MaskKind::none)
      return hide();
    // Only the keys' end can cut it, and often does not.
    return b.choose(
        band->keys < firstKey + key, [&] { return SmallVector<Value>{hide()}; },
        [&] { return SmallVector<Value>{scores}; })[0];
  }

  LazySoftmax::Block firstBlock(Value scores, const Tile &tile,
                                const Share &share) {
    scores = softmax->orient(b, scores);
    return softmax->first(b, hideFirst(scores, tile, share));
  }

  /// The last S of a tile has been worked out: with one Q tile in shared memory
  /// it is handed back at once, so that the next one comes in time.
  void releaseQueryAfter(Place q, Scalar isLast) {
    if (queryStages == 1)
      ringQ.release(b, q, isLast);
  }

  /// S and softmax of a warpgroup's first block, with nothing in flight.
  State startTile(State state, Place q, const Tile &tile, const Share &share) {
    auto [k, v] = passBlocks(state.k, state.v, share.above);
    ringQ.awaitFull(b, q);
    ringK.awaitFull(b, k);
    takeTurn();
    Value product = startScores(q, k);
    passTurn();
    Value scores = await(product, 0);
    ringK.release(b, k);
    releaseQueryAfter(q, share.own.end - 1 == share.own.begin);
    LazySoftmax::Block block = firstBlock(scores, tile, share);
    return {ringK.next(b, k), v, block.rows, cast16(block.weights)};
  }

  /// The blocks of a warpgroup after its first.
  void walk(State &state, Value &output, Place q, const Tile &tile,
            const Share &share) {
    // The block after the first, and where the loops end, going down.
    Scalar from = share.own.end - 1;
    if (cutsMoreThanOne()) {
      Scalar to = b.min(share.open.end, from);
      walkRun(state, output, q, tile, share, from, to, /*cut=*/true);
      from = to;
    }
    Scalar to = b.min(share.open.begin, from);
    walkRun(state, output, q, tile, share, from, to, /*cut=*/false);
    if (band->hasFirst)
      walkRun(state, output, q, tile, share, to, share.own.begin,
              /*cut=*/true);
  }

  /// The blocks `from - 1 .. to`, going down.
  void walkRun(State &state, Value &output, Place q, const Tile &tile,
               const Share &share, Scalar from, Scalar to, bool cut) {
    SmallVector<Value> init = pack(state);
    init.push_back(output);
    ValueRange results =
        b.loop(b.i32(0), from - to, init,
               [&](Scalar step, ValueRange carried) -> SmallVector<Value> {
                 State state = unpack(carried.drop_back());
                 Value output = carried.back();
                 Scalar block = from - 1 - step;
                 stepBlock(state, output, q, tile, block,
                           block == share.own.begin, cut);
                 SmallVector<Value> next = pack(state);
                 next.push_back(output);
                 return next;
               });
    state = unpack(results.drop_back());
    output = results.back();
  }

  /// S of this block, P V of the block before, softmax of this block.
  void stepBlock(State &state, Value &output, Place q, const Tile &tile,
                 Scalar block, Scalar isLast, bool cut) {
    ringK.awaitFull(b, state.k);
    takeTurn();
    if (!overlap)
      output = multiplyLast(state, output);
    Value product = startScores(q, state.k), sum;
    if (overlap) {
      ringV.awaitFull(b, state.v);
      sum = startOutput(state.weights, state.v, output);
    }
    passTurn();
    Value scores = await(product, overlap ? 1 : 0);
    ringK.release(b, state.k);
    releaseQueryAfter(q, isLast);
    scores = softmax->orient(b, scores);
    if (cut)
      scores = band->hide(b, scores, tile.row + warpRow, block * key);
    Scalar moves = softmax->mustMove(b, state.rows, scores);
    if (overlap) {
      output = await(sum, 0);
      ringV.release(b, state.v);
    }
    LazySoftmax::Step step =
        softmax->step(b, state.rows, scores, moves, output);
    output = step.output;
    state = {ringK.next(b, state.k), ringV.next(b, state.v), step.block.rows,
             cast16(step.block.weights)};
  }

  /// The first S of the next tile beside the last P V of this one.
  State crossBoundary(State state, Value &output, Place q, const Tile &tile,
                      const Share &share) {
    Place k = passKeys(state.k, share.above);
    ringQ.awaitFull(b, q);
    ringK.awaitFull(b, k);
    takeTurn();
    Value product = startScores(q, k);
    ringV.awaitFull(b, state.v);
    Value sum = startOutput(state.weights, state.v, output);
    passTurn();
    Value scores = await(product, 1);
    ringK.release(b, k);
    releaseQueryAfter(q, share.own.end - 1 == share.own.begin);
    LazySoftmax::Block block = firstBlock(scores, tile, share);
    output = await(sum, 0);
    ringV.release(b, state.v);
    Place v = passValues(ringV.next(b, state.v), share.above);
    return {ringK.next(b, k), v, block.rows, cast16(block.weights)};
  }

  /// P V of the last block, with nothing beside it.
  Value multiplyLast(const State &state, Value output) {
    ringV.awaitFull(b, state.v);
    output = await(startOutput(state.weights, state.v, output), 0);
    ringV.release(b, state.v);
    return output;
  }

  /// The last P V of a tile, and what it passes over below.
  State endTile(State state, Value &output, const Share &share) {
    output = multiplyLast(state, output);
    auto [k, v] = passBlocks(state.k, ringV.next(b, state.v), share.below);
    return {k, v, state.rows, zeroWeights};
  }

  //===--------------------------------------------------------------------===//
  // Consumers: the end of a tile
  //===--------------------------------------------------------------------===//

  /// O / l through shared memory, in strips of `staging` columns, and the LSE.
  void storeTile(Value output, const LazySoftmax::End &end, const Tile &tile) {
    output = scaleRows(b, output, end.inverse);
    Scalar barrier = group + (1 + groups);
    Scalar leads = warp % kWarpsPerGroup == b.i32(0);
    for (int64_t column = 0; column < dimV; column += staging) {
      int64_t columns = std::min(staging, dimV - column);
      // The leader's store of the strip before has read the buffer.
      TmaStoreWaitOp::create(b);
      BarSyncOp::create(b, barrier, uint32_t(kWarpsPerGroup));
      Value strip =
          columns == dimV
              ? output
              : Value(ExtractOp::create(b, b.accType(kWarpRows, columns),
                                        output, uint64_t(column)));
      StoreMatrixOp::create(b, strip, bufferO, warpRow);
      FenceAsyncOp::create(b);
      BarSyncOp::create(b, barrier, uint32_t(kWarpsPerGroup));
      b.when(leads, [&] {
        TmaStoreOp::create(b, bufferO, groupRow, map("o"), tile.batch,
                           tile.head, tile.row + groupRow, uint64_t(column));
      });
    }
    if (!problem.lse)
      return;
    auto type = ViewType::get(b.getContext(), ViewType::kVector, b.getF32Type(),
                              /*align=*/4);
    Value lse = arguments.view(b, "lse", type, tile.batch, tile.head, queries);
    StoreRowOp::create(b, end.lse, lse, tile.row + warpRow);
  }

  TileBuilder &b;
  const Problem &problem;
  const KernelRequest &request;
  Type element;
  int64_t query, key, stages, queryStages, staging;
  bool overlap, pingPong, persistent;
  int64_t groups;    ///< consumer warpgroups
  int64_t dim, dimV; ///< head dimensions, padded

  Arguments arguments;
  std::optional<KeyBand> band;
  std::optional<LazySoftmax> softmax;
  Scalar queries, warp;
  Scalar tiles, section;                      // producer
  Scalar group, nextGroup, groupRow, warpRow; // consumers
  Value bufferQ, bufferK, bufferV, bufferO, queue, zeroWeights;
  Ring ringQ, ringK, ringV;
};

} // namespace

namespace attn {
KernelOp flash_wgmma(OpBuilder &builder, Location loc,
                     const KernelRequest &request);
} // namespace attn

KernelOp attn::flash_wgmma(OpBuilder &builder, Location loc,
                           const KernelRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  return FlashWgmma(b, request).build();
}
