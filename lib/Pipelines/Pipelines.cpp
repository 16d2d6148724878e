//===- Pipelines.cpp - From attn to tile, NVVM and binary -----------------===//

#include "attn/Pipelines/Pipelines.h"

#include "attn/Conversion/Passes.h"
#include "attn/Transforms/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

static void buildToTile(OpPassManager &pm, const LoweringOptions &options,
                        ArrayMemory memory) {
  // Attention that is not ours is not compiled, and somebody should say so.
  RaisePassOptions raise;
  raise.reportOnly = true;
  pm.addPass(createRaisePass(raise));
  AttachMachinePassOptions machine;
  machine.machine = options.machine;
  pm.addPass(createAttachMachinePass(machine));
  DeriveMasksPassOptions derive;
  derive.explain = options.explain;
  pm.addPass(createDeriveMasksPass(derive));
  SelectSchedulePassOptions select;
  select.schedule = options.schedule;
  select.explain = options.explain;
  pm.addPass(createSelectSchedulePass(select));
  // What nobody uses is not computed; what is wrong with it has been told.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createBufferizePass());
  if (memory != ArrayMemory::open)
    pm.addPass(createDeallocateBuffersPass());
  if (memory == ArrayMemory::host)
    pm.addPass(createCopyToDevicePass());
  pm.addPass(createAttnToTilePass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createCheckFencesPass());
  pm.addPass(createCheckFootprintPass());
  pm.addPass(createCheckTrafficPass());
}

void attn::buildAttnToTilePipeline(OpPassManager &pm,
                                   const LoweringOptions &options) {
  buildToTile(pm, options, options.memory);
}

void attn::buildTileToNVVMPipeline(OpPassManager &pm) {
  pm.addPass(createAllocateOnDevicePass());
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
  ArrayMemory memory = options.memory;
  buildToTile(pm, options,
              memory == ArrayMemory::open ? ArrayMemory::device : memory);
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
