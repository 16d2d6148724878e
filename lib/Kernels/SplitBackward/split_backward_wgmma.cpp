//===- split_backward_wgmma.cpp - Gradients, sums in one order (sm_90a) ---===//
//
// The first launch leaves statistics of queries (GradientStrips.cpp).  All
// others are one kernel, seen from two sides, as on mma.sync: a tile *owns*
// rows of two arrays, x and y; blocks of rows of two others stream past.
//
//   side      owned x, y    streamed x, y    gradients it sums up
//   queries   Q, dO         K, V             dQ = dS K
//   keys      K, V          Q, dO            dK = dS^T Q, dV = P^T dO
//
// Either way S = x x'^T and dP = y y'^T have own rows as the rows of their
// accumulators, 64 in each consumer warpgroup, so that P and dS, rounded, are
// left factors of the next product as they are.  Nothing but operands is in
// shared memory, and no sum leaves its warpgroup: gradients are the same bit by
// bit in every run.
//
// What differs is where the statistics of queries are: on their side a value
// for each row, in registers for a whole tile; on the side of the keys one for
// each column, streamed beside Q.
//
// Order.  S and dP are started together, P is worked out beside dP, and dV is
// started before dP is waited for; in blocks of 128, of which P and dP take all
// registers that are left, behind dS.  What is left, dS and the ends of
// products, the other warpgroup fills.
//
// One block per multiprocessor, which works off tiles.  Results leave through
// the places of own rows, which nobody needs any more.
//
//===----------------------------------------------------------------------===//

#include "Gradients/ListedSteps.h"
#include "Softmax/Softmax.h"
#include "SplitBackward/SplitBackwardFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class SplitBackward : SplitBackwardFrame {
public:
  SplitBackward(TileBuilder &b, const KernelRequest &request)
      : SplitBackwardFrame(b, request) {}

  KernelOp build() {
    KernelOp kernel = declare();
    createRoles([&] { produceSplitTiles(*this); },
                [&](int64_t) { writeSplitGradients(*this); },
                [&] { consume(); });
    return kernel;
  }

private:
  //===--------------------------------------------------------------------===//
  // A tile
  //===--------------------------------------------------------------------===//

  static constexpr unsigned kScalars = 5;
  /// What a warpgroup carries from step to step.
  struct State {
    Place x, y; ///< in the rings of what streams past
    /// The warpgroup's first row, which nobody who compiles knows to be the
    /// same in every step: descriptors of own rows, 32 at d = 256, would be
    /// worked out before the loop and take as many pairs of registers.
    Scalar groupRow;
    SmallVector<Value, 2> sums;  ///< of x, of y
    SmallVector<Value> captured; ///< of what captures get

    size_t size() const { return kScalars + sums.size() + captured.size(); }
  };
  static SmallVector<Value> pack(const State &s) {
    SmallVector<Value> all = {s.x.slot, s.x.parity, s.y.slot, s.y.parity,
                              s.groupRow};
    llvm::append_range(all, s.sums);
    llvm::append_range(all, s.captured);
    return all;
  }
  State unpack(ValueRange s) {
    ValueRange rest = s.drop_front(kScalars);
    unsigned sums = (side.hasX ? 1 : 0) + (side.hasY ? 1 : 0);
    return {{b.wrap(s[0]), b.wrap(s[1])},
            {b.wrap(s[2]), b.wrap(s[3])},
            b.wrap(s[4]),
            llvm::to_vector<2>(rest.take_front(sums)),
            llvm::to_vector(rest.drop_front(sums))};
  }
  unsigned indexOfY() const { return side.hasX ? 1 : 0; }
  /// Whether dV is started before dP is waited for.
  bool overlaps() const { return streamed == kGroupRows; }

  /// A tile and what a warpgroup knows of it.
  struct Own {
    Tile tile;
    Place once; ///< of its rows in shared memory
    KeyBand::Keys seen;
    RowStatistics statistics; ///< of own queries
    Scoring::Rows rows;       ///< likewise
  };

  /// A warp's rows for clauses, of a head of queries.
  Scoring::Rows rowsOf(const Own &own, Scalar head) const {
    if (!scoring.any())
      return {};
    return scoredRows(own.tile, head, own.tile.row + warpRow);
  }
  /// The same of a step: of keys the heads of queries take turns.
  Scoring::Rows rowsOf(const Own &own, const GradientStep &step) const {
    return ownsKeys ? rowsOf(own, step.head) : own.rows;
  }

  void consume() {
    Scalar warp = b.warpId();
    group = warp / kWarpsPerGroup - 1;
    groupRow = group * kGroupRows;
    warpRow = groupRow + warp % kWarpsPerGroup * kWarpRows;
    scale.emplace(b, scoring.scale(b), scoring.sign());
    Place start = Place::reader(b);
    Tile first = pop(start);
    Place message = queue.next(b, start);
    zero = opaqueZero();
    SmallVector<Value> init = {
        first.row,    first.head, first.batch,  message.slot, message.parity,
        start.parity, start.slot, start.parity, start.slot,   start.parity};
    if (lists)
      llvm::append_values(init, first.partialSteps, first.fullSteps, start.slot,
                          start.parity);
    if (problem.ragged)
      llvm::append_values(init, first.firstQuery, first.queries, first.keys);
    b.repeat(
        init, [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) {
          return lists ? consumeListed(s) : consumeTile(s);
        });
  }

  SmallVector<Value> consumeTile(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Own own{{at(0), at(1), at(2)}, {b.i32(0), at(5)}, {}, {}, {}};
    if (problem.ragged)
      own.tile.firstQuery = at(10), own.tile.queries = at(11),
      own.tile.keys = at(12);
    Place message{at(3), at(4)};
    Walk walk = walkOf(own.tile);
    KeyBand band = bandOf(own.tile);
    Scalar row = own.tile.row + groupRow;
    own.seen =
        band.seenBy(b, row, b.min(row + kGroupRows, ownRowsOf(own.tile)) - 1);
    if (!ownsKeys) {
      own.statistics = statisticsOf(own.tile, own.tile.row + warpRow);
      own.rows = rowsOf(own, own.tile.head);
    }
    if (problem.ragged) // places are handed over where there are no rows
      awaitOwn(own.once);
    else
      b.when(b.i32(0) < walk.steps, [&] { awaitOwn(own.once); });
    State state = begin({at(6), at(7)}, {at(8), at(9)});
    size_t carried = state.size();
    SmallVector<Value> init = pack(state);
    init.push_back(walk.blocks.first());
    // Of keys the heads of queries take turns.
    bool tracksHead = ownsKeys && scoring.any();
    if (tracksHead)
      init.push_back(walk.firstHead);
    ValueRange last = b.loop(
        b.i32(0), walk.steps, init,
        [&](Scalar step, ValueRange p) -> SmallVector<Value> {
          GradientStep at{tracksHead ? b.wrap(p.back()) : walk.firstHead,
                          b.wrap(p[carried])};
          Scalar row = at.block * streamed;
          Scalar isLast = step == walk.steps - 1;
          Scalar isOpen = band.isOpen(own.seen, row, streamed);
          auto hide = [=](Value scores) {
            return band.hide(b, scores, own.tile.row + warpRow, row);
          };
          State next =
              multiply(unpack(p.take_front(carried)), own, [&]() -> About {
                return aboutRun(isLast, isOpen, row, rowsOf(own, at), hide);
              });
          SmallVector<Value> results = pack(next);
          GradientStep behind = nextStep(walk, at);
          results.push_back(behind.block);
          if (tracksHead)
            results.push_back(behind.head);
          return results;
        });
    state = unpack(last.take_front(carried));
    if (problem.ragged && ownsBareY())
      ringY.release(b, own.once, walk.steps == b.i32(0));

    Tile next = pop(message);
    message = queue.next(b, message);
    leaveCaptured(own, state);
    leave(state, own.once.parity);
    SmallVector<Value> result = {
        next.row,       next.head,           next.batch,   message.slot,
        message.parity, own.once.parity ^ 1, state.x.slot, state.x.parity,
        state.y.slot,   state.y.parity};
    if (problem.ragged)
      llvm::append_values(result, next.firstQuery, next.queries, next.keys);
    return result;
  }

  /// The same of steps that it is told of.  A tile without any has places for
  /// its results all the same.
  SmallVector<Value> consumeListed(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Own own{{at(0), at(1), at(2)}, {b.i32(0), at(5)}, {}, {}, {}};
    own.tile.partialSteps = at(10), own.tile.fullSteps = at(11);
    Place message{at(3), at(4)};
    if (!ownsKeys) {
      own.statistics = statisticsOf(own.tile, own.tile.row + warpRow);
      own.rows = rowsOf(own, own.tile.head);
    }
    awaitOwn(own.once);
    StepsEnd end = followSteps(
        *this, own.tile, {at(12), at(13)},
        pack(begin({at(6), at(7)}, {at(8), at(9)})),
        [&](Hear hear, ValueRange p) {
          return pack(multiply(unpack(p), own, [&]() -> About {
            GradientStep step = hear();
            return aboutListed(step, own.tile.row + warpRow, rowsOf(own, step));
          }));
        });
    State state = unpack(end.carried);
    if (ownsBareY())
      ringY.release(b, own.once, hasSteps(own.tile) == b.boolean(false));

    Tile next = pop(message);
    message = queue.next(b, message);
    leaveCaptured(own, state);
    leave(state, own.once.parity);
    return {next.row,         next.head,         next.batch,
            message.slot,     message.parity,    own.once.parity ^ 1,
            state.x.slot,     state.x.parity,    state.y.slot,
            state.y.parity,   next.partialSteps, next.fullSteps,
            end.message.slot, end.message.parity};
  }

  void awaitOwn(Place once) {
    ringX.awaitFull(b, once);
    if (side.hasX)
      ringY.awaitFull(b, once);
  }

  State begin(Place x, Place y) {
    State state{x, y, groupRow, {}, {}};
    auto noSum = [&](const SplitRows &rows) -> Value {
      return b.fill(b.f32(0), b.accType(kWarpRows, rows.padded));
    };
    if (side.hasX)
      state.sums.push_back(noSum(this->x));
    if (side.hasY)
      state.sums.push_back(noSum(this->y));
    if (pulls)
      state.captured = captures.none(b, kWarpRows);
    return state;
  }

  /// A block of streamed rows.
  State multiply(const State &state, const Own &own,
                 function_ref<About()> ask) {
    State next = state;
    next.x = ringStreamedX.next(b, state.x);
    next.y = ringStreamedY.next(b, state.y);
    next.groupRow = state.groupRow + zero;

    ringStreamedX.awaitFull(b, state.x);
    Shift shift = ownsKeys ? shiftColumns(state.x.slot) : own.statistics.shift;
    Value scores =
        startScores(bufferX, state.groupRow, bufferStreamedX, state.x.slot);
    ringStreamedY.awaitFull(b, state.y);
    Value gradient;
    if (side.hasX)
      gradient =
          startScores(bufferY, state.groupRow, bufferStreamedY, state.y.slot);
    About about = ask();
    Scalar isLast = about.isLast;
    Weighed weighed = weigh(*scale, b.await(scores, side.hasX ? 1 : 0), shift,
                            about, /*wantsSlopes=*/side.hasX);
    Value weights = weighed.weights;
    if (!side.hasX)
      ringStreamedX.release(b, state.x);
    bool isBeside = side.hasY && overlaps();
    Value sumY, sumX;
    auto startY = [&] {
      sumY = startSum(state.sums[indexOfY()], factorOf(weights),
                      bufferStreamedY, state.y.slot);
    };
    if (isBeside)
      startY();
    if (side.hasX) {
      Value delta = ownsKeys ? columnsOf(state.x.slot, Statistic::delta)
                             : own.statistics.delta;
      gradient = differentiate(weighed, b.await(gradient, isBeside ? 1 : 0),
                               delta, about, next.captured);
      if (ownsBareY()) {
        ringStreamedY.release(b, state.y);
        ringY.release(b, own.once, isLast);
      }
    }
    if (side.hasY && !isBeside)
      startY();
    if (side.hasX)
      sumX = startSum(state.sums[0], factorOf(gradient), bufferStreamedX,
                      state.x.slot);
    if (side.hasY) {
      next.sums[indexOfY()] = b.await(sumY, side.hasX ? 1 : 0);
      ringStreamedY.release(b, state.y);
    }
    if (side.hasX) {
      next.sums[0] = b.await(sumX);
      ringStreamedX.release(b, state.x);
    }
    return next;
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  void leaveCaptured(const Own &own, const State &state) {
    if (pulls)
      captures.leave(b, own.rows.score->place, state.captured);
  }

  /// Puts gradients in place of the warpgroup's rows, for the writer.
  void leave(const State &state, Scalar turn) {
    // No warp of the warpgroup has a product that reads them.
    BarSyncOp::create(b, group + 1, uint32_t(kWarpsPerGroup));
    Place place{group, turn};
    ringStaged.awaitEmpty(b, {group, turn ^ 1});
    auto put = [&](Value sum, Value buffer) {
      StoreMatrixOp::create(b, sum, buffer, warpRow, /*column=*/Value(),
                            /*stage=*/b.i32(0));
    };
    if (side.hasX)
      put(scaleRows(b, state.sums[0], arguments.get(b, "scale")), stagedX);
    if (side.hasY)
      put(state.sums[indexOfY()], stagedY);
    ringStaged.handOver(b, place);
  }

  std::optional<ScoreScale> scale;
  Scalar group, groupRow, warpRow; // of consumers
  Scalar zero;                     // as no compiler knows
};

} // namespace

namespace attn {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
KernelOp split_backward_wgmma(OpBuilder &builder, Location loc,
                              const KernelRequest &request);
} // namespace attn

KernelOp attn::split_backward_wgmma(OpBuilder &builder, Location loc,
                                    const KernelRequest &request) {
  return buildBehindStatistics<SplitBackward>(builder, loc, request);
}
