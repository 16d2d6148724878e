//===- Numbers.h - Where a number comes from --------------------*- C++ -*-===//
//
// A number is an element of a tensor, or a scalar in the body of a linalg op
// for certain loops.  Whether an exponential is a linalg.generic of its own, a
// part of one, a linalg.map or a math.exp on tensors makes no difference here:
//
//   source(n)   the same number in the tensor where it was made, behind
//               reshapes, transposes, broadcasts and copies
//   maker(n)    the scalar operation that made it, and what of
//
// Example: after `%p = linalg.generic ... { %x = arith.subf %s, %m; %y =
// math.exp %x }` element (i, j) of %p is made by math.exp of a number that is
// made by arith.subf of element (i, j) of one tensor and element (i) of
// another.
//
// What a reduction or an unknown op gives has no maker: it is a leaf.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_RAISE_NUMBERS_H
#define ATTN_LIB_CONVERSION_RAISE_NUMBERS_H

#include "Loops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attn::raise {

struct Number {
  mlir::Value value;
  /// Indices of the element; of a scalar, the loops of the op around it.
  Indices at;

  mlir::RankedTensorType tensor() const {
    return llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
  }
  mlir::Type type() const { return mlir::getElementTypeOrSelf(value); }
};

/// A scalar operation, its operands, and the indices or loops that it is for.
struct Maker {
  mlir::Operation *op = nullptr;
  llvm::SmallVector<Number, 3> operands;
  Indices at;

  bool is(llvm::StringRef name) const {
    return op && op->getName().getStringRef() == name;
  }
  template <typename... Names> bool isAny(Names... names) const {
    return (is(names) || ...);
  }
};

class Numbers {
public:
  explicit Numbers(mlir::MLIRContext *context) : loops(context) {}

  Loops loops;

  /// The element of a tensor; indices into dimensions of size 1 become 0.
  Number element(mlir::Value tensor, Indices at);

  Number source(Number number);
  Maker maker(Number number);
  /// As source, also behind conversions between floating-point types.
  Number uncast(Number number);
  /// The value, if it is known.
  std::optional<double> constant(Number number);
  /// Whether two numbers are the same by what they are made of.
  bool same(Number a, Number b);

  /// What a linalg op reads of an operand in these loops.
  Number operand(mlir::linalg::LinalgOp op, unsigned index,
                 llvm::ArrayRef<Index> loopsOfOp);
  /// The loops in which a linalg op writes the number; those that it reduces
  /// are null.
  std::optional<Indices> loopsOf(mlir::linalg::LinalgOp op, Number result);

private:
  std::optional<Number> step(Number number);
  std::optional<Number> stepInto(mlir::linalg::LinalgOp op, Number result);
};

} // namespace attn::raise

#endif
