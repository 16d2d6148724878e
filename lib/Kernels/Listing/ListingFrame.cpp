//===- ListingFrame.cpp - What kernels of lists have in common ------------===//

#include "Listing/ListingFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void ListingFrame::declareLists(ArrayRef<int> lists) {
  for (int list : lists) {
    arguments.operand(counts(list), b.getI32Type());
    arguments.operand(blocks(list), b.getI32Type());
  }
}

KernelOp ListingFrame::begin() {
  for (Role size : {Role::queries, Role::keys, Role::heads, Role::batch})
    arguments.scalar(size, b.getI32Type());
  KernelRequest plain;
  plain.name = request.name;
  KernelOp kernel = arguments.createKernel(b, plain, kListingWarps);
  queries = arguments.get(b, Role::queries);
  keys = arguments.get(b, Role::keys);
  return kernel;
}

void ListingFrame::forWarp(Scalar ofHead,
                           function_ref<void(Scalar number)> body) {
  Scalar heads = arguments.get(b, Role::heads),
         all = ofHead * heads * arguments.get(b, Role::batch);
  Scalar unit = b.programId(0) * kListingWarps + b.warpId();
  b.when(unit < all, [&] {
    BlockOfHead at = BlockOfHead::of(b, unit, ofHead, heads);
    batch = at.batch;
    head = at.head;
    body(at.number);
  });
}

Value ListingFrame::isAbove(Value row, Scalar limit) {
  auto type = cast<RowType>(row.getType());
  Type result = b.rowType(type.getRows(), type.getPartial());
  return b.map(row, result, [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
    return b.select(limit < x[0], b.f32(1), b.f32(0));
  });
}

KernelOp attn::buildListing(OpBuilder &builder, Location loc,
                            const ListingRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  ListingFrame frame(b, request);
  switch (request.kind) {
  case Listing::classes:
    return frame.classes();
  case Listing::listed:
    return frame.listed();
  case Listing::transposed:
    return frame.transposed();
  }
  llvm_unreachable("closed enum");
}

std::string attn::listingName(const ListingRequest &request) {
  switch (request.kind) {
  case Listing::classes:
    return "block_classes_" + str(request.size);
  case Listing::listed:
    return "listed_blocks_" + str(request.size);
  case Listing::transposed:
    return "transposed_blocks";
  }
  llvm_unreachable("closed enum");
}
