//===- LogSumExp.h - Log-sum-exps of rows in two words ----------*- C++ -*-===//
//
// Gradients take P from the LSE of a row, in whose exponent its error is.  One
// word of f32 is off by 2^-24 |LSE|, which is 1 at 2^24; two are by some 2^-46.
// The high word is the LSE as an f32, the low one what it lacks.
//
// A number in two words is their sum.  A product of two such numbers is exact
// but for the last bits of its low word: a fused multiply-add gives what the
// product of the high words was rounded by.
//
// Example: LSE = 10^7 ln 2 = 6931471.8056: high = 6931472, low = -0.1944.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_SOFTMAX_LOGSUMEXP_H
#define ATTN_LIB_KERNELS_SOFTMAX_LOGSUMEXP_H

#include "Build/TileBuilder.h"

namespace attn {

struct TwoWords {
  Scalar high, low;
};

TwoWords twoWords(TileBuilder &builder, double number);
TwoWords times(TileBuilder &builder, const TwoWords &a, const TwoWords &b);
/// a / b.
TwoWords quotient(TileBuilder &builder, Scalar a, Scalar b);

/// The same number, with a high word that is all of it as an f32.
TwoWords settled(TileBuilder &builder, TwoWords number);

/// A low word, or 0 where there is none: of -inf, and of what is too large.
Scalar finiteOrZero(TileBuilder &builder, Scalar low);

/// Log-sum-exps of rows; `low` is null if nobody asks for it.
struct LogSumExp {
  mlir::Value high, low;
};

/// From the numbers of rows `plain` gives an LSE in one word; if it is to have
/// two, `binary` gives both of the same in bits, of `natural` each.  Where
/// there are no two, of -inf and of what is too large, one is left.
LogSumExp
logSumExp(TileBuilder &builder, mlir::ValueRange rows, bool hasLow,
          const TwoWords &natural,
          llvm::function_ref<Scalar(llvm::ArrayRef<Scalar> numbers)> plain,
          llvm::function_ref<TwoWords(llvm::ArrayRef<Scalar> numbers)> binary);

/// Declares the array of log-sum-exps, and that of their low words if there is
/// one.
void declareLse(Arguments &arguments, TileBuilder &builder,
                const Problem &problem);

} // namespace attn

#endif
