//===- BuiltKernel.h - Is a built kernel right, byte for byte? --*- C++ -*-===//
//
// Runs the kernel of a case; its results are compared with the oracle, its
// bytes with those that the traffic analysis counts in the IR.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_BUILTKERNEL_H
#define ATTN_TEST_UNIT_INTERPRETER_BUILTKERNEL_H

#include "Harness/FlashCase.h"
#include "Harness/KernelTest.h"

namespace attn {

/// What FlashCase::errorOf may be: the bounds that GPU results are held to, but
/// for few weights at maxima that are whole powers of two, as blocks have them
/// whose weights are brought together: the largest weight of a row is rounded
/// too, and nothing cancels that.
double limitOf(const FlashCase &flash);
/// What FlashCase::largestErrorOf may be: two roundings, of a weight and of the
/// output.  Of f32 there is no such bound.
double limitOfLargest(const Problem &problem);
/// Exact factors make an exact LSE, but for its own rounding.
double limitOfLse(const Problem &problem);

class BuiltKernel : public ::testing::Test {
protected:
  BuiltKernel() { loadDialects(context); }

  void check(const Problem &problem, const Tiles &tiles,
             InterpreterOptions options = {});
  void check(FlashCase &flash, InterpreterOptions options = {});
  /// What moved is what a plan of that schedule promises: where all keys are
  /// used, that is what there is at most.
  void checkPromise(FlashCase &flash, const std::string &schedule);
  /// In both types, with heads of their own, grouped and one for all, and two
  /// batch entries; with and without LSE.
  void checkHeads(int64_t headDim, int64_t headDimV, const Tiles &withLse,
                  const Tiles &without);

  mlir::MLIRContext context;
};

} // namespace attn

#endif
