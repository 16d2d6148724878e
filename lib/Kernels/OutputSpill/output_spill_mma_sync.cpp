//===- output_spill_mma_sync.cpp - Only P stays (sm_80 and up) ------------===//
//
// Strips of one block of keys each (StripFrame.h), P of it in registers:
//
//   A   S of the block; softmax; P in the registers that S had
//   B   for every tile of columns: O of the blocks before from its place,
//       shrunk to the new maximum; O += P V; O to its place, or to the output
//       behind the last block
//
// A tile that sees nothing has no block, and stores zeros.
//
//===----------------------------------------------------------------------===//

#include "MmaSync/StripFrame.h"
#include "Pipe/Epilogue.h"

#include "attn/Schedule/Schedule.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class OutputSpill : StripFrame {
public:
  OutputSpill(TileBuilder &b, const KernelRequest &request)
      : StripFrame(b, request, kKeysOfPiece, /*blocksOfStrip=*/1) {}

  KernelOp build() {
    declareArguments();
    KernelOp kernel = declare();
    softmax.emplace(b, arguments.get(b, "scale"), request.scale);
    forEachTile([&](const Tile &tile) { workOff(tile); });
    ReturnOp::create(b);
    return kernel;
  }

private:
  void workOff(const Tile &tile) {
    Cursor cursor = enter(tile);
    Softmax::Rows none = softmax->start(b, rows);
    SmallVector<Value> state = pack(b.i32(0), cursor);
    state.append({none.max, none.sum});
    ValueRange ended =
        b.loop(blocks->begin, end, state,
               [&](Scalar block, ValueRange s) { return keyStep(block, s); });
    b.when(blocks->begin == end, [&] { storeNothing(); });
    if (problem.lse) {
      Softmax::End last = softmax->finish(b, {ended[kState], ended[kState + 1]},
                                          problem.lseLow);
      storeLse(b, arguments, last.lse, tile, queries, firstRow + warpRow);
    }
  }

  /// A block of keys.
  SmallVector<Value> keyStep(Scalar block, ValueRange carried) {
    SmallVector<Value> units = llvm::to_vector(carried.take_front(kState));
    Value scores = softmax->orient(b, multiplyQK(units));
    scores = hide(scores, block);
    Softmax::Step next =
        softmax->step(b, {carried[kState], carried[kState + 1]}, scores);
    Products::Factor weights = products.weights(next.weights);
    Scalar exist = b.min(b.i32(pieces), allPieces - block * pieces);
    SmallVector<Value> ended = llvm::to_vector(b.loop(
        b.i32(0), b.i32(columnTiles), units, [&](Scalar column, ValueRange s) {
          SmallVector<Value> state = llvm::to_vector(s);
          state.append(takeUp(block, column));
          state = multiplyPV(state, weights, next.alpha, exist);
          passOn(ArrayRef(state).drop_front(kState), block, column, next.rows);
          state.truncate(kState);
          return state;
        }));
    ended.append({next.rows.max, next.rows.sum});
    return ended;
  }

  /// What blocks before have summed up of a tile of columns.
  SmallVector<Value> takeUp(Scalar block, Scalar column) {
    return llvm::to_vector(b.choose(
        blocks->begin < block, [&] { return absorbOutput(column); },
        [&] { return products.noOutput(rows, columns); }));
  }

  /// O = alpha O + P V, from what units and sums are.  P is in registers, which
  /// must be named when the kernel is built.  O is on its way until the first
  /// piece has come.
  SmallVector<Value> multiplyPV(SmallVector<Value> state,
                                const Products::Factor &weights, Value alpha,
                                Scalar exist) {
    for (int64_t number = 0; number < pieces; ++number) {
      auto multiply = [&]() -> SmallVector<Value> {
        SmallVector<Value> next(state.begin(), state.begin() + kState);
        SmallVector<Value> sums(state.begin() + kState, state.end());
        Scalar slot = await(next);
        for (Value &sum : sums)
          sum = number == 0 ? scaleRows(b, sum, alpha) : sum;
        next.append(addPV(sums, slot, weights, number * piece));
        return next;
      };
      // Every block has a first piece.
      if (number == 0)
        state = multiply();
      else
        state = llvm::to_vector(
            b.choose(b.i32(number) < exist, multiply, [&] { return state; }));
    }
    return state;
  }

  void passOn(ValueRange sums, Scalar block, Scalar column, Softmax::Rows row) {
    Scalar isLast = block + 1 == end;
    b.when(isLast, [&] {
      // Worked out where it is needed, or it would stay in registers.
      storeOutput(sums, softmax->finish(b, row, /*hasLow=*/false).inverse,
                  column);
    });
    b.when(block + 1 < end, [&] { spillOutput(sums, column); });
  }

  void storeNothing() {
    b.loop(b.i32(0), b.i32(columnTiles), {},
           [&](Scalar column, ValueRange) -> SmallVector<Value> {
             storeOutput(products.noOutput(rows, columns),
                         b.fill(b.f32(0), b.rowType(rows)), column);
             return {};
           });
  }

  std::optional<Softmax> softmax;
};

} // namespace

namespace attn {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
KernelOp output_spill_mma_sync(OpBuilder &builder, Location loc,
                               const KernelRequest &request);
} // namespace attn

KernelOp attn::output_spill_mma_sync(OpBuilder &builder, Location loc,
                                     const KernelRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  return OutputSpill(b, request).build();
}
