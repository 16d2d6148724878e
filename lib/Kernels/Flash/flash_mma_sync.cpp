//===- flash_mma_sync.cpp - FlashAttention on mma.sync (sm_80 and up) -----===//
//
// One block owns `query` rows of one head; each warp owns a strip of them and
// keeps its output, running maximum and sum in registers.  Keys and values
// stream past in blocks of `key` rows, each read by every warp.
//
// stages = 1: one buffer for K and one for V, and two barriers a block.  V of a
//   block is copied while S = Q K^T is worked out, K of the next block during
//   softmax and P V.  Least shared memory, so that two blocks fit on an SM and
//   cover each other's waits.
// stages >= 2: a ring of (K, V) pairs, filled `stages - 1` blocks ahead, and
//   one barrier a block.
//
//===----------------------------------------------------------------------===//

#include "Flash/PartsMerge.h"
#include "MmaSync/MmaSyncFrame.h"
#include "Pipe/Epilogue.h"
#include "Region/OperandScale.h"
#include "Softmax/Sink.h"
#include "Softmax/Softmax.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Flash : MmaSyncFrame {
public:
  Flash(TileBuilder &b, const KernelRequest &request)
      : MmaSyncFrame(b, request), strip(query / warps),
        dim(llvm::alignTo(problem.headDim, kStep)),
        dimV(llvm::alignTo(problem.headDimV, kStep)) {}

  KernelOp build() {
    KernelOp kernel = declare();
    locateRows();
    if (!problem.ragged) {
      attend();
    } else { // a slot may have no rows
      allocate();
      b.when(firstRow < queries, [&] { attend(); });
    }
    ReturnOp::create(b);
    return kernel;
  }

private:
  /// What the rows of this block see becomes their rows of O.
  void attend() {
    warpRow = b.warpId() * strip;
    locateHead();
    q = view("q", problem.headDim, request.alignmentOf("q"), head, queries);
    k = view("k", problem.headDim, request.alignmentOf("k"), keyHead, keys);
    v = view("v", problem.headDimV, request.alignmentOf("v"), keyHead, keys);
    if (!problem.ragged)
      allocate();
    dealSteps();
    // Loop-carried: running max, running sum, output.
    rows = scoring.ofRows(b, {batch, head, firstRow + warpRow, strip,
                              /*areKeys=*/false, tile.queries,
                              Value(usedKeys) ? usedKeys : tile.keys});
    Softmax softmax(b, scoring.scale(b, rows), scoring.sign());
    Softmax::Rows start = softmax.start(b, strip);
    SmallVector<Value> state = {start.max, start.sum};
    llvm::append_range(state, products.noOutput(strip, dimV));

    prologue();
    state = walk(softmax, steps.begin, openEnd, state, /*cut=*/false);
    state = walk(softmax, cutBegin, steps.end, state, /*cut=*/true);
    WaitGroupOp::create(b, 0u);
    BarrierOp::create(b);
    finish(softmax, state);
  }

  /// Buffers.  O is staged for the store where Q was; parts are not staged.
  void allocate() {
    SmemType typeQ = products.bufferOfRows(1, query, dim);
    SmemType typeO =
        parts.areSeveral() ? typeQ : products.bufferOfRows(1, query, dimV);
    bool larger = typeO.totalBytes() > typeQ.totalBytes();
    Value strips = AllocOp::create(b, larger ? typeO : typeQ, "query");
    bufferQ = larger ? Value(AliasOp::create(b, typeQ, strips)) : strips;
    bufferO = larger || typeO == typeQ
                  ? strips
                  : Value(AliasOp::create(b, typeO, strips));
    bufferK =
        AllocOp::create(b, products.bufferOfRows(stages, key, dim), "key");
    bufferV =
        AllocOp::create(b, products.bufferOfRows(stages, key, dimV), "value");
  }

  /// The steps of this block's walk: all, or a part of them.
  void dealSteps() {
    steps = {b.i32(0), blocks->steps};
    openEnd = cutBegin = blocks->openSteps;
    if (!parts.areSeveral())
      return;
    steps = parts.of(b, blocks->steps, part);
    openEnd = b.min(openEnd, steps.end);
    cutBegin = b.max(cutBegin, steps.begin);
  }
  /// One of the first ones.
  Scalar stepAt(int64_t number) {
    return parts.areSeveral() ? steps.begin + number : b.i32(number);
  }

  void copy(Value view, Value buffer, Scalar row, Scalar stage) {
    CopyAsyncOp::create(b, view, row, buffer, stage);
  }

  Scalar stage(Scalar step) { return stages == 1 ? b.i32(0) : step % stages; }

  /// Starts the copies that the first step finds in flight.
  void prologue() {
    Scalar zero = b.i32(0);
    b.when(steps.begin < steps.end, [&] {
      copy(q, bufferQ, firstRow, zero);
      if (stages == 1)
        copy(k, bufferK, blocks->block(b, steps.begin) * key, zero);
      else
        copyPair(steps.begin);
    });
    CommitGroupOp::create(b);
    for (int64_t step = 1; step < stages - 1; ++step) {
      b.when(stepAt(step) < steps.end, [&] { copyPair(stepAt(step)); });
      CommitGroupOp::create(b);
    }
  }

  void copyPair(Scalar step) {
    Scalar row = blocks->block(b, step) * key;
    copy(k, bufferK, row, stage(step));
    copy(v, bufferV, row, stage(step));
  }

  /// The steps `from .. to - 1` of the walk over key blocks.
  SmallVector<Value> walk(const Softmax &softmax, Scalar from, Scalar to,
                          ValueRange state, bool cut) {
    ValueRange results =
        b.loop(from, to, state, [&](Scalar step, ValueRange carried) {
          return stages == 1 ? stepSingle(softmax, step, carried, cut)
                             : stepRing(softmax, step, carried, cut);
        });
    return llvm::to_vector(results);
  }

  SmallVector<Value> stepSingle(const Softmax &softmax, Scalar step,
                                ValueRange state, bool cut) {
    Scalar block = blocks->block(b, step), zero = b.i32(0);
    awaitAll(); // K is here, and no warp reads the last V any more
    copy(v, bufferV, block * key, zero);
    CommitGroupOp::create(b);
    Value scores = multiplyQK(zero);
    awaitAll(); // V is here, and no warp reads K any more
    b.when(step + 1 < steps.end,
           [&] { copy(k, bufferK, blocks->block(b, step + 1) * key, zero); });
    CommitGroupOp::create(b);
    return accumulate(softmax, scores, block, zero, state, cut);
  }

  SmallVector<Value> stepRing(const Softmax &softmax, Scalar step,
                              ValueRange state, bool cut) {
    Scalar block = blocks->block(b, step);
    // The pair of this step is here when at most stages - 2 younger ones are
    // not; behind the barrier no warp reads the pair of the step before, whose
    // place the next copy takes.
    WaitGroupOp::create(b, uint32_t(stages - 2));
    BarrierOp::create(b);
    Scalar ahead = step + (stages - 1);
    b.when(ahead < steps.end, [&] { copyPair(ahead); });
    CommitGroupOp::create(b);
    Value scores = multiplyQK(stage(step));
    return accumulate(softmax, scores, block, stage(step), state, cut);
  }

  void awaitAll() {
    WaitGroupOp::create(b, 0u);
    BarrierOp::create(b);
  }

  /// S = Q K^T for this warp's strip.
  Value multiplyQK(Scalar stage) {
    Scalar zero = b.i32(0);
    return products.scores({bufferQ, zero, warpRow, zero}, strip,
                           {bufferK, stage, zero, zero}, key, dim);
  }

  /// Softmax of a block of scores, and O = alpha O + P V.
  SmallVector<Value> accumulate(const Softmax &softmax, Value scores,
                                Scalar block, Scalar stage, ValueRange state,
                                bool cut) {
    bool isListed = problem.isListed();
    scores = scoring.scored(b, rows, softmax.orient(b, scores), block * key,
                            scoring.pairsOf(cut, isListed));
    scores = cut ? blocks->hide(b, scores, firstRow + warpRow, block)
                 : blocks->hideOpen(b, scores, block);
    if (cut || !isListed)
      scores = scoring.hidden(b, rows, scores, block * key, cut);
    Softmax::Step next = softmax.step(b, {state[0], state[1]}, scores);
    SmallVector<Value> result = {next.rows.max, next.rows.sum};
    for (Value part : state.drop_front(2))
      result.push_back(products.scaled(part, next.alpha));
    products.addWeighted(MutableArrayRef(result).drop_front(2), next.weights,
                         bufferV, stage, next.alpha);
    return result;
  }

  /// The views of the results are made here, so that their addresses are not
  /// held in registers throughout.
  void finish(const Softmax &softmax, ValueRange state) {
    Softmax::End end = softmax.finish(b, {state[0], state[1]}, problem.lseLow);
    if (problem.clauses.sinks)
      addSink(b, end.inverse, end.lse, rows.sink);
    end.inverse = withScale(b, end.inverse, rows.ofValues);
    Scalar row = firstRow + warpRow;
    if (parts.areSeveral())
      return storeKeyPart(state.drop_front(2), end, row);
    Value o =
        view("o", problem.headDimV, request.alignmentOf("o"), head, queries);
    storeOutput(b, state.drop_front(2), end.inverse, bufferO, o, warpRow, row);
    if (problem.lse)
      storeLse(b, arguments, end.lse,
               problem.ragged ? tile : Tile{firstRow, head, batch}, queries,
               row);
  }

  /// Of a part of the keys, O and LSE in f32, from registers.
  void storeKeyPart(ValueRange output, const Softmax::End &end, Scalar row) {
    KeyParts::Owner owner{batch, head, part, tile.firstQuery, tile.queries};
    Value view = parts.output(b, arguments, problem, owner);
    int64_t column = 0;
    for (Value columns : output) {
      StoreFragmentOp::create(b, scaleRows(b, columns, end.inverse), view, row,
                              b.i32(column));
      column += cast<FragType>(columns.getType()).getColumns();
    }
    StoreRowOp::create(b, end.lse.high, parts.lse(b, arguments, owner), row);
  }

  Scoring::Rows rows; ///< of this warp
  int64_t strip;      ///< rows of a warp
  int64_t dim, dimV;  ///< head dimensions, padded
  Scalar warpRow;
  Run steps;                                // of the walk
  Scalar openEnd, cutBegin;                 // of these
  Value q, k, v;                            // views
  Value bufferQ, bufferK, bufferV, bufferO; // shared memory
};

} // namespace

namespace attn {
KernelOp flash_mma_sync(OpBuilder &builder, Location loc,
                        const KernelRequest &request);
} // namespace attn

KernelOp attn::flash_mma_sync(OpBuilder &builder, Location loc,
                              const KernelRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  if (request.launch > 0)
    return buildPartsMerge(b, request);
  return Flash(b, request).build();
}
