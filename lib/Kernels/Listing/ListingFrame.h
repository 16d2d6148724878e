//===- ListingFrame.h - What kernels of lists have in common ----*- C++ -*-===//

#ifndef ATTN_LIB_KERNELS_LISTING_LISTINGFRAME_H
#define ATTN_LIB_KERNELS_LISTING_LISTINGFRAME_H

#include "Region/RegionCode.h"
#include "Walk/TileOrder.h"

#include "attn/Kernels/Listing.h"

namespace attn {

/// Queries and keys that a warp asks for at a time, and numbers of a list that
/// it looks at.
inline constexpr int64_t kAskedKeys = 64;

class ListingFrame {
public:
  ListingFrame(TileBuilder &builder, const ListingRequest &request)
      : b(builder), request(request) {}

  tile::KernelOp classes();
  tile::KernelOp listed();
  tile::KernelOp transposed();

private:
  static ArgumentRole counts(int list) {
    return {Role::listCounts, Facet::itself, list};
  }
  static ArgumentRole blocks(int list) {
    return {Role::listBlocks, Facet::itself, list};
  }
  /// Arrays are declared before; then the builder stands in the kernel.
  tile::KernelOp begin();
  /// The body of the warp that has number `number` of each head, if there are
  /// so many.
  void forWarp(Scalar ofHead, llvm::function_ref<void(Scalar number)> body);
  void declareLists(llvm::ArrayRef<int> lists);

  // Of classes.
  Scalar classOf(const RegionCode &code, Scalar row, Scalar key);
  // Of transposed.
  void transpose(Scalar column, int from, int to);
  mlir::Value countsOfRows(Scalar row, int list);
  mlir::Value hits(mlir::Value counts, Scalar row, Scalar column, int list);

  mlir::Value isAbove(mlir::Value row, Scalar limit);
  Scalar any(mlir::Value row) {
    return b.wrap(tile::AnyOp::create(b, b.getI1Type(), row));
  }
  Scalar load(const ArgumentRole &array, Scalar place) {
    return b.wrap(tile::LoadNumberOp::create(b, b.getI32Type(),
                                             arguments.get(b, array), place));
  }
  void store(Scalar value, const ArgumentRole &array, Scalar place) {
    tile::StoreNumberOp::create(b, value, arguments.get(b, array), place);
  }
  /// Elements to a row of the warp's head.
  Scalar place(const ArgumentRole &array, Scalar row) {
    return arguments.offset(b, array, batch, head, row);
  }

  TileBuilder &b;
  const ListingRequest &request;
  Arguments arguments;
  Scalar queries, keys, batch, head;
};

} // namespace attn

#endif
