//===- Arrange.h - Other dimensions for a tensor ----------------*- C++ -*-===//
//
// A tensor's dimensions consist of atoms (Loops.h).  Here it gets others, of
// the same atoms: [[b, h], [i], [d]] becomes [[b], [h], [i], [d]] by an
// expansion, [[b], [i], [h], [d]] by a transpose.  What is in place costs no
// op.  Neither expanding nor collapsing moves a number; a transpose does,
// unless rows stay rows, when it is folded into the attention that reads it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_RAISE_ARRANGE_H
#define ATTN_LIB_CONVERSION_RAISE_ARRANGE_H

#include "Loops.h"

#include "mlir/IR/Builders.h"

namespace attn::raise {

/// The atoms of each dimension, outermost first.  A dimension of size 1 has
/// none.
using Dims = llvm::SmallVector<Indices, 4>;

class Arranger {
public:
  Arranger(mlir::OpBuilder &builder, mlir::Location loc, const Loops &loops)
      : b(builder), loc(loc), loops(loops) {}

  /// Both have the same atoms.
  mlir::Value arrange(mlir::Value tensor, const Dims &from, const Dims &to);

  /// Whether rows became columns in what was arranged last.
  bool hasMoved() const { return moved; }

private:
  mlir::Value dropUnits(mlir::Value tensor, const Dims &from);
  mlir::Value split(mlir::Value tensor, llvm::ArrayRef<Dims> into);
  mlir::Value join(mlir::Value tensor, llvm::ArrayRef<size_t> counts);
  mlir::Value addUnits(mlir::Value tensor, const Dims &to);

  mlir::OpBuilder &b;
  mlir::Location loc;
  const Loops &loops;
  bool moved = false;
};

} // namespace attn::raise

#endif
