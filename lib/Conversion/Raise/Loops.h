//===- Loops.h - Index variables that split and join ------------*- C++ -*-===//
//
// To know what an op computes, we follow one element of a tensor back to where
// it comes from.  Its indices are *loops*: variables of which we know the size,
// and which others they were split from or joined of.  Example: a tensor of
// [batch x heads, rows, d] that was collapsed from [batch, heads, rows, d]
//
//   element (c, i, d)   c = join(b, h)       of the collapsed tensor is
//   element (b, h, i, d)                     of the other
//
// and grouped heads appear by themselves: where K is broadcast from `hk` heads
// to `h`, h splits into (hk, g), and K does not depend on g.
//
// A loop that is not split is an atom.  Two elements of different tensors are
// compared by the atoms of their indices, so it does not matter who reshapes
// what.  The index into a dimension of size 1 is 0 and has no atoms.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_RAISE_LOOPS_H
#define ATTN_LIB_CONVERSION_RAISE_LOOPS_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace attn::raise {

using Index = mlir::AffineExpr;
using Indices = llvm::SmallVector<Index, 4>;

class Loops {
public:
  explicit Loops(mlir::MLIRContext *context) : context(context) {}

  /// A new loop of that size, which may be dynamic; 0 for size 1.
  Index add(int64_t size);
  /// Loops of these sizes whose row-major position is the loop; nothing if it
  /// has been split otherwise.
  std::optional<Indices> split(Index loop, llvm::ArrayRef<int64_t> sizes);
  /// The loop that is their row-major position.
  Index join(llvm::ArrayRef<Index> loops, llvm::ArrayRef<int64_t> sizes);

  /// What the index consists of, outermost first; nothing if it is more than a
  /// loop, such as a sum of two.
  std::optional<Indices> atoms(Index loop) const;
  int64_t size(Index atom) const;
  int64_t size(llvm::ArrayRef<Index> atoms) const;

  Index zero() const { return mlir::getAffineConstantExpr(0, context); }

private:
  mlir::MLIRContext *context;
  llvm::SmallVector<int64_t> sizes;
  llvm::DenseMap<Index, Indices> parts;
};

} // namespace attn::raise

#endif
