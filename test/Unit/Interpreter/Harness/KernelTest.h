//===- KernelTest.h - Runs kernels written in a test ------------*- C++ -*-===//
//
// A test parses the text of a kernel, gives it arrays, runs it and looks at
// the arrays or at the diagnostics.  The line of an expected error ends in the
// comment `// HERE`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_KERNELTEST_H
#define ATTN_TEST_UNIT_INTERPRETER_KERNELTEST_H

#include "../../Seed.h"
#include "../../Share.h"

#include "attn/Interpreter/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace attn {

/// Registers and loads what kernels and host functions are made of.
void loadDialects(mlir::MLIRContext &context);

/// An error as the handler saw it.
struct Diagnosed {
  unsigned line;
  std::string text;
  /// Notes, one per line.
  std::string notes;
};

class KernelTest : public ::testing::Test {
protected:
  KernelTest() { loadDialects(context); }

  /// A text, and what stands in its place.
  using Change = std::pair<std::string, std::string>;

  /// Parses a module, with the first place of each change replaced; its first
  /// kernel is what `run` runs.
  void parse(const std::string &text, const std::vector<Change> &changes = {});

  uint64_t allocateFloats(const std::vector<float> &values);
  /// Rounded to bf16.
  uint64_t allocateBf16(const std::vector<float> &values);
  uint64_t allocateUninitialised(int64_t bytes) {
    return memory.allocate(bytes);
  }
  std::vector<float> floats(uint64_t address, int64_t count);
  std::vector<float> bf16s(uint64_t address, int64_t count);
  std::vector<float> f16s(uint64_t address, int64_t count);

  /// True when no error was reported; what was is in `errors`.
  bool run(const std::vector<KernelArgument> &arguments,
           std::array<int64_t, 3> grid = {1, 1, 1},
           InterpreterOptions options = {});
  /// Runs in all warp orders; each must report first the error with this text
  /// in it, at the line marked `// HERE`.
  void expectError(const std::vector<KernelArgument> &arguments,
                   const std::string &message, int64_t blocks = 1);

  /// The first error has one of the messages in it.
  void expectFirstError(const std::vector<std::string> &messages);
  /// `expectKilled` of the module's mutants: none runs in all orders without an
  /// error and is right.
  void
  expectMutantsKilled(const std::string &subject, int atLeast,
                      const std::vector<InterpreterOptions> &orders,
                      llvm::function_ref<bool(const InterpreterOptions &)> runs,
                      llvm::function_ref<bool()> isRight);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string source;
  GlobalMemory memory;
  std::vector<Diagnosed> errors;
  tile::Traffic traffic;
};

} // namespace attn

#endif
