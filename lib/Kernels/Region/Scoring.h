//===- Scoring.h - What clauses make of scores in a kernel ------*- C++ -*-===//
//
// The regions of a request, its sinks and scales of operands, for kernels that
// hold scores in registers.  Where there is no clause nothing is written.
//
// Without a region of `score` the softmax scales; with one the region sees
// scaled scores, and the softmax has its factor.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_REGION_SCORING_H
#define ATTN_LIB_KERNELS_REGION_SCORING_H

#include "Region/RegionCode.h"
#include "Walk/TileQueue.h"

#include <optional>

namespace attn {

class Scoring {
public:
  /// Declares captures and sinks.
  static void declare(Arguments &arguments, TileBuilder &builder,
                      const KernelRequest &request);
  Scoring(const Arguments &arguments, const KernelRequest &request);

  /// What is the same for a warp's rows in all blocks.
  struct Rows {
    std::optional<RegionCode::Rows> sees, score;
    Scalar sink;
    Scalar ofProducts, ofValues; ///< scales, null where there are none
  };
  Rows ofRows(TileBuilder &builder, const RegionCode::Place &place) const;

  /// What scores are scaled by behind the regions, and what is known of its
  /// sign.  Where Q or K has a scale at run time tiles differ.
  Scalar scale(TileBuilder &builder, const Rows &rows = {}) const;
  bool scalesTiles() const { return scales.q || scales.k; }
  double sign() const { return score ? 1 : scaleOfRequest; }

  /// Which pairs a block has for `score`: of one that a band or a list says to
  /// be open, or of a cut one.
  Pairs pairsOf(bool isCut, bool isListed) const;
  mlir::Value scored(TileBuilder &builder, const Rows &rows, mlir::Value scores,
                     Scalar column, Pairs pairs) const;
  /// What gradients of scores are to be multiplied by; null if by 1.  Of the
  /// scores some may be hidden.
  mlir::Value slopes(TileBuilder &builder, const Rows &rows,
                     mlir::Value products, mlir::Value scores, Scalar column,
                     Pairs pairs) const;
  /// Of a block that a band says to be open reads need no check.
  mlir::Value hidden(TileBuilder &builder, const Rows &rows, mlir::Value scores,
                     Scalar column, bool isCut) const;
  bool any() const { return sees || score; }
  bool hides() const { return sees.has_value(); }
  bool scores() const { return score.has_value(); }

private:
  const Arguments &arguments;
  std::optional<RegionCode> sees, score;
  bool hasSinks;
  OperandScales scales;
  double scaleOfRequest;
};

} // namespace attn

#endif
