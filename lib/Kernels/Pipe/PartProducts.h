//===- PartProducts.h - Products of factors in parts on wgmma ---*- C++ -*-===//
//
// A product of f32 is the sum of six of three parts of bf16 each, or of three
// of two parts of f16, without those that are below 2^-22 of it.  One sum takes
// them all, small ones first: the tensor cores cut sums off where f32 ends.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_PIPE_PARTPRODUCTS_H
#define ATTN_LIB_KERNELS_PIPE_PARTPRODUCTS_H

#include "Build/TileBuilder.h"

#include "attn/Schedule/Schedule.h"

namespace attn {

/// The parts of a product's factors, by number.
struct PartPair {
  size_t left, right;
};

/// Those of factors in so many parts: of whole ones, of f16, of bf16.
inline llvm::ArrayRef<PartPair> partPairs(int64_t parts) {
  static constexpr PartPair ofBf16[] = {{2, 0}, {0, 2}, {1, 1},
                                        {1, 0}, {0, 1}, {0, 0}};
  static_assert(std::size(ofBf16) == kPartProducts);
  llvm::ArrayRef<PartPair> all = ofBf16;
  return parts == kSplitParts ? all : all.take_back(parts == 1 ? 1 : 3);
}
static_assert(kScaledParts == 2 && kScaledProducts == 3);

/// One product or several, in one group; `product` starts that of a pair, which
/// goes on with a sum.  Or in as many groups as there are parts: each ends with
/// the last product that takes its parts, the smallest ones first.
inline mlir::Value startPairs(
    int64_t parts, mlir::Value sum,
    llvm::function_ref<mlir::Value(const PartPair &, mlir::Value)> product,
    bool endsWithParts = false) {
  auto part = [](const PartPair &pair) {
    return std::max(pair.left, pair.right);
  };
  llvm::ArrayRef<PartPair> pairs = partPairs(parts);
  for (size_t i = 0; i < pairs.size(); ++i) {
    sum = product(pairs[i], sum);
    bool isLast = i + 1 == pairs.size();
    bool ends =
        isLast || (endsWithParts && part(pairs[i + 1]) < part(pairs[i]));
    mlir::cast<tile::WgmmaOp>(sum.getDefiningOp()).setOpen(!ends);
  }
  return sum;
}

} // namespace attn

#endif
