//===- score_spill_mma_sync.cpp - Two products, P between (sm_80 and up) --===//
//
// Strips of keys (StripFrame.h), P of a strip in scratch memory:
//
//   A   S of a block of keys; softmax; P to the scratch with the maximum that
//       it was computed with
//   B   for every tile of columns: O of the strip, P from the scratch, V in
//       pieces of `slice` keys
//
// Who reads P has written it, as with O.  Maxima are whole powers of two
// (GroupSoftmax.h).  So P is brought to the maximum that holds at the end of
// the strip, and O from that of the strip before, by factors that are exact.
//
//===----------------------------------------------------------------------===//

#include "ColumnSplit/GroupSoftmax.h"
#include "MmaSync/StripFrame.h"
#include "Pipe/Epilogue.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class ScoreSpill : StripFrame {
public:
  ScoreSpill(TileBuilder &b, const KernelRequest &request)
      : StripFrame(b, request, /*piece=*/request.tiles.get("slice"),
                   request.tiles.get("strip") / request.tiles.get("key")),
        imageType(b.lhsType(rows, piece, element)) {}

  KernelOp build() {
    declareArguments();
    Type i32 = b.getI32Type();
    constexpr int64_t word = 4;
    int64_t strip = key * blocksOfStrip;
    arguments.perBlock(kScratchRole, i32,
                       query * strip * bytesOf(problem.dtype) / word);
    arguments.perBlock(kMaxima, i32, query * kLanesOfRow * blocksOfStrip);
    KernelOp kernel = declare();
    softmax.emplace(b, arguments.get(b, "scale"), request.scale, problem.dtype);
    forEachTile([&](const Tile &tile) { workOff(tile); });
    ReturnOp::create(b);
    return kernel;
  }

private:
  //===--------------------------------------------------------------------===//
  // A tile
  //===--------------------------------------------------------------------===//

  void workOff(const Tile &tile) {
    Cursor cursor = enter(tile);
    Scalar zero = b.i32(0), one = b.i32(1);
    // A tile that sees nothing has one strip, of nothing.
    lastStrip = b.max(b.ceilDiv(end, blocksOfStrip), firstStrip + one) - 1;
    GroupSoftmax::Rows none = softmax->start(b, rows);
    SmallVector<Value> state = pack(zero, cursor);
    state.append({none.max, none.sum});
    ValueRange ended = b.loop(
        firstStrip, lastStrip + 1, state, [&](Scalar strip, ValueRange s) {
          return workOffStrip(strip, firstStrip < strip, s);
        });
    if (problem.lse) {
      GroupSoftmax::End final = softmax->finish(
          b, {ended[kState], ended[kState + 1]}, problem.lseLow);
      storeLse(b, arguments, final.lse, tile, queries, firstRow + warpRow);
    }
  }

  SmallVector<Value> workOffStrip(Scalar strip, Scalar hasBefore,
                                  ValueRange state) {
    Strip own;
    own.first = strip * blocksOfStrip;
    own.begin = b.max(blocks->begin, own.first);
    own.end = b.min(end, own.first + blocksOfStrip);
    own.hasBefore = hasBefore;
    own.hasNext = strip < lastStrip;
    own.isLast = strip == lastStrip;
    Value before = state[kState];
    SmallVector<Value> scored = llvm::to_vector(
        b.loop(own.begin, own.end, state, [&](Scalar block, ValueRange s) {
          return scores(own, block, s);
        }));
    own.rows = {scored[kState], scored[kState + 1]};
    own.exponents = GroupSoftmax::difference(b, before, own.rows.max);
    SmallVector<Value> ended = llvm::to_vector(b.loop(
        b.i32(0), b.i32(columnTiles), ArrayRef(scored).take_front(kState),
        [&](Scalar column, ValueRange s) { return output(own, column, s); }));
    ended.append({own.rows.max, own.rows.sum});
    return ended;
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  struct Strip {
    Scalar first;      ///< block of the strip, seen or not
    Scalar begin, end; ///< blocks that are seen
    Scalar hasBefore, hasNext, isLast;
    GroupSoftmax::Rows rows; ///< at its end
    Value exponents;         ///< what that makes of sums up to its begin
  };

  /// A: S of a block, softmax, P and the maximum to the scratch.
  SmallVector<Value> scores(const Strip &strip, Scalar block,
                            ValueRange carried) {
    SmallVector<Value> results = llvm::to_vector(carried.take_front(kState));
    Value scores = softmax->orient(b, multiplyQK(results));
    scores = hide(scores, block);
    auto [row, exponents] =
        softmax->raise(b, {carried[kState], carried[kState + 1]}, scores);
    Value weights = softmax->weigh(b, row, exponents);
    Scalar number = block - strip.first;
    // Piece by piece, so that rounded ones need no registers beside the others.
    for (int64_t i = 0; i < pieces; ++i) {
      Value some = ExtractOp::create(b, b.accType(rows, piece), weights,
                                     uint64_t(i * piece));
      StoreRegistersOp::create(
          b, ValueRange(CastOp::create(b, imageType, some)),
          arguments.get(b, kScratchRole), placeOfPiece(number * pieces + i));
    }
    StoreRegistersOp::create(b, ValueRange(row.max), arguments.get(b, kMaxima),
                             placeOfMaxima(number));
    results.append({row.max, row.sum});
    return results;
  }

  /// B: a tile of columns of O, from this strip and those before.
  SmallVector<Value> output(const Strip &strip, Scalar column,
                            ValueRange carried) {
    SmallVector<Value> state = llvm::to_vector(carried);
    state.push_back(b.choose(
        strip.hasBefore, [&] { return takeUp(strip, column); },
        [&] { return products.noOutput(rows, columns); })[0]);
    // P comes a piece ahead of its product.
    Scalar firstPiece = strip.begin * pieces;
    Scalar endPiece = b.min(strip.end * pieces, allPieces);
    Scalar origin = strip.first * pieces;
    state.push_back(b.choose(
        firstPiece < endPiece,
        [&]() -> SmallVector<Value> {
          return {loadPiece(firstPiece - origin)};
        },
        [&]() -> SmallVector<Value> { return {nothing()}; })[0]);
    ValueRange summed =
        b.loop(strip.begin, strip.end, state, [&](Scalar block, ValueRange s) {
          Value max = loadMaxima(block - strip.first);
          Value exponents = GroupSoftmax::difference(b, max, strip.rows.max);
          Scalar from = block * pieces;
          return llvm::to_vector(
              b.loop(from, b.min(from + pieces, endPiece), s,
                     [&](Scalar number, ValueRange s) -> SmallVector<Value> {
                       Value image = s[kState + 1];
                       ValueRange next = b.choose(
                           number + 1 < endPiece,
                           [&]() -> SmallVector<Value> {
                             return {loadPiece(number + 1 - origin)};
                           },
                           [&]() -> SmallVector<Value> { return {image}; });
                       SmallVector<Value> units =
                           llvm::to_vector(s.take_front(kState));
                       Scalar slot = await(units);
                       Value weights =
                           ScaleRowsOp::create(b, imageType, image, exponents);
                       units.append(addPV(s[kState], slot, {weights, Value()}));
                       units.push_back(next[0]);
                       return units;
                     }));
        });
    Value sums = summed[kState];
    SmallVector<Value> results = llvm::to_vector(summed.take_front(kState));
    b.when(strip.isLast, [&] {
      // Worked out where it is needed, or it would stay in registers.
      Value inverse = softmax->finish(b, strip.rows, /*hasLow=*/false).inverse;
      storeOutput(sums, inverse, column);
    });
    b.when(strip.hasNext, [&] { spillOutput(sums, column); });
    return results;
  }

  //===--------------------------------------------------------------------===//
  // Places in the scratch
  //===--------------------------------------------------------------------===//

  /// Lanes that have a value of a row.
  static constexpr int64_t kLanesOfRow = 4;
  static constexpr StringLiteral kMaxima = "scratch_maxima";

  Scalar placeOfPiece(Scalar number) {
    return placeOf(number, blocksOfStrip * pieces);
  }
  Scalar placeOfMaxima(Scalar number) { return placeOf(number, blocksOfStrip); }

  Value load(StringRef role, Scalar place, Type type) {
    return LoadRegistersOp::create(b, TypeRange(type), arguments.get(b, role),
                                   place)
        .getResult(0);
  }
  Value loadPiece(Scalar number) {
    return load(kScratchRole, placeOfPiece(number), imageType);
  }
  Value loadMaxima(Scalar number) {
    return load(kMaxima, placeOfMaxima(number), b.rowType(rows));
  }
  /// A piece of P that nobody multiplies by.
  Value nothing() {
    return CastOp::create(b, imageType,
                          b.fill(b.f32(0), b.accType(rows, piece)));
  }
  /// What strips before have summed up.
  SmallVector<Value> takeUp(const Strip &strip, Scalar column) {
    Value alpha = GroupSoftmax::powers(b, strip.exponents);
    return {scaleRows(b, absorbOutput(column)[0], alpha)};
  }

  FragType imageType;
  std::optional<GroupSoftmax> softmax;
  Scalar lastStrip; ///< of the tile
};

} // namespace

namespace attn {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
KernelOp score_spill_mma_sync(OpBuilder &builder, Location loc,
                              const KernelRequest &request);
} // namespace attn

KernelOp attn::score_spill_mma_sync(OpBuilder &builder, Location loc,
                                    const KernelRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  return ScoreSpill(b, request).build();
}
