//===- Sink.h - A score of a head that has no value -------------*- C++ -*-===//
//
// A sink s takes part in the softmax of every row of its head, and adds nothing
// to the output.  So it is added when a row is done, once: with D = LSE - s,
//
//   O    = O / (1 + exp(-D))       LSE = max(LSE, s) + log (1 + exp(-|D|))
//
// of a row that sees nothing O is 0 and LSE = s.  D is as exact as the LSE is.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_SOFTMAX_SINK_H
#define ATTN_LIB_KERNELS_SOFTMAX_SINK_H

#include "Softmax/LogSumExp.h"

namespace attn {

/// Adds a sink to rows that are done: to what sums are multiplied by, and to
/// their log-sum-exps.
void addSink(TileBuilder &builder, mlir::Value &inverse, LogSumExp &lse,
             Scalar sink);

} // namespace attn

#endif
