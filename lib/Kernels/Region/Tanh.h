//===- Tanh.h - The hyperbolic tangent, exact to f32 ------------*- C++ -*-===//
//
// With e = 2^(2 |x| / ln 2) it is 1 - 2 / (e + 1), where that is not a
// difference of numbers that are nearly equal.  Near 0 it is x + x^3 p(x^2),
// where p is a polynomial whose largest relative error there is the least,
// 2^-26 of the result.
//
// Both are written, and one is chosen: no lane waits for another.
//
// Errors.  Of the machine's 2^y and 1 / y, two units in the last place each,
// are left 2^-21.3 of the result at |x| = 1/2, and less behind.  The polynomial
// is within 2^-23.  Infinities have 1 and -1, and what is not a number stays
// so.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_REGION_TANH_H
#define ATTN_LIB_KERNELS_REGION_TANH_H

#include "Build/TileBuilder.h"

namespace attn {

Scalar exactTanh(TileBuilder &builder, Scalar x);

} // namespace attn

#endif
