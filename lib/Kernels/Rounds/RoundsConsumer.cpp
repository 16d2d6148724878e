//===- RoundsConsumer.cpp - What consumers of plain products do -----------===//

#include "Rounds/RoundsConsumer.h"

#include "Pipe/PartProducts.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void RoundsConsumer::enterGroup() {
  Scalar warp = b.warpId();
  group = warp / kWarpsPerGroup - 1;
  groupRow = group * kGroupRows;
  warpOfGroup = warp % kWarpsPerGroup;
  if (is(RoundsLaunch::scores) && !splits)
    turns = Turns(b, group, kGroups);
}

void RoundsConsumer::consumeTiles(
    function_ref<State(const Tile &, const State &)> consume) {
  Place start = Place::reader(b);
  forEachTile(b, queue, {start.slot, start.parity, b.i32(0)},
              [&](const Tile &tile, ValueRange s) -> SmallVector<Value> {
                State state =
                    consume(tile, {{b.wrap(s[0]), b.wrap(s[1])}, b.wrap(s[2])});
                return {state.place.slot, state.place.parity, state.turn};
              });
}

/// Of wider heads slices come in a loop, so many at a time: with all 32 of d =
/// 2048 one behind the other ptxas 13.0 takes a minute.
static constexpr int64_t kMostSlices = 8, kSlicesOfRun = 8;

Value RoundsConsumer::product(Place &place, int64_t columns, bool isHalf,
                              function_ref<void()> meanwhile) const {
  int64_t slices = llvm::divideCeil(columns, kStep);
  int64_t last = std::min(slices, stages);
  Value sum = firstSlices(slices - last, place, isHalf);
  turns.take(b);
  return addSlices(sum, last, place, isHalf, [&] {
    turns.pass(b);
    if (meanwhile)
      meanwhile();
  });
}

Value RoundsConsumer::firstSlices(int64_t count, Place &place,
                                  bool isHalf) const {
  if (count == 0)
    return {};
  return addRunsOfSlices(
      count, place, b.accType(kWarpRows, isHalf ? keyBlock / 2 : keyBlock),
      [&](Place place, Value sum) { return startSlice(place, sum, isHalf); });
}

Value RoundsConsumer::addRunsOfSlices(
    int64_t count, Place &place, FragType type,
    function_ref<Value(Place, Value)> start) const {
  if (count <= kMostSlices)
    return addRun(count, place, Value(), start);
  ValueRange last = b.loop(b.i32(0), b.i32(count / kSlicesOfRun),
                           {place.slot, place.parity, b.fill(b.f32(0), type)},
                           [&](Scalar, ValueRange p) -> SmallVector<Value> {
                             Place place{b.wrap(p[0]), b.wrap(p[1])};
                             Value sum =
                                 addRun(kSlicesOfRun, place, p[2], start);
                             return {place.slot, place.parity, sum};
                           });
  place = {b.wrap(last[0]), b.wrap(last[1])};
  int64_t rest = count % kSlicesOfRun;
  return rest ? addRun(rest, place, last[2], start) : Value(last[2]);
}

Value RoundsConsumer::startSlice(const Place &place, Value sum,
                                 bool isHalf) const {
  return WgmmaOp::create(b, b.pendingType(isHalf ? keyBlock / 2 : keyBlock),
                         left, place.slot, groupRow,
                         isHalf ? rightHalves : right,
                         isHalf ? Value(place.slot * 2) : Value(place.slot),
                         /*transpose=*/true, sum);
}

Value RoundsConsumer::addSlices(Value sum, int64_t count, Place &place,
                                bool isHalf,
                                function_ref<void()> afterwards) const {
  return addRun(
      count, place, sum,
      [&](Place place, Value sum) { return startSlice(place, sum, isHalf); },
      afterwards);
}

Value RoundsConsumer::addRun(int64_t count, Place &place, Value sum,
                             function_ref<Value(Place, Value)> start,
                             function_ref<void()> afterwards) const {
  Place before;
  for (int64_t step = 0; step < count; ++step) {
    ring.awaitFull(b, place);
    sum = start(place, sum);
    if (step > 0) {
      WgmmaWaitOp::create(b, TypeRange(), 1u, ValueRange());
      ring.release(b, before);
    }
    before = place;
    place = ring.next(b, place);
  }
  if (afterwards)
    afterwards();
  Value result = b.await(sum);
  ring.release(b, before);
  return result;
}

Value RoundsConsumer::addSteps(Scalar steps, Place &place, Value sum,
                               bool isTransposed) const {
  auto start = [&](Place place, Value sum) -> Value {
    return WgmmaOp::create(b, b.pendingType(column), left, place.slot, groupRow,
                           isTransposed, right, place.slot,
                           /*rhs_column=*/Value(), /*transpose=*/false, sum);
  };
  Scalar rest = steps;
  if (int64_t run = slicesOfRun(kSlicesOfRun); run > 1) {
    Scalar runs = steps / run;
    sum = addRuns(runs, run, place, sum, start);
    rest = steps - runs * run;
  }
  return addRuns(rest, 1, place, sum, start);
}

Value RoundsConsumer::addRuns(Scalar runs, int64_t count, Place &place,
                              Value sum,
                              function_ref<Value(Place, Value)> start) const {
  ValueRange last = b.loop(b.i32(0), runs, {place.slot, place.parity, sum},
                           [&](Scalar, ValueRange p) -> SmallVector<Value> {
                             Place place{b.wrap(p[0]), b.wrap(p[1])};
                             Value sum = addRun(count, place, p[2], start);
                             return {place.slot, place.parity, sum};
                           });
  place = {b.wrap(last[0]), b.wrap(last[1])};
  return last[2];
}

// Small parts come first, and so do their products: their slots are free for
// those of the next slice while the others are multiplied.
Value RoundsConsumer::sliceOfParts(Place &place, int64_t columns,
                                   bool isTransposed) const {
  std::array<Place, kScaledParts> parts;
  for (Place &part : llvm::reverse(parts)) {
    ring.awaitFull(b, place);
    part = place;
    place = ring.next(b, place);
  }
  Value sum = startPairs(
      kScaledParts, Value(),
      [&](const PartPair &pair, Value sum) -> Value {
        return WgmmaOp::create(b, b.pendingType(columns), left,
                               parts[pair.left].slot, groupRow, right,
                               parts[pair.right].slot, isTransposed, sum);
      },
      /*endsWithParts=*/true);
  // A slot goes back when all groups but the youngest ones are done.
  for (unsigned part = kScaledParts - 1; part > 0; --part) {
    WgmmaWaitOp::create(b, TypeRange(), part, ValueRange());
    ring.release(b, parts[part]);
  }
  Value result = b.await(sum);
  ring.release(b, parts[0]);
  return result;
}

Value RoundsConsumer::productOfParts(Place &place, int64_t columns) const {
  auto type = b.accType(kWarpRows, keyBlock);
  ValueRange last =
      b.loop(b.i32(0), b.i32(llvm::divideCeil(columns, kStep)),
             {place.slot, place.parity, b.fill(b.f32(0), type)},
             [&](Scalar, ValueRange p) -> SmallVector<Value> {
               Place place{b.wrap(p[0]), b.wrap(p[1])};
               Value sum = sliceOfParts(place, keyBlock, /*isTransposed=*/true);
               Value scores =
                   b.map({p[2], sum}, type,
                         [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                           return x[0] + x[1];
                         });
               return {place.slot, place.parity, scores};
             });
  place = {b.wrap(last[0]), b.wrap(last[1])};
  return last[2];
}

void RoundsConsumer::put(Value fragment, Scalar &turn) const {
  auto type = cast<FragType>(fragment.getType());
  for (int64_t piece = 0; piece < stagedPieces(); ++piece) {
    Value some = fragment;
    if (staging.columns < width() && !isEmptyPiece(piece))
      some = ExtractOp::create(b, columnsOf(type, staging.columns), fragment,
                               piece * staging.columns);
    putPiece(isEmptyPiece(piece) ? Value() : some, piece, turn);
  }
  turn = turnAfter(turn);
}

void RoundsConsumer::putPiece(Value fragment, int64_t piece,
                              Scalar turn) const {
  Place place = stagedAt(group, piece, turn);
  ringStaged.awaitEmpty(b, {place.slot, place.parity ^ 1});
  if (fragment)
    StoreMatrixOp::create(b, fragment, staged, warpRow(), /*column=*/Value(),
                          /*stage=*/b.i32(piece % staging.slots));
  ringStaged.handOver(b, place);
}

FragType RoundsConsumer::columnsOf(FragType type, int64_t columns) {
  return FragType::get(type.getContext(), type.getRows(), columns,
                       type.getElementType(), type.getLayout());
}
