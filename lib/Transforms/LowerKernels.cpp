//===- LowerKernels.cpp - Our gpu.modules, down to the LLVM dialect -------===//
//
// A module may have gpu.modules of others, whose ops and pipelines are not ours
// to know.  So the pipeline of kernels is run on ours alone.
//
//===----------------------------------------------------------------------===//

#include "attn/IR/Attn.h"
#include "attn/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_LOWERKERNELSPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

static OpPassManager pipeline() {
  OpPassManager kernels(gpu::GPUModuleOp::getOperationName());
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createConvertToLLVMPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  kernels.addPass(createAnnotateLoopsPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  return kernels;
}

namespace {

struct LowerKernelsPass : attn::impl::LowerKernelsPassBase<LowerKernelsPass> {
  using LowerKernelsPassBase::LowerKernelsPassBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    LowerKernelsPassBase::getDependentDialects(registry);
    pipeline().getDependentDialects(registry);
  }

  void runOnOperation() override {
    OpPassManager kernels = pipeline();
    SmallVector<gpu::GPUModuleOp> ours;
    getOperation().walk([&](gpu::GPUModuleOp each) {
      if (each->hasAttr(kernelsAttrName))
        ours.push_back(each);
    });
    for (gpu::GPUModuleOp each : ours)
      if (failed(runPipeline(kernels, each)))
        return signalPassFailure();
    getOperation().walk(
        [](ModuleOp module) { module->removeAttr(machineAttrName); });
  }
};

} // namespace
