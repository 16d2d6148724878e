//===- ListedBlocks.cpp - Lists of blocks, of their classes ---------------===//

#include "Listing/ListingFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

KernelOp ListingFrame::listed() {
  arguments.operand(Role::blockClasses, b.getI32Type());
  declareLists({0, 1});
  KernelOp kernel = begin();
  Scalar words = b.ceilDiv(keys, request.size.keys * kBlocksOfWord);
  forWarp(b.ceilDiv(queries, request.size.queries), [&](Scalar row) {
    Scalar zero = b.i32(0), classes = place(Role::blockClasses, row);
    Scalar begins[] = {place(blocks(0), row), place(blocks(1), row)};
    ValueRange found =
        b.loop(zero, words, {zero, zero},
               [&](Scalar word, ValueRange carried) -> SmallVector<Value> {
                 Scalar bits = load(Role::blockClasses, classes + b.wide(word));
                 ValueRange behind = b.loop(
                     zero, b.i32(kBlocksOfWord), {bits, carried[0], carried[1]},
                     [&](Scalar n, ValueRange inner) -> SmallVector<Value> {
                       Scalar rest = b.wrap(inner[0]), own = rest & b.i32(3);
                       SmallVector<Value> next = {
                           arith::ShRUIOp::create(b, rest, b.i32(2))};
                       for (int list : {0, 1}) {
                         Scalar count = b.wrap(inner[1 + list]),
                                isIn = own == b.i32(1 + list);
                         b.when(isIn, [&] {
                           store(word * kBlocksOfWord + n, blocks(list),
                                 begins[list] + b.wide(count));
                         });
                         next.push_back(b.select(isIn, count + 1, count));
                       }
                       return next;
                     });
                 return {behind[1], behind[2]};
               });
    for (int list : {0, 1})
      store(b.wrap(found[list]), counts(list), place(counts(list), row));
  });
  ReturnOp::create(b);
  return kernel;
}
