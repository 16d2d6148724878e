//===- ScalarOps.h - What regions of attention are made of ------*- C++ -*-===//
//
// The regions `sees` and `score` are functions of numbers, of ops that both the
// reference and kernels know: ScalarOps.def has all of them.  Numbers are
// integers of up to 64 bits, index, bf16, f16 and f32.
//
// A gradient passes through an op that has a derivative.  It ends at a
// comparison, whose result jumps and elsewhere does not change, so that a
// `select` between two functions has the derivative of the one that is taken.
// Through any other op it may not pass: a gradient that is 0 everywhere, as
// that of `math.floor`, is what nobody wants who asks for one.
//
// Example: in  select(z > 0, z, 0.1 * z)  the gradient in z passes through
// `arith.select` and `arith.mulf`, and ends at `arith.cmpf`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_SCALAROPS_H
#define ATTN_IR_SCALAROPS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace attn {

enum class ScalarKind {
#define ATTN_SCALAR(operation, name) operation,
#define ATTN_SCALAR_TOO(operation, name)
#include "attn/IR/ScalarOps.def"
};

/// What an op of a region does, if it may stand there.
std::optional<ScalarKind> scalarKindOf(mlir::Operation *op);
/// How a comparison of integers compares.
mlir::arith::CmpIPredicate integerPredicateOf(mlir::Operation &op);
/// The names of all ops that may.
std::string scalarOpNames();

/// Whether a type is that of a number in a region.
bool isScalar(mlir::Type type);

/// Whether an op is a function of a float that has an instruction for it or
/// two, and whether it is a quotient or a rest of integers, which has many.
bool isFunction(ScalarKind op);
bool isIntegerQuotient(ScalarKind op);

/// Whether gradients pass through an op.
bool hasDerivative(ScalarKind op);

/// Whether kernels have code for an op, and the first op of a region for which
/// they have none, if there is one.
bool hasCode(ScalarKind op);
mlir::Operation *withoutCode(mlir::Region &region);

/// What a value of a region depends on, besides batch entry, head and sizes.
enum Dependence : unsigned { onScore = 1, onQuery = 2, onKey = 4 };
/// Of all values that depend on any of it, those.
llvm::DenseMap<mlir::Value, unsigned> dependencesIn(mlir::Region &region);

/// The first op of a region that a gradient meets and cannot pass, if there is
/// one.  Gradients are of these values: the score, or captured arrays.
mlir::Operation *withoutDerivative(mlir::Region &region,
                                   llvm::ArrayRef<mlir::Value> sources);

} // namespace attn

#endif
