//===- FlashWgmmaTest.h - What tests of flash on wgmma share ----*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_FLASHWGMMATEST_H
#define ATTN_TEST_UNIT_INTERPRETER_FLASHWGMMATEST_H

#include "Harness/FlashCase.h"
#include "Harness/KernelTest.h"

namespace attn {

class FlashWgmmaTest : public ::testing::Test {
protected:
  FlashWgmmaTest() { loadDialects(context); }

  /// Runs a case: results are right, and what moves is what the IR says, which
  /// is left in `counted`.
  void check(FlashCase &flash, llvm::ArrayRef<InterpreterOptions> runs) {
    const Problem &problem = flash.problem;
    mlir::OwningOpRef<mlir::ModuleOp> module =
        buildFlash(context, problem, flash.tiles);
    tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
    SCOPED_TRACE(flash.tiles.str() + "; queries " +
                 std::to_string(problem.queries) + ", keys " +
                 std::to_string(problem.keys) + ", heads " +
                 std::to_string(problem.heads) + ", d " +
                 std::to_string(problem.headDim) + ", d_v " +
                 std::to_string(problem.headDimV) + ", " + str(problem.mask) +
                 ", multiprocessors " + std::to_string(flash.multiprocessors));
    mlir::FailureOr<tile::Traffic> traffic =
        tile::countTraffic(kernel, flash.grid(), flash.scalars(kernel));
    ASSERT_TRUE(mlir::succeeded(traffic));
    counted = *traffic;
    for (const InterpreterOptions &options : runs) {
      Outcome outcome = flash.run(kernel, options);
      ASSERT_EQ(outcome.error, "");
      // P has three bits behind the first in f8E4M3FN, and seven in bf16.
      bool isF8 = problem.dtype == DataType::f8e4m3;
      EXPECT_LT(outcome.relativeError, isF8 ? 6e-2 : 4e-3);
      EXPECT_LT(outcome.lseError, 1e-4);
      EXPECT_EQ(counted.global, outcome.traffic.global);
      EXPECT_EQ(counted.smem, outcome.traffic.smem);
    }
  }

  static Problem problem(int64_t queries, int64_t keys, int64_t headDim,
                         int64_t headDimV, Mask mask = {}) {
    Problem p;
    p.queries = queries;
    p.keys = keys;
    p.headDim = headDim;
    p.headDimV = headDimV;
    p.mask = mask;
    p.heads = 2;
    p.kvHeads = 1;
    return p;
  }

  mlir::MLIRContext context;
  tile::Traffic counted;
};

} // namespace attn

#endif
