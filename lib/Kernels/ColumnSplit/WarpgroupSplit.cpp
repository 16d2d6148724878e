//===- WarpgroupSplit.cpp - Values that are columns of keys (sm_90a) ------===//
//
// column_split within a block, for values that are the first columns of keys.
// Two warpgroups share 64 rows.  Each owns half of the columns of O, in
// registers for the whole key range, and of every strip of 128 keys the scores
// of 64.  A tile of keys lies in shared memory once: it is a factor of S, and
// its first columns are the factor of O += P V.  So nothing of V is loaded.
//
//   warpgroup 0   S0(n)   O0 += P1(n - 1) V1   softmax   O0 += P0(n) V0
//   warpgroup 1   S1(n)   O1 += P0(n) V0       softmax   O1 += P1(n) V1
//
// What the other one's weights are multiplied by runs while the own ones are
// worked out.  Warpgroup 0 takes them a strip late, so that the two alternate:
// one multiplies scores while the other has a softmax.
//
// Exchange.  Weights are handed over as the registers they are in, with maxima
// and sums of their rows (GroupSoftmax.h), through one place in shared memory:
// every warp has read what its partner wrote before it writes there itself, so
// that P0(n), P1(n), P0(n + 1) .. follow each other.
//
// Release.  Slots are handed back piece by piece (WarpgroupSplitFrame.h): the
// rest behind S, own columns behind the own product, those of the other one
// when both have done with them.
//
//===----------------------------------------------------------------------===//

#include "ColumnSplit/GroupSoftmax.h"
#include "ColumnSplit/WarpgroupSplitFrame.h"
#include "Pipe/Epilogue.h"
#include "Softmax/Softmax.h"

#include "attn/Schedule/Footprint.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class WarpgroupSplit : WarpgroupSplitFrame {
public:
  WarpgroupSplit(TileBuilder &b, const KernelRequest &request)
      : WarpgroupSplitFrame(b, request) {}

  KernelOp build() {
    KernelOp kernel = declare();
    // Who loads piece by piece needs as many registers as who transposes, and
    // who locates those as who widens.
    RegisterBudget budget = registerBudget(
        kParts, problem.place.any() ? Helper::widener : Helper::transposer);
    b.roles([&] {
      b.role("producer", kWarpsPerGroup, budget.producer, /*singleLane=*/true,
             [&] { produceKeyTiles(*this); });
      for (part = 0; part < kParts; ++part)
        b.role("consumer " + std::to_string(part), kWarpsPerGroup,
               budget.consumer, /*singleLane=*/false, [&] { consume(); });
    });
    return kernel;
  }

private:
  /// O of a warpgroup, in halves if it is wide enough.
  using Output = SmallVector<Value, 2>;
  /// What a warpgroup carries from strip to strip of a tile.
  struct State {
    Place stage;
    GroupSoftmax::Rows own;
    Value reference; ///< of the rows of `output`
    Value ofOthers;  ///< the other's sum as last handed over, relative to that
    Output output;

    SmallVector<Value> pack() const {
      SmallVector<Value> all = {stage.slot, stage.parity, own.max,
                                own.sum,    reference,    ofOthers};
      llvm::append_range(all, output);
      return all;
    }
    static State unpack(TileBuilder &b, ValueRange s) {
      return {{b.wrap(s[0]), b.wrap(s[1])},
              {s[2], s[3]},
              s[4],
              s[5],
              Output(s.drop_front(6))};
    }
  };
  /// What one hands the other.
  struct Image {
    Value weights;
    GroupSoftmax::Rows rows;
  };
  int64_t other() const { return kParts - 1 - part; }
  /// Whether the other one's weights of a strip are taken in the next.
  bool lags() const { return part == 0; }

  void consume() {
    Scalar warp = b.warpId();
    warpOfGroup = warp % kWarpsPerGroup;
    softmax.emplace(b, arguments.get(b, "scale"), request.scale, problem.dtype);
    Place start = Place::reader(b);
    // A strip may be the whole ring.
    start.slot = start.slot + arguments.opaqueZero(b);
    forEachTile(b, queue, {start.slot, start.parity, start.parity},
                [&](const Tile &tile, ValueRange s) {
                  return consumeTile(tile, {b.wrap(s[0]), b.wrap(s[1])},
                                     b.wrap(s[2]));
                });
  }

  SmallVector<Value> consumeTile(const Tile &tile, Place stage,
                                 Scalar queryParity) {
    KeyWalk walk = walkOf(tile);
    MbarrierWaitOp::create(b, queryFull, b.i32(0), queryParity);
    GroupSoftmax::Rows none = softmax->start(b, kWarpRows);
    Value nothing = b.fill(b.f32(0), b.accType(kWarpRows, piece));
    State state{stage, none, none.max, none.sum,
                Output(size_t(halves), nothing)};
    state = addStrip(state, tile, walk.first(), /*isFirst=*/true);
    state = State::unpack(
        b, walk.forEach(b, 1, state.pack(),
                        [&](Scalar strip, ValueRange s) -> SmallVector<Value> {
                          return addStrip(State::unpack(b, s), tile, strip,
                                          /*isFirst=*/false)
                              .pack();
                        }));
    if (lags()) {
      Value others = takeOthers(state);
      Output products;
      startOthers(state, others, 0, halves, products);
      endOthers(state, products, 0, /*younger=*/0);
    }
    GroupSoftmax::Rows rows =
        softmax->add(b, {state.reference, state.ofOthers}, state.own);
    store(tile, rows, state.output);
    return {state.stage.slot, state.stage.parity, queryParity ^ 1};
  }

  Scalar rowOf(const Tile &tile) { return tile.row + warpOfGroup * kWarpRows; }

  State addStrip(State state, const Tile &tile, Scalar strip, bool isFirst) {
    Value product =
        lags() && isFirst ? startScores(state.stage) : startBoth(state);
    Value scores = softmax->orient(b, b.await(product, int64_t(late.size())));
    releaseScores(state.stage);
    MbarrierArriveOp::create(b, queryEmpty, b.i32(0),
                             strip == walkOf(tile).last());
    scores = blocks->bandOfPart(b, tile).hideCut(
        b, scores, rowOf(tile), keyTileOf(strip, b.i32(part)) * kKeys);

    // The output may not be there yet: what it is to be scaled by is kept.
    Value ones = b.fill(b.f32(1), b.rowType(kWarpRows));
    GroupSoftmax::Move moved = softmax->move(b, state.own, state.reference,
                                             ones, scores, /*others=*/Value());
    state.own = moved.own;
    state.reference = moved.joined.max;
    Value alpha = moved.joined.output;
    Value exponents = softmax->exponents(b, state.own.max, state.reference);
    Value weights = CastOp::create(
        b, weightsType(), softmax->weigh(b, state.own, moved.exponents));
    PutRegistersOp::create(b, ValueRange{weights, state.own.max, state.own.sum},
                           image, b.i32(0), warpOfGroup);
    MbarrierArriveOp::create(b, published, b.i32(part), /*condition=*/Value());

    endOthers(state, late, halves - int64_t(late.size()), /*younger=*/0);
    late.clear();
    scale(state, ones, alpha);
    Value scaled = ScaleRowsOp::create(b, weightsType(), weights, exponents);
    addOwn(state, scaled);
    state.stage = next(state.stage);
    return state;
  }

  /// Where the other's keys lie whose weights are taken: of this strip, or of
  /// the one before.
  Place stageOfOthers(const State &state) {
    return lags() ? before(state.stage) : state.stage;
  }

  /// The products with the other's weights, and S: `late` of the former behind
  /// it.  Where the output moves nothing may be in flight, or ptxas would wait
  /// for each product.
  Value startBoth(State &state) {
    Value others = takeOthers(state);
    int64_t early = halves - std::min(halves, lateHalves);
    Output products;
    startOthers(state, others, 0, early, products);
    Value product = startScores(
        state.stage, [&] { endOthers(state, products, 0, /*younger=*/1); });
    startOthers(state, others, early, halves, late);
    return product;
  }

  /// O += P V of the own keys.
  void addOwn(State &state, Value weights) {
    Place own = slotOf(state.stage, b.i32(part));
    Output products;
    for (int64_t half = 0; half < halves; ++half)
      products.push_back(multiply(weights, keysOwn, pieceOf(own, b.i32(half)),
                                  state.output[size_t(half)]));
    state.output = await(products, /*younger=*/0);
    for (int64_t half = 0; half < halves; ++half)
      ringOwn.release(b, pieceOf(own, b.i32(half)));
  }

  /// Scales the output, and sums beside it, if some row has moved.
  void scale(State &state, Value ones, Value alpha) {
    Scalar moves = b.wrap(AnyAboveOp::create(b, b.getI1Type(), ones, alpha));
    SmallVector<Value> sums = {state.ofOthers};
    llvm::append_range(sums, state.output);
    ValueRange scaled = b.choose(
        moves,
        [&] {
          return llvm::map_to_vector(
              sums, [&](Value one) { return scaleRows(b, one, alpha); });
        },
        [&] { return sums; });
    state.ofOthers = scaled.front();
    state.output = Output(scaled.drop_front());
  }

  Type weightsType() { return b.lhsType(kWarpRows, kKeys, element); }

  /// S of the own keys, piece by piece in the order in which they come.  Behind
  /// those that have been there for long, which are one group of products,
  /// something may be `between`.
  Value startScores(Place stage, function_ref<void()> between = nullptr) {
    Place own = slotOf(stage, b.i32(part));
    Value sum;
    auto add = [&](Value queries, int64_t ofQueries, const Ring &ring,
                   Value keys, Place slot, bool isOpen) {
      ring.awaitFull(b, slot);
      auto product =
          WgmmaOp::create(b, b.pendingType(kKeys), queries, b.i32(ofQueries),
                          b.i32(0), keys, slot.slot, /*transpose=*/true, sum);
      product.setOpen(isOpen);
      sum = product;
    };
    if (rest > 0)
      add(queriesOfRest, 0, ringRest, keysRest, own, /*isOpen=*/true);
    for (int64_t half = 0; half < halves; ++half)
      add(queriesOfParts, part * halves + half, ringOwn, keysOwn,
          pieceOf(own, b.i32(half)), half + 1 < halves || !between);
    if (between)
      between();
    for (int64_t half = 0; half < halves; ++half)
      add(queriesOfParts, other() * halves + half, ringShared, keysShared,
          pieceOf(own, b.i32(half)), half + 1 < halves);
    return sum;
  }

  /// Hands back what only S needs of the own keys, and what the other needs.
  void releaseScores(Place stage) {
    Place own = slotOf(stage, b.i32(part));
    if (rest > 0)
      ringRest.release(b, own);
    for (int64_t half = 0; half < halves; ++half)
      ringShared.release(b, pieceOf(own, b.i32(half)));
  }

  /// The other's weights of this strip or, late, of the one before, for the
  /// output's reference, which moves if they ask for it.
  Value takeOthers(State &state) {
    MbarrierWaitOp::create(b, published, b.i32(other()),
                           parityOf(stageOfOthers(state)));
    Image image = get();
    ValueRange moved = b.choose(
        softmax->asks(b, image.rows.max, state.reference),
        [&]() -> SmallVector<Value> {
          GroupSoftmax::JoinOfParts joined =
              softmax->moveTo(b, state.reference, state.output, image.rows.max);
          SmallVector<Value> all = {joined.max};
          llvm::append_range(all, joined.outputs);
          return all;
        },
        [&]() -> SmallVector<Value> {
          SmallVector<Value> all = {state.reference};
          llvm::append_range(all, state.output);
          return all;
        });
    state.reference = moved[0];
    state.output = Output(moved.drop_front());
    Value exponents = softmax->exponents(b, image.rows.max, state.reference);
    state.ofOthers =
        scaleRows(b, image.rows.sum, GroupSoftmax::powers(b, exponents));
    return ScaleRowsOp::create(b, weightsType(), image.weights, exponents);
  }

  /// Begins O += P V of the other's keys, of some halves.
  void startOthers(const State &state, Value weights, int64_t first,
                   int64_t end, Output &products) {
    for (int64_t half = first; half < end; ++half) {
      Place slot =
          pieceOf(slotOf(stageOfOthers(state), b.i32(other())), b.i32(half));
      ringShared.awaitFull(b, slot);
      products.push_back(
          multiply(weights, keysShared, slot, state.output[size_t(half)]));
    }
  }

  /// Waits for those, from a half on, with so many younger ones in flight.
  void endOthers(State &state, const Output &products, int64_t first,
                 int64_t younger) {
    if (products.empty())
      return;
    for (auto [i, output] : llvm::enumerate(await(products, younger))) {
      int64_t half = first + int64_t(i);
      state.output[size_t(half)] = output;
      ringShared.release(
          b,
          pieceOf(slotOf(stageOfOthers(state), b.i32(other())), b.i32(half)));
    }
  }

  /// The accumulators of products behind which so many are younger.
  Output await(const Output &products, int64_t younger) {
    SmallVector<Type> types(products.size(), b.accType(kWarpRows, piece));
    return Output(WgmmaWaitOp::create(b, types, uint32_t(younger), products)
                      .getResults());
  }

  Image get() {
    auto op = GetRegistersOp::create(
        b,
        TypeRange{weightsType(), b.rowType(kWarpRows),
                  b.rowType(kWarpRows, /*partial=*/true)},
        image, b.i32(0), warpOfGroup);
    return {op.getResult(0), {op.getResult(1), op.getResult(2)}};
  }

  Value multiply(Value weights, Value keys, Place slot, Value output) {
    return WgmmaOp::create(b, b.pendingType(piece), weights,
                           /*lhsStage=*/Value(), /*lhsRow=*/Value(), keys,
                           slot.slot, /*transpose=*/false, output);
  }

  void store(const Tile &tile, const GroupSoftmax::Rows &rows,
             const Output &output) {
    GroupSoftmax::End end = softmax->finish(b, rows, problem.lseLow);
    if (parts.areSeveral())
      return storeKeyPart(tile, end, output);
    auto type = ViewType::get(b.getContext(), problem.headDimV, element,
                              request.alignmentOf("o"));
    Value view = arguments.view(b, "o", type, tile.batch, tile.head, queries);
    for (auto [half, sum] : llvm::enumerate(output))
      StoreFragmentOp::create(b, average(b, sum, end.inverse, element), view,
                              rowOf(tile), columnOf(int64_t(half)));
    if (problem.lse && part == 0)
      storeLse(b, arguments, end.lse, tile, queries, rowOf(tile));
  }

  /// Of a part of the keys, O and LSE in f32.
  void storeKeyPart(const Tile &tile, const GroupSoftmax::End &end,
                    const Output &output) {
    KeyParts::Owner owner = KeyParts::ownerOf(tile);
    Value view = parts.output(b, arguments, problem, owner);
    for (auto [half, sum] : llvm::enumerate(output))
      StoreFragmentOp::create(b, scaleRows(b, sum, end.inverse), view,
                              rowOf(tile), columnOf(int64_t(half)));
    if (part == 0)
      StoreRowOp::create(b, end.lse.high, parts.lse(b, arguments, owner),
                         rowOf(tile));
  }

  /// Of the output, where a half of the warpgroup's begins.
  Scalar columnOf(int64_t half) { return b.i32(part * columns + half * piece); }

  std::optional<GroupSoftmax> softmax;
  Scalar warpOfGroup;
  int64_t part = 0; ///< the warpgroup's, whose role is being written
  Output late;      ///< in flight behind S
};

} // namespace

KernelOp attn::buildWarpgroupSplit(TileBuilder &b,
                                   const KernelRequest &request) {
  return WarpgroupSplit(b, request).build();
}
