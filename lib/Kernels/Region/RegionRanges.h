//===- RegionRanges.h - How large the integers of a region get --*- C++ -*-===//
//
// Positions have 64 bits in a region and 32 in kernels.  So each integer of a
// region gets the range that follows from the sizes that problems may have
// (Limits.h): what fits 32 bits is computed in 32 bits.
//
// Example: j - i is within 2^31, i * nk + j is not.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_REGION_REGIONRANGES_H
#define ATTN_LIB_KERNELS_REGION_REGIONRANGES_H

#include "attn/IR/ScalarOps.h"

#include "mlir/IR/Region.h"
#include "llvm/ADT/DenseMap.h"

namespace attn {

class RegionRanges {
public:
  explicit RegionRanges(mlir::Region &region);

  /// Whether an integer is one of 32 bits, and whether it is below 0 never.
  bool isSmall(mlir::Value integer) const;
  bool isNatural(mlir::Value integer) const;

private:
  using Wide = __int128;
  struct Range {
    Wide least, most;
  };
  static Range allOf(mlir::Type type);
  Range resultOf(mlir::Operation &op) const;
  Range computed(ScalarKind kind, mlir::Operation &op) const;

  llvm::DenseMap<mlir::Value, Range> ranges;
};

/// Bits of an integer of a region, 64 of an index.
unsigned bitsOf(mlir::Type integer);
/// The number of a constant, if it is an integer.
std::optional<int64_t> integerOf(mlir::Value value);

} // namespace attn

#endif
