//===- LazySoftmax.h - An online softmax that seldom rescales ---*- C++ -*-===//
//
// The online softmax of Softmax.h takes weights relative to the running maximum
// and so scales l and O in every block.  Any reference will do as long as no
// weight overflows; so here a row keeps its reference r until some score
// exceeds it by a factor of 2^8 in weight.  Weights then reach 2^8, which bf16,
// f16 and f32 hold without loss.  f8E4M3FN ends at 448, and below 2^-6 it loses
// bits: there weights are taken times 2^4 and r moves at a factor of 2^4.  Only
// the rare block that moves r needs the maximum of whole rows (shuffles) and
// the scaling of l and O: that is a branch, taken by a warp when one of its
// rows asks for it.
//
// A row that has seen nothing has the reference -2^100, low enough for every
// score and finite, so that no weight becomes NaN; scores below it count as
// hidden.  An infinite score moves r to infinity and ends in NaN, as it must.
//
// Example (c = 1): scores 1, 3: r = 3, l = 2^-2 + 1.  Then 10: r stays, weight
// 2^7.  Then 12 exceeds 3 + 8: r = 12, alpha = 2^-9.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_LAZYSOFTMAX_H
#define ATTN_LIB_KERNELS_LAZYSOFTMAX_H

#include "ScoreScale.h"

namespace attn {

class LazySoftmax {
public:
  /// `scale` is the kernel's run-time argument, `sign` what is known of it when
  /// the kernel is built; weights are rounded to `element`.
  LazySoftmax(TileBuilder &builder, Scalar scale, double sign,
              mlir::Type element);

  /// Reference and (partial) sum of some rows.
  struct Rows {
    mlir::Value reference, sum;
  };

  /// Makes larger mean heavier.
  mlir::Value orient(TileBuilder &builder, mlir::Value scores) const {
    return scale.orient(builder, scores);
  }

  /// The first block of a row sets its reference.
  struct Block {
    Rows rows;
    mlir::Value weights; ///< 2^(c s - c r + b), an accumulator
  };
  Block first(TileBuilder &builder, mlir::Value scores) const;

  /// Whether some reference of the warp must move for these scores; to be asked
  /// while the product before is in flight.
  Scalar mustMove(TileBuilder &builder, Rows rows, mlir::Value scores) const;
  /// A later block: moves the references if they must, and then scales
  /// `output`, the parts of what was summed up so far.
  struct Step {
    Block block;
    llvm::SmallVector<mlir::Value> output;
  };
  Step step(TileBuilder &builder, Rows rows, mlir::Value scores, Scalar moves,
            mlir::ValueRange output) const;

  /// The same in two: references and weights first, while the product before is
  /// in flight, and `output` when that is there.
  struct Early {
    Block block;
    Scalar moves;
    mlir::Value alpha; ///< what `output` is scaled by if references moved
  };
  Early stepEarly(TileBuilder &builder, Rows rows, mlir::Value scores) const;
  mlir::Value scaled(TileBuilder &builder, const Early &step,
                     mlir::Value output) const;

  /// Ends the rows: 1 / l, or 0 for a row that saw nothing, and
  /// LSE = ln(2) (c r + log2(l) - b), or -inf.
  struct End {
    mlir::Value inverse, lse;
  };
  End finish(TileBuilder &builder, Rows rows) const;

private:
  /// References that have moved for these scores, sums and alpha.
  llvm::SmallVector<mlir::Value> moved(TileBuilder &builder, Rows rows,
                                       mlir::Value scores) const;
  mlir::Value weights(TileBuilder &builder, mlir::Value scores,
                      mlir::Value reference) const;

  ScoreScale scale;
  double bias;  ///< b: weights are taken times 2^b
  Scalar slack; ///< (8 - b) / c
};

} // namespace attn

#endif
