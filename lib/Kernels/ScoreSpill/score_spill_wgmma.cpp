//===- score_spill_wgmma.cpp - Two plain products, P between (sm_90a) -----===//
//
// Rows of a head are so wide that neither Q nor O stays in a multiprocessor,
// and keys are few: P is less to move than what else has to be done about that.
// Here S and O are two matrix products, each with tiles of its output in
// registers and both factors streamed; P goes through scratch memory, for a
// strip of queries of a few heads at a time (RoundsFrame.h).
//
//   launch    a tile               streams                  leaves
//   scores    128 queries x a      Q and K, by 64 columns   P, and of its rows
//             block of keys                                 maxima and sums
//   outputs   128 queries x        P and V, by 64 keys      O, and once LSE
//             columns
//
// Both are launched for every round, or *merged* in one launch
// (MergedScoreSpill.h). A block of keys has maxima of its own, rounded up to
// whole powers of two (GroupSoftmax.h), so blocks need not know of each other.
// Who sums up O brings their weights to one reference by powers of two, which
// is exact: P comes into registers for that, and from there into its product.
// Sums are one block's and have one order.
//
// A consumer warpgroup has 64 rows of a tile.  While one scales P the products
// of the other run, and while one makes P of its scores the last ones of the
// other, or the first ones of its next tile (RoundsConsumer.h).
//
// f32 goes through both in two parts of f16, three products for one, of which
// launches before the rounds make Q, K and V (InputParts.h) and `scores` P.
// Parts are of numbers that were multiplied by a power of two, of 128 rows
// each: scores are divided by those of their tile, and who sums up O divides by
// those of V and P, in the powers of two that bring blocks together.
// A slice is a sum of its own, that is added to what is kept in f32: the tensor
// cores cut off what they add behind a sum's last bit, and two slices one
// behind the other had relative errors of 1.4e-6, those of f32 being 3e-7 to
// 8e-7.  P of a block is brought to the reference where it is added, by one
// factor for each row, and comes into products from shared memory.  O leaves
// from registers, to rows of any length and at any address.
//
//===----------------------------------------------------------------------===//

#include "ColumnSplit/GroupSoftmax.h"
#include "Pipe/Epilogue.h"
#include "Rounds/InputParts.h"
#include "Rounds/RoundsConsumer.h"
#include "ScoreSpill/MergedScoreSpill.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class ScoreSpill : RoundsConsumer {
public:
  ScoreSpill(TileBuilder &b, const KernelRequest &request)
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
  /// The same for tiles of outputs, of the kernel that is declared for both.
  ScoreSpill(const ScoreSpill &scores, RoundsLaunch launch)
      : RoundsConsumer(scores, launch) {}

  KernelOp buildMerged() {
    KernelOp kernel = declare();
    ScoreSpill outputs(*this, RoundsLaunch::querySums);
    MergedScoreSpill tiles(*this, outputs);
    createRoles([&] { tiles.produce(); },
                [&](int64_t group) { tiles.write(group); },
                [&] { consume(tiles, outputs); });
    return kernel;
  }

  void enter() {
    enterGroup();
    softmax.emplace(b, arguments.get(b, "scale"), request.scale, problem.dtype);
  }

  void consume() {
    enter();
    consumeTiles([&](const Tile &tile, const State &state) {
      return is(RoundsLaunch::scores) ? consumeScores(tile, state)
                                      : consumeOutputs(tile, state);
    });
  }

  void consume(const MergedScoreSpill &tiles, ScoreSpill &outputs) {
    enter();
    outputs.enter();
    auto values = [](const State &state) -> SmallVector<Value> {
      return {state.place.slot, state.place.parity, state.turn};
    };
    consumeTiles([&](const Tile &tile, const State &state) {
      ValueRange after = tiles.choose(
          tile,
          [&](const Tile &tile) { return values(consumeScores(tile, state)); },
          [&](const Tile &tile) {
            return values(outputs.consumeOutputs(tile, state));
          });
      return State{{b.wrap(after[0]), b.wrap(after[1])}, b.wrap(after[2])};
    });
  }

  //===--------------------------------------------------------------------===//
  // Scores
  //===--------------------------------------------------------------------===//

  /// P of a block of keys.
  State consumeScores(const Tile &tile, State state) {
    Tile listed = this->listed(tile);
    Scalar block = blockAt(listed, tile.part), key = block * keyBlock;
    KeyBand band = bandAt(listed, tile.part);
    Scalar isOpen = this->isOpen(band, tile.row + groupRow, kGroupRows, key);
    Scalar row = tile.row + warpRow();
    Value product = splits   ? productOfParts(state.place, problem.headDim)
                    : halves ? productOfHalves(halfOf(tile), state.place)
                             : this->product(state.place, problem.headDim);
    if (splits)
      product = unscaled(product, tile, block);
    Value scores = softmax->orient(b, product);
    scores = b.choose(
        isOpen, [&]() -> SmallVector<Value> { return {scores}; },
        [&]() -> SmallVector<Value> {
          return {band.hide(b, scores, row, key)};
        })[0];
    auto [rows, exponents] =
        softmax->raise(b, softmax->start(b, kWarpRows), scores);
    Value weights = softmax->weigh(b, rows, exponents);
    rows = softmax->whole(b, rows);
    Scalar place = rowOfStatistics(row);
    StoreRowOp::create(b, rows.max, statisticsOfBlock(tile, tile.part, kMax),
                       place);
    StoreRowOp::create(b, rows.sum, statisticsOfBlock(tile, tile.part, kSum),
                       place);
    putWeights(weights, state.turn); // last, behind which writers tell of all
    return state;
  }

  /// Scores as they are, of factors as they were multiplied: by a power of two
  /// in two steps, each of which is in range.
  Value unscaled(Value product, const Tile &tile, Scalar block) {
    Tile at = tile;
    at.part = block;
    Scalar all = b.i32(0) - exponentOf("q", at) - exponentOf("k", at);
    Scalar half = all / 2;
    Scalar first = powerOfTwo(half), second = powerOfTwo(all - half);
    return b.map(product, product.getType(),
                 [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                   return x[0] * first * second;
                 });
  }

  Scalar asFloat(Scalar number) {
    return b.wrap(arith::SIToFPOp::create(b, b.getF32Type(), number));
  }
  Scalar powerOfTwo(Scalar exponent) {
    return b.wrap(b.exp2(asFloat(exponent)));
  }

  /// A block's, or those of the half that is seen beside zeros, which are
  /// hidden then as others are.
  Value productOfHalves(const Half &half, Place &place) {
    auto with = [](Value product, const Place &place) -> SmallVector<Value> {
      return {place.slot, place.parity, product};
    };
    ValueRange made = b.choose(
        half.isAlone,
        [&] {
          Place after = place;
          Value seen = product(after, problem.headDim, /*isHalf=*/true);
          Value zeros = b.fill(b.f32(0), seen.getType());
          auto beside = [&](Value left, Value right) -> SmallVector<Value> {
            FragType type = b.accType(kWarpRows, keyBlock);
            return {ConcatOp::create(b, type, left, right)};
          };
          ValueRange whole = b.choose(
              half.isUpper, [&] { return beside(zeros, seen); },
              [&] { return beside(seen, zeros); });
          return with(whole[0], after);
        },
        [&] {
          Place after = place;
          Value whole = product(after, problem.headDim);
          return with(whole, after);
        });
    place = {b.wrap(made[0]), b.wrap(made[1])};
    return made[2];
  }

  /// P as it is multiplied.
  void putWeights(Value weights, Scalar &turn) {
    if (!splits)
      return put(weights, turn);
    FragType type = b.lhsType(kWarpRows, keyBlock, element);
    auto parts = SplitF16Op::create(b, type, type, weights);
    for (Value part : parts.getResults())
      put(part, turn);
  }

  //===--------------------------------------------------------------------===//
  // Outputs
  //===--------------------------------------------------------------------===//

  /// Columns of O.  The first block's weights stay as they are, so that
  /// products need not wait for its numbers; those of others come while the
  /// block before is multiplied.
  State consumeOutputs(const Tile &tile, State state) {
    if (splits)
      return consumeOutputsOfParts(tile, state);
    KeyWalk walk = blocksSeen(tile);
    Run steps = walkInRound(tile).blocks.all();
    Run own = TileBlocks(*band, queries, kGroupRows, kStep)
                  .seenByTile(b, tile.row + groupRow);
    GroupSoftmax::Rows first = statisticsAt(tile, walk, walk.first());
    Value sum = b.fill(b.f32(0), b.accType(kWarpRows, column));
    ValueRange last = walk.forEach(
        b, 0,
        {state.place.slot, state.place.parity, sum, first.max, first.sum,
         none()},
        [&](Scalar block, ValueRange s) -> SmallVector<Value> {
          Place place{b.wrap(s[0]), b.wrap(s[1])};
          GroupSoftmax::Rows next =
              statisticsAt(tile, walk, walk.behind(block));
          Value sum =
              addBlock(block, steps, own, /*exponents=*/s[5], s[2], place);
          auto [output, rows] = takeIn({sum, {s[3], s[4]}}, next);
          Value exponents = GroupSoftmax::difference(b, next.max, rows.max);
          return {place.slot, place.parity, output,
                  rows.max,   rows.sum,     exponents};
        });
    state.place = {b.wrap(last[0]), b.wrap(last[1])};
    GroupSoftmax::End end = softmax->end(b, {last[3], last[4]}, problem.lseLow);
    put(average(b, last[2], end.inverse, element), state.turn);
    storeLse(tile, end.lse);
    return state;
  }

  void storeLse(const Tile &tile, const LogSumExp &lse) {
    if (problem.lse)
      b.when(tile.part == b.i32(0), [&] {
        attn::storeLse(b, arguments, lse, tile, queries, tile.row + warpRow());
      });
  }

  /// The sums of a warp's rows, what they stand at, and their weights.
  struct Sums {
    Value output;
    GroupSoftmax::Rows rows;
  };

  /// The same before products with a block of such maxima and sums.
  Sums takeIn(const Sums &sums, const GroupSoftmax::Rows &block) {
    GroupSoftmax::Join joined =
        softmax->join(b, sums.rows.max, sums.output, block.max);
    GroupSoftmax::Rows rows = softmax->add(b, {joined.max, none()}, sums.rows);
    return {joined.output, softmax->add(b, rows, block)};
  }

  /// sum += P of a block times V, 64 keys after the other, those that the
  /// warpgroup's own rows see; of a whole block all but the first start beside
  /// those before.
  Value addBlock(Scalar block, const Run &steps, const Run &own,
                 Value exponents, Value sum, Place &place) {
    int64_t ofBlock = keyBlock / kStep;
    Scalar begin = b.max(steps.begin, block * ofBlock);
    Scalar end = b.min(steps.end, (block + 1) * ofBlock);
    Scalar from = b.min(b.max(own.begin, begin), end);
    Scalar to = b.max(b.min(own.end, end), from);
    auto start = [&](Place place, Value sum) -> Value {
      FragType type = b.lhsType(kWarpRows, kStep, element);
      Value weights = LoadMatrixOp::create(b, type, left, place.slot, warpRow(),
                                           /*column=*/b.i32(0),
                                           /*transpose=*/false);
      weights = ScaleRowsOp::create(b, type, weights, exponents);
      return startSum(sum, weights, right, place.slot);
    };
    auto addSome = [&](Place &place) {
      pass(from - begin, place);
      Value added = addRuns(to - from, 1, place, sum, start);
      pass(end - to, place);
      return added;
    };
    if (slicesOfRun(ofBlock) < ofBlock)
      return addSome(place);
    ValueRange last = b.choose(
        to - from < b.i32(ofBlock), // under a mask, or behind the last key
        [&]() -> SmallVector<Value> {
          Place after = place;
          Value added = addSome(after);
          return {after.slot, after.parity, added};
        },
        [&]() -> SmallVector<Value> {
          Place after = place;
          Value added = addRun(ofBlock, after, sum, start);
          return {after.slot, after.parity, added};
        });
    place = {b.wrap(last[0]), b.wrap(last[1])};
    return last[2];
  }

  /// Gives so many slots back as they come.
  void pass(Scalar steps, Place &place) const {
    place = place.loop(b, b.i32(0), steps, [&](Scalar, Place place) {
      ring.awaitFull(b, place);
      ring.release(b, place);
      return ring.next(b, place);
    });
  }

  /// Of inputs in parts: the sums of a warp's rows, or the numbers of a block.
  /// Weights times values are 2^exponent times as large as they are at `max`,
  /// and so is `sum`.  A far maximum has no room for that.
  struct PartSums {
    Value output; ///< not of a block
    Value max, sum, exponent;
  };

  State consumeOutputsOfParts(const Tile &drawn, State state) {
    Tile tile = listed(drawn);
    KeyWalk walk = blocksSeen(tile);
    PartSums first = partsAt(tile, walk, walk.first());
    Value sum = b.fill(b.f32(0), b.accType(kWarpRows, column));
    ValueRange last = walk.forEach(
        b, 0,
        {state.place.slot, state.place.parity, sum, first.max, first.sum,
         first.exponent, none()},
        [&](Scalar block, ValueRange s) -> SmallVector<Value> {
          Place place{b.wrap(s[0]), b.wrap(s[1])};
          PartSums next = partsAt(tile, walk, walk.behind(block));
          Value sum = addBlockOfParts(/*exponents=*/s[6], s[2], place);
          auto [all, exponents] = takeIn({sum, s[3], s[4], s[5]}, next);
          return {place.slot, place.parity, all.output, all.max,
                  all.sum,    all.exponent, exponents};
        });
    state.place = {b.wrap(last[0]), b.wrap(last[1])};
    GroupSoftmax::End end =
        softmax->end(b, {last[3], last[4]}, problem.lseLow, last[5]);
    storeOutput(scaleRows(b, last[2], end.inverse), tile);
    storeLse(tile, end.lse);
    return state;
  }

  /// The numbers of a block, if the tile sees it.
  PartSums partsAt(const Tile &tile, const KeyWalk &walk, Scalar block) {
    GroupSoftmax::Rows rows = statisticsAt(tile, walk, block);
    ValueRange factor = b.choose(
        walk.reaches(block),
        [&]() -> SmallVector<Value> {
          Tile at = tile;
          at.part = blockAt(tile, block);
          return {exponentOf("v", at) + b.i32(SplitF16Op::kExponent)};
        },
        [&]() -> SmallVector<Value> { return {b.i32(0)}; });
    Scalar exponent = b.wrap(factor[0]);
    Type type = rows.max.getType();
    Value sum = scaleRows(b, rows.sum, b.fill(powerOfTwo(exponent), type));
    return {Value(), rows.max, sum, b.fill(asFloat(exponent), type)};
  }

  /// By how many bits numbers stand above others.
  Value bitsAbove(const PartSums &one, const PartSums &other) {
    return b.map({one.max, other.max, one.exponent, other.exponent},
                 one.max.getType(),
                 [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                   return (x[0] - x[1]) - (x[2] - x[3]);
                 });
  }

  /// The same as `takeIn` above, and what products with the block are to be
  /// multiplied by, in bits.
  std::pair<PartSums, Value> takeIn(const PartSums &sums,
                                    const PartSums &block) {
    constexpr double reach = 30;
    Value bits = bitsAbove(block, sums);
    auto either = [&](Value moved, Value stays) {
      return b.map({bits, moved, stays}, bits.getType(),
                   [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                     return b.select(b.f32(reach) < x[0], x[1], x[2]);
                   });
    };
    ValueRange v = b.choose(
        anyBeyond(b, bits, reach),
        [&]() -> SmallVector<Value> {
          Value ratio = b.map(bits, bits.getType(),
                              [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                                Scalar moves = b.f32(reach) < x[0];
                                return b.exp2(b.select(moves, -x[0], b.f32(0)));
                              });
          return {scaleRows(b, sums.output, ratio), either(block.max, sums.max),
                  scaleRows(b, sums.sum, ratio),
                  either(block.exponent, sums.exponent)};
        },
        [&]() -> SmallVector<Value> {
          return {sums.output, sums.max, sums.sum, sums.exponent};
        });
    PartSums all = {v[0], v[1], v[2], v[3]};
    Value exponents = bitsAbove(block, all);
    all.sum = b.map({all.sum, block.sum, GroupSoftmax::powers(b, exponents)},
                    exponents.getType(),
                    [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                      return b.fma(x[1], x[2], x[0]);
                    });
    return {all, exponents};
  }

  /// sum += P of a block times V times such powers of two.
  Value addBlockOfParts(Value exponents, Value sum, Place &place) {
    Value factors = GroupSoftmax::powers(b, exponents);
    ValueRange last = b.loop(
        b.i32(0), b.i32(keyBlock / kStep), {place.slot, place.parity, sum},
        [&](Scalar, ValueRange p) -> SmallVector<Value> {
          Place place{b.wrap(p[0]), b.wrap(p[1])};
          Value product = sliceOfParts(place, column, /*isTransposed=*/false);
          Value sum = b.map({p[2], product, factors}, p[2].getType(),
                            [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                              return b.fma(x[1], x[2], x[0]);
                            });
          return {place.slot, place.parity, sum};
        });
    place = {b.wrap(last[0]), b.wrap(last[1])};
    return last[2];
  }

  /// From registers: their pairs of f32 fill sectors.
  void storeOutput(Value output, const Tile &tile) {
    auto type = ViewType::get(b.getContext(), problem.headDimV, b.getF32Type(),
                              request.alignmentOf("o"));
    Value view = arguments.view(b, "o", type, tile.batch, tile.head, queries);
    StoreFragmentOp::create(b, output, view, tile.row + warpRow(),
                            columnOf(tile));
  }

  /// The maxima and sums of a block's rows, if the tile sees it.
  GroupSoftmax::Rows statisticsAt(const Tile &tile, const KeyWalk &walk,
                                  Scalar block) {
    Scalar row = rowOfStatistics(tile.row + warpRow());
    auto load = [&](int64_t which) -> Value {
      return LoadRowOp::create(b, b.rowType(kWarpRows),
                               statisticsOfBlock(tile, block, which), row);
    };
    ValueRange loaded = b.choose(
        walk.reaches(block),
        [&]() -> SmallVector<Value> { return {load(kMax), load(kSum)}; },
        [&]() -> SmallVector<Value> {
          return {b.fill(b.f32(GroupSoftmax::kNothing), b.rowType(kWarpRows)),
                  none()};
        });
    return {loaded[0], loaded[1]};
  }

  Value none() { return b.fill(b.f32(0), b.rowType(kWarpRows)); }

  std::optional<GroupSoftmax> softmax;
};

} // namespace

namespace attn {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
KernelOp score_spill_wgmma(OpBuilder &builder, Location loc,
                           const KernelRequest &request);
} // namespace attn

KernelOp attn::score_spill_wgmma(OpBuilder &builder, Location loc,
                                 const KernelRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  if (request.tiles.has("parts") && request.launch < kSplittingLaunches)
    return splitInputs(b, request, /*ownsKeys=*/request.launch == 1);
  return ScoreSpill(b, request).build();
}
