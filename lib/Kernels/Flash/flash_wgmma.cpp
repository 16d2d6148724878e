//===- flash_wgmma.cpp - FlashAttention on wgmma (sm_90a) -----------------===//
//
// One block per multiprocessor, which works off tiles: `query` rows of one head
// each.  Keys and values stream past in blocks of `key` rows, from the last to
// the first, so that a causal mask cuts the first blocks only.
//
// Roles.  A producer, one lane, draws tiles from a counter that the grid
// shares, tells the others (a queue), and starts every load.  Each consumer
// warpgroup owns 64 rows of the tile; P and O stay in its registers.  Values of
// 8 bits pass through a transposer, which has the producer's other warps; keys
// and values of 8 bits under queries of 16 through a widener, which has them
// too, and for one consumer a warpgroup more; f32 through a splitter, which has
// up to two more.
//
// Parts.  f32 is multiplied in three parts of bf16, six products for one, all
// of which one sum takes, small ones first.  The tensor cores cut sums off
// where f32 ends; so P V of a block is a sum of its own, which is added to O in
// f32, 64 columns at a time.  In a simulation the error is then 0.6 to 0.9
// times that of f32 arithmetic (d = 64 to 256, 32 to 128 keys of a block).
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

#include "Flash/FlashConsumer.h"
#include "Flash/PartsMerge.h"
#include "Pipe/PartProducts.h"
#include "Pipe/Turns.h"
#include "Region/OperandScale.h"
#include "Softmax/LazySoftmax.h"
#include "Softmax/Sink.h"

#include "attn/Schedule/Footprint.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class FlashWgmma : FlashConsumer {
public:
  FlashWgmma(TileBuilder &b, const KernelRequest &request)
      : FlashConsumer(b, request) {}

  KernelOp build() {
    KernelOp kernel = declare();
    warp = b.warpId();

    b.roles([&] {
      if (pairs > 1)
        produceForPairs();
      else
        b.role("producer", producerWarps(), budget.producer,
               /*singleLane=*/true,
               [&] { splits ? landOperands(*this) : produceTiles(*this); });
      if (hasHelper())
        b.role(nameOfHelper(), helperWarps, budget.producer,
               /*singleLane=*/false, [&] { help(); });
      b.role("consumer", kWarpsPerGroup * groups * pairs, budget.consumer,
             /*singleLane=*/false, [&] { consume(); });
    });
    return kernel;
  }

private:
  /// Each from a warp of its own.
  void produceForPairs() {
    for (int64_t pair = 0; pair < pairs; ++pair)
      b.role(("producer_" + Twine(pair)).str(), kWarpsPerGroup / pairs,
             budget.producer, /*singleLane=*/true, [&] {
               enter(b.i32(pair));
               produceTiles(*this, pair);
             });
  }

  StringRef nameOfHelper() const {
    return splits ? "splitter" : widens ? "widener" : "transposer";
  }
  void help() {
    splits   ? splitOperands(*this)
    : widens ? widenKeys(*this)
             : transposeValues(*this);
  }

  //===--------------------------------------------------------------------===//
  // Consumers: products
  //===--------------------------------------------------------------------===//

  struct State;

  Value startScores(Place q, Place k) {
    return startPairs(splits ? kSplitParts : 1, Value(),
                      [&](const PartPair &pair, Value sum) -> Value {
                        return WgmmaOp::create(
                            b, b.pendingType(key), buffersQ[pair.left], q.slot,
                            groupRow, buffersK[pair.right], k.slot,
                            /*transpose=*/true, sum);
                      });
  }

  /// O in parts that are added to by themselves, or the only one.
  using Output = SmallVector<Value, 4>;
  int64_t columnsOf(size_t part) const {
    return splits ? std::min(kSumColumns, dimV - int64_t(part) * kSumColumns)
                  : dimV;
  }
  Output noOutput() {
    Output output;
    for (int64_t column = 0; column < dimV; column += columnsOf(0))
      output.push_back(
          b.fill(b.f32(0), b.accType(kWarpRows, columnsOf(output.size()))));
    return output;
  }

  /// P V of a block, for a part of O; unsplit it goes on with O.
  Value startOutput(ValueRange weights, Place v, ValueRange output,
                    size_t part = 0) {
    Value column =
        part == 0 ? Value() : Value(b.i32(int64_t(part) * kSumColumns));
    Value sum = splits ? Value() : output[part];
    return startPairs(splits ? kSplitParts : 1, sum,
                      [&](const PartPair &pair, Value sum) -> Value {
                        return WgmmaOp::create(
                            b, b.pendingType(columnsOf(part)),
                            weights[pair.left], /*lhs_stage=*/Value(),
                            /*lhs_row=*/Value(), buffersV[pair.right], v.slot,
                            column, transposes, sum);
                      });
  }

  /// The rest of that product, of which one part is in flight.  Parts are
  /// scaled one by one if `step` says so.  ptxas moves no sum past that branch;
  /// or else it would start all products before it adds up one, with registers
  /// for each.
  Output endOutput(Value sum, ValueRange weights, Place v, ValueRange output,
                   const LazySoftmax::Early &step) {
    Output result;
    for (size_t part = 0; part < output.size(); ++part) {
      if (part > 0)
        sum = startOutput(weights, v, output, part);
      Value done = b.await(sum);
      if (splits) {
        done = b.map({output[part], done}, done.getType(),
                     [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                       return x[0] + x[1];
                     });
        done = softmax->scaled(b, step, done);
      }
      result.push_back(done);
    }
    return result;
  }
  /// The same with nothing to be scaled, of which ptxas does not know.
  Output endOutput(Value sum, const State &state, ValueRange output) {
    LazySoftmax::Early never{{}, queries < b.i32(0), state.rows.reference};
    return endOutput(sum, state.weights, state.v, output, never);
  }

  /// P as a left factor.
  SmallVector<Value> factorOf(Value weights) {
    FragType type =
        b.lhsType(kWarpRows, key, splits ? Type(b.getBF16Type()) : element);
    if (!splits)
      return {CastOp::create(b, type, weights)};
    auto parts = SplitBf16Op::create(b, type, type, type, weights);
    return {parts.getFirst(), parts.getSecond(), parts.getThird()};
  }

  //===--------------------------------------------------------------------===//
  // Consumers: a tile
  //===--------------------------------------------------------------------===//

  /// What a warpgroup carries from block to block and from tile to tile.
  struct State {
    Place k, v; ///< v: the value block that goes with `weights`
    LazySoftmax::Rows rows;
    SmallVector<Value> weights; ///< of the last block, not yet multiplied
  };
  static SmallVector<Value> pack(const State &s) {
    SmallVector<Value> all = {s.k.slot, s.k.parity, s.v.slot, s.v.parity};
    llvm::append_range(all, s.rows.pack());
    llvm::append_range(all, s.weights);
    return all;
  }
  State unpack(ValueRange s) {
    return {{b.wrap(s[0]), b.wrap(s[1])},
            {b.wrap(s[2]), b.wrap(s[3])},
            LazySoftmax::Rows::unpack(s.drop_front(4)),
            llvm::to_vector(s.drop_front(4 + LazySoftmax::Rows::kValues))};
  }
  /// The same with O behind it.
  static SmallVector<Value> pack(const State &s, ValueRange output) {
    SmallVector<Value> all = pack(s);
    llvm::append_range(all, output);
    return all;
  }

  void consume() {
    beginConsumer();
    if (pingPong)
      turns = Turns(b, group, groups, firstGroup);
    if (!scoring.scalesTiles())
      softmax.emplace(softmaxOf({}));

    Place message = queue.reader(b), start = ringQ.reader(b);
    Tile first = like = pop(message);
    message = queue.next(b, message);
    Value zeroRow = b.fill(b.f32(0), b.rowType(kWarpRows));
    Value zeroSum = b.fill(b.f32(0), b.rowType(kWarpRows, /*partial=*/true));
    zeroWeights = factorOf(b.fill(b.f32(0), b.accType(kWarpRows, key)));
    State state{ringK.reader(b),
                ringV.reader(b),
                {zeroRow, zeroSum, b.boolean(false)},
                zeroWeights};
    SmallVector<Value> init = first.numbers();
    tileNumbers = init.size();
    init.append({start.slot, start.parity, message.slot, message.parity,
                 b.boolean(false)});
    init.append(pack(state));
    b.repeat(
        init, [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) { return consumeTile(s); });
    TmaStoreWaitOp::create(b, 0u);
  }

  SmallVector<Value> consumeTile(ValueRange s) {
    Tile tile = like.like(b, s.take_front(tileNumbers));
    s = s.drop_front(tileNumbers);
    auto at = [&](int i) { return b.wrap(s[i]); };
    Place q{at(0), at(1)}, message{at(2), at(3)};
    Scalar started = at(4);
    ValueRange carried = s.drop_front(5);
    GroupWalk steps = blocks->ofGroup(b, tile, groupRow);
    Scoring::Rows rows = rowsOf(tile);
    if (scoring.scalesTiles())
      softmax.emplace(softmaxOf(rows));
    State state = unpack(b.choose(
        started, [&] { return llvm::to_vector(carried); },
        [&] {
          return pack(startTile(unpack(carried), q, tile, rows, steps));
        }));

    Output output = noOutput();
    walk(state, output, q, tile, rows, steps);
    if (queryStages > 1)
      ringQ.release(b, q);

    Tile next = pop(message);
    message = queue.next(b, message);
    Place nextQ = ringQ.next(b, q);
    LazySoftmax::End end;
    auto finish = [&] {
      end = softmax->finish(b, state.rows, problem.lseLow);
      if (problem.clauses.sinks)
        addSink(b, end.inverse, end.lse, rows.sink);
      end.inverse = withScale(b, end.inverse, rows.ofValues);
    };
    // Both words of LSE would take more registers from the products of the next
    // tile than what they come from.
    if (!problem.lseLow)
      finish();
    GroupWalk nextSteps = blocks->ofGroup(b, next, groupRow);
    Scalar joins =
        (b.i32(-1) < next.row) & b.boolean(overlap) & mayJoin(steps, nextSteps);
    ValueRange after = b.choose(
        joins,
        [&] {
          Output last = output;
          State crossed =
              crossBoundary(state, last, steps.below, nextQ, next, nextSteps);
          return pack(crossed, last);
        },
        [&] {
          Output last = output;
          State ended = endTile(state, last, steps);
          return pack(ended, last);
        });
    if (problem.lseLow)
      finish();
    storeTile(after.take_back(output.size()), end, tile);

    SmallVector<Value> result = next.numbers();
    result.append(
        {nextQ.slot, nextQ.parity, message.slot, message.parity, joins});
    llvm::append_range(result, after.drop_back(output.size()));
    return result;
  }

  /// Whether the next tile's first scores may be started before this tile's
  /// last values are handed back.  What is widened comes K[n] V[n], so that all
  /// values from that block on, and those of blocks that are passed over in the
  /// next tile, come before its first keys (Turns.h has it for what is loaded).
  Scalar mayJoin(const GroupWalk &group, const GroupWalk &next) {
    if (widens)
      return group.below + next.above < b.i32(kWidenedStages);
    return turns.mayJoin(b, group, next, stages);
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

  Scoring::Rows rowsOf(const Tile &all) {
    Tile tile = ownOf(all);
    return scoring.ofRows(
        b, {tile.batch, tile.head, tile.row + queryOf(all), kWarpRows,
            /*areKeys=*/false, tile.queries,
            Value(tile.usedKeys) ? tile.usedKeys : tile.keys});
  }

  LazySoftmax softmaxOf(const Scoring::Rows &rows) {
    return {b, scoring.scale(b, rows), scoring.sign(), element};
  }

  /// Where lists begin with a full block, no region hides anything in it.
  LazySoftmax::Block firstBlock(const LazySoftmax &softmax, Value scores,
                                const Tile &tile, const Scoring::Rows &rows,
                                const GroupWalk &steps) {
    scores = softmax.orient(b, scores);
    bool needsKey = scoring.scores() || scoring.hides();
    Scalar key = needsKey ? steps.firstKey(b) : Scalar();
    scores = scoring.scored(b, rows, scores, key, Pairs::any);
    scores = steps.hideFirst(b, scores, tile, queryOf(tile));
    auto hidden = [&]() -> SmallVector<Value> {
      return {scoring.hidden(b, rows, scores, key, /*isCut=*/true)};
    };
    if (scoring.hides() && steps.isListed())
      scores = b.choose(steps.beginsPartial(b), hidden,
                        [&] { return SmallVector<Value>{scores}; })[0];
    else
      scores = hidden()[0];
    return softmax.first(b, scores);
  }

  /// Scores of a step behind the first.
  Value prepared(Value scores, const Tile &tile, const Scoring::Rows &rows,
                 const GroupWalk &steps, const StretchStep &at) {
    bool isCut = at.stretch.isCut, isListed = steps.isListed();
    bool hides = scoring.hides() && (isCut || !isListed);
    Scalar key = hides || scoring.scores() ? steps.keyOf(at) : Scalar();
    scores = scoring.scored(b, rows, softmax->orient(b, scores), key,
                            scoring.pairsOf(isCut, isListed));
    scores = steps.hide(b, scores, tile.row + queryOf(tile), at);
    return hides ? scoring.hidden(b, rows, scores, key, isCut) : scores;
  }

  /// The last S of a tile has been worked out: with one Q tile in shared memory
  /// it is handed back at once, so that the next one comes in time.
  void releaseQueryAfter(Place q, Scalar isLast) {
    if (queryStages == 1)
      ringQ.release(b, q, isLast);
  }

  /// S and softmax of a warpgroup's first block, with nothing in flight.
  State startTile(const State &state, Place q, const Tile &tile,
                  const Scoring::Rows &rows, const GroupWalk &steps) {
    Place k = state.k, v = state.v;
    passOver(steps.above, &k, &v);
    ringQ.awaitFull(b, q);
    ringK.awaitFull(b, k);
    turns.take(b);
    Value product = startScores(q, k);
    turns.pass(b);
    Value scores = b.await(product);
    ringK.release(b, k);
    releaseQueryAfter(q, steps.isSingle(b));
    LazySoftmax::Block block = firstBlock(*softmax, scores, tile, rows, steps);
    return {ringK.next(b, k), v, block.rows, factorOf(block.weights)};
  }

  /// The blocks of a warpgroup after its first.
  void walk(State &state, Output &output, Place q, const Tile &tile,
            const Scoring::Rows &rows, const GroupWalk &steps) {
    steps.forEachStretch(b, [&](const Stretch &stretch) {
      walkStretch(state, output, q, tile, rows, steps, stretch);
    });
  }

  void walkStretch(State &state, Output &output, Place q, const Tile &tile,
                   const Scoring::Rows &rows, const GroupWalk &steps,
                   const Stretch &stretch) {
    size_t parts = output.size();
    ValueRange results =
        b.loop(b.i32(0), stretch.walk.steps(), pack(state, output),
               [&](Scalar step, ValueRange carried) -> SmallVector<Value> {
                 State state = unpack(carried.drop_back(parts));
                 Output output(carried.take_back(parts));
                 StretchStep at = steps.at(stretch, step);
                 auto prepare = [&](Value scores) {
                   return prepared(scores, tile, rows, steps, at);
                 };
                 stepBlock(state, output, q, steps.isLast(b, at), prepare);
                 return pack(state, output);
               });
    state = unpack(results.drop_back(parts));
    output = Output(results.take_back(parts));
  }

  /// S of this block, P V of the block before, softmax of this block.
  void stepBlock(State &state, Output &output, Place q, Scalar isLast,
                 function_ref<Value(Value scores)> prepare) {
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
    scores = prepare(scores);
    if (splits && overlap) {
      LazySoftmax::Early step = softmax->stepEarly(b, state.rows, scores);
      output = endOutput(sum, state.weights, state.v, output, step);
      ringV.release(b, state.v);
      state = {ringK.next(b, state.k), ringV.next(b, state.v), step.block.rows,
               factorOf(step.block.weights)};
      return;
    }
    Scalar moves = softmax->mustMove(b, state.rows, scores);
    if (overlap) {
      output = endOutput(sum, state, output);
      ringV.release(b, state.v);
    }
    LazySoftmax::Step step =
        softmax->step(b, state.rows, scores, moves, output);
    output = llvm::to_vector<4>(step.output);
    state = {ringK.next(b, state.k), ringV.next(b, state.v), step.block.rows,
             factorOf(step.block.weights)};
  }

  /// The first S of the next tile beside the last P V of this one, of which
  /// `below` blocks are left to pass over.
  State crossBoundary(const State &state, Output &output, Scalar below, Place q,
                      const Tile &tile, const GroupWalk &steps) {
    Place k = state.k;
    Scalar passed = below + steps.above;
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
    releaseQueryAfter(q, steps.isSingle(b));
    Scoring::Rows rows = rowsOf(tile);
    LazySoftmax::Block block =
        firstBlock(scoring.scalesTiles() ? softmaxOf(rows) : *softmax, scores,
                   tile, rows, steps);
    output = endOutput(sum, state, output);
    ringV.release(b, state.v);
    Place v = ringV.next(b, state.v);
    passOver(passed, nullptr, &v);
    return {ringK.next(b, k), v, block.rows, factorOf(block.weights)};
  }

  /// P V of the last block, with nothing beside it.
  Output multiplyLast(const State &state, ValueRange output) {
    ringV.awaitFull(b, state.v);
    Value sum = startOutput(state.weights, state.v, output);
    Output result = endOutput(sum, state, output);
    ringV.release(b, state.v);
    return result;
  }

  /// The last P V of a tile, and what it passes over below.
  State endTile(const State &state, Output &output, const GroupWalk &steps) {
    output = multiplyLast(state, output);
    Place k = state.k, v = ringV.next(b, state.v);
    passOver(steps.below, &k, &v);
    return {k, v, state.rows, zeroWeights};
  }

  std::optional<LazySoftmax> softmax;
  Tile like;              // consumers: the form of all tiles
  size_t tileNumbers = 0; // consumers: of a tile, as it is carried
  Turns turns;            // consumers
  SmallVector<Value> zeroWeights;
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
  if (request.launch > 0)
    return buildPartsMerge(b, request);
  return FlashWgmma(b, request).build();
}
