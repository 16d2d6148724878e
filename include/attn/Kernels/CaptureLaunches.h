//===- CaptureLaunches.h - Launches around gradients of captures *- C++ -*-===//
//
// Kernels of gradients add to those of captures, pair by pair, and leave
// numbers of heads (lib/Kernels/Region/CaptureSums.h).  So there are launches
// in front of them and behind:
//
//   cleared_gradient   stores zeros in an array that pairs add to
//   gathered_gradient  A warp has an element, and adds up the numbers of the
//                      heads whose pairs have read it: heads of a batch entry,
//                      batch entries, reads, each in order; and adds that to
//                      what is there, if pairs have added too.
//
// What gets no gradient from anybody is cleared.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_KERNELS_CAPTURELAUNCHES_H
#define ATTN_KERNELS_CAPTURELAUNCHES_H

#include "attn/Kernels/Kernels.h"

namespace attn {

/// Warps of a block of threads, and the elements that one of them clears.
inline constexpr int64_t kCapturingWarps = 4;
inline constexpr int64_t kClearedElements = 16 * 64;

/// What a gradient asks for, by its place among those of a request.
struct CaptureGradient {
  unsigned target;
  int64_t rank;
  bool isOfSinks = false;
  bool hasPairs = false, hasHeads = false; ///< who adds
  bool isCleared() const { return hasPairs || !hasHeads; }
};
/// Those of a request; `ranks` are of their arrays.
llvm::SmallVector<CaptureGradient>
captureGradients(const KernelRequest &request, llvm::ArrayRef<int64_t> ranks);

tile::KernelOp buildCleared(mlir::OpBuilder &builder, mlir::Location loc,
                            const KernelRequest &request,
                            const CaptureGradient &gradient);
tile::KernelOp buildGathered(mlir::OpBuilder &builder, mlir::Location loc,
                             const KernelRequest &request,
                             const CaptureGradient &gradient);

} // namespace attn

#endif
