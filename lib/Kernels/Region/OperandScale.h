//===- OperandScale.h - Scales of operands at run time ----------*- C++ -*-===//
//
// What Q, K and V are to be multiplied by (OperandScales of Problem.h), a
// number for each batch entry and key head.  Those of Q and K become a factor
// of the scale of scores, that of V one of what sums are divided by; so none
// costs more than a read for each tile.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_REGION_OPERANDSCALE_H
#define ATTN_LIB_KERNELS_REGION_OPERANDSCALE_H

#include "Build/TileBuilder.h"

namespace attn {

void declareScales(Arguments &arguments, TileBuilder &builder,
                   const OperandScales &scales);

/// The product of the scales of Q and K, and that of V; null where there are
/// none.
Scalar scaleOfScores(TileBuilder &builder, const Arguments &arguments,
                     const OperandScales &scales, Scalar batch, Scalar keyHead);
Scalar scaleOfValues(TileBuilder &builder, const Arguments &arguments,
                     const OperandScales &scales, Scalar batch, Scalar keyHead);

/// What sums of weighted values are multiplied by, for each row, with a scale
/// of the values if there is one.
mlir::Value withScale(TileBuilder &builder, mlir::Value rows, Scalar ofValues);

} // namespace attn

#endif
