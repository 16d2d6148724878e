//===- Bands.h - Which keys a query sees, at run time -----------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_BANDS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_BANDS_H

#include "attn/Schedule/Problem.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

/// `Visible` for sizes that may be known only at run time, as indices; null
/// where a side is unbounded, and where no keys are open to all.
struct BandValues {
  mlir::Value first, last, openKeys;
};
BandValues bandOf(mlir::ImplicitLocOpBuilder &b, const Mask &mask,
                  mlir::Value keys, mlir::Value queries);
/// The same from the diagonal of a sequence on, whose lengths kernels know.
BandValues bandOfSequence(mlir::ImplicitLocOpBuilder &b, const Mask &mask);

} // namespace attn

#endif
