//===- Epilogue.cpp - From accumulators to global memory ------------------===//

#include "Pipe/Epilogue.h"

#include "Walk/TileBlocks.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void attn::storeOutput(TileBuilder &b, ValueRange parts, Value inverse,
                       Value staging, Value view, Scalar warpRow, Scalar row) {
  int64_t rows = cast<FragType>(parts[0].getType()).getRows(), column = 0;
  Type element = cast<SmemType>(staging.getType()).getElementType();
  for (Value part : parts) {
    Value output = average(b, part, inverse, element);
    Value at = column ? Value(b.i32(column)) : Value();
    StoreMatrixOp::create(b, output, staging, warpRow, at);
    column += cast<FragType>(part.getType()).getColumns();
  }
  CopyOutOp::create(b, staging, warpRow, view, row, uint32_t(rows));
}

/// Where a row of the tile is staged.
static Scalar stagedRow(const Strips &strips, Scalar row) {
  return Value(strips.firstStaged) ? strips.firstStaged + row : row;
}

/// Starts storing a warpgroup's rows of a strip.
static void storeStrip(TileBuilder &b, const Strips &strips, const Tile &tile,
                       Value staging, Scalar column) {
  if (!strips.ofHeads) {
    Corner corner =
        Corner::ofQueries(b, strips.map, tile, tile.row + strips.groupRow);
    TmaStoreOp::create(b, staging, stagedRow(strips, strips.groupRow),
                       strips.map, corner.batch, tile.head, corner.row, column);
    return;
  }
  // Of every head, a box.
  int64_t rows = cast<TensorMapType>(strips.map.getType()).getBoxRows();
  for (int64_t first = 0; first < kGroupRows; first += rows) {
    Scalar row = strips.groupRow + first;
    RowsOfHeads::Place at = strips.ofHeads->of(b, tile, strips.queries, row);
    Corner corner = Corner::ofQueries(b, strips.map, tile, tile.row + at.query);
    TmaStoreOp::create(b, staging, stagedRow(strips, row), strips.map,
                       corner.batch, tile.head + at.head, corner.row, column);
  }
}

void attn::storeOutputAsync(TileBuilder &b, Value output, const Strips &strips,
                            const Tile &tile) {
  auto type = cast<FragType>(output.getType());
  int64_t width = cast<SmemType>(strips.staging[0].getType()).getColumns();
  int64_t count = llvm::divideCeil(type.getColumns(), width);
  int64_t buffers = strips.staging.size();
  for (int64_t i = 0; i < count; ++i) {
    int64_t column = i * width;
    int64_t columns = std::min(width, type.getColumns() - column);
    Value staging = strips.staging[i % buffers];
    // Younger than the store from this buffer are those from the others, but
    // the turns begin anew with a tile.
    bool goesOn = i >= buffers || count % buffers == 0;
    TmaStoreWaitOp::create(b, uint32_t(goesOn ? buffers - 1 : 0));
    BarSyncOp::create(b, strips.barrier, uint32_t(kWarpsPerGroup));
    Value strip = output;
    if (columns != type.getColumns())
      strip = ExtractOp::create(b, b.accType(type.getRows(), columns), output,
                                uint64_t(column));
    StoreMatrixOp::create(b, strip, staging, stagedRow(strips, strips.warpRow));
    FenceAsyncOp::create(b);
    BarSyncOp::create(b, strips.barrier, uint32_t(kWarpsPerGroup));
    b.when(strips.leads, [&] {
      storeStrip(b, strips, tile, staging,
                 Value(strips.column) ? strips.column + column : b.i32(column));
    });
  }
}

void attn::storeLse(TileBuilder &b, const Arguments &arguments,
                    const LogSumExp &lse, const Tile &tile, Scalar queries,
                    Scalar row) {
  auto store = [&](Value words, StringRef role) {
    if (words)
      StoreRowOp::create(
          b, words,
          arguments.vector(b, role, tile.batch, tile.head,
                           tile.isOfSequence() ? tile.queries : queries,
                           tile.firstQuery),
          row);
  };
  store(lse.high, "lse");
  store(lse.low, "lse_low");
}
