//===- StripFrame.cpp - Strips of keys on mma.sync, O in places -----------===//

#include "MmaSync/StripFrame.h"

#include "Softmax/Softmax.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

StripFrame::StripFrame(TileBuilder &b, const KernelRequest &request,
                       int64_t piece, int64_t blocksOfStrip)
    : MmaSyncFrame(b, request),
      slice(std::min(request.tiles.get("slice"), problem.headDim)),
      piece(piece), slices(llvm::divideCeil(problem.headDim, slice)),
      pieces(key / piece),
      column(std::min(request.tiles.get("column"), problem.headDimV)),
      columns(llvm::alignTo(column, kStep)),
      columnTiles(llvm::divideCeil(problem.headDimV, column)),
      blocksOfStrip(blocksOfStrip), rows(query / warps) {}

void StripFrame::declareArguments() {
  MmaSyncFrame::declareArguments();
  arguments.pointer(kCounterRole, b.getI32Type());
}

KernelOp StripFrame::declare() {
  arguments.perBlock(kOutput, b.getI32Type(), query * columns * columnTiles,
                     /*beyondKeys=*/key * blocksOfStrip);
  KernelOp kernel = arguments.createKernel(b, request, warps);
  allocate();
  return kernel;
}

void StripFrame::allocate() {
  auto buffer = [&](StringRef name, int64_t rows, int64_t columns) -> Value {
    return AllocOp::create(b, products.bufferOfRows(stages, rows, columns),
                           name);
  };
  int64_t depth = llvm::alignTo(slice, kStep);
  bufferQ = buffer("query", query, depth);
  bufferK = buffer("key", key, depth);
  bufferV = buffer("value", piece, columns);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void StripFrame::forEachTile(function_ref<void(const Tile &)> workOff) {
  queries = arguments.get(b, "queries");
  keys = arguments.get(b, "keys");
  band.emplace(b, arguments, problem.mask);
  warp = b.warpId();
  warpRow = warp * rows;
  block = b.programId(0);
  TileOrder order(b, arguments, problem, query,
                  request.sms * request.minBlocksPerSm, request.l2Bytes);
  // Behind the last unit of scores nobody reads slices of Q any more.
  order.forEachTile(b, arguments, bufferQ, [&](const Tile &tile) {
    workOff(tile);
    WaitGroupOp::create(b, 0u);
  });
}

StripFrame::Cursor StripFrame::enter(const Tile &tile) {
  firstRow = tile.row;
  head = tile.head;
  batch = tile.batch;
  keyHead = head / arguments.get(b, "group");
  blocks.emplace(b, *band, firstRow, b.min(firstRow + query, queries) - 1, key);
  end = blocks->begin + blocks->steps;
  allPieces = b.ceilDiv(keys, piece);

  firstStrip = blocks->begin / blocksOfStrip;
  Cursor cursor{blocks->begin, b.min(end, (firstStrip + 1) * blocksOfStrip),
                blocks->begin, b.i32(0), b.i32(-1)};
  for (int64_t i = 0; i < stages - 1; ++i)
    cursor = bring(cursor, b.i32(i));
  return cursor;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

SmallVector<Value> StripFrame::pack(Scalar slot, const Cursor &cursor) {
  SmallVector<Value> state = {slot};
  llvm::append_range(state, cursor.pack());
  return state;
}

/// Starts the copies of a unit, if there is one, and goes on to the next.
StripFrame::Cursor StripFrame::bring(const Cursor &at, Scalar slot) {
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
  to.column = b.select(isThrough, b.select(toScores, b.i32(-1), at.column + 1),
                       at.column);
  return to;
}

/// The last slice may have fewer columns.
void StripFrame::bringSlice(const Cursor &at, Scalar slot) {
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
void StripFrame::bringPiece(const Cursor &at, Scalar slot) {
  cut(at.column, columnTiles, column, problem.headDimV, [&](int64_t columns) {
    Value v = view("v", columns, request.alignmentOf("v"), keyHead, keys,
                   at.column * column);
    CopyAsyncOp::create(b, v, at.unit * piece, bufferV, slot);
  });
}

/// `copies` with the columns of part `number` out of `parts`.
void StripFrame::cut(Scalar number, int64_t parts, int64_t extent,
                     int64_t whole,
                     function_ref<void(int64_t columns)> copies) {
  int64_t rest = whole % extent;
  if (rest == 0)
    return copies(extent);
  b.when(number == b.i32(parts - 1), [&] { copies(rest); });
  if (parts > 1)
    b.when(number < b.i32(parts - 1), [&] { copies(extent); });
}

Scalar StripFrame::await(SmallVectorImpl<Value> &units) {
  Scalar slot = b.wrap(units[0]);
  Cursor cursor{b.wrap(units[1]), b.wrap(units[2]), b.wrap(units[3]),
                b.wrap(units[4]), b.wrap(units[5])};
  Scalar zero = b.i32(0);
  if (stages == 1) {
    BarrierOp::create(b);
    cursor = bring(cursor, zero);
    WaitGroupOp::create(b, 0u);
    BarrierOp::create(b);
    units.assign(pack(zero, cursor));
    return zero;
  }
  WaitGroupOp::create(b, uint32_t(stages - 2));
  BarrierOp::create(b);
  Scalar before = b.select(slot == zero, b.i32(stages - 1), slot - 1);
  cursor = bring(cursor, before);
  Scalar next = b.select(slot == b.i32(stages - 1), zero, slot + 1);
  units.assign(pack(next, cursor));
  return slot;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value StripFrame::multiplyQK(SmallVectorImpl<Value> &units) {
  SmallVector<Value> state = llvm::to_vector(units);
  state.push_back(b.fill(b.f32(0), b.accType(rows, key)));
  ValueRange summed = b.loop(b.i32(0), b.i32(slices), state,
                             [&](Scalar, ValueRange s) -> SmallVector<Value> {
                               SmallVector<Value> next =
                                   llvm::to_vector(s.take_front(kState));
                               Scalar slot = await(next);
                               next.push_back(addQK(s[kState], slot));
                               return next;
                             });
  units.assign(summed.begin(), summed.begin() + kState);
  return summed[kState];
}

Value StripFrame::addQK(Value sum, Scalar slot) {
  auto type = cast<FragType>(sum.getType());
  int64_t depth = cast<SmemType>(bufferQ.getType()).getColumns();
  return products.add(sum, type, depth, [&](int64_t offset) {
    Scalar column = b.i32(offset);
    auto lhs = products.queries({bufferQ, slot, warpRow, column}, rows);
    auto rhs = products.keys({bufferK, slot, b.i32(0), column}, key);
    return std::pair(lhs, rhs);
  });
}

Value StripFrame::hide(Value scores, Scalar block) {
  return b.choose(
      blocks->isOpen(b, block),
      [&]() -> SmallVector<Value> { return {scores}; },
      [&]() -> SmallVector<Value> {
        return {blocks->hide(b, scores, firstRow + warpRow, block)};
      })[0];
}

SmallVector<Value> StripFrame::addPV(ValueRange sums, Scalar slot,
                                     const Products::Factor &weights,
                                     int64_t at) {
  SmallVector<Value> results;
  int64_t column = 0;
  for (Value sum : sums) {
    auto type = cast<FragType>(sum.getType());
    results.push_back(products.add(sum, type, piece, [&](int64_t row) {
      auto lhs = products.weightsAt(weights, at + row);
      auto rhs = products.values({bufferV, slot, b.i32(row), b.i32(column)},
                                 type.getColumns());
      return std::pair(lhs, rhs);
    }));
    column += type.getColumns();
  }
  return results;
}

//===----------------------------------------------------------------------===//
// O
//===----------------------------------------------------------------------===//

Scalar StripFrame::placeOf(Scalar number, int64_t count) {
  return (block * count + number) * warps + warp;
}

void StripFrame::spillOutput(ValueRange sums, Scalar column) {
  StoreRegistersOp::create(b, sums, arguments.get(b, kOutput),
                           placeOf(column, columnTiles));
}

SmallVector<Value> StripFrame::absorbOutput(Scalar column) {
  SmallVector<Type> types;
  for (int64_t part : products.parts(columns))
    types.push_back(b.accType(rows, part));
  auto load = LoadRegistersOp::create(b, types, arguments.get(b, kOutput),
                                      placeOf(column, columnTiles));
  return llvm::to_vector_of<Value>(load.getResults());
}

void StripFrame::storeOutput(ValueRange sums, Value factors, Scalar column) {
  SmallVector<Value> scaled;
  for (Value sum : sums)
    scaled.push_back(average(b, sum, factors, element));
  Value o =
      view("o", problem.headDimV, request.alignmentOf("o"), head, queries);
  Scalar row = firstRow + warpRow, first = column * this->column;
  int64_t part = 0;
  for (Value sum : scaled) {
    StoreFragmentOp::create(b, sum, o, row, part ? first + part : first);
    part += cast<FragType>(sum.getType()).getColumns();
  }
}
