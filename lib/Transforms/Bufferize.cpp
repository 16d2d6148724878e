//===- Bufferize.cpp - From tensors to memrefs, in nested modules too -----===//
//
// Upstream's one-shot bufferization looks at the functions of one module and
// leaves those of modules in it alone.
//
//===----------------------------------------------------------------------===//

#include "attn/Transforms/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_BUFFERIZEPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

/// Sums of gradients, which -attn-differentiate writes where a value is used
/// more than once, are arith ops on tensors.  Those do not bufferize, linalg
/// ops do.
static OpPassManager pipeline() {
  OpPassManager passes(ModuleOp::getOperationName());
  passes.addPass(createConvertElementwiseToLinalgPass());
  // Tiles are computed where they belong.
  passes.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  // A layer in a loop gives the next round another array than it took.
  options.allowReturnAllocsFromLoops = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  passes.addPass(bufferization::createOneShotBufferizePass(options));
  passes.addPass(attn::createFoldTransposesPass());
  passes.addPass(createConvertLinalgToLoopsPass());
  // Loops and numbers of tiling.
  passes.addPass(createForallToForLoopPass());
  passes.addPass(createLowerAffinePass());
  // A slice that was written in place is copied into itself.
  passes.addPass(createCSEPass());
  passes.addPass(createCanonicalizerPass());
  return passes;
}

namespace {

struct BufferizePass : attn::impl::BufferizePassBase<BufferizePass> {
  using BufferizePassBase::BufferizePassBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    BufferizePassBase::getDependentDialects(registry);
    pipeline().getDependentDialects(registry);
  }

  void runOnOperation() override {
    SmallVector<ModuleOp> modules;
    getOperation().walk([&](ModuleOp module) { modules.push_back(module); });
    OpPassManager passes = pipeline();
    for (ModuleOp module : modules)
      if (failed(runPipeline(passes, module)))
        return signalPassFailure();
  }
};

} // namespace
