//===- spill_backward_wgmma.cpp - Gradients by plain products (sm_90a) ----===//
//
// Rows of a head are too wide for accumulators of all that a block of
// flash_backward keeps, and split_backward multiplies scores twice or more.
// Here the five products are five matrix products, each with tiles of its
// output in registers and both factors streamed; P and dS go through scratch
// memory, for a strip of keys of a few heads at a time (RoundsFrame.h).
//
//   launch     a tile               streams                   leaves
//   prepare    statistics of queries (GradientStrips.cpp)
//   scores     128 queries x a      Q and K, then dO and V,   P and dS
//              block of keys        by 64 columns
//   keySums    128 keys x columns   P and dO, or dS and Q,    dV or dK
//                                   by 64 queries
//   querySums  128 queries x        dS and K, by 64 keys      dQ
//              columns
//
// The last three are launched for every round, or *merged* in one launch
// (MergedSpillBackward.h), which makes D of the statistics too: of dO times O's
// transpose, for 64 rows each, the diagonal.  Tiles of dV and dK belong to one
// round; dQ of a tile is summed up over the strips that it sees: between them
// it waits in scratch memory, in f32 as registers have it.  So every sum is
// taken in one order, and gradients are the same bit by bit in every run.
//
// A consumer warpgroup has 64 rows of a tile.  In `scores` accumulators of S
// and of dP would fill all registers; so S comes first and becomes P, which
// waits rounded to 16 bits, in half of them, until dP is there.  One warpgroup
// works out P while products of the other run, as far as the ring lets it.
// Where weights were kept four products are left: they come through the ring
// behind the factors of dP, and are P times a number for each row.
//
// The left factors of dV and dK are P and dS from the side of the keys: wgmma
// reads 16-bit factors in shared memory in either order.
//
//===----------------------------------------------------------------------===//

#include "Rounds/RoundsConsumer.h"
#include "Softmax/Softmax.h"
#include "SpillBackward/MergedSpillBackward.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class SpillBackward : RoundsConsumer {
public:
  SpillBackward(TileBuilder &b, const KernelRequest &request)
      : RoundsConsumer(b, request) {}

  KernelOp build() {
    if (merged)
      return buildMerged();
    KernelOp kernel = declare();
    createRoles([&] { produceSpillTiles(*this); },
                [&](int64_t group) { writeSpills(*this, group); },
                [&] { consume(); });
    return kernel;
  }

private:
  /// The same for tiles of sums, of the kernel that is declared for all.
  SpillBackward(const SpillBackward &scores, RoundsLaunch launch)
      : RoundsConsumer(scores, launch) {}

  KernelOp buildMerged() {
    KernelOp kernel = declare();
    SpillBackward deltas(*this, RoundsLaunch::deltas);
    SpillBackward keySums(*this, RoundsLaunch::keySums);
    SpillBackward querySums(*this, RoundsLaunch::querySums);
    MergedSpillBackward tiles(*this, deltas, keySums, querySums);
    deltaFlags = deltas.deltaFlags = &tiles;
    createRoles([&] { tiles.produce(); },
                [&](int64_t group) { tiles.write(group); },
                [&] { consume(tiles, {this, &deltas, &keySums, &querySums}); });
    return kernel;
  }

  void enter() {
    enterGroup();
    scale.emplace(b, arguments.get(b, "scale"), request.scale);
  }

  void consume() {
    enter();
    consumeTiles([&](const Tile &tile, const State &state) {
      return consumeTile(tile, state);
    });
  }

  /// Tiles of all kinds, each by its own.
  void consume(const MergedSpillBackward &tiles,
               ArrayRef<SpillBackward *> consumers) {
    for (SpillBackward *consumer : consumers)
      consumer->enter();
    consumeTiles([&](const Tile &queued, const State &state) {
      ValueRange after = tiles.choose(
          queued,
          [&](const RoundsFrame &frame,
              const Tile &tile) -> SmallVector<Value> {
            auto consumer = llvm::find_if(
                consumers, [&](auto *c) { return c->is(frame.launch); });
            State after = (*consumer)->consumeTile(tile, state);
            return {after.place.slot, after.place.parity, after.turn};
          });
      return State{{b.wrap(after[0]), b.wrap(after[1])}, b.wrap(after[2])};
    });
  }

  State consumeTile(const Tile &tile, const State &state) {
    switch (launch) {
    case RoundsLaunch::deltas:
      return consumeDelta(tile, state);
    case RoundsLaunch::scores:
      return consumeScores(tile, state);
    case RoundsLaunch::keySums:
      return consumeKeySums(tile, state);
    case RoundsLaunch::querySums:
      return consumeQuerySums(tile, state);
    }
    llvm_unreachable("closed enum");
  }

  //===--------------------------------------------------------------------===//
  // D
  //===--------------------------------------------------------------------===//

  /// D of the warp's rows.
  State consumeDelta(const Tile &tile, State state) {
    Value products = addRunsOfSlices(
        llvm::divideCeil(problem.headDimV, kStep), state.place,
        b.accType(kWarpRows, kGroupRows), [&](Place place, Value sum) -> Value {
          return WgmmaOp::create(b, b.pendingType(kGroupRows), left, place.slot,
                                 groupRow, rightGroups,
                                 stageOf(place, kGroupRows) + group,
                                 /*transpose=*/true, sum);
        });
    Scalar firstRow = warpOfGroup * kWarpRows, row = tile.row + warpRow();
    Value diagonal =
        b.map(products, products.getType(),
              [&](Scalar row, Scalar column, ArrayRef<Scalar> x) -> Value {
                return b.select(column == firstRow + row, x[0], b.f32(0));
              });
    RowType partial = b.rowType(kWarpRows, /*partial=*/true);
    Value sums =
        RowCombineOp::create(b, b.rowType(kWarpRows), /*max=*/false,
                             b.rowSum(diagonal, b.fill(b.f32(0), partial)));
    // Those of the strips that there are.
    b.when(tile.row + groupRow < queries, [&] {
      Value dlse = problem.dlse ? arguments.vector(b, "dlse", tile.batch,
                                                   tile.head, queries)
                                : Value();
      Scalar number = row / block;
      Value view = statistics(numberOf(tile.batch, tile.head, number));
      StoreRowOp::create(b, deltaOf(b, sums, dlse, row), view,
                         row - number * block + firstOf(Statistic::delta));
    });
    deltaFlags->countDelta(tile);
    return state;
  }

  //===--------------------------------------------------------------------===//
  // Scores
  //===--------------------------------------------------------------------===//

  /// P and dS of a block of keys.
  State consumeScores(const Tile &tile, State state) {
    return keeps ? consumeKept(tile, state) : consumeMade(tile, state);
  }

  /// From scores.
  State consumeMade(const Tile &drawn, State state) {
    Tile tile = listed(drawn);
    Scalar key = firstKey + blockAt(tile, tile.part) * keyBlock;
    KeyBand band = bandAt(tile, tile.part);
    Scalar row = tile.row + groupRow;
    Scalar warpRow = row + warpOfGroup * kWarpRows;
    // Where D comes from tiles of the same launch it may still be under way.
    RowStatistics own;
    // With two words of LSE registers have room for D behind the weights only.
    auto takeStatistics = [&] {
      awaitDelta(tile);
      own.shift = shiftOfRows(tile, warpRow);
      if (!problem.lseLow)
        own.delta = statisticOf(tile, warpRow, Statistic::delta);
    };
    if (!merged)
      takeStatistics();
    Scalar isOpen = this->isOpen(band, row, kGroupRows, key);
    Value scores = product(state.place, problem.headDim, /*isHalf=*/false, [&] {
      if (merged)
        takeStatistics();
    });
    Value weights =
        weightsOf(b, *scale, scores, own.shift, isOpen, [&](Value scores) {
          return band.hide(b, scores, warpRow, key, queries);
        });
    Value rounded =
        CastOp::create(b, b.lhsType(kWarpRows, keyBlock, element), weights);
    put(weights, state.turn);
    if (problem.lseLow)
      own.delta = statisticOf(tile, warpRow, Statistic::delta);
    Value gradient = product(state.place, problem.headDimV);
    weights = CastOp::create(b, b.accType(kWarpRows, keyBlock), rounded);
    gradient = gradientOf(b, weights, gradient, own.delta);
    gradient = clearHidden(gradient, band, isOpen, warpRow, key);
    put(gradient, state.turn);
    return state;
  }

  /// From weights that were kept, which come behind the factors of dP.
  State consumeKept(const Tile &tile, State state) {
    Scalar key = firstKey + tile.part * keyBlock;
    Scalar row = tile.row + groupRow;
    Scalar warpRow = row + warpOfGroup * kWarpRows;
    // The numbers of rows come with the last products: before, they would take
    // registers from them.
    KeptRows rows;
    Value products =
        product(state.place, problem.headDimV, /*isHalf=*/false,
                [&] { rows = keptRowsOf(tile, warpRow, key / keyBlock); });
    Scalar isOpen = this->isOpen(row, kGroupRows, key);
    std::array<Value, 2> kept;
    SmallVector<Place> held;
    for (int64_t piece = 0; !isEmptyPiece(piece); ++piece) {
      Value weights, gradient;
      for (int64_t slice = 0; slice < staging.columns; slice += kStep) {
        int64_t column = piece * staging.columns + slice;
        int64_t half = column / kStep % 2;
        if (half == 0)
          kept = takeKept(held.emplace_back(state.place));
        if (half == 1)
          state.place = ring.next(b, state.place);
        auto [some, ofSome] = fromKept(kept[half], products, column, rows);
        append(weights, some);
        ofSome = clearHidden(ofSome, *band, isOpen, warpRow, key + column);
        append(gradient,
               CastOp::create(b, b.lhsType(kWarpRows, kStep, element), ofSome));
      }
      putPiece(weights, 2 * piece, state.turn);
      putPiece(gradient, 2 * piece + 1, state.turn);
      // Slots go back when all that was in them is in use: a load that is under
      // way then may still read when the copy engine writes there.  Rows of P
      // were wrong by that, a warp's, in one of some thousand blocks on an
      // H100.
      if ((piece + 1) * staging.columns % (2 * kStep) == 0)
        for (const Place &place : std::exchange(held, {}))
          ring.release(b, place);
    }
    state.turn = turnAfter(turnAfter(state.turn));
    return state;
  }

  /// The warp's rows of the weights of a slot.
  std::array<Value, 2> takeKept(const Place &place) const {
    ring.awaitFull(b, place);
    std::array<Value, 2> kept;
    for (int64_t half = 0; half < 2; ++half)
      kept[half] = LoadMatrixOp::create(b, b.lhsType(kWarpRows, kStep, element),
                                        rightHalves, place.slot * 2 + half,
                                        this->warpRow(), b.i32(0));
    return kept;
  }

  /// Those of a warp's rows, when D is there.
  RowStatistics awaitedStatistics(const Tile &tile, Scalar row) const {
    awaitDelta(tile);
    return statisticsOf(tile, row);
  }
  void awaitDelta(const Tile &tile) const {
    if (merged)
      deltaFlags->awaitDelta(tile);
  }

  /// What weights of a warp's rows are to be multiplied by, and D.
  struct KeptRows {
    Value factor, delta;
  };

  KeptRows keptRowsOf(const Tile &tile, Scalar row, Scalar block) const {
    RowStatistics own = awaitedStatistics(tile, row);
    Value max = LoadRowOp::create(b, b.rowType(kWarpRows),
                                  statisticsOfBlock(tile, block, kMax),
                                  rowOfStatistics(row));
    return {factorOfKept(b, max, own.shift), own.delta};
  }

  /// Columns of weights that become P at once.
  static constexpr int64_t kPiece = 16;

  /// P of a slice of weights and dS of the same columns of dP, from `column`
  /// on.
  std::pair<Value, Value> fromKept(Value kept, Value products, int64_t column,
                                   const KeptRows &rows) const {
    auto some = [&](Value fragment, int64_t column) -> Value {
      auto type = columnsOf(cast<FragType>(fragment.getType()), kPiece);
      return ExtractOp::create(b, type, fragment, column);
    };
    Value weights, gradient;
    for (int64_t first = 0; first < kStep; first += kPiece) {
      Value own = some(kept, first);
      Value exact = CastOp::create(b, b.accType(kWarpRows, kPiece), own);
      exact = scaleRows(b, exact, rows.factor);
      append(weights, CastOp::create(b, own.getType(), exact));
      append(gradient,
             gradientOf(b, exact, some(products, column + first), rows.delta));
    }
    return {weights, gradient};
  }

  /// Puts columns behind those that there are.
  void append(Value &all, Value more) const {
    auto type = cast<FragType>(more.getType());
    int64_t before = all ? cast<FragType>(all.getType()).getColumns() : 0;
    all = all ? Value(ConcatOp::create(
                    b, columnsOf(type, before + type.getColumns()), all, more))
              : more;
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  Value noSum() { return b.fill(b.f32(0), b.accType(kWarpRows, column)); }

  State consumeKeySums(const Tile &tile, State state) {
    Value sum = addSteps(walkInRound(tile).steps, state.place, noSum(),
                         /*isTransposed=*/true);
    Scalar factor =
        b.select(isValuePart(tile), b.f32(1), arguments.get(b, "scale"));
    put(scaleRows(b, sum, factor), state.turn);
    return state;
  }

  State consumeQuerySums(const Tile &tile, State state) {
    Turn turn = turnOf(tile);
    Scalar steps = walkInRound(tile).steps;
    Scalar row = tile.row + groupRow;
    Scalar place = placeOf(tile, row, warpOfGroup);
    Value waiting = arguments.get(b, "scratch_dq");
    // Rows behind the last strip of queries have no place.
    Scalar goesOn = (b.i32(0) < steps) & (row < queries);
    Scalar began = turn.isFirst == b.boolean(false);
    Value sum = b.choose(
        began & goesOn,
        [&]() -> SmallVector<Value> {
          return {
              LoadRegistersOp::create(
                  b, TypeRange(b.accType(kWarpRows, column)), waiting, place)
                  .getResult(0)};
        },
        [&]() -> SmallVector<Value> { return {noSum()}; })[0];
    sum = addSteps(steps, state.place, sum, /*isTransposed=*/false);
    Scalar ends = turn.isLast == b.boolean(false);
    b.when(ends & goesOn, [&] {
      StoreRegistersOp::create(b, ValueRange{sum}, waiting, place);
    });
    ValueRange turned = b.choose(
        turn.isLast,
        [&]() -> SmallVector<Value> {
          Scalar after = state.turn;
          put(scaleRows(b, sum, arguments.get(b, "scale")), after);
          return {after};
        },
        [&]() -> SmallVector<Value> { return {state.turn}; });
    state.turn = b.wrap(turned[0]);
    return state;
  }

  std::optional<ScoreScale> scale;
  const MergedSpillBackward *deltaFlags = nullptr; ///< merged, who leaves D
};

} // namespace

namespace attn {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
KernelOp spill_backward_wgmma(OpBuilder &builder, Location loc,
                              const KernelRequest &request);
} // namespace attn

KernelOp attn::spill_backward_wgmma(OpBuilder &builder, Location loc,
                                    const KernelRequest &request) {
  if (request.launch > 0 || request.tiles.get("merged", 0) == 0)
    return buildBehindStatistics<SpillBackward>(builder, loc, request);
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  GradientFrame frame(b, request);
  return prepareFlags(frame);
}
