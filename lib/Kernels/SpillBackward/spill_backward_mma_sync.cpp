//===- spill_backward_mma_sync.cpp - Gradients by plain products (sm_80) --===//
//
// The launches of spill_backward_wgmma.cpp, where P and dS of a strip of keys
// wait in scratch memory between matrix products that keep tiles of their
// output, with the instructions that every part from sm_80 on has.  They take
// f32, as tf32, and rows that begin anywhere.
//
//   launch     a tile               streams                   leaves
//   scores     128 queries x 128    Q and K, then dO and V,   P and dS
//              keys                 by slices of columns
//   keySums    128 keys x columns   P and dO, or dS and Q,    dV or dK
//                                   by slices of queries
//   querySums  128 queries x        dS and K, by slices of    dQ
//              columns              keys
//
// A block has one tile.  All its warps are alike: they copy slices of both
// factors into a ring, `stages - 1` steps ahead, one barrier a step, and each
// multiplies its 16 or 32 rows of the left one by all of the right one.  What a
// tile gives leaves from registers.
//
// P and dS are the left factors of dV and dK from the side of the keys: loads
// of fragments transpose them.
//
//===----------------------------------------------------------------------===//

#include "MmaSync/Products.h"
#include "Rounds/RoundsFrame.h"
#include "Softmax/Softmax.h"

#include "attn/Schedule/Schedule.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class SpillBackward : RoundsFrame {
public:
  SpillBackward(TileBuilder &b, const KernelRequest &request)
      : RoundsFrame(b, request),
        warps(is(RoundsLaunch::scores) ? kScoreWarps
                                       : request.tiles.get("warps")),
        rows(kRows / warps), products(b, problem) {}

  KernelOp build() {
    declareOperands();
    declareRound();
    KernelOp kernel = createKernel(warps);
    enterRound();
    allocateRing();
    warpRow = b.warpId() * rows;
    scale.emplace(b, arguments.get(b, "scale"), request.scale);
    Tile tile = tileAt(b.programId(0));
    Scalar exists = b.i32(-1) < tile.row;
    b.when(exists & (isIdle(tile) == b.boolean(false)), [&] {
      switch (launch) {
      case RoundsLaunch::scores:
        return workOffScores(tile);
      case RoundsLaunch::keySums: {
        Scalar isValue = isValuePart(tile);
        b.when(isValue, [&] { workOffKeySums(tile, kOfValues); });
        return b.when(isValue == b.boolean(false),
                      [&] { workOffKeySums(tile, kOfKeys); });
      }
      case RoundsLaunch::querySums:
        return workOffQuerySums(tile);
      case RoundsLaunch::deltas: // only merged
        break;
      }
      llvm_unreachable("closed enum");
    });
    ReturnOp::create(b);
    return kernel;
  }

private:
  /// A tile's rows of a warp, in parts side by side.
  using Parts = SmallVector<Value>;

  //===--------------------------------------------------------------------===//
  // Arrays
  //===--------------------------------------------------------------------===//

  void declareOperands() {
    auto operands = [&](std::initializer_list<StringRef> names) {
      for (StringRef name : names)
        arguments.operand(name, element);
    };
    for (StringRef scores : {"scratch_p", "scratch_ds"})
      if (scores != "scratch_p" || !is(RoundsLaunch::querySums))
        arguments.pointer(scores, element);
    switch (launch) {
    case RoundsLaunch::scores:
      return operands({"q", "k", "do", "v"});
    case RoundsLaunch::keySums:
      return operands({"do", "q", "dv", "dk"});
    case RoundsLaunch::querySums:
      return operands({"k", "dq"});
    case RoundsLaunch::deltas: // only merged
      break;
    }
  }

  void allocateRing() {
    auto buffer = [&](StringRef name, SmemType type) -> Value {
      return AllocOp::create(b, type, name);
    };
    if (is(RoundsLaunch::scores)) {
      left = buffer("left", products.bufferOfRows(stages, kRows, step));
      right = buffer("right", products.bufferOfRows(stages, keyBlock, step));
      return;
    }
    // P or dS, and rows that it weighs.
    int64_t rows = ownsKeys ? step : kRows, columns = ownsKeys ? kRows : step;
    left = buffer("left", SmemType::get(stages, rows, columns, element));
    right = buffer("right", products.bufferOfRows(stages, step, column));
  }

  /// Rows of an operand, some columns of them.
  Value view(StringRef operand, int64_t columns, const Tile &tile, Scalar head,
             Scalar count, Scalar first) {
    auto type = ViewType::get(b.getContext(), columns, element,
                              request.alignmentOf(operand));
    return arguments.view(b, operand, type, tile.batch, head, count, first);
  }

  /// Likewise of P or dS of a query head, from a key of the strip on.
  Value viewOfScores(StringRef scores, int64_t columns, const Tile &tile,
                     Scalar queryHead, Scalar key) {
    RoundHead head = inRound(tile.batch, queryHead);
    Scalar count = b.ceilDiv(queries, kRows) * kRows;
    Scalar width = b.min(b.i32(strip), b.ceilDiv(keys, keyBlock) * keyBlock);
    Scalar number = head.keyHead * sharers + head.sharer;
    Scalar offset =
        b.wide(number) * b.wide(count) * b.wide(width) + b.wide(key);
    auto type = ViewType::get(b.getContext(), columns, element, kMaxAlignment);
    return ViewOp::create(b, type, arguments.get(b, scores), offset, count,
                          b.wide(width));
  }

  /// `copies` with the columns of part `number`, of `extent` each, of as many
  /// as there are.
  void cut(Scalar number, int64_t extent, int64_t whole,
           function_ref<void(int64_t columns)> copies) {
    int64_t parts = whole / extent, rest = whole % extent;
    if (parts > 0 && rest > 0) {
      b.when(number < b.i32(parts), [&] { copies(extent); });
      return b.when(number == b.i32(parts), [&] { copies(rest); });
    }
    copies(rest > 0 ? rest : extent);
  }

  void copy(Value view, Value buffer, Scalar row, Scalar slot) {
    CopyAsyncOp::create(b, view, row, buffer, slot, /*rolled=*/false);
  }

  //===--------------------------------------------------------------------===//
  // The ring
  //===--------------------------------------------------------------------===//

  /// Where a tile is in its steps: the slot of the next one, and of which one
  /// copies start next.
  struct Flow {
    Scalar slot, ahead;
    GradientStep step; ///< of a walk

    static constexpr size_t kSize = 4;
    Parts pack() const { return {slot, ahead, step.head, step.block}; }
    static Flow unpack(TileBuilder &b, ValueRange s) {
      return {b.wrap(s[0]), b.wrap(s[1]), {b.wrap(s[2]), b.wrap(s[3])}};
    }
  };

  /// All steps of a tile, and what starts the copies of one into a slot.
  struct Steps {
    Scalar count;
    Walk walk; ///< of sums
    function_ref<void(const Flow &at, Scalar slot)> copies;
  };

  Flow begin(const Steps &steps, GradientStep first) {
    Flow flow{b.i32(0), b.i32(0), first};
    for (int64_t slot = 0; slot < stages - 1; ++slot)
      flow = bring(steps, flow, b.i32(slot));
    return flow;
  }

  /// Starts the copies of a step, if there is one, and goes on to the next.
  Flow bring(const Steps &steps, const Flow &at, Scalar slot) {
    b.when(at.ahead < steps.count, [&] { steps.copies(at, slot); });
    CommitGroupOp::create(b);
    bool isWalk = !is(RoundsLaunch::scores);
    return {at.slot, at.ahead + 1,
            isWalk ? nextStep(steps.walk, at.step) : at.step};
  }

  /// Goes so many steps on; in each `multiply` adds a slot's product to sums.
  Parts take(const Steps &steps, Flow &flow, Scalar count, const Parts &sums,
             function_ref<Parts(Scalar slot, ValueRange sums)> multiply) {
    Parts state = flow.pack();
    llvm::append_range(state, sums);
    ValueRange last =
        b.loop(b.i32(0), count, state, [&](Scalar, ValueRange s) -> Parts {
          Flow at = Flow::unpack(b, s);
          Scalar zero = b.i32(0), end = b.i32(stages - 1), slot = at.slot;
          WaitGroupOp::create(b, uint32_t(stages - 2));
          BarrierOp::create(b);
          at = bring(steps, at, b.select(slot == zero, end, slot - 1));
          at.slot = b.select(slot == end, zero, slot + 1);
          Parts next = at.pack();
          llvm::append_range(next, multiply(slot, s.drop_front(Flow::kSize)));
          return next;
        });
    flow = Flow::unpack(b, last);
    return llvm::to_vector(last.drop_front(Flow::kSize));
  }

  /// sums + left times right, of a slice; both are told how far into it, and
  /// the right one of which columns.
  Parts
  add(ValueRange sums, function_ref<Products::Factor(Scalar at)> left,
      function_ref<Products::Factor(Scalar at, Scalar column, int64_t columns)>
          right) {
    SmallVector<std::optional<Products::Factor>> lefts(step / products.step);
    Parts result;
    int64_t column = 0;
    for (Value sum : sums) {
      auto type = cast<FragType>(sum.getType());
      result.push_back(products.add(sum, type, step, [&](int64_t at) {
        std::optional<Products::Factor> &own = lefts[at / products.step];
        if (!own)
          own = left(b.i32(at));
        return std::pair(*own,
                         right(b.i32(at), b.i32(column), type.getColumns()));
      }));
      column += type.getColumns();
    }
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Scores
  //===--------------------------------------------------------------------===//

  int64_t slicesOf(int64_t columns) const {
    return (columns + step - 1) / step;
  }

  void copySlice(StringRef own, StringRef streamed, int64_t columns,
                 const Tile &tile, Scalar number, Scalar slot) {
    cut(number, step, columns, [&](int64_t columns) {
      Scalar first = number * step;
      copy(view(own, columns, tile, tile.head, queries, first), left, tile.row,
           slot);
      copy(view(streamed, columns, tile, tile.head / sharers, keys, first),
           right, firstKey + tile.part * keyBlock, slot);
    });
  }

  /// Own rows times the transpose of a block's.
  Parts product(const Steps &steps, Flow &flow, int64_t columns) {
    return take(
        steps, flow, b.i32(slicesOf(columns)),
        products.noOutput(rows, keyBlock), [&](Scalar slot, ValueRange sums) {
          return add(
              sums,
              [&](Scalar at) {
                return products.queries({left, slot, warpRow, at}, rows);
              },
              [&](Scalar at, Scalar key, int64_t keys) {
                return products.keys({right, slot, key, at}, keys);
              });
        });
  }

  void workOffScores(const Tile &tile) {
    int64_t slicesOfS = slicesOf(problem.headDim);
    Scalar firstOfP = b.i32(slicesOfS);
    auto copies = [&](const Flow &at, Scalar slot) {
      b.when(at.ahead < firstOfP, [&] {
        copySlice("q", "k", problem.headDim, tile, at.ahead, slot);
      });
      b.when(firstOfP <= at.ahead, [&] {
        copySlice("do", "v", problem.headDimV, tile, at.ahead - firstOfP, slot);
      });
    };
    Steps steps{b.i32(slicesOfS + slicesOf(problem.headDimV)), {}, copies};
    Flow flow = begin(steps, {b.i32(0), b.i32(0)});

    Scalar row = tile.row + warpRow, key = firstKey + tile.part * keyBlock;
    Scalar isOpen = this->isOpen(row, rows, key);

    Parts scores = product(steps, flow, problem.headDim);
    Shift shift = shiftOfRows(tile, row, rows);
    Parts weights;
    forParts(scores, [&](Value part, Scalar column) {
      weights.push_back(weightsOf(b, *scale, part, shift, isOpen, [&](Value s) {
        return band->hide(b, s, row, key + column, queries);
      }));
    });
    leave(weights, "scratch_p", tile);
    Parts waiting = rounded(weights);
    Parts gradients = product(steps, flow, problem.headDimV);
    weights = widened(waiting);
    Value delta = statisticOf(tile, row, Statistic::delta, rows);
    Parts results;
    forParts(gradients, [&](Value part, Scalar column) {
      Value result = gradientOf(b, weights[results.size()], part, delta);
      results.push_back(clearHidden(result, *band, isOpen, row, key + column));
    });
    leave(results, "scratch_ds", tile);
  }

  void forParts(ValueRange parts,
                function_ref<void(Value part, Scalar column)> body) {
    int64_t column = 0;
    for (Value part : parts) {
      body(part, b.i32(column));
      column += cast<FragType>(part.getType()).getColumns();
    }
  }

  /// P as it waits for dP: of 16 bits in half of the registers.
  Parts rounded(const Parts &weights) {
    if (element.isF32())
      return weights;
    return llvm::map_to_vector(weights, [&](Value part) -> Value {
      int64_t columns = cast<FragType>(part.getType()).getColumns();
      return CastOp::create(b, b.lhsType(rows, columns, element), part);
    });
  }
  Parts widened(const Parts &waiting) {
    if (element.isF32())
      return waiting;
    return llvm::map_to_vector(waiting, [&](Value part) -> Value {
      int64_t columns = cast<FragType>(part.getType()).getColumns();
      return CastOp::create(b, b.accType(rows, columns), part);
    });
  }

  /// To the array of P or of dS.
  void leave(const Parts &parts, StringRef scores, const Tile &tile) {
    Value view =
        viewOfScores(scores, keyBlock, tile, tile.head, tile.part * keyBlock);
    forParts(parts, [&](Value part, Scalar column) {
      StoreFragmentOp::create(b, part, view, tile.row + warpRow, column);
    });
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  /// A gradient of keys: what it is summed up from, and its columns.
  struct KeyGradient {
    StringRef scores, rows, gradient;
    bool isOfValues;
  };
  static constexpr KeyGradient kOfValues = {"scratch_p", "do", "dv", true},
                               kOfKeys = {"scratch_ds", "q", "dk", false};

  /// sums + left times right over all steps.
  Parts addSteps(const Steps &steps, const Parts &sums) {
    Flow flow = begin(steps, firstStep(steps.walk));
    return take(
        steps, flow, steps.count, sums, [&](Scalar slot, ValueRange sums) {
          return add(
              sums,
              [&](Scalar at) {
                return ownsKeys
                           ? products.weights({left, slot, at, warpRow}, rows,
                                              /*transpose=*/true)
                           : products.weights({left, slot, warpRow, at}, rows);
              },
              [&](Scalar at, Scalar column, int64_t columns) {
                return products.values({right, slot, at, column}, columns);
              });
        });
  }

  /// Starts copying a step's rows of a right factor, the tile's columns.
  void copyColumns(StringRef operand, int64_t columns, const Tile &tile,
                   Scalar head, Scalar count, Scalar row, Scalar slot) {
    Scalar first = columnOf(tile);
    cut(first / column, column, columns, [&](int64_t columns) {
      copy(view(operand, columns, tile, head, count, first), right, row, slot);
    });
  }

  void workOffKeySums(const Tile &tile, const KeyGradient &of) {
    int64_t columns = of.isOfValues ? problem.headDimV : problem.headDim;
    Walk walk = walkInRound(tile);
    auto copies = [&](const Flow &at, Scalar slot) {
      Scalar head = at.step.head, query = at.step.block * step;
      copy(viewOfScores(of.scores, kRows, tile, head, tile.row - firstKey),
           left, query, slot);
      copyColumns(of.rows, columns, tile, head, queries, query, slot);
    };
    Parts sums =
        addSteps({walk.steps, walk, copies}, products.noOutput(rows, column));
    Scalar factor = of.isOfValues ? b.f32(1) : arguments.get(b, "scale");
    store(sums, factor, of.gradient, columns, tile, keys);
  }

  void workOffQuerySums(const Tile &tile) {
    Walk walk = walkInRound(tile);
    Turn turn = turnOf(tile);
    int64_t warpsOfStrip = kStripRows / rows;
    Value waiting = arguments.get(b, "scratch_dq");
    Scalar place = placeOf(tile, tile.row + warpRow, b.warpId() % warpsOfStrip,
                           warpsOfStrip);
    Scalar goesOn = b.i32(0) < walk.steps;
    Parts none = products.noOutput(rows, column);
    Parts sums = llvm::to_vector(b.choose(
        (turn.isFirst == b.boolean(false)) & goesOn,
        [&]() -> SmallVector<Value> {
          auto load = LoadRegistersOp::create(
              b, llvm::to_vector(ValueRange(none).getTypes()), waiting, place);
          return llvm::to_vector(ValueRange(load.getResults()));
        },
        [&]() -> SmallVector<Value> { return none; }));
    auto copies = [&](const Flow &at, Scalar slot) {
      Scalar key = at.step.block * step;
      copy(viewOfScores("scratch_ds", step, tile, tile.head, key - firstKey),
           left, tile.row, slot);
      copyColumns("k", problem.headDim, tile, tile.head / sharers, keys, key,
                  slot);
    };
    sums = addSteps({walk.steps, walk, copies}, sums);
    b.when((turn.isLast == b.boolean(false)) & goesOn,
           [&] { StoreRegistersOp::create(b, sums, waiting, place); });
    b.when(turn.isLast, [&] {
      store(sums, arguments.get(b, "scale"), "dq", problem.headDim, tile,
            queries);
    });
  }

  /// Scaled, to the tile's columns of a gradient.
  void store(const Parts &sums, Scalar factor, StringRef gradient,
             int64_t columns, const Tile &tile, Scalar count) {
    Value target = view(gradient, columns, tile, tile.head, count, Scalar());
    Scalar first = columnOf(tile);
    forParts(sums, [&](Value part, Scalar column) {
      StoreFragmentOp::create(b, scaleRows(b, part, factor), target,
                              tile.row + warpRow, first + column);
    });
  }

  const int64_t warps, rows;
  Products products;
  std::optional<ScoreScale> scale;
  Scalar warpRow;
};

} // namespace

namespace attn {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
KernelOp spill_backward_mma_sync(OpBuilder &builder, Location loc,
                                 const KernelRequest &request);
} // namespace attn

KernelOp attn::spill_backward_mma_sync(OpBuilder &builder, Location loc,
                                       const KernelRequest &request) {
  return buildBehindStatistics<SpillBackward>(builder, loc, request);
}
