//===- Scalars.h - Arithmetic on one scalar of a kernel ---------*- C++ -*-===//
//
// Kernels steer themselves with `arith` on i1, i32, i64 and index.  Analyses
// need the same arithmetic on numbers, without building attributes.  The
// interpreter, which runs every op many times, decodes ops beforehand and has
// arithmetic of its own; so what it executes checks what is counted here.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_SCALARS_H
#define ATTN_TILE_SCALARS_H

#include "mlir/IR/Operation.h"

#include <cstdint>
#include <optional>

namespace attn::tile {

/// The result of an integer `arith` op (or constant) on integer operands, each
/// held sign-extended (an i1 as 0 or 1).  Nothing for an op that is not
/// integer arithmetic, for a division by zero or an overflowing one.
/// Example: `arith.minsi %a, %b : i32` with {3, -5} gives -5.
std::optional<int64_t> evaluateScalar(mlir::Operation *op,
                                      mlir::ArrayRef<int64_t> operands);

} // namespace attn::tile

#endif
