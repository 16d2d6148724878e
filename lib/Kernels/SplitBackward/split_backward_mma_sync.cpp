//===- split_backward_mma_sync.cpp - Gradients on mma.sync (sm_80 and up) -===//
//
// All launches are one kernel, seen from two sides.  A block *owns* rows of two
// arrays, x and y, which stay in shared memory; blocks of rows of two others
// stream past, through a ring:
//
//   side      owned x, y    streamed x, y    gradients it sums up
//   queries   Q, dO         K, V             dQ = dS K
//   keys      K, V          Q, dO            dK = dS^T Q, dV = P^T dO
//
// Either way S = x x'^T and dP = y y'^T are products of own rows and streamed
// rows, with own rows as the rows of fragments, so that P and dS are the left
// factors of the next product as they are.  What differs is where the
// statistics of the queries are: on their side a value for each row, in
// registers; on the side of the keys one for each column, streamed beside Q.
//
// D = rowsum(dO * O) - dLSE is worked out by the block that owns the queries
// and left in scratch memory for the launches behind it.
//
// stages = 1: one buffer, two barriers a step, nothing in flight meanwhile.
// stages >= 2: a ring, filled `stages - 1` steps ahead, one barrier a step.
//
//===----------------------------------------------------------------------===//

#include "Gradients/GradientScores.h"
#include "MmaSync/Products.h"
#include "Pipe/Epilogue.h"
#include "Region/CaptureSums.h"
#include "Region/Scoring.h"
#include "Region/SinkSums.h"
#include "Walk/BandRuns.h"
#include "Walk/KeyBlocks.h"
#include "Walk/RaggedRows.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// An array of rows, by its role and that of its gradient.
struct Rows {
  StringRef role, gradient;
  int64_t columns; ///< of the head
  int64_t padded;  ///< of a buffer: whole fragments
};

/// What a launch is for.
struct Side {
  bool ownsKeys;
  bool hasX, hasY; ///< gradients of x and of y
};

Side sideOf(const KernelRequest &request) {
  if (request.launch == 0)
    return {false, true, false};
  bool isSeparate = request.tiles.get("separate") != 0;
  return {true, !isSeparate || request.launch == 1,
          !isSeparate || request.launch == 2};
}

class SplitBackward {
public:
  SplitBackward(TileBuilder &b, const KernelRequest &request)
      : b(b), request(request), problem(request.problem), side(sideOf(request)),
        element(elementType(b.getContext(), problem.dtype)),
        own(request.tiles.get(side.ownsKeys ? "key" : "query")),
        block(request.tiles.get(side.ownsKeys ? "query_block" : "key_block")),
        warps(request.tiles.get(side.ownsKeys ? "key_warps" : "query_warps")),
        strip(own / warps), stages(request.tiles.get("stages")),
        products(b, problem), scoring(arguments, request),
        captures(arguments, request) {
    Rows q = rowsOf("q", "dq", problem.headDim),
         k = rowsOf("k", "dk", problem.headDim),
         v = rowsOf("v", "dv", problem.headDimV),
         gradient = rowsOf("do", "", problem.headDimV);
    x = side.ownsKeys ? k : q;
    y = side.ownsKeys ? v : gradient;
    streamedX = side.ownsKeys ? q : k;
    streamedY = side.ownsKeys ? gradient : v;
  }

  KernelOp build() {
    KernelOp kernel = declare();
    locate();
    allocate();
    if (problem.ragged) // a slot may have no rows
      b.when(firstRow < (side.ownsKeys ? keys : queries), [&] { attend(); });
    else
      attend();
    ReturnOp::create(b);
    return kernel;
  }

private:
  static constexpr int64_t kStep = 16; ///< fragments, as rows and columns

  static Rows rowsOf(StringRef role, StringRef gradient, int64_t columns) {
    return {role, gradient, columns, int64_t(llvm::alignTo(columns, kStep))};
  }

  /// The gradients of the block's rows.
  void attend() {
    scale.emplace(b, scoring.scale(b), scoring.sign());
    copyOwn();
    SmallVector<Value> state;
    if (side.hasX)
      llvm::append_range(state, products.noOutput(strip, x.padded));
    partsOfX = state.size();
    if (side.hasY)
      llvm::append_range(state, products.noOutput(strip, y.padded));

    if (side.ownsKeys) {
      // Heads of queries that share these keys, one after the other.
      Scalar group = arguments.get(b, "group");
      Scalar first = keyHead * group;
      state = llvm::to_vector(b.loop(
          b.i32(0), group, state, [&](Scalar member, ValueRange carried) {
            return walkHead(first + member, llvm::to_vector(carried));
          }));
    } else {
      loadStatistics();
      if (hasCaptures())
        llvm::append_range(state, captures.none(b, strip));
      state = walkHead(head, std::move(state));
      if (hasCaptures())
        captures.leave(b, scoredRows.score->place,
                       ValueRange(state).drop_front(partsOfX));
      state.resize(partsOfX);
    }
    WaitGroupOp::create(b, 0u);
    BarrierOp::create(b);
    finish(state);
  }

  //===--------------------------------------------------------------------===//
  // Arguments and place
  //===--------------------------------------------------------------------===//

  KernelOp declare() {
    Type f32 = b.getF32Type();
    for (StringRef role : {"q", "k", "do"})
      arguments.operand(role, element);
    declareLse(arguments, b, problem);
    if (side.hasX) { // for dS
      arguments.operand("v", element);
      arguments.operand("delta", f32);
    }
    if (!side.ownsKeys) {
      arguments.operand("o", element);
      if (problem.dlse)
        arguments.operand("dlse", f32);
    }
    if (side.hasX)
      arguments.operand(x.gradient, element);
    if (side.hasY)
      arguments.operand(y.gradient, element);
    if (!side.ownsKeys) {
      CaptureSums::declare(arguments, b, request);
      if (problem.clauses.sinkGradients)
        declareSinkSums(arguments, b, request);
    }
    if (problem.pattern)
      BlockLists::declare(arguments, b, sideOfLists());
    if (problem.ragged)
      RaggedRows::declare(arguments, b, problem);
    Scoring::declare(arguments, b, request);
    declareProblem(arguments, b, problem.mask);
    return arguments.createKernel(b, request, warps);
  }

  /// The block's rows, longest walks first: with a band that grows with the
  /// row, late queries see most keys, and early keys are seen by most.
  void locate() {
    queries = arguments.get(b, "queries");
    keys = arguments.get(b, "keys");
    Scalar heads = arguments.get(b, "heads"), group = arguments.get(b, "group");
    RaggedRows slots(arguments, problem, own, side.ownsKeys);
    Scalar tiles = problem.ragged
                       ? slots.slots(b)
                       : b.ceilDiv(side.ownsKeys ? keys : queries, own);
    BlockOfHead at = BlockOfHead::of(b, b.programId(0), tiles,
                                     side.ownsKeys ? heads / group : heads);
    Scalar number = at.number;
    if (!side.ownsKeys && !problem.mask.isOpen())
      number = tiles - 1 - number;
    tile = problem.ragged ? slots.at(b, number, at.head)
                          : Tile{number * own, at.head, at.batch};
    firstRow = tile.row;
    warpRow = b.warpId() * strip;
    if (side.ownsKeys) {
      keyHead = tile.head;
    } else {
      head = tile.head;
      keyHead = head / group;
    }
    batch = tile.batch;
    if (problem.ragged) {
      queries = tile.queries;
      keys = tile.keys;
    }
    KeyBand whole = side.ownsKeys ? KeyBand::seeing(b, arguments, problem.mask)
                                  : KeyBand(b, arguments, problem.mask);
    Scalar rows = side.ownsKeys ? keys : queries;
    Scalar streamed = side.ownsKeys ? queries : keys;
    band.emplace(problem.ragged ? whole.ofSequence(b, rows, streamed) : whole);
    if (problem.isListed())
      return locateLists();
    blocks.emplace(b, *band, firstRow, b.min(firstRow + own, rows) - 1, block);
    ownSteps = blocks->steps;
  }

  ListSide sideOfLists() const {
    return side.ownsKeys ? ListSide::keys : ListSide::queries;
  }

  void locateLists() {
    lists = tileLists(b, arguments, problem, own, block, sideOfLists());
    if (!side.ownsKeys) {
      enterLists(head);
      ownSteps = blocks->steps;
      return;
    }
    Tile tile = lists->countedOfAll({firstRow, keyHead, batch},
                                    arguments.get(b, "group"));
    ownSteps = tile.partialSteps + tile.fullSteps;
  }

  /// The lists of a query head.
  void enterLists(Scalar queryHead) {
    Tile tile = lists->counted({firstRow, queryHead, batch});
    blocks.emplace(b, *band, *lists, tile, block);
  }

  Value view(const Rows &rows, StringRef role, Scalar ofHead, Scalar count) {
    auto type = ViewType::get(b.getContext(), rows.columns, element,
                              request.alignmentOf(role));
    bool isOfKeys = llvm::is_contained({"k", "v", "dk", "dv"}, role);
    return arguments.view(b, role, type, batch, ofHead, count,
                          /*column=*/Scalar(),
                          isOfKeys ? tile.firstKey : tile.firstQuery);
  }

  /// Both words of LSE, or one.
  LogSumExp inWords(function_ref<Value(bool isLow)> word) {
    LogSumExp words{word(false), Value()};
    if (problem.lseLow)
      words.low = word(true);
    return words;
  }
  static StringRef roleOf(bool isLow) { return isLow ? "lse_low" : "lse"; }

  Shift shiftOf(const LogSumExp &lse) {
    TwoWords bits;
    if (lse.low)
      bits = scale->bitsOfNatural(b);
    return attn::shiftOf(b, lse, bits);
  }

  /// A number for each query.
  Value statistic(StringRef role, Scalar ofHead) {
    return arguments.vector(b, role, batch, ofHead, queries, tile.firstQuery);
  }

  //===--------------------------------------------------------------------===//
  // Buffers
  //===--------------------------------------------------------------------===//

  /// Gradients are staged where what they are the gradients of was.
  void allocate() {
    auto buffer = [&](int64_t count, int64_t rows, int64_t columns,
                      StringRef name) -> Value {
      return AllocOp::create(b, products.bufferOfRows(count, rows, columns),
                             name);
    };
    if (side.hasX) { // dP is needed for its sake
      bufferX = buffer(1, own, x.padded, x.role);
      bufferY = buffer(1, own, y.padded, y.role);
    } else { // y is not, and its gradient takes the place of x
      Value larger = buffer(1, own, std::max(x.padded, y.padded), x.role);
      bufferX = withColumns(larger, x.padded);
      bufferY = withColumns(larger, y.padded);
    }
    ringX = buffer(stages, block, streamedX.padded, streamedX.role);
    ringY = buffer(stages, block, streamedY.padded, streamedY.role);
    if (!side.ownsKeys)
      return;
    auto ring = [&](int64_t count, StringRef name) -> Value {
      auto type = SmemType::get(count, 1, block, b.getF32Type());
      return AllocOp::create(b, type, name);
    };
    // Low words have stages behind those of the others.
    ringLse = ring(problem.lseLow ? 2 * stages : stages, "lse");
    if (side.hasX)
      ringDelta = ring(stages, "delta");
  }

  Value withColumns(Value buffer, int64_t columns) {
    SmemType type = products.bufferOfRows(1, own, columns);
    if (type == buffer.getType())
      return buffer;
    return AliasOp::create(b, type, buffer);
  }

  void copy(Value view, Value buffer, Scalar row, Scalar stage,
            bool isRolled = false) {
    CopyAsyncOp::create(b, view, row, buffer, stage, isRolled);
  }

  void copyOwn() {
    Scalar count = side.ownsKeys ? keys : queries;
    Scalar ofHead = side.ownsKeys ? keyHead : head;
    b.when(b.i32(0) < ownSteps, [&] {
      copy(view(x, x.role, ofHead, count), bufferX, firstRow, b.i32(0));
      if (side.hasX)
        copy(view(y, y.role, ofHead, count), bufferY, firstRow, b.i32(0));
    });
    CommitGroupOp::create(b);
  }

  //===--------------------------------------------------------------------===//
  // Statistics of own queries
  //===--------------------------------------------------------------------===//

  void loadStatistics() {
    Scalar row = firstRow + warpRow;
    Rows output = rowsOf("o", "", problem.headDimV);
    Value delta = deltaOf(
        b, view(output, "o", head, queries), view(y, y.role, head, queries),
        problem.dlse ? statistic("dlse", head) : Value(), row, strip);
    StoreRowOp::create(b, delta, statistic("delta", head), row);
    ownDelta = delta;
    LogSumExp lse = inWords([&](bool isLow) -> Value {
      return LoadRowOp::create(b, b.rowType(strip),
                               statistic(roleOf(isLow), head), row);
    });
    ownShift = shiftOf(lse);
    if (problem.clauses.sinkGradients)
      leaveSinkSum(b, arguments, request, {batch, head, row, strip}, lse,
                   delta);
  }

  //===--------------------------------------------------------------------===//
  // The walk over what streams past
  //===--------------------------------------------------------------------===//

  struct Streams {
    Value x, y; ///< views
    LogSumExp lse;
    Value delta;
  };

  Streams streamsOf(Scalar queryHead) {
    if (!side.ownsKeys)
      return {view(streamedX, streamedX.role, keyHead, keys),
              view(streamedY, streamedY.role, keyHead, keys),
              {},
              {}};
    return {view(streamedX, streamedX.role, queryHead, queries),
            view(streamedY, streamedY.role, queryHead, queries),
            inWords([&](bool isLow) {
              return statistic(roleOf(isLow), queryHead);
            }),
            side.hasX ? statistic("delta", queryHead) : Value()};
  }

  void bring(const Streams &streams, Scalar step) {
    Scalar row = blocks->block(b, step) * block, at = stageOf(step);
    // Two loops and up to four arrays: addresses would spill.
    bool isRolled = side.ownsKeys;
    copy(streams.x, ringX, row, at, isRolled);
    copy(streams.y, ringY, row, at, isRolled);
    if (ringLse)
      copy(streams.lse.high, ringLse, row, at);
    if (streams.lse.low)
      copy(streams.lse.low, ringLse, row, at + stages);
    if (ringDelta)
      copy(streams.delta, ringDelta, row, at);
  }

  Scalar stageOf(Scalar step) { return stages == 1 ? b.i32(0) : step % stages; }

  SmallVector<Value> walkHead(Scalar queryHead, SmallVector<Value> state) {
    if (lists && side.ownsKeys)
      enterLists(queryHead);
    Streams streams = streamsOf(queryHead);
    scoredRows = scoring.ofRows(b, {batch, queryHead, firstRow + warpRow, strip,
                                    side.ownsKeys, tile.queries, tile.keys});
    // Behind the barrier nobody reads what the head before left in the ring.
    if (side.ownsKeys && stages > 1)
      BarrierOp::create(b);
    for (int64_t step = 0; step < stages - 1; ++step) {
      b.when(b.i32(step) < blocks->steps, [&] { bring(streams, b.i32(step)); });
      CommitGroupOp::create(b);
    }
    state = walk(streams, b.i32(0), blocks->openSteps, state, /*cut=*/false);
    return walk(streams, blocks->openSteps, blocks->steps, state, /*cut=*/true);
  }

  /// The steps `from .. to - 1`.
  SmallVector<Value> walk(const Streams &streams, Scalar from, Scalar to,
                          ValueRange state, bool cut) {
    return llvm::to_vector(
        b.loop(from, to, state, [&](Scalar step, ValueRange carried) {
          await(streams, step);
          return accumulate(step, carried, cut);
        }));
  }

  /// Waits for a step's rows, and brings those of a later one.
  void await(const Streams &streams, Scalar step) {
    if (stages == 1) {
      BarrierOp::create(b); // no warp reads the rows of the step before
      bring(streams, step);
      CommitGroupOp::create(b);
      WaitGroupOp::create(b, 0u);
      BarrierOp::create(b);
      return;
    }
    WaitGroupOp::create(b, uint32_t(stages - 2));
    BarrierOp::create(b);
    Scalar ahead = step + (stages - 1);
    b.when(ahead < blocks->steps, [&] { bring(streams, ahead); });
    CommitGroupOp::create(b);
  }

  //===--------------------------------------------------------------------===//
  // One step
  //===--------------------------------------------------------------------===//

  /// Own rows times the transpose of streamed rows.
  Value scoresOf(const Rows &rows, Value buffer, Value ring, Scalar stage) {
    Scalar zero = b.i32(0);
    return products.scores({buffer, zero, warpRow, zero}, strip,
                           {ring, stage, zero, zero}, block, rows.padded);
  }

  /// A statistic of a step's queries as a fragment of equal rows.
  Value columnsOf(Value ring, Scalar stage) {
    Scalar zero = b.i32(0);
    return GetColumnsOp::create(b, b.accType(strip, block), ring, stage, zero,
                                zero);
  }

  Shift shiftColumns(Scalar stage) {
    return shiftOf(inWords([&](bool isLow) {
      return columnsOf(ringLse, isLow ? stage + stages : stage);
    }));
  }

  SmallVector<Value> accumulate(Scalar step, ValueRange state, bool cut) {
    SmallVector<Value> result(state);
    MutableArrayRef<Value> all(result);
    Scalar stage = stageOf(step);
    Value raw = scale->orient(b, scoresOf(x, bufferX, ringX, stage));
    Scalar column = scoring.any() ? blocks->block(b, step) * block : Scalar();
    Pairs pairs = scoring.pairsOf(cut, bool(lists));
    Value scores = scoring.scored(b, scoredRows, raw, column, pairs), slopes;
    if (cut)
      scores =
          blocks->hide(b, scores, firstRow + warpRow, blocks->block(b, step));
    else if (lists)
      scores = blocks->hideOpen(b, scores, blocks->block(b, step));
    // Of full blocks all is seen whatever a region says.
    if (cut || !lists)
      scores = scoring.hidden(b, scoredRows, scores, column, cut);
    if (side.hasX)
      slopes = scoring.slopes(b, scoredRows, raw, scores, column, pairs);
    Shift shift = ringLse ? shiftColumns(stage) : ownShift;
    Value weights = weightsOf(b, *scale, scores, shift);
    if (side.hasY)
      products.addWeighted(all.drop_front(partsOfX), weights, ringY, stage);
    if (side.hasX) {
      bool hides = cut || (!lists && scoring.hides());
      Value gradient =
          differentiate(weights, slopes, stage, hides, [&](Value ofScores) {
            captures.add(b, *scoredRows.score,
                         {raw, ofScores, column, queries, keys},
                         all.drop_front(partsOfX));
          });
      products.addWeighted(all.take_front(partsOfX), gradient, ringX, stage);
    }
    return result;
  }

  /// dS of a step that `hides` something, or nothing.  Captures get their part
  /// before slopes do.
  Value differentiate(Value weights, Value slopes, Scalar stage, bool hides,
                      function_ref<void(Value ofScores)> pull) {
    Value steep = hasCaptures() ? weights : steepened(b, weights, slopes);
    Value gradient = scoresOf(y, bufferY, ringY, stage);
    Value delta = ringDelta ? columnsOf(ringDelta, stage) : ownDelta;
    gradient = gradientOf(b, steep, gradient, delta);
    if (hasCaptures()) {
      gradient = withoutHidden(b, weights, gradient);
      pull(gradient);
      return withSlopes(b, weights, gradient, slopes);
    }
    return hides ? withoutHidden(b, steep, gradient) : gradient;
  }

  /// Whether this launch has gradients of what scores read.
  bool hasCaptures() const { return !side.ownsKeys && captures.any(); }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  void finish(ValueRange state) {
    if (side.hasX)
      store(state.take_front(partsOfX), x, arguments.get(b, "scale"), bufferX);
    if (side.hasY)
      store(state.drop_front(partsOfX), y, b.f32(1), bufferY);
  }

  void store(ValueRange parts, const Rows &rows, Scalar factor, Value staging) {
    Scalar count = side.ownsKeys ? keys : queries;
    Value target =
        view(rows, rows.gradient, side.ownsKeys ? keyHead : head, count);
    storeOutput(b, parts, b.fill(factor, b.rowType(strip)), staging, target,
                warpRow, firstRow + warpRow);
  }

  TileBuilder &b;
  const KernelRequest &request;
  const Problem &problem;
  const Side side;
  const Type element;
  const int64_t own, block, warps, strip, stages;
  Products products;
  Rows x, y, streamedX, streamedY;

  Arguments arguments;
  Scoring scoring;
  CaptureSums captures;
  Scoring::Rows scoredRows; ///< of this warp and the head that it walks
  std::optional<KeyBand> band;
  std::unique_ptr<TileLists> lists;
  std::optional<KeyBlocks> blocks; ///< of a head, if they are listed
  std::optional<ScoreScale> scale;
  Tile tile; ///< of a sequence, if it is of one
  Scalar queries, keys, head, keyHead, batch, firstRow, warpRow;
  Scalar ownSteps; ///< of all heads that the tile walks
  Value bufferX, bufferY, ringX, ringY, ringLse, ringDelta; // shared memory
  Shift ownShift;                                           // rows
  Value ownDelta;
  size_t partsOfX = 0;
};

} // namespace

namespace attn {
KernelOp split_backward_mma_sync(OpBuilder &builder, Location loc,
                                 const KernelRequest &request);
} // namespace attn

KernelOp attn::split_backward_mma_sync(OpBuilder &builder, Location loc,
                                       const KernelRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  return SplitBackward(b, request).build();
}
