//===- Scalars.h - Scalar ops, one lane or many -----------------*- C++ -*-===//
//
// `arith` and `math` ops on i1, i32, i64, index and f32, and on bf16 and f16
// what converts them, evaluated over a number of lanes at once.  A warp's scalar is the case of one lane; the body
// of a `tile.map` runs over a row of elements.  So each op is written once.
//
// Integers are int64_t, sign-extended from their width (i1 is 0 or 1).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOST_SCALARS_H
#define ATTN_HOST_SCALARS_H

#include "mlir/IR/Operation.h"

#include <cstdint>
#include <optional>

namespace attn {

enum class ScalarCode {
  constant,
  addi,
  subi,
  muli,
  divsi,
  divui,
  remsi,
  remui,
  ceildivsi,
  ceildivui,
  floordivsi,
  minsi,
  maxsi,
  minui,
  maxui,
  andi,
  ori,
  xori,
  shli,
  shrsi,
  shrui,
  cmpi,
  select,
  extend,
  extendUnsigned,
  truncate,
  sitofp,
  uitofp,
  fptosi,
  bitcast,
  addf,
  subf,
  mulf,
  divf,
  negf,
  maximumf,
  minimumf,
  maxnumf,
  minnumf,
  cmpf,
  exp,
  ceil,
  exp2,
  log,
  log2,
  sqrt,
  rsqrt,
  absf,
  fma,
  tanh,
  floor,
  roundeven,
  trunc,
  copysign,
  extf,
  truncf,
};

/// A decoded op.
struct ScalarOp {
  ScalarCode code;
  /// Bits of the first operand and of the result, 64 for index.
  unsigned operandWidth = 64, resultWidth = 64;
  bool realOperand = false, realResult = false;
  /// Of a comparison.
  unsigned predicate = 0;
  /// Of a conversion to 16 bits.
  bool isBf16 = false;
  /// Of a constant.
  int64_t integer = 0;
  float real = 0;
};

/// A scalar, or an address; the field that its type asks for.
struct Number {
  int64_t integer = 0;
  float real = 0;
};

/// The lanes of one value: integers or reals, whichever its type is.
struct Lanes {
  int64_t *integers;
  float *reals;
};

/// Nothing when the op, or one of its types, is not a scalar one we know.
std::optional<ScalarOp> decodeScalar(mlir::Operation *op);

/// Evaluates `count` lanes.  Returns a sentence when there is no result
/// (division by zero), else null.
const char *evaluate(const ScalarOp &op, llvm::ArrayRef<Lanes> operands,
                     Lanes result, int64_t count);

} // namespace attn

#endif
