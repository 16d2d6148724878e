//===- CaptureShapes.h - How large captured arrays must be ------*- C++ -*-===//
//
// A short form reads its array by the numbers of batch entries, heads, queries
// and keys, so each dimension has 1 element for all or one for each.  The
// verifier compares what types say; a call compares the sizes that types leave
// open.
//
// Example: of `bias(%x : memref<1x8x?x?xf32>)` dimension 1 is read by heads,
// 2 by queries and 3 by keys, and 0 by nothing.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_CAPTURESHAPES_H
#define ATTN_IR_CAPTURESHAPES_H

#include "attn/IR/Attn.h"
#include "attn/Schedule/Roles.h"

#include <array>

namespace attn {

/// A dimension of a captured array, and of what it has an element for each.
struct ReadDimension {
  ShortForm::Kind form;
  unsigned capture, dimension;
  llvm::SmallVector<Extent, 2> extents;
};

/// Those of the short forms of a region; sizes of 1 are read by nothing.
llvm::SmallVector<ReadDimension> dimensionsRead(mlir::Region &region);
/// Those of both regions of an op, without those that count in a sequence of a
/// ragged batch: its length is known on the device.
llvm::SmallVector<ReadDimension> dimensionsRead(AttentionOpInterface op);

/// "bias(..) with 300 elements or more in dimension 1, one for each of the
/// keys".
std::string wantedOf(const ReadDimension &read, Extent extent, int64_t size);

/// The op's sizes, `kDynamic` where they are known at run time only.
std::array<int64_t, kExtents> knownSizes(AttentionOpInterface op);

} // namespace attn

#endif // ATTN_IR_CAPTURESHAPES_H
