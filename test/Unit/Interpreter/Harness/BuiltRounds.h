//===- BuiltRounds.h - Are launches in rounds right, byte for byte? -*- C++
//-*-//
//
// Runs the kernels of a schedule whose launches take turns in rounds, forward.
// Results are compared with the oracle, bytes of every launch with those that
// the traffic analysis counts in the IR, and of all rounds with those that the
// schedule promises.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_BUILTROUNDS_H
#define ATTN_TEST_UNIT_INTERPRETER_BUILTROUNDS_H

#include "Harness/BuiltKernel.h"

#include <functional>

namespace attn {

class BuiltRounds : public ::testing::Test {
protected:
  explicit BuiltRounds(std::string schedule, std::string kernel)
      : schedule(std::move(schedule)), kernel(std::move(kernel)) {
    loadDialects(context);
  }

  void check(const Problem &problem, const Tiles &tiles,
             const InterpreterOptions &options = {});
  void check(FlashCase &flash, const InterpreterOptions &options = {});

  mlir::MLIRContext context;
  const std::string schedule, kernel;
  /// What is done to the kernels before they run, if anything.
  std::function<void(mlir::ModuleOp)> change;

private:
  struct Run;
  mlir::OwningOpRef<mlir::ModuleOp> build(const FlashCase &flash);
  void launch(Run &run, tile::KernelOp kernel, const Round &round);
  /// The argument for the parts of an input.
  KernelArgument partsOf(Run &run, Role input, bool isMap);
  static uint64_t exponentsOf(Run &run, Role input);
};

} // namespace attn

#endif
