//===- BuiltKernel.h - Is a built kernel right, byte for byte? --*- C++ -*-===//
//
// Runs the kernel of a case; its results are compared with the oracle, its
// bytes with those that the traffic analysis counts in the IR.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_BUILTKERNEL_H
#define ATTN_TEST_UNIT_INTERPRETER_BUILTKERNEL_H

#include "FlashCase.h"
#include "KernelTest.h"

namespace attn {

class BuiltKernel : public ::testing::Test {
protected:
  BuiltKernel() { loadDialects(context); }

  void check(const Problem &problem, const Tiles &tiles,
             InterpreterOptions options = {});
  void check(FlashCase &flash, InterpreterOptions options = {});
  /// In both types, with heads of their own, grouped and one for all, and two
  /// batch entries; with and without LSE.
  void checkHeads(int64_t headDim, int64_t headDimV, const Tiles &withLse,
                  const Tiles &without);

  /// One of every kind, and windows that end on the diagonal or behind it.
  static constexpr Mask kMasks[] = {{},
                                    {MaskKind::causal},
                                    {MaskKind::causalBottomRight},
                                    {MaskKind::window, 7, 12},
                                    {MaskKind::window, 40, 0}};

  static Problem problem(int64_t queries, int64_t keys, int64_t headDim,
                         int64_t headDimV, Mask mask = {},
                         DataType type = DataType::bf16);

  mlir::MLIRContext context;
};

} // namespace attn

#endif
