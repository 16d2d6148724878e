//===- AttachNVVMTarget.cpp - Which chip to compile for -------------------===//

#include "attn/Tile/Tile.h"
#include "attn/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_ATTACHNVVMTARGETPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

/// The oldest PTX version that knows the chip, but at least 8.0: drivers accept
/// PTX no newer than themselves.
static StringRef ptxFeature(const Machine &machine) {
  if (machine.computeCapability >= 120)
    return "+ptx87";
  if (machine.computeCapability >= 100)
    return "+ptx86";
  return "+ptx80";
}

namespace {

struct AttachNVVMTargetPass
    : attn::impl::AttachNVVMTargetPassBase<AttachNVVMTargetPass> {
  using AttachNVVMTargetPassBase::AttachNVVMTargetPassBase;

  void runOnOperation() override {
    WalkResult walked = getOperation().walk([&](gpu::GPUModuleOp each) {
      return each.getOps<tile::KernelOp>().empty() || succeeded(attach(each))
                 ? WalkResult::skip()
                 : WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult attach(gpu::GPUModuleOp kernels) {
    std::optional<Machine> machine = machineFor(kernels);
    if (!machine)
      return kernels->getParentOfType<ModuleOp>().emitError(
                 "expects the module attribute ")
             << machineAttrName << ": run -attn-attach-machine first";
    Attribute target = NVVM::NVVMTargetAttr::get(
        &getContext(), /*optLevel=*/3, "nvptx64-nvidia-cuda", machine->chip,
        ptxFeature(*machine));
    kernels.setTargetsAttr(ArrayAttr::get(&getContext(), target));
    kernels->setAttr(kernelsAttrName, UnitAttr::get(&getContext()));
    return success();
  }
};

} // namespace
