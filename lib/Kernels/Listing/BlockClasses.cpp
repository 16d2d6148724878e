//===- BlockClasses.cpp - Which blocks a region hides, cuts and opens -----===//

#include "Listing/ListingFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static Value either(TileBuilder &b, Value x, Value y) {
  return b.createOrFold<arith::OrIOp>(x, y);
}

KernelOp ListingFrame::classes() {
  RegionCode::declare(arguments, b, {request.sees});
  arguments.operand(Role::blockClasses, b.getI32Type());
  KernelOp kernel = begin();
  RegionCode code(arguments, *request.sees);
  Scalar rows = b.ceilDiv(queries, request.size.queries),
         words = b.ceilDiv(keys, request.size.keys * kBlocksOfWord);
  forWarp(rows * words, [&](Scalar number) {
    Scalar row = number / words, word = number - row * words;
    Scalar first = word * kBlocksOfWord, zero = b.i32(0);
    // Two bits for each block; the place of those of the next one.
    ValueRange bits =
        b.loop(zero, b.i32(kBlocksOfWord), {zero, b.i32(1)},
               [&](Scalar n, ValueRange carried) -> SmallVector<Value> {
                 Scalar key = (first + n) * request.size.keys;
                 Scalar found = b.wrap(b.choose(
                     key < keys,
                     [&]() -> SmallVector<Value> {
                       return {classOf(code, row * request.size.queries, key)};
                     },
                     [&]() -> SmallVector<Value> { return {zero}; })[0]);
                 Scalar place = b.wrap(carried[1]);
                 return {b.wrap(carried[0]) + found * place, place * 4};
               });
    store(b.wrap(bits[0]), Role::blockClasses,
          place(Role::blockClasses, row) + b.wide(word));
  });
  ReturnOp::create(b);
  return kernel;
}

/// Of the block with its first query and key there.
Scalar ListingFrame::classOf(const RegionCode &code, Scalar row, Scalar key) {
  auto pieces = [&](Scalar begin, Scalar end, int64_t most, int64_t step) {
    return b.ceilDiv(b.min(end - begin, b.i32(most)), step);
  };
  Scalar across = pieces(key, keys, request.size.keys, kAskedKeys);
  Scalar steps = pieces(row, queries, request.size.queries, kWarpRows) * across;
  Scalar no = b.boolean(false), yes = b.boolean(true);
  ValueRange met = b.repeat(
      {b.i32(0), no, no},
      [&](ValueRange carried) -> Scalar {
        Scalar isCut = b.wrap(carried[1]) & b.wrap(carried[2]);
        return (b.wrap(carried[0]) < steps) & (isCut ^ yes);
      },
      [&](ValueRange carried) -> SmallVector<Value> {
        Scalar step = b.wrap(carried[0]), down = step / across;
        Scalar firstRow = row + down * kWarpRows,
               firstKey = key + (step - down * across) * kAskedKeys;
        RegionCode::Rows rows =
            code.ofRows(b, {batch, head, firstRow, kWarpRows});
        Value shown = code.shown(b, rows, firstKey, kAskedKeys, Pairs::inRange);
        // What is behind the end is neither seen nor missed.
        auto inRows = [&](llvm::function_ref<Scalar(Scalar)> count) {
          Value counted =
              b.map(shown, shown.getType(),
                    [&](Scalar r, Scalar c, ArrayRef<Scalar> x) -> Value {
                      Scalar isThere =
                          (firstRow + r < queries) & (firstKey + c < keys);
                      return b.select(isThere, count(x[0]), b.f32(0));
                    });
          return RowCombineOp::create(b, b.rowType(kWarpRows), /*max=*/false,
                                      b.rowSum(counted, Value()));
        };
        Value seen = inRows([](Scalar x) { return x; });
        Value missed = inRows([&](Scalar x) { return b.f32(1) - x; });
        Scalar some = any(seen), others = any(missed);
        return {step + 1, either(b, carried[1], some),
                either(b, carried[2], others)};
      });
  Scalar some = b.wrap(met[1]), missed = b.wrap(met[2]);
  return b.select(some, b.select(missed, b.i32(1), b.i32(2)), b.i32(0));
}
