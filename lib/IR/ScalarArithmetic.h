//===- ScalarArithmetic.h - Arithmetic of regions on the host ---*- C++ -*-===//
//
// The integers of regions have up to 64 bits, of which an int64_t holds the
// value with its sign.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_IR_SCALARARITHMETIC_H
#define ATTN_LIB_IR_SCALARARITHMETIC_H

#include "attn/IR/ScalarOps.h"
#include "llvm/ADT/APFloat.h"

namespace attn {

/// An op whose operands and result are integers of so many bits.
int64_t wholeOf(ScalarKind op, int64_t a, int64_t b, unsigned width);
/// Of bits with that width, the number with its sign.
int64_t withSign(int64_t bits, unsigned width);
/// The number without a sign.
uint64_t withoutSign(int64_t bits, unsigned width);

/// An op whose operands and result are floats.
double realOf(ScalarKind op, double a, double b, double c);
/// Its derivatives in these.
struct Derivatives {
  double a = 0, b = 0, c = 0;
};
Derivatives derivativesOf(ScalarKind op, double a, double b, double c);

double rounded(double number, const llvm::fltSemantics &type);

} // namespace attn

#endif
