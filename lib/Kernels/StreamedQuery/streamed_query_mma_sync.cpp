//===- streamed_query_mma_sync.cpp - Wide heads on mma.sync (sm_80 and up) ===//
//
// One block owns `query` rows of one head, and keeps their output, maxima and
// sums in registers.  All else passes through shared memory in *units*, in the
// order in which a block of `key` keys needs them:
//
//   slices   `slice` columns of Q and of K, for S = Q K^T
//   pieces   `piece` rows of V, for O += P V
//
// and then those of the next block.  Behind the last key there are no pieces.
//
// Slices and pieces have a ring of `stages` each, and copies run `stages - 1`
// units ahead.  There is one barrier a unit: behind it nobody reads the unit
// before, nor any of a ring that is as far back as the ring is deep.
//
// `column_warps` warps have the same rows.  Each works out the scores of its
// part of a block's keys and owns its part of O's columns.  They agree on the
// maxima of the rows and put their parts of P into shared memory, from where
// all take it; without others on its rows a warp keeps P in registers.
//
//===----------------------------------------------------------------------===//

#include "MmaSync/MmaSyncFrame.h"
#include "Pipe/Epilogue.h"
#include "Softmax/Softmax.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// A unit by its number in a block of keys, and what is known of the number
/// when the kernel is built.
struct Unit {
  Scalar number;
  int64_t least, most;

  Unit behind(int64_t count) const {
    return {number - count, least - count, most - count};
  }
};

class StreamedQuery : MmaSyncFrame {
public:
  StreamedQuery(TileBuilder &b, const KernelRequest &request)
      : MmaSyncFrame(b, request), piece(request.tiles.get("piece")),
        across(request.tiles.get("column_warps", 1)),
        slice(std::min(request.tiles.get("slice"), problem.headDim)),
        slices(llvm::divideCeil(problem.headDim, slice)), pieces(key / piece),
        strip(query * across / warps), keysOfWarp(key / across),
        columns(
            llvm::alignTo(llvm::divideCeil(problem.headDimV, across), kStep)) {}

  KernelOp build() {
    KernelOp kernel = declare();
    locateRows();
    rowGroup = b.warpId() / across;
    part = b.warpId() - rowGroup * across;
    warpRow = rowGroup * strip;
    locateHead();
    allocate();
    // Loop-carried: running max, running sum, output.
    Softmax softmax(b, arguments.get(b, "scale"), request.scale);
    Softmax::Rows rows = softmax.start(b, strip);
    SmallVector<Value> state = {rows.max, rows.sum};
    llvm::append_range(state, products.noOutput(strip, columns));

    Scalar zero = b.i32(0);
    for (int64_t i = 0; i < stages - 1; ++i) {
      b.when(zero < blocks->steps, [&] { bring(zero, unit(i)); });
      CommitGroupOp::create(b);
    }
    state = walk(softmax, zero, blocks->openSteps, state, /*cut=*/false);
    state = walk(softmax, blocks->openSteps, blocks->steps, state,
                 /*cut=*/true);
    finish(softmax, state);
    ReturnOp::create(b);
    return kernel;
  }

private:
  void allocate() {
    auto shared = [&](StringRef name, SmemType type) -> Value {
      return AllocOp::create(b, type, name);
    };
    auto buffer = [&](StringRef name, int64_t rows, int64_t columns) {
      return shared(name, products.bufferOfRows(stages, rows, columns));
    };
    if (across > 1)
      bufferP = shared("weight", SmemType::get(1, query, key, element));
    int64_t depth = llvm::alignTo(slice, kStep);
    bufferQ = buffer("query", query, depth);
    bufferK = buffer("key", key, depth);
    if (across > 1)
      statistics =
          shared("statistic", SmemType::get(1, across, query, b.getF32Type()));
    bufferV = buffer("value", piece, across * columns);
  }

  //===--------------------------------------------------------------------===//
  // Copies
  //===--------------------------------------------------------------------===//

  Unit unit(int64_t number) { return {b.i32(number), number, number}; }

  /// The stage of a ring that has so many units of every block.
  Scalar stage(Scalar step, int64_t ofBlock, Scalar number) {
    if (ofBlock % stages == 0)
      return number % stages;
    return (step * ofBlock + number) % stages;
  }
  Scalar stageOfSlice(Scalar step, Scalar number) {
    return stage(step, slices, number);
  }
  Scalar stageOfPiece(Scalar step, Scalar number) {
    return stage(step, pieces, number);
  }

  /// Pieces of a block that have a key.
  Scalar piecesOf(Scalar block) {
    return b.min(b.i32(pieces), b.ceilDiv(keys - block * key, piece));
  }

  /// Starts the copies of a unit, if there is one of that number in this block
  /// or behind it.
  void bring(Scalar step, Unit unit) {
    Scalar zero = b.i32(0), block = blocks->block(b, step);
    auto only = [&](Scalar condition, bool always,
                    function_ref<void()> copies) {
      if (always)
        return copies();
      b.when(condition, copies);
    };
    if (unit.least < slices)
      only(unit.number < b.i32(slices), unit.most < slices,
           [&] { bringSlice(step, block, unit.number); });
    if (unit.most < slices)
      return;
    Unit last = unit.behind(slices);
    if (last.least < pieces)
      only((zero <= last.number) & (last.number < piecesOf(block)),
           /*always=*/last.least == 0 && last.most == 0, [&] {
             copy("v", problem.headDimV, request.alignmentOf("v"), b.i32(0),
                  block * key + last.number * piece, bufferV,
                  stageOfPiece(step, last.number));
           });
    if (last.most < pieces)
      return;
    // Of the blocks only the last one has less than all pieces.
    Unit next = last.behind(pieces);
    next.least = std::max<int64_t>(next.least, 0);
    only((zero <= next.number) & (step + 1 < blocks->steps), /*always=*/false,
         [&] { bring(step + 1, next); });
  }

  /// The last slice may have fewer columns.
  void bringSlice(Scalar step, Scalar block, Scalar number) {
    auto copies = [&](int64_t columns) {
      Scalar column = number * slice, at = stageOfSlice(step, number);
      copy("q", columns, request.alignmentOf("q"), column, firstRow, bufferQ,
           at);
      copy("k", columns, request.alignmentOf("k"), column, block * key, bufferK,
           at);
    };
    int64_t rest = problem.headDim % slice;
    if (rest == 0)
      return copies(slice);
    Scalar isLast = number == b.i32(slices - 1);
    b.when(isLast, [&] { copies(rest); });
    if (slices > 1)
      b.when(number < b.i32(slices - 1), [&] { copies(slice); });
  }

  void copy(StringRef operand, int64_t columns, int64_t align, Scalar column,
            Scalar row, Value buffer, Scalar stage) {
    bool isQuery = operand == "q";
    Value source = view(operand, columns, align, isQuery ? head : keyHead,
                        isQuery ? queries : keys, column);
    CopyAsyncOp::create(b, source, row, buffer, stage);
  }

  /// Waits for a unit and starts the copies of the one that is as far ahead as
  /// the rings are deep.
  void await(Scalar step, Unit unit) {
    int64_t ahead = stages - 1;
    WaitGroupOp::create(b, uint32_t(ahead - 1));
    BarrierOp::create(b);
    bring(step, {unit.number + ahead, unit.least + ahead, unit.most + ahead});
    CommitGroupOp::create(b);
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// The steps `from .. to - 1` of the walk over key blocks.
  SmallVector<Value> walk(const Softmax &softmax, Scalar from, Scalar to,
                          ValueRange state, bool cut) {
    return llvm::to_vector(
        b.loop(from, to, state, [&](Scalar step, ValueRange carried) {
          return keyStep(softmax, step, carried, cut);
        }));
  }

  SmallVector<Value> keyStep(const Softmax &softmax, Scalar step,
                             ValueRange state, bool cut) {
    Scalar block = blocks->block(b, step);
    Scalar firstKey = part * keysOfWarp; // of the warp, in the block
    Value scores = softmax.orient(b, multiplyQK(step, firstKey));
    if (cut)
      scores = blocks->hide(b, scores, firstRow + warpRow, block, firstKey);
    auto whole = [&](Value max) { return agree(max, /*max=*/true); };
    Softmax::Step next =
        softmax.step(b, {state[0], state[1]}, scores,
                     across > 1 ? Softmax::Whole(whole) : nullptr);
    SmallVector<Value> output;
    for (Value part : state.drop_front(2))
      output.push_back(scaleRows(b, part, next.alpha));
    if (across == 1) {
      output = multiplyInRegisters(step, block, next.weights, output, cut);
    } else {
      // Nobody reads P of the block before: a slice has come since.
      StoreMatrixOp::create(b, next.weights, bufferP, warpRow, firstKey);
      output = multiplyShared(step, block, output);
    }
    SmallVector<Value> result = {next.rows.max, next.rows.sum};
    llvm::append_range(result, output);
    return result;
  }

  /// S = Q K^T for this warp's rows and keys.
  Value multiplyQK(Scalar step, Scalar firstKey) {
    Value none = b.fill(b.f32(0), b.accType(strip, keysOfWarp));
    auto body = [&](Scalar number, ValueRange carried) -> SmallVector<Value> {
      await(step, {number, 0, slices - 1});
      Scalar at = stageOfSlice(step, number);
      int64_t depth = cast<SmemType>(bufferQ.getType()).getColumns();
      auto type = cast<FragType>(carried[0].getType());
      return {products.add(carried[0], type, depth, [&](int64_t offset) {
        Scalar column = b.i32(offset);
        auto lhs = products.queries({bufferQ, at, warpRow, column}, strip);
        auto rhs = products.keys({bufferK, at, firstKey, column}, keysOfWarp);
        return std::pair(lhs, rhs);
      })};
    };
    return b.loop(b.i32(0), b.i32(slices), none, body)[0];
  }

  /// O += P V for a piece; `weights` gives the P of a step in it, once.
  SmallVector<Value>
  multiplyPV(Scalar stage, ValueRange output,
             function_ref<Products::Factor(int64_t row)> weights) {
    SmallVector<Value> result;
    SmallVector<Products::Factor> taken;
    int64_t column = 0;
    for (Value sum : output) {
      auto type = cast<FragType>(sum.getType());
      result.push_back(products.add(sum, type, piece, [&](int64_t row) {
        size_t number = row / products.step;
        if (number == taken.size())
          taken.push_back(weights(row));
        Products::Factor lhs = taken[number];
        auto rhs = products.values(
            {bufferV, stage, b.i32(row), columnOf(column)}, type.getColumns());
        return std::pair(lhs, rhs);
      }));
      column += type.getColumns();
    }
    return result;
  }

  /// A column of O by its number among this warp's.
  Scalar columnOf(int64_t column) {
    Scalar first = part * columns;
    return column ? first + column : first;
  }

  /// With P in this warp's registers, which must be named when the kernel is
  /// built.
  SmallVector<Value> multiplyInRegisters(Scalar step, Scalar block, Value p,
                                         SmallVector<Value> output, bool cut) {
    auto weights = products.weights(p);
    Scalar exist = piecesOf(block);
    for (int64_t number = 0; number < pieces; ++number) {
      auto multiply = [&]() -> SmallVector<Value> {
        await(step, unit(slices + number));
        Scalar at = stageOfPiece(step, b.i32(number));
        return multiplyPV(at, output, [&](int64_t row) {
          return products.weightsAt(weights, number * piece + row);
        });
      };
      // Every block has a first piece, and an open one has all.
      bool always = number == 0 || !cut;
      output = always ? multiply()
                      : llvm::to_vector(b.choose(
                            b.i32(number) < exist, multiply,
                            [&]() -> SmallVector<Value> { return output; }));
    }
    return output;
  }

  /// With P of all warps that have these rows.
  SmallVector<Value> multiplyShared(Scalar step, Scalar block,
                                    ValueRange output) {
    auto body = [&](Scalar number, ValueRange carried) -> SmallVector<Value> {
      await(step, {number + slices, slices, slices + pieces - 1});
      Scalar at = stageOfPiece(step, number);
      return multiplyPV(at, carried, [&](int64_t row) {
        return products.weights(
            {bufferP, b.i32(0), warpRow, number * piece + row}, strip);
      });
    };
    return llvm::to_vector(b.loop(b.i32(0), piecesOf(block), output, body));
  }

  /// The maxima, or the sums, of what the warps on the same rows have.  Between
  /// two of these there is a barrier for all warps, that of a unit.
  Value agree(Value row, bool max) {
    PutRowOp::create(b, row, statistics, part, warpRow);
    // Barrier 0 is that of the block.
    BarSyncOp::create(b, rowGroup + 1, uint32_t(across));
    Value all;
    for (int64_t i = 0; i < across; ++i) {
      Value one =
          GetRowOp::create(b, row.getType(), statistics, b.i32(i), warpRow);
      all = i == 0 ? one
                   : b.map({all, one}, row.getType(),
                           [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                             return max ? b.max(x[0], x[1]) : x[0] + x[1];
                           });
    }
    return all;
  }

  /// Warps on the same rows have the same log-sum-exps; one stores them.
  void finish(const Softmax &softmax, ValueRange state) {
    auto whole = [&](Value sum) { return agree(sum, /*max=*/false); };
    Softmax::End end =
        softmax.finish(b, {state[0], state[1]}, problem.lseLow,
                       across > 1 ? Softmax::Whole(whole) : nullptr);
    Scalar row = firstRow + warpRow;
    Value o =
        view("o", problem.headDimV, request.alignmentOf("o"), head, queries);
    int64_t column = 0;
    for (Value sums : state.drop_front(2)) {
      Value scaled = average(b, sums, end.inverse, element);
      StoreFragmentOp::create(b, scaled, o, row, columnOf(column));
      column += cast<FragType>(sums.getType()).getColumns();
    }
    if (!problem.lse)
      return;
    if (across > 1)
      row = b.select(part == b.i32(0), row, queries);
    storeLse(b, arguments, end.lse, {firstRow, head, batch}, queries, row);
  }

  int64_t piece;
  int64_t across; ///< warps that have the same rows
  int64_t slice;
  int64_t slices, pieces; ///< of a block of keys
  int64_t strip;          ///< rows of a warp
  int64_t keysOfWarp, columns;

  Scalar rowGroup, part, warpRow; ///< of the warp
  Value bufferP, bufferQ, bufferK, bufferV, statistics;
};

} // namespace

namespace attn {
KernelOp streamed_query_mma_sync(OpBuilder &builder, Location loc,
                                 const KernelRequest &request);
} // namespace attn

KernelOp attn::streamed_query_mma_sync(OpBuilder &builder, Location loc,
                                       const KernelRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  return StreamedQuery(b, request).build();
}
