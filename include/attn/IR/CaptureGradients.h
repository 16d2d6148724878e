//===- CaptureGradients.h - Who adds to gradients of captures ---*- C++ -*-===//
//
// The gradient of a captured array is a sum over all reads of it: every pair
// adds its part to the element that it has read.  What the indices of a read
// depend on says how many pairs share one:
//
//   slopes[h]       all pairs of a head: a sum over rows, then over heads
//   bias[h, i, j]   one of every batch entry
//   table[i - j]    many, in every block
//
// The first kind is `ofHead`; of all others pairs add one by one.  Where
// several do to one element, in which order is open, so gradients that are to
// be deterministic need elements that one pair has for itself.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_CAPTUREGRADIENTS_H
#define ATTN_IR_CAPTUREGRADIENTS_H

#include "attn/IR/Attn.h"

namespace attn {

/// A read whose array gets a gradient.
struct GradientRead {
  ReadOp read;
  unsigned target; ///< place of the gradient among those that are asked for
  bool isOfHead;   ///< indices depend on neither the query nor the key
};

/// Of a region of scores, those that the score depends on, in order;
/// `gradients` are captures, and behind them sinks, by number.
llvm::SmallVector<GradientRead>
gradientReads(mlir::Region &score, llvm::ArrayRef<int64_t> gradients);
llvm::SmallVector<GradientRead> gradientReads(AttentionOpInterface op);

/// The numbers that an op asks for.
llvm::ArrayRef<int64_t> gradientNumbers(mlir::Operation *op);

/// What the problem of an op has of them.
void countGradients(AttentionOpInterface op, ScoreClauses &clauses);

/// A read of an element to which several pairs add, if there is one.
std::optional<GradientRead> sharedByPairs(AttentionOpInterface op);

} // namespace attn

#endif
