//===- SinkSums.h - Gradients of sinks --------------------------*- C++ -*-===//
//
// A sink s is in the LSE of every row of its head and nowhere else, so that its
// gradient is  sum -exp(s - LSE) D  over these rows.  Whoever works out D
// leaves that of a warp's rows (CaptureSums.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_REGION_SINKSUMS_H
#define ATTN_LIB_KERNELS_REGION_SINKSUMS_H

#include "Region/CaptureSums.h"
#include "Softmax/LogSumExp.h"

namespace attn {

/// Sinks as an argument, in either direction; and that of a head.
void declareSinks(Arguments &arguments, TileBuilder &builder);
Scalar sinkOf(TileBuilder &builder, const Arguments &arguments, Scalar head);

void declareSinkSums(Arguments &arguments, TileBuilder &builder,
                     const KernelRequest &request);
void leaveSinkSum(TileBuilder &builder, const Arguments &arguments,
                  const KernelRequest &request, const RegionCode::Place &place,
                  const LogSumExp &lse, mlir::Value delta);

} // namespace attn

#endif
