//===- score_spill_mma_sync.cpp - Two products, P between (sm_80 and up) --===//
//
// For heads so wide that a block keeps neither rows of Q nor of O.  A block
// works off tiles of `query` rows, one after the other, and of each the keys in
// strips:
//
//   A   S of a block of keys, from slices of Q and K; softmax; P to the scratch
//       with the maximum that it was computed with
//   B   for every tile of `column` columns: O of the strip, P from the scratch,
//       V in pieces of `slice` keys
//
// Between strips O waits in the scratch too, as the accumulators it is in.  Who
// reads P or O has written it, lane by lane (tile.store_registers): there is
// nothing to wait for, and no other block looks at it.
//
// Maxima are whole powers of two (GroupSoftmax.h).  So P is brought to the
// maximum that holds at the end of the strip, and O from that of the strip
// before, by factors that are exact.
//
// What passes through shared memory comes in *units*, in order of use: slices
// of Q and K, then pieces of V, for all strips of a tile.  Copies run
// `stages - 1` units ahead of the products; a cursor says where they are.
// Slices and pieces have `stages` slots each, and unit n of a tile takes slot n
// modulo `stages` of its kind.  There is one barrier a unit: behind it nobody
// reads the unit before, whose slot of either kind is free.
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"
#include "GroupSoftmax.h"
#include "MmaSyncFrame.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// The next unit to copy.  In phase A `column` is -1 and `unit` a slice of
/// `block`; in phase B they are a tile of columns and a piece, counted from key
/// 0 on.  The strip has the blocks `first .. end - 1`; none is left when it is
/// empty.
struct Cursor {
  Scalar first, end, block, unit, column;

  static constexpr size_t kSize = 5;
  SmallVector<Value> pack() const { return {first, end, block, unit, column}; }
};

class ScoreSpill : MmaSyncFrame {
public:
  ScoreSpill(TileBuilder &b, const KernelRequest &request)
      : MmaSyncFrame(b, request),
        slice(std::min(request.tiles.get("slice"), problem.headDim)),
        piece(request.tiles.get("slice")),
        slices(llvm::divideCeil(problem.headDim, slice)), pieces(key / piece),
        column(std::min(request.tiles.get("column"), problem.headDimV)),
        columns(llvm::alignTo(column, kStep)),
        columnTiles(llvm::divideCeil(problem.headDimV, column)),
        blocksOfStrip(request.tiles.get("strip") / key), rows(query / warps),
        imageType(b.lhsType(rows, piece, element)),
        outputType(b.accType(rows, columns)) {}

  KernelOp build() {
    KernelOp kernel = declare();
    allocate();
    queries = arguments.get(b, "queries");
    keys = arguments.get(b, "keys");
    softmax.emplace(b, arguments.get(b, "scale"), request.scale, problem.dtype);
    band.emplace(b, arguments, problem.mask.kind);
    warp = b.warpId();
    warpRow = warp * rows;
    block = b.programId(0);
    TileOrder order(b, arguments, problem, query,
                    request.sms * request.minBlocksPerSm, request.l2Bytes);
    Scalar blocks = b.gridSize(0), zero = b.i32(0);
    // Tiles get shorter under a mask; forth and back deals them out evenly.
    b.loop(zero, (order.count + blocks - 1) / blocks, {},
           [&](Scalar round, ValueRange) -> SmallVector<Value> {
             Scalar place =
                 b.select(round % 2 == zero, block, blocks - 1 - block);
             Tile tile = order.at(b, round * blocks + place);
             b.when(zero <= tile.row, [&] { workOff(tile); });
             return {};
           });
    ReturnOp::create(b);
    return kernel;
  }

private:
  KernelOp declare() {
    declareArguments();
    Type i32 = b.getI32Type();
    for (StringRef size : {"heads", "batch"})
      arguments.scalar(size, i32);
    constexpr int64_t word = 4;
    int64_t strip = key * blocksOfStrip;
    arguments.perBlock(kScratchRole, i32,
                       query * strip * bytesOf(problem.dtype) / word);
    arguments.perBlock(kMaxima, i32, query * kLanesOfRow * blocksOfStrip);
    arguments.perBlock(kOutput, i32, query * columns * columnTiles);
    return arguments.createKernel(b, request, warps);
  }

  void allocate() {
    auto buffer = [&](StringRef name, int64_t rows, int64_t columns) -> Value {
      return AllocOp::create(b, SmemType::get(stages, rows, columns, element),
                             name);
    };
    int64_t depth = llvm::alignTo(slice, kStep);
    bufferQ = buffer("query", query, depth);
    bufferK = buffer("key", key, depth);
    bufferV = buffer("value", piece, columns);
  }

  //===--------------------------------------------------------------------===//
  // A tile
  //===--------------------------------------------------------------------===//

  void workOff(const Tile &tile) {
    firstRow = tile.row;
    head = tile.head;
    batch = tile.batch;
    keyHead = head / arguments.get(b, "group");
    blocks.emplace(b, *band, firstRow, b.min(firstRow + query, queries) - 1,
                   key);
    end = blocks->begin + blocks->steps;
    allPieces = b.ceilDiv(keys, piece);

    Scalar zero = b.i32(0), one = b.i32(1);
    Scalar firstStrip = blocks->begin / blocksOfStrip;
    Cursor cursor{blocks->begin, b.min(end, (firstStrip + 1) * blocksOfStrip),
                  blocks->begin, zero, b.i32(-1)};
    for (int64_t i = 0; i < stages - 1; ++i)
      cursor = bring(cursor, b.i32(i));
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
      GroupSoftmax::End final =
          softmax->finish(b, {ended[kState], ended[kState + 1]});
      storeLse(b, arguments, final.lse, tile, queries, firstRow + warpRow);
    }
    // The next tile's first units take slots that others may still read.
    WaitGroupOp::create(b, 0u);
    BarrierOp::create(b);
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
  // Copies
  //===--------------------------------------------------------------------===//

  /// What units carry through loops: the slot of the next one, and the cursor.
  static constexpr size_t kState = 1 + Cursor::kSize;
  static SmallVector<Value> pack(Scalar slot, const Cursor &cursor) {
    SmallVector<Value> state = {slot};
    llvm::append_range(state, cursor.pack());
    return state;
  }

  /// Starts the copies of a unit, if there is one, and goes on to the next.
  Cursor bring(const Cursor &at, Scalar slot) {
    Scalar zero = b.i32(0);
    Scalar exists = at.first < at.end, isScores = at.column < zero;
    b.when(exists & isScores, [&] { bringSlice(at, slot); });
    b.when(exists & (zero <= at.column), [&] { bringPiece(at, slot); });
    CommitGroupOp::create(b);

    // Behind a block's last slice comes the next block, or the first tile of
    // columns; behind a tile's last piece the next tile, or the next strip.
    Scalar next = at.unit + 1, nextBlock = at.block + 1;
    Scalar count =
        b.select(isScores, b.i32(slices), b.min(at.end * pieces, allPieces));
    Scalar isThrough = count <= next;
    Scalar isLastTile = at.column == b.i32(columnTiles - 1);
    Scalar toScores = b.select(isScores, nextBlock < at.end, isLastTile);
    Scalar toStrip = isThrough & isLastTile;
    Cursor to;
    to.first = b.select(toStrip, at.end, at.first);
    to.end = b.select(toStrip, b.min(end, at.end + blocksOfStrip), at.end);
    to.block = b.select(isThrough & isScores, nextBlock, at.block);
    to.unit =
        b.select(isThrough, b.select(toScores, zero, at.first * pieces), next);
    to.column = b.select(
        isThrough, b.select(toScores, b.i32(-1), at.column + 1), at.column);
    return to;
  }

  /// The last slice may have fewer columns.
  void bringSlice(const Cursor &at, Scalar slot) {
    cut(at.unit, slices, slice, problem.headDim, [&](int64_t columns) {
      Scalar column = at.unit * slice;
      Value q =
          view("q", columns, request.alignmentOf("q"), head, queries, column);
      CopyAsyncOp::create(b, q, firstRow, bufferQ, slot);
      Value k =
          view("k", columns, request.alignmentOf("k"), keyHead, keys, column);
      CopyAsyncOp::create(b, k, at.block * key, bufferK, slot);
    });
  }

  /// The last tile of columns too.
  void bringPiece(const Cursor &at, Scalar slot) {
    cut(at.column, columnTiles, column, problem.headDimV, [&](int64_t columns) {
      Value v = view("v", columns, request.alignmentOf("v"), keyHead, keys,
                     at.column * column);
      CopyAsyncOp::create(b, v, at.unit * piece, bufferV, slot);
    });
  }

  /// `copies` with the columns of part `number` out of `parts`.
  void cut(Scalar number, int64_t parts, int64_t extent, int64_t whole,
           function_ref<void(int64_t columns)> copies) {
    int64_t rest = whole % extent;
    if (rest == 0)
      return copies(extent);
    b.when(number == b.i32(parts - 1), [&] { copies(rest); });
    if (parts > 1)
      b.when(number < b.i32(parts - 1), [&] { copies(extent); });
  }

  /// Waits for the next unit and starts the copies of another.  Gives its slot.
  Scalar await(SmallVectorImpl<Value> &state) {
    Scalar slot = b.wrap(state[0]);
    Cursor cursor{b.wrap(state[1]), b.wrap(state[2]), b.wrap(state[3]),
                  b.wrap(state[4]), b.wrap(state[5])};
    WaitGroupOp::create(b, uint32_t(stages - 2));
    BarrierOp::create(b);
    Scalar zero = b.i32(0);
    Scalar before = b.select(slot == zero, b.i32(stages - 1), slot - 1);
    cursor = bring(cursor, before);
    Scalar next = b.select(slot == b.i32(stages - 1), zero, slot + 1);
    state.assign(pack(next, cursor));
    return slot;
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
    SmallVector<Value> state = llvm::to_vector(carried.take_front(kState));
    state.push_back(b.fill(b.f32(0), b.accType(rows, key)));
    ValueRange summed = b.loop(b.i32(0), b.i32(slices), state,
                               [&](Scalar, ValueRange s) -> SmallVector<Value> {
                                 SmallVector<Value> units =
                                     llvm::to_vector(s.take_front(kState));
                                 Scalar slot = await(units);
                                 units.push_back(addQK(s[kState], slot));
                                 return units;
                               });
    Value scores = softmax->orient(b, summed[kState]);
    scores = b.choose(
        blocks->isOpen(b, block),
        [&]() -> SmallVector<Value> { return {scores}; },
        [&]() -> SmallVector<Value> {
          return {blocks->hide(b, scores, firstRow + warpRow, block)};
        })[0];
    GroupSoftmax::Rows row =
        softmax->raise(b, {carried[kState], carried[kState + 1]}, scores);
    Value weights = softmax->weigh(b, row, scores);
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
    SmallVector<Value> results = llvm::to_vector(summed.take_front(kState));
    results.append({row.max, row.sum});
    return results;
  }

  Value addQK(Value sum, Scalar slot) {
    auto type = cast<FragType>(sum.getType());
    int64_t depth = cast<SmemType>(bufferQ.getType()).getColumns();
    return products.add(sum, type, depth, [&](int64_t offset) {
      Scalar column = b.i32(offset);
      auto lhs = products.queries({bufferQ, slot, warpRow, column}, rows);
      auto rhs = products.keys({bufferK, slot, b.i32(0), column}, key);
      return std::pair(lhs, rhs);
    });
  }

  /// B: a tile of columns of O, from this strip and those before.
  SmallVector<Value> output(const Strip &strip, Scalar column,
                            ValueRange carried) {
    SmallVector<Value> state = llvm::to_vector(carried);
    state.push_back(b.choose(
        strip.hasBefore, [&] { return takeUp(strip, column); },
        [&]() -> SmallVector<Value> {
          return {b.fill(b.f32(0), outputType)};
        })[0]);
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
                       units.append({addPV(s[kState], slot, weights), next[0]});
                       return units;
                     }));
        });
    Value sums = summed[kState];
    SmallVector<Value> results = llvm::to_vector(summed.take_front(kState));
    b.when(strip.isLast, [&] {
      // Worked out where it is needed, or it would stay in registers.
      Value inverse = softmax->finish(b, strip.rows).inverse;
      Value scaled = scaleRows(b, sums, inverse);
      Value o =
          view("o", problem.headDimV, request.alignmentOf("o"), head, queries);
      StoreFragmentOp::create(b, scaled, o, firstRow + warpRow,
                              column * this->column);
    });
    b.when(strip.hasNext, [&] {
      StoreRegistersOp::create(b, ValueRange(sums), arguments.get(b, kOutput),
                               placeOfOutput(column));
    });
    return results;
  }

  Value addPV(Value sum, Scalar slot, Value weights) {
    auto type = cast<FragType>(sum.getType());
    Products::Factor factor{weights, Value()};
    return products.add(sum, type, piece, [&](int64_t row) {
      auto lhs = products.weightsAt(factor, row);
      auto rhs =
          products.values({bufferV, slot, b.i32(row), b.i32(0)}, columns);
      return std::pair(lhs, rhs);
    });
  }

  //===--------------------------------------------------------------------===//
  // Places in the scratch
  //===--------------------------------------------------------------------===//

  /// Lanes that have a value of a row.
  static constexpr int64_t kLanesOfRow = 4;
  static constexpr StringLiteral kMaxima = "scratch_maxima",
                                 kOutput = "scratch_output";

  /// The warp's of image `number` of as many as the block has.
  Scalar placeOf(Scalar number, int64_t count) {
    return (block * count + number) * warps + warp;
  }
  Scalar placeOfPiece(Scalar number) {
    return placeOf(number, blocksOfStrip * pieces);
  }
  Scalar placeOfMaxima(Scalar number) { return placeOf(number, blocksOfStrip); }
  Scalar placeOfOutput(Scalar column) { return placeOf(column, columnTiles); }

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
    Value alpha = b.map(strip.exponents, strip.exponents.getType(),
                        [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                          return b.exp2(x[0]);
                        });
    return {
        scaleRows(b, load(kOutput, placeOfOutput(column), outputType), alpha)};
  }

  int64_t slice;           ///< columns of a slice of Q and K
  int64_t piece;           ///< keys of a piece of V
  int64_t slices;          ///< of a head
  int64_t pieces;          ///< of a block of keys
  int64_t column, columns; ///< of a tile of O: in memory, and in registers
  int64_t columnTiles, blocksOfStrip;
  int64_t rows; ///< of a warp
  FragType imageType, outputType;

  std::optional<GroupSoftmax> softmax;
  std::optional<KeyBand> band;
  Scalar warp, warpRow, block;
  Scalar end, allPieces, lastStrip; ///< of the tile
  Value bufferQ, bufferK, bufferV;
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
