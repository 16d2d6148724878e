//===- flash_backward_wgmma.cpp - Gradients in five products (sm_90a) -----===//
//
// Three launches; the first and the last are in FlashBackwardStrips.cpp.  With
// `beside` the main one does what the last one does, or what both do
// (FlashBackwardBeside.cpp).
//
// One block per multiprocessor, which works off tiles: `key` rows of K and V of
// one key head.  dK and dV of the tile stay in registers, 64 rows in each
// consumer warpgroup.  Queries and the gradients of outputs stream past in
// blocks, from the last to the first, for one query head after the other.
//
// All products have keys as the rows of their accumulators:
//
//   S^T  = K Q^T      both in shared memory
//   dP^T = V dO^T     both in shared memory
//   dV  += P^T dO     P^T, rounded, is a left factor where it is
//   dK  += dS^T Q     so is dS^T
//   dQ   = dS K       needs dS of all keys of the tile, and the other way
//                     round: only this crosses shared memory
//
// dQ is a sum over tiles, so each warpgroup leaves its part to the writer, who
// adds it to sums in global memory (FlashBackwardFrame.h).  They come in any
// order: dQ is not the same bit by bit in every run, dK and dV are.
//
// Order.  Shared memory feeds S, dP and dQ at its full speed, so what matters
// is that the tensor cores always have a product queued: dV is started before
// dP is waited for, dK before dQ is.  (Started later, ptxas moves the waits up
// above the exponentials.)
//
// Without `overlap` dV is started behind dS, which saves the registers of P in
// 16 bits beside P and dP.
//
// Halves.  All warpgroups meet in every step, so they come to their
// exponentials at the same time, and the tensor cores have nothing to do
// meanwhile but dP. Where heads are narrow that is a quarter of a step:
// exponentials of 128 x 128 scores take 1024 clocks, and one product of d = 64
// takes 512.  With `overlap = 2` a block of 128 queries is weighed in two
// halves.  Beside the exponentials of the first one dP and S of the second are
// in flight, beside those of the second dV, dP and dK:
//
//   S0 dP0 S1 | 2^S0 | dV0 | dS0 | dP1 dK0 | 2^S1 | dV1 | dS1 | dQ dK1
//
// K, the left factor of S, is read twice for that, once for each half.  V is
// read once for a tile, and stays in registers.
//
// Roles.  Producer and writer, one lane each, share the first warpgroup.
//
//===----------------------------------------------------------------------===//

#include "FlashBackward/FlashBackwardFrame.h"
#include "Gradients/ListedSteps.h"
#include "Softmax/Softmax.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// The barrier at which dS of all warpgroups is complete.
constexpr int64_t kScoresBarrier = 1;

class FlashBackward : FlashBackwardFrame {
public:
  FlashBackward(TileBuilder &b, const KernelRequest &request)
      : FlashBackwardFrame(b, request) {}

  KernelOp build() {
    int64_t main = preparesBeside ? 0 : 1;
    if (request.launch == main)
      return buildMain();
    return request.launch < main ? prepareSums(*this) : finishStrips(*this);
  }

private:
  KernelOp buildMain() {
    KernelOp kernel = declareMain();
    auto produce = [&] { produceGradientTiles(*this); };
    auto write = [&](int64_t) { writeGradients(*this); };
    auto consumeAll = [&] { consume(); };
    if (!finishesBeside) {
      createRoles(produce, write, consumeAll);
      return kernel;
    }
    createRoles(
        produce, write,
        [&] {
          Scalar drawn = preparesBeside ? prepareFirst() : b.i32(kNothing);
          consume();
          workBeside(orDrawn(drawn), gradientColumns);
        },
        [&] { workBeside(drawPart(), fewColumns()); });
    return kernel;
  }

  /// What is drawn now, unless something was.
  Scalar orDrawn(Scalar before) {
    if (!preparesBeside)
      return drawPart();
    auto next = b.choose(
        before == b.i32(kNothing),
        [&]() -> SmallVector<Value> { return {drawPart()}; },
        [&]() -> SmallVector<Value> { return {before}; });
    return b.wrap(next[0]);
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// The warpgroup's part of dQ = dS K.
  Value startGradient(Scalar slot, Scalar groupRow) {
    Scalar row = splitsColumns ? b.i32(0) : groupRow;
    Value column = splitsColumns
                       ? Value(groupRow * (gradientColumns / kGroupRows))
                       : Value();
    return WgmmaOp::create(b, b.pendingType(gradientColumns), bufferScores,
                           slot, row, bufferK, b.i32(0), column,
                           /*transpose=*/false,
                           /*acc=*/Value());
  }

  //===--------------------------------------------------------------------===//
  // A tile
  //===--------------------------------------------------------------------===//

  /// What a warpgroup carries from step to step.
  struct State {
    Place place; ///< in the rings of what streams past
    Scalar turn; ///< of the slots of dS, and the parity of the staging ring
    /// The warpgroup's first row, which nobody who compiles knows to be the
    /// same in every step: the descriptors of K and V, 24 at d = 128, would be
    /// worked out before the loop and take as many pairs of registers.
    Scalar groupRow;
    Value sumK, sumV;
  };
  static SmallVector<Value> pack(const State &s) {
    return {s.place.slot, s.place.parity, s.turn, s.groupRow, s.sumK, s.sumV};
  }
  State unpack(ValueRange s) {
    return {
        {b.wrap(s[0]), b.wrap(s[1])}, b.wrap(s[2]), b.wrap(s[3]), s[4], s[5]};
  }

  void consume() {
    Scalar warp = b.warpId();
    group = warp / kWarpsPerGroup - 1;
    warpInGroup = warp % kWarpsPerGroup;
    groupRow = group * kGroupRows;
    warpRow = groupRow + warpInGroup * kWarpRows;
    scale.emplace(b, scoring.scale(b), scoring.sign());
    Place start = Place::reader(b);
    Tile first = pop(start);
    Place message = queue.next(b, start);
    zero = opaqueZero();
    SmallVector<Value> init = {first.row,    message.slot, message.parity,
                               start.parity, start.slot,   start.parity,
                               b.i32(0)};
    if (lists)
      llvm::append_values(init, first.partialSteps, first.fullSteps, start.slot,
                          start.parity);
    if (problem.ragged)
      llvm::append_values(init, first.queries, first.keys);
    if (scoring.any())
      llvm::append_values(init, first.head, first.batch);
    b.repeat(
        init, [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) {
          return lists ? consumeListed(s) : consumeTile(s);
        });
  }

  SmallVector<Value> consumeTile(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Tile tile{at(0), b.i32(0), b.i32(0)}; // of any head
    if (scoring.any())
      tile = problem.ragged ? Tile{at(0), at(9), at(10)}
                            : Tile{at(0), at(7), at(8)};
    if (problem.ragged)
      tile.queries = at(7), tile.keys = at(8);
    Place message{at(1), at(2)}, once{b.i32(0), at(3)};
    Walk walk = walkOf(tile);
    // What all keys of the tile see.
    KeyBand band = bandOf(tile);
    Scalar keys = ownRowsOf(tile);
    KeyBand::Keys seen =
        band.seenBy(b, tile.row, b.min(tile.row + own, keys) - 1);
    Scalar isWhole = tile.row + own <= keys;

    Scalar hasSteps = b.i32(0) < walk.steps;
    awaitKeys(hasSteps, once);
    keepValues(hasSteps);
    State state = begin({at(4), at(5)}, at(6));
    SmallVector<Value> init = pack(state);
    init.push_back(firstBlock(walk));
    if (scoring.any())
      init.push_back(walk.firstHead);
    ValueRange last = b.loop(
        b.i32(0), walk.steps, init,
        [&](Scalar step, ValueRange p) -> SmallVector<Value> {
          GradientStep at{scoring.any() ? b.wrap(p[7]) : walk.firstHead,
                          b.wrap(p[6])};
          Scalar row = at.block * block;
          Scalar isOpen = band.isOpen(seen, row, block, isWhole);
          Scalar isLast = step == walk.steps - 1;
          State next =
              multiply(unpack(p.take_front(6)), once, [&]() -> AboutFrom {
                Scoring::Rows rows = rowsOf(tile, at.head);
                return [=](int64_t first) {
                  Scalar from = first ? row + first : row;
                  return aboutRun(
                      isLast, isOpen, from, rows, [=](Value scores) {
                        return band.hide(b, scores, tile.row + warpRow, from,
                                         /*endOfRows=*/keys);
                      });
                };
              });
          SmallVector<Value> results = pack(next);
          GradientStep behind = nextStep(walk, at);
          results.push_back(behind.block);
          if (scoring.any())
            results.push_back(behind.head);
          return results;
        });
    state = unpack(last.take_front(6));

    Tile next = pop(message);
    message = queue.next(b, message);
    storeBoth(state);
    SmallVector<Value> result = {
        next.row,         message.slot,
        message.parity,   parityBehind(once.parity, walk),
        state.place.slot, state.place.parity,
        state.turn};
    if (problem.ragged)
      llvm::append_values(result, next.queries, next.keys);
    if (scoring.any())
      llvm::append_values(result, next.head, next.batch);
    return result;
  }

  /// The same of steps that it is told of.
  SmallVector<Value> consumeListed(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Tile tile{at(0), b.i32(0), b.i32(0)}; // of any head
    if (scoring.any())
      tile = {at(0), at(11), at(12)};
    tile.partialSteps = at(7), tile.fullSteps = at(8);
    Place message{at(1), at(2)}, once{b.i32(0), at(3)};
    Scalar isWhole = tile.row + own <= ownRows;
    awaitKeys(hasSteps(tile), once);
    keepValues(hasSteps(tile));
    State state = begin({at(4), at(5)}, at(6));
    StepsEnd end = followSteps(
        *this, tile, {at(9), at(10)}, pack(state),
        [&](Hear hear, ValueRange p) {
          return pack(multiply(unpack(p), once, [&]() -> AboutFrom {
            GradientStep step = hear();
            Scoring::Rows rows = rowsOf(tile, step.head);
            return [=](int64_t first) {
              return aboutListed(step, tile.row + warpRow, rows, isWhole,
                                 /*endOfRows=*/ownRows, first);
            };
          }));
        });
    state = unpack(end.carried);

    Tile next = pop(message);
    message = queue.next(b, message);
    storeBoth(state);
    SmallVector<Value> result = {
        next.row,          message.slot,
        message.parity,    parityBehind(once.parity, tile),
        state.place.slot,  state.place.parity,
        state.turn,        next.partialSteps,
        next.fullSteps,    end.message.slot,
        end.message.parity};
    if (scoring.any())
      llvm::append_values(result, next.head, next.batch);
    return result;
  }

  /// A warp's rows for clauses, of a tile and a head of queries.
  Scoring::Rows rowsOf(const Tile &tile, Scalar head) const {
    if (!scoring.any())
      return {};
    return scoredRows(tile, head, tile.row + warpRow);
  }

  void awaitKeys(Scalar condition, Place once) {
    b.when(condition, [&] {
      ringK.awaitFull(b, once);
      ringV.awaitFull(b, once);
    });
  }

  State begin(Place place, Scalar turn) {
    return {place, turn, groupRow, b.fill(b.f32(0), b.accType(kWarpRows, dim)),
            b.fill(b.f32(0), b.accType(kWarpRows, dimV))};
  }

  void storeBoth(State &state) {
    state.turn = store(state.sumV, b.f32(1), state.turn);
    state.turn = store(state.sumK, arguments.get(b, "scale"), state.turn);
  }

  /// What is to be known of a step's queries from one of them on.
  using AboutFrom = std::function<About(int64_t first)>;

  /// One block of queries.
  State multiply(const State &state, Place once,
                 function_ref<AboutFrom()> ask) {
    return inHalves ? multiplyHalves(state, once, ask)
                    : multiplyWhole(state, once, ask);
  }

  State multiplyWhole(const State &state, Place once,
                      function_ref<AboutFrom()> ask) {
    Scalar slot = state.place.slot, ownRow = state.groupRow;
    ringGradient.awaitFull(b, state.place);
    Shift shift = shiftColumns(slot);
    ringQ.awaitFull(b, state.place);
    Value scoresInFlight = startScores(bufferK, ownRow, bufferQ, slot);
    Value gradientInFlight = startScores(bufferV, ownRow, bufferGradient, slot);
    // What is behind the keys has weights that overflow, maybe, and would reach
    // dQ; so that is hidden too.
    About about = ask()(0);
    Scalar isLast = about.isLast;
    Weighed weighed = weigh(*scale, b.await(scoresInFlight, 1), shift, about,
                            /*wantsSlopes=*/true);
    Value weights = weighed.weights, sumV;
    if (overlap)
      sumV = startSum(state.sumV, factorOf(weights), bufferGradient, slot);
    Value delta = columnsOf(slot, Statistic::delta);
    Value gradient =
        differentiate(weighed, b.await(gradientInFlight, overlap ? 1 : 0),
                      delta, about, /*sums=*/{});
    Value factor = factorOf(gradient);
    if (!overlap)
      sumV = startSum(state.sumV, factorOf(weights), bufferGradient, slot);
    StoreTransposedOp::create(b, factor, bufferScores, state.turn, b.i32(0),
                              warpRow);
    ringV.release(b, once, isLast);
    meetBehindScores();
    Value queryGradient = startGradient(state.turn, ownRow);
    sumV = b.await(sumV, 1);
    ringGradient.release(b, state.place);
    Value sumK = startSum(state.sumK, factor, bufferQ, slot);
    return endStep(state, once, isLast, queryGradient, sumK, sumV);
  }

  /// Waits until all warpgroups have left their dS.
  void meetBehindScores() {
    FenceAsyncOp::create(b);
    BarSyncOp::create(b, b.i32(kScoresBarrier),
                      uint32_t(kWarpsPerGroup * groups));
  }

  /// dQ leaves while dK is in flight behind it.
  State endStep(const State &state, Place once, Scalar isLast,
                Value queryGradient, Value sumK, Value sumV) {
    queryGradient = b.await(queryGradient, 1);
    ringK.release(b, once, isLast);
    leave(state.turn, [&] {
      PutRegistersOp::create(b, ValueRange{queryGradient}, staging, group,
                             warpInGroup);
    });
    sumK = b.await(sumK);
    ringQ.release(b, state.place);
    return {ringQ.next(b, state.place), state.turn ^ 1, state.groupRow + zero,
            sumK, sumV};
  }

  /// The left factor of dP: the buffer, or the warp's rows of it, which are
  /// zeros if nothing has come.
  void keepValues(Scalar hasSteps) {
    factorV = bufferV;
    if (!inHalves)
      return;
    auto load = [&]() -> SmallVector<Value> {
      return {LoadMatrixOp::create(b, b.lhsType(kWarpRows, dimV, element),
                                   bufferV, b.i32(0), warpRow, b.i32(0))};
    };
    factorV = b.choose(hasSteps, load, [&]() -> SmallVector<Value> {
      return {factorOf(b.fill(b.f32(0), b.accType(kWarpRows, dimV)))};
    })[0];
  }

  /// One block of queries, of which one half is weighed while products of the
  /// other are in flight.
  State multiplyHalves(const State &state, Place once,
                       function_ref<AboutFrom()> ask) {
    Scalar slot = state.place.slot, ownRow = state.groupRow;
    auto placeOf = [&](int64_t half) { return slot * 2 + half; };
    auto queriesOf = [](int64_t half) -> QueriesOfSlot {
      return {half * kHalf, kHalf};
    };
    auto startS = [&](int64_t half) {
      return startScores(bufferK, ownRow, halvesOfQ, placeOf(half));
    };
    auto startP = [&](int64_t half) {
      return startScores(factorV, ownRow, halvesOfGradient, placeOf(half));
    };
    auto startV = [&](int64_t half, const Weighed &weighed, Value sum) {
      return startSum(sum, factorOf(weighed.weights), halvesOfGradient,
                      placeOf(half));
    };
    auto startK = [&](int64_t half, Value factor, Value sum) {
      return startSum(sum, factor, halvesOfQ, placeOf(half));
    };
    auto differentiate = [&](int64_t half, const Weighed &weighed,
                             Value inFlight, const About &about) {
      Value delta = columnsOf(slot, Statistic::delta, queriesOf(half));
      Value gradient = b.await(inFlight, 2);
      Value factor = factorOf(GradientFrame::differentiate(
          weighed, gradient, delta, about, /*sums=*/{}));
      StoreTransposedOp::create(b, factor, bufferScores, state.turn,
                                b.i32(half * kHalf), warpRow);
      return factor;
    };

    ringGradient.awaitFull(b, state.place);
    Shift shift = shiftColumns(slot, queriesOf(0));
    ringQ.awaitFull(b, state.place);
    Value scores = startS(0), gradient = startP(0), scoresBehind = startS(1);
    AboutFrom aboutFrom = ask();
    About about = aboutFrom(0);
    Scalar isLast = about.isLast;
    Weighed weighed = weigh(*scale, b.await(scores, 2), shift, about,
                            /*wantsSlopes=*/true);
    Value sumV = startV(0, weighed, state.sumV);
    Value factor = differentiate(0, weighed, gradient, about);
    gradient = startP(1);
    Value sumK = startK(0, factor, state.sumK);

    shift = shiftColumns(slot, queriesOf(1));
    about = aboutFrom(kHalf);
    weighed = weigh(*scale, b.await(scoresBehind, 3), shift, about,
                    /*wantsSlopes=*/true);
    sumV = startV(1, weighed, sumV);
    factor = differentiate(1, weighed, gradient, about);
    ringV.release(b, once, isLast);
    meetBehindScores();
    Value queryGradient = startGradient(state.turn, ownRow);
    sumK = startK(1, factor, sumK);
    sumV = b.await(sumV, 2);
    ringGradient.release(b, state.place);
    return endStep(state, once, isLast, queryGradient, sumK, sumV);
  }

  /// Leaves something in the warpgroup's stage for the writer.
  void leave(Scalar turn, function_ref<void()> put) {
    // The ring is gone round once a turn.
    ringStaged.awaitEmpty(b, {group, turn ^ 1});
    put();
    ringStaged.handOver(b, {group, turn});
  }

  Scalar store(Value sum, Scalar factor, Scalar turn) {
    Value scaled = scaleRows(b, sum, factor);
    leave(turn, [&] {
      StoreMatrixOp::create(b, scaled, staging, warpInGroup * kWarpRows,
                            /*column=*/Value(), /*stage=*/group);
    });
    return turn ^ 1;
  }

  Value factorV; ///< of dP: the buffer, or in halves the warp's rows
  std::optional<ScoreScale> scale;
  Scalar group, groupRow, warpInGroup, warpRow; // of consumers
  Scalar zero;                                  // as no compiler knows
};

} // namespace

namespace attn {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
KernelOp flash_backward_wgmma(OpBuilder &builder, Location loc,
                              const KernelRequest &request);
} // namespace attn

KernelOp attn::flash_backward_wgmma(OpBuilder &builder, Location loc,
                                    const KernelRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  return FlashBackward(b, request).build();
}
