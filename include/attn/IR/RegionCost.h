//===- RegionCost.h - What kernels do for a region, per score ---*- C++ -*-===//
//
// Instructions of a lane by what a value depends on, as kernels place it
// (Region/RegionCode.h):
//
//   batch entry, head, sizes   once a tile, in a register
//   the query                  once a tile and row, in two registers of a lane
//   the key                    once for both rows that a lane has: one half
//   i - j alone                once a diagonal of a lane's two rows: 0.55
//   both, or the score         once a score
//
// Constants are folded, a product is contracted with the sum it goes into, and
// a last constant factor is left to the softmax.
//
// Example: z + table[min(i - j, 4095)] is one sum, and of 0.55 a difference
// with the minimum, an address, a bound and a read.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_REGIONCOST_H
#define ATTN_IR_REGIONCOST_H

#include "attn/Schedule/Problem.h"

#include "mlir/IR/Region.h"

namespace attn {

/// Of a region of `sees` or `score` that the verifier has seen, where Q and K
/// have that type.
RegionCost costOf(mlir::Region &region, DataType inputs);

/// Whether a region's tanh is that of f32, and not the machine's approximation:
/// a score of f32 is to be exact to f32, and what a query sees must not depend
/// on who asks, kernels of attention or those that make lists.
bool isTanhExact(mlir::Region &region, DataType inputs);

/// Whether what a region of `score` returns is z and something that does not
/// depend on it, so that a gradient passes as it is.
bool addsToScore(mlir::Region &score);

/// `2 instructions a score, 1 functions, 4 more for its slope`, what there is.
std::string str(const RegionCost &cost);

} // namespace attn

#endif
