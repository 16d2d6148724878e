//===- GradientScores.h - P and dS from scores, for gradients ---*- C++ -*-===//
//
// Gradients know the softmax of a row from its LSE, without a maximum or a sum:
//
//   P  = 2^(c s + shift)    shift = -log2(e) LSE, c as in ScoreScale.h
//   dS = P (dP - D)         D = rowsum(dO * O) - dLSE
//
// Shift and D are a value for each query: rows where rows are queries, and
// fragments of equal rows where columns are.  With the low word of LSE the
// shift has one as well (ScoreScale.h); else it is rounded to f32.
//
// What is hidden has a score of -inf and P = 0.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_GRADIENTS_GRADIENTSCORES_H
#define ATTN_LIB_KERNELS_GRADIENTS_GRADIENTSCORES_H

#include "Softmax/ScoreScale.h"

#include <functional>

namespace attn {

/// What is added to c times a score.  `low` is null if LSE has no low word; it
/// brings that of the shift when the high one is done with, whose registers it
/// may take.
/// Up to `enough` of |high| the low word says less than what weights are
/// rounded by, and is passed over.
struct Shift {
  mlir::Value high;
  std::function<mlir::Value()> low;
  double enough = 0;
};

/// -log2(e) LSE; with a low word LSE times `bits` (`bitsOfNatural`), less than
/// 0.  A query that sees nothing has LSE = -inf and P = 0, and so have those
/// from `endOfRows` on, if given, of rows from `firstRow` on.
Shift shiftOf(TileBuilder &builder, const LogSumExp &lse, const TwoWords &bits,
              Scalar firstRow = Scalar(), Scalar endOfRows = Scalar());

/// D of queries from `row` on, from the inner products of their rows of O and
/// dO and, unless it is 0, a view of dLSE.
mlir::Value deltaOf(TileBuilder &builder, mlir::Value products,
                    mlir::Value dlse, Scalar row);
/// The same of `rows` queries from views of O and dO.
mlir::Value deltaOf(TileBuilder &builder, mlir::Value output,
                    mlir::Value gradient, mlir::Value dlse, Scalar row,
                    int64_t rows);

/// P from oriented scores.
mlir::Value weightsOf(TileBuilder &builder, const ScoreScale &scale,
                      mlir::Value scores, const Shift &shift);
/// Scores, some of which `hide` hides unless `isOpen`.
mlir::Value hiddenUnless(TileBuilder &builder, Scalar isOpen,
                         mlir::Value scores,
                         llvm::function_ref<mlir::Value(mlir::Value)> hide);
/// P from scores as they come, some of which `hide` hides unless `isOpen`.
mlir::Value weightsOf(TileBuilder &builder, const ScoreScale &scale,
                      mlir::Value scores, const Shift &shift, Scalar isOpen,
                      llvm::function_ref<mlir::Value(mlir::Value scores)> hide);

/// What weights that were kept, which stand at a block's maximum
/// (GroupSoftmax.h), are to be multiplied by to be P.
mlir::Value factorOfKept(TileBuilder &builder, mlir::Value max,
                         const Shift &shift);

/// dS from P and dP; where dP is not a number, neither is dS.
mlir::Value gradientOf(TileBuilder &builder, mlir::Value weights,
                       mlir::Value gradient, mlir::Value delta);
/// Likewise, without what is hidden, if not `isOpen`.
mlir::Value gradientOf(TileBuilder &builder, mlir::Value weights,
                       mlir::Value gradient, mlir::Value delta, Scalar isOpen);
/// What takes the place of P in dS where scores have slopes: P times them, and
/// 0 where P is, whatever the slope of what is hidden.  It takes the registers
/// of P too, so that no slopes are held while dP comes to be, if it is made at
/// once: a branch would hold both.
mlir::Value steepened(TileBuilder &builder, mlir::Value weights,
                      mlir::Value slopes);
/// The same of dS, where somebody has asked for it without slopes.
mlir::Value withSlopes(TileBuilder &builder, mlir::Value weights,
                       mlir::Value gradient, mlir::Value slopes);
/// dS with 0 where P is: what is hidden has no gradient, whatever dP is there.
mlir::Value withoutHidden(TileBuilder &builder, mlir::Value weights,
                          mlir::Value gradient);

} // namespace attn

#endif
