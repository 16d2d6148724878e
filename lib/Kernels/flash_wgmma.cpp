//===- flash_wgmma.cpp - FlashAttention on wgmma (sm_90a) -----------------===//
//
// One block per multiprocessor, which works off tiles: `query` rows of one head
// each.  Keys and values stream past in blocks of `key` rows, from the last to
// the first, so that a causal mask cuts the first blocks only.
//
// Roles.  A producer, one lane, draws tiles from a counter that the grid
// shares, tells the others (a queue), and starts every load.  Each consumer
// warpgroup owns 64 rows of the tile; P and O stay in its registers.  Values of
// 8 bits pass through a transposer, which has the producer's other warps.
//
// Overlap.  A consumer starts S = Q K[n]^T and O += P V[n + 1] back to back and
// works out the softmax of block n while the second product runs.  Without
// `overlap` it waits for each, which saves the registers of P beside S.
//
// Boundary.  At the end of a tile the first S of the next one is started beside
// the last P V of this one, and its softmax runs before this tile is written:
// neither a prologue nor the store is exposed.  A warpgroup that cannot do so
// (no next tile, or blocks to pass over first) starts the next one afresh.
//
// Passing over (TileBlocks.h).  A warpgroup hands blocks that only the others
// need back unread.
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"
#include "FlashFrame.h"
#include "LazySoftmax.h"
#include "Turns.h"

#include "attn/Schedule/Footprint.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class FlashWgmma : FlashFrame {
public:
  FlashWgmma(TileBuilder &b, const KernelRequest &request)
      : FlashFrame(b, request) {}

  KernelOp build() {
    KernelOp kernel = declare();
    warp = b.warpId();

    auto roles = RolesOp::create(b);
    b.createBlock(&roles.getBody());
    RegisterBudget budget = registerBudget(groups, transposes);
    b.role("producer", producerWarps(), budget.producer, /*singleLane=*/true,
           [&] { produceTiles(*this); });
    if (transposes)
      b.role("transposer", kTransposerWarps, budget.producer,
             /*singleLane=*/false, [&] { transposeValues(*this); });
    b.role("consumer", kWarpsPerGroup * groups, budget.consumer,
           /*singleLane=*/false, [&] { consume(); });
    b.setInsertionPointAfter(roles);
    ReturnOp::create(b);
    return kernel;
  }

private:
  //===--------------------------------------------------------------------===//
  // Consumers: products
  //===--------------------------------------------------------------------===//

  Value startScores(Place q, Place k) {
    return WgmmaOp::create(b, b.pendingType(key), bufferQ, q.slot, groupRow,
                           bufferK, k.slot, /*transpose=*/true,
                           /*acc=*/Value());
  }

  Value startOutput(Value weights, Place v, Value output) {
    return WgmmaOp::create(
        b, b.pendingType(dimV), weights, /*lhs_stage=*/Value(),
        /*lhs_row=*/Value(), bufferV, v.slot, transposes, output);
  }

  Value cast16(Value weights) {
    return CastOp::create(b, b.lhsType(kWarpRows, key, element), weights);
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
    if (pingPong)
      turns = Turns(b, group, groups);
    softmax.emplace(b, arguments.get(b, "scale"), request.scale, element);

    Place start = Place::reader(b);
    Tile first = pop(start);
    Place message = start.next(b, kTileMessages);
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
    TmaStoreWaitOp::create(b, 0u);
  }

  SmallVector<Value> consumeTile(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Tile tile{at(0), at(1), at(2)};
    Place q{at(3), at(4)}, message{at(5), at(6)};
    Scalar started = at(7);
    ValueRange carried = s.drop_front(8);
    Share share = blocks->ofGroup(b, tile.row, groupRow);
    State state = unpack(b.choose(
        started, [&] { return llvm::to_vector(carried); },
        [&] { return pack(startTile(unpack(carried), q, tile, share)); }));

    Value output = b.fill(b.f32(0), b.accType(kWarpRows, dimV));
    walk(state, output, q, tile, share);
    if (queryStages > 1)
      ringQ.release(b, q);

    Tile next = pop(message);
    message = message.next(b, kTileMessages);
    Place nextQ = ringQ.next(b, q);
    LazySoftmax::End end = softmax->finish(b, state.rows);
    Share nextShare = blocks->ofGroup(b, next.row, groupRow);
    Scalar joins = (b.i32(-1) < next.row) & b.boolean(overlap) &
                   turns.mayJoin(b, share, nextShare, stages);
    ValueRange after = b.choose(
        joins,
        [&]() -> SmallVector<Value> {
          SmallVector<Value> results = {output};
          State crossed = crossBoundary(state, results[0], share.below, nextQ,
                                        next, nextShare);
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

  /// Hands `count` blocks back unread: of K, with the turns they stand for, of
  /// V, or of both, block by block, as the producer loads them.
  void passOver(Scalar count, Place *k, Place *v) {
    SmallVector<Value> init;
    for (Place *place : {k, v})
      if (place)
        init.append({place->slot, place->parity});
    ValueRange places = b.loop(
        b.i32(0), count, init, [&](Scalar, ValueRange p) -> SmallVector<Value> {
          SmallVector<Value> next;
          for (Place *place : {k, v}) {
            if (!place)
              continue;
            const Ring &ring = place == k ? ringK : ringV;
            Place now{b.wrap(p[next.size()]), b.wrap(p[next.size() + 1])};
            ring.awaitFull(b, now);
            if (place == k) {
              turns.take(b);
              turns.pass(b);
            }
            ring.release(b, now);
            now = ring.next(b, now);
            next.append({now.slot, now.parity});
          }
          return next;
        });
    size_t at = 0;
    for (Place *place : {k, v})
      if (place) {
        *place = {b.wrap(places[at]), b.wrap(places[at + 1])};
        at += 2;
      }
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
    Place k = state.k, v = state.v;
    passOver(share.above, &k, &v);
    ringQ.awaitFull(b, q);
    ringK.awaitFull(b, k);
    turns.take(b);
    Value product = startScores(q, k);
    turns.pass(b);
    Value scores = b.await(product);
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
    if (cutsMoreThanOne(problem.mask.kind, key)) {
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
    turns.take(b);
    if (!overlap)
      output = multiplyLast(state, output);
    Value product = startScores(q, state.k), sum;
    if (overlap) {
      ringV.awaitFull(b, state.v);
      sum = startOutput(state.weights, state.v, output);
    }
    turns.pass(b);
    Value scores = b.await(product, overlap ? 1 : 0);
    ringK.release(b, state.k);
    releaseQueryAfter(q, isLast);
    scores = softmax->orient(b, scores);
    if (cut)
      scores = band->hide(b, scores, tile.row + warpRow, block * key);
    Scalar moves = softmax->mustMove(b, state.rows, scores);
    if (overlap) {
      output = b.await(sum);
      ringV.release(b, state.v);
    }
    LazySoftmax::Step step =
        softmax->step(b, state.rows, scores, moves, output);
    output = step.output;
    state = {ringK.next(b, state.k), ringV.next(b, state.v), step.block.rows,
             cast16(step.block.weights)};
  }

  /// The first S of the next tile beside the last P V of this one, of which
  /// `below` blocks are left to pass over.
  State crossBoundary(State state, Value &output, Scalar below, Place q,
                      const Tile &tile, const Share &share) {
    Place k = state.k;
    Scalar passed = below + share.above;
    passOver(passed, &k, nullptr);
    ringQ.awaitFull(b, q);
    ringK.awaitFull(b, k);
    turns.take(b);
    Value product = startScores(q, k);
    ringV.awaitFull(b, state.v);
    Value sum = startOutput(state.weights, state.v, output);
    turns.pass(b);
    Value scores = b.await(product, 1);
    ringK.release(b, k);
    releaseQueryAfter(q, share.own.end - 1 == share.own.begin);
    LazySoftmax::Block block = firstBlock(scores, tile, share);
    output = b.await(sum);
    ringV.release(b, state.v);
    Place v = ringV.next(b, state.v);
    passOver(passed, nullptr, &v);
    return {ringK.next(b, k), v, block.rows, cast16(block.weights)};
  }

  /// P V of the last block, with nothing beside it.
  Value multiplyLast(const State &state, Value output) {
    ringV.awaitFull(b, state.v);
    output = b.await(startOutput(state.weights, state.v, output));
    ringV.release(b, state.v);
    return output;
  }

  /// The last P V of a tile, and what it passes over below.
  State endTile(State state, Value &output, const Share &share) {
    output = multiplyLast(state, output);
    Place k = state.k, v = ringV.next(b, state.v);
    passOver(share.below, &k, &v);
    return {k, v, state.rows, zeroWeights};
  }

  void storeTile(Value output, const LazySoftmax::End &end, const Tile &tile) {
    Strips strips{buffersO,
                  map("o"),
                  groupRow,
                  warpRow,
                  warp % kWarpsPerGroup == b.i32(0),
                  /*barrier=*/group + (1 + groups)};
    storeOutputAsync(b, scaleRows(b, output, end.inverse), strips, tile);
    if (problem.lse)
      storeLse(b, arguments, end.lse, tile, queries, tile.row + warpRow);
  }

  std::optional<LazySoftmax> softmax;
  Scalar warp;
  Scalar group, groupRow, warpRow; // consumers
  Turns turns;                     // consumers
  Value zeroWeights;
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
