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
// A row that has seen nothing has the least score as its reference, finite, so
// that no weight becomes NaN.  A score of -inf counts as hidden, and one of
// +inf as the largest f32.
//
// Far references (ScoreScale.h).  A warp that has one takes that branch in
// every block, and its scores come out of it centred.
//
// Example (c = 1): scores 1, 3: r = 3, l = 2^-2 + 1.  Then 10: r stays, weight
// 2^7.  Then 12 exceeds 3 + 8: r = 12, alpha = 2^-9.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_SOFTMAX_LAZYSOFTMAX_H
#define ATTN_LIB_KERNELS_SOFTMAX_LAZYSOFTMAX_H

#include "Softmax/ScoreScale.h"

namespace attn {

class LazySoftmax {
public:
  /// `scale` is the kernel's run-time argument, `sign` what is known of it when
  /// the kernel is built; weights are rounded to `element`.
  LazySoftmax(TileBuilder &builder, Scalar scale, double sign,
              mlir::Type element);

  /// Reference and (partial) sum of some rows, and whether the next block is to
  /// be looked at whatever its scores: one of them is far or has seen nothing.
  struct Rows {
    mlir::Value reference, sum, asks;

    llvm::SmallVector<mlir::Value> pack() const {
      return {reference, sum, asks};
    }
    static constexpr size_t kValues = 3;
    static Rows unpack(mlir::ValueRange v) { return {v[0], v[1], v[2]}; }
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
    mlir::Value inverse;
    LogSumExp lse;
  };
  End finish(TileBuilder &builder, Rows rows, bool hasLow) const;

private:
  /// Scores, and what is added to c times them.
  struct Scored {
    mlir::Value scores, shift;
  };
  /// What rows stand at once they have reached such a score, or -inf.
  struct Stand {
    mlir::Value reference, asks;
    Scored scored;
  };
  /// Where that is usual, what far rows need is a branch of its own.
  Stand stand(TileBuilder &builder, mlir::Value reached, mlir::Value scores,
              bool isUsual) const;
  /// The same behind a block of scores, and what sums so far are scaled by.
  struct Moved {
    Stand stand;
    mlir::Value alpha;
  };
  Moved moved(TileBuilder &builder, Rows rows, mlir::Value scores) const;
  Block weigh(TileBuilder &builder, const Stand &stand, mlir::Value sum) const;
  /// A later block, of which `scaled` gives what sums so far become, for an
  /// alpha or, where none is needed, null.
  Step
  stepIf(TileBuilder &builder, Scalar moves, Rows rows, mlir::Value scores,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value alpha)>
             scaled) const;

  /// What is added to c times a score that is not centred, at a reference; and
  /// what the exponent of the reference itself then is, less b.
  Scalar shift(TileBuilder &builder, Scalar reference) const;
  Scalar remainder(TileBuilder &builder, Scalar reference) const;
  /// |c r|; of a reference that stands for nothing what makes it far if c times
  /// it is not finite.
  Scalar distance(TileBuilder &builder, Scalar reference) const;

  ScoreScale scale;
  double bias;  ///< b: weights are taken times 2^b
  Scalar slack; ///< (8 - b) / c
};

} // namespace attn

#endif
