//===- Mutations.h - Wrong kernels, made on purpose -------------*- C++ -*-===//
//
// A mutant is a kernel in which one op that orders memory (a copy, the end of
// its group, a wait, an arrival, a fence, a barrier, or a condition around
// copies) was left out, moved by one step, or weakened: a wait that leaves one
// group more in flight or names the other parity, a barrier of one arrival or
// warp more or less, an await of one less, an arrival not in all blocks of the
// cluster.  A step is the next op in its block that touches memory or
// orders it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_MUTATIONS_H
#define ATTN_TEST_UNIT_INTERPRETER_MUTATIONS_H

#include "attn/Tile/Tile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace attn {

struct Mutant {
  /// `wait_group 3 dropped`: the op, its number among its kind, the change.
  std::string name;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// All mutants of the module's kernel that verify.
std::vector<Mutant> mutants(mlir::ModuleOp module);

} // namespace attn

#endif
