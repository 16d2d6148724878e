//===- TransposedBlocks.cpp - Lists of blocks, by keys --------------------===//

#include "Listing/ListingFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

KernelOp ListingFrame::transposed() {
  declareLists({0, 1, 2, 3});
  KernelOp kernel = begin();
  forWarp(keys, [&](Scalar column) {
    transpose(column, 0, 2);
    transpose(column, 1, 3);
  });
  ReturnOp::create(b);
  return kernel;
}

/// The rows in whose list a column is, one behind the other.
void ListingFrame::transpose(Scalar column, int from, int to) {
  Scalar begin = place(blocks(to), column);
  ValueRange found = b.loop(
      b.i32(0), b.ceilDiv(queries, kWarpRows), {b.i32(0)},
      [&](Scalar strip, ValueRange carried) -> SmallVector<Value> {
        Scalar row = strip * kWarpRows, count = b.wrap(carried[0]);
        Value ofRows = hits(countsOfRows(row, from), row, column, from);
        for (int64_t n = 0; n < kWarpRows; ++n) {
          Value one = b.map(ofRows, ofRows.getType(),
                            [&](Scalar r, Scalar, ArrayRef<Scalar> x) -> Value {
                              return b.select(r == b.i32(n), x[0], b.f32(0));
                            });
          Scalar isIn = any(one);
          b.when(isIn,
                 [&] { store(row + n, blocks(to), begin + b.wide(count)); });
          count = b.select(isIn, count + 1, count);
        }
        return {count};
      });
  store(b.wrap(found[0]), counts(to), place(counts(to), column));
}

/// How many numbers the lists of some rows have; behind the last row none.
Value ListingFrame::countsOfRows(Scalar row, int list) {
  Scalar begin = place(counts(list), row),
         stride = arguments.get(b, counts(list).at(Facet::strideRow));
  return b.map({}, b.indexRowType(kWarpRows),
               [&](Scalar r, Scalar, ArrayRef<Scalar>) -> Value {
                 return tile::ReadOp::create(
                     b, b.getI32Type(), arguments.get(b, counts(list)), begin,
                     b.wide(r) * stride, row + r < queries);
               });
}

/// How often lists of these rows have a column.
Value ListingFrame::hits(Value counts, Scalar row, Scalar column, int list) {
  Scalar begin = place(blocks(list), row),
         stride = arguments.get(b, blocks(list).at(Facet::strideRow));
  Value none = b.fill(b.f32(0), b.rowType(kWarpRows, /*partial=*/true));
  ValueRange found = b.repeat(
      {b.i32(0), none},
      [&](ValueRange carried) -> Scalar {
        return any(isAbove(counts, b.wrap(carried[0])));
      },
      [&](ValueRange carried) -> SmallVector<Value> {
        Scalar first = b.wrap(carried[0]);
        Value isColumn = b.map(
            counts, b.accType(kWarpRows, kAskedKeys),
            [&](Scalar r, Scalar c, ArrayRef<Scalar> x) -> Value {
              Scalar number = first + c, isThere = number < x[0];
              Scalar block = b.wrap(tile::ReadOp::create(
                  b, b.getI32Type(), arguments.get(b, blocks(list)), begin,
                  b.wide(r) * stride + b.wide(number), isThere));
              return b.select(isThere & (block == column), b.f32(1), b.f32(0));
            });
        return {first + kAskedKeys, b.rowSum(isColumn, carried[1])};
      });
  return RowCombineOp::create(b, b.rowType(kWarpRows), /*max=*/false, found[1]);
}
