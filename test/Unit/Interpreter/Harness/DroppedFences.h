//===- DroppedFences.h - Is a missing proxy fence found? --------*- C++ -*-===//
//
// Takes the proxy fences of global memory out of built kernels.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_DROPPEDFENCES_H
#define ATTN_TEST_UNIT_INTERPRETER_DROPPEDFENCES_H

#include "attn/Tile/Tile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

#include "gtest/gtest-spi.h"

#include <functional>
#include <string>

namespace attn {

/// `check` runs kernels as `change` leaves them.  Without the fences the
/// interpreter must say which write the load does not see.
inline void expectFencesNeeded(mlir::MLIRContext &context,
                               std::function<void(mlir::ModuleOp)> &change,
                               llvm::function_ref<void()> check) {
  int dropped = 0;
  change = [&](mlir::ModuleOp module) {
    module.walk([&](tile::FenceAsyncOp fence) {
      if (!fence.getGlobal())
        return;
      fence.erase();
      ++dropped;
    });
  };
  bool isFound = false;
  {
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) {
          isFound |=
              diagnostic.str().find("expects tile.fence_async global "
                                    "behind the write") != std::string::npos;
          return mlir::success();
        });
    testing::TestPartResultArray failures;
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::
            INTERCEPT_ONLY_CURRENT_THREAD,
        &failures);
    check();
  }
  change = {};
  EXPECT_GT(dropped, 0);
  EXPECT_TRUE(isFound);
}

} // namespace attn

#endif
