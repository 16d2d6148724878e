//===- Pipelines.cpp - From attn to tile, NVVM and binary -----------------===//

#include "attn/Pipelines/Pipelines.h"

#include "attn/Conversion/Passes.h"
#include "attn/Transforms/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

/// Sums of gradients, which -attn-differentiate writes where a value is used
/// more than once, are arith ops on tensors.  Those do not bufferize, linalg
/// ops do.
static void addBufferization(OpPassManager &pm) {
  pm.addPass(createConvertElementwiseToLinalgPass());
  // Tiles are computed where they belong.
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  // A layer in a loop gives the next round another array than it took.
  options.allowReturnAllocsFromLoops = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  pm.addPass(createConvertLinalgToLoopsPass());
  // Loops and numbers of tiling.
  pm.addPass(createForallToForLoopPass());
  pm.addPass(createLowerAffinePass());
  // What was computed where it belongs is then copied to itself.
  pm.addPass(createCSEPass());
}

void attn::buildAttnToTilePipeline(OpPassManager &pm,
                                   const LoweringOptions &options) {
  AttachMachinePassOptions machine;
  machine.machine = options.machine;
  pm.addPass(createAttachMachinePass(machine));
  SelectSchedulePassOptions select;
  select.schedule = options.schedule;
  select.explain = options.explain;
  pm.addPass(createSelectSchedulePass(select));
  // What nobody uses is not computed; what is wrong with it has been told.
  pm.addPass(createCanonicalizerPass());
  addBufferization(pm);
  pm.addPass(createAttnToTilePass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createCheckFencesPass());
  pm.addPass(createCheckFootprintPass());
  pm.addPass(createCheckTrafficPass());
}

void attn::buildTileToNVVMPipeline(OpPassManager &pm) {
  pm.addPass(createAttachNVVMTargetPass());
  pm.addPass(createTileToNVVMPass());
  pm.addPass(createLowerKernelsPass());
}

void attn::buildNVVMToBinaryPipeline(OpPassManager &pm, BinaryFormat format) {
  SerializeKernelsPassOptions binary;
  binary.format = format == BinaryFormat::isa ? "isa" : "bin";
  pm.addPass(createSerializeKernelsPass(binary));
}

void attn::buildAttnToNVVMPipeline(OpPassManager &pm,
                                   const LoweringOptions &options) {
  buildAttnToTilePipeline(pm, options);
  buildTileToNVVMPipeline(pm);
}

void attn::buildAttnToBinaryPipeline(OpPassManager &pm,
                                     const BinaryOptions &options) {
  buildAttnToNVVMPipeline(pm, options);
  buildNVVMToBinaryPipeline(pm, options.format);
}

void attn::registerPipelines() {
  PassPipelineRegistration<LoweringOptions>(
      "attn-to-tile", "attn to tile kernels, checked against their plans",
      buildAttnToTilePipeline);
  PassPipelineRegistration<LoweringOptions>(
      "attn-to-nvvm", "attn to NVVM kernels and host code",
      buildAttnToNVVMPipeline);
  PassPipelineRegistration<BinaryOptions>(
      "attn-to-binary", "attn to PTX (format=isa) or cubin (format=bin)",
      buildAttnToBinaryPipeline);
}
