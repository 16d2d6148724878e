//===- SerializeKernels.cpp - Our gpu.modules become binaries -------------===//
//
// Upstream serializes every gpu.module that it finds, and fails at those that
// nobody has lowered.  So each of ours is taken out of its module for that.
//
//===----------------------------------------------------------------------===//

#include "attn/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/CompilationInterfaces.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_SERIALIZEKERNELSPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

namespace {

struct SerializeKernelsPass
    : attn::impl::SerializeKernelsPassBase<SerializeKernelsPass> {
  using SerializeKernelsPassBase::SerializeKernelsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    using Target = gpu::CompilationTarget;
    auto target = llvm::StringSwitch<std::optional<Target>>(format.getValue())
                      .Case("isa", Target::Assembly)
                      .Case("bin", Target::Binary)
                      .Default(std::nullopt);
    if (!target) {
      module.emitError("expects a format of isa or bin, but got '")
          << format.getValue() << "'";
      return signalPassFailure();
    }
    SmallVector<gpu::GPUModuleOp> ours;
    module.walk([&](gpu::GPUModuleOp each) {
      if (each->hasAttr(kernelsAttrName))
        ours.push_back(each);
    });
    for (gpu::GPUModuleOp each : ours)
      if (failed(serialize(each, *target)))
        return signalPassFailure();
  }

private:
  /// What is left of the kernels, a binary or still they, takes their place.
  static LogicalResult serialize(gpu::GPUModuleOp kernels,
                                 gpu::CompilationTarget target) {
    Block *block = kernels->getBlock();
    Block::iterator place = std::next(kernels->getIterator());
    OwningOpRef<ModuleOp> alone = ModuleOp::create(kernels.getLoc());
    kernels->remove();
    alone->push_back(kernels);
    gpu::TargetOptions options(/*toolkitPath=*/{}, /*librariesToLink=*/{},
                               /*cmdOptions=*/{}, /*elfSection=*/{}, target);
    LogicalResult made =
        gpu::transformGpuModulesToBinaries(*alone, nullptr, options);
    block->getOperations().splice(place, alone->getBody()->getOperations());
    return made;
  }
};

} // namespace
