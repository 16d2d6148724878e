//===- Survivors.h - Mutants that nobody kills ------------------*- C++ -*-===//
//
// Survivors are listed in survivors.txt, one a line:
//
//   exchange, publish 2 dropped; same: why nothing changes
//   words, fence_async 1 dropped; missed: why it is not seen
//
// `same` says that the mutant computes the same with the same order of memory;
// `missed` counts against the interpreter.  An unexplained survivor fails the
// test, but for those that ask for no less order (Mutations.h), and so does an
// explanation of one that was killed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_SURVIVORS_H
#define ATTN_TEST_UNIT_INTERPRETER_SURVIVORS_H

#include "Mutants/Mutations.h"

namespace attn {

/// Judges the mutants of a module's kernel.  `verdict` is what there is to say
/// against a mutant, or nothing.
void expectKilled(const std::string &subject, mlir::ModuleOp module,
                  int atLeast,
                  llvm::function_ref<std::string(mlir::ModuleOp)> verdict);

} // namespace attn

#endif
