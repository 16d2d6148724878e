//===- Mutations.h - Wrong kernels, made on purpose -------------*- C++ -*-===//
//
// A mutant is a kernel in which one op that orders memory (a copy, the end of
// its group, a wait, an arrival, a fence, a barrier, a message, or a condition
// around such) was changed:
//
//   dropped     it is not there
//   moved       up or down, over the accesses up to the next op that orders
//               them; over that op where it is an access itself, or none comes
//               before
//   weakened    a wait leaves one group more in flight or names the other
//               parity, a barrier takes one arrival or warp less, an await one
//               less, who met at a barrier only comes to it, an arrival is not
//               in all blocks of the cluster, sums are read but not in memory
//   raised      a barrier takes one arrival or warp more, a flag one count
//   repeated    it is there twice
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
  /// `consumer mbarrier_wait key_full 3 dropped`: the target, the change.
  std::string name, target;
  /// Whether it changes how blocks tell each other, by flags.
  bool isOfFlags;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Why it asks for no less order than the kernel, by its change and, of one
  /// that moved, by the kinds of the ops that changed places; empty where it
  /// may.
  std::string asksForMore;
};

/// The ops of a module's kernel that are changed, in the order of its text.
struct Target {
  /// `consumer mbarrier_wait key_full 3`: its role, its kind, the buffer,
  /// barrier, queue or flags that it works on, and which of several such it is.
  std::string name;
  mlir::Operation *op;
};
std::vector<Target> mutationTargets(mlir::ModuleOp module);

/// Calls `visit` with every mutant of the module's kernel that verifies and
/// whose name `isWanted`.
void forEachMutant(mlir::ModuleOp module,
                   llvm::function_ref<bool(const std::string &)> isWanted,
                   llvm::function_ref<void(Mutant &)> visit);
/// All of them.
std::vector<Mutant> mutants(mlir::ModuleOp module);

} // namespace attn

#endif
