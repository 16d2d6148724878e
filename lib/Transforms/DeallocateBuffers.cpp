//===- DeallocateBuffers.cpp - Who allocates frees ------------------------===//
//
// Bufferization allocates and never frees.  Upstream's ownership-based
// deallocation mends that, but fails in a function that frees by itself or
// whose effects are unknown.  So it is run where it can and where attention is.
//
//===----------------------------------------------------------------------===//

#include "attn/IR/Attn.h"
#include "attn/Transforms/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_DEALLOCATEBUFFERSPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

/// Whether it is known what an op does to memory, and that it neither frees nor
/// allocates otherwise than bufferization does.
static bool isUnderstood(Operation *op) {
  if (isa<memref::AllocOp, memref::AllocaOp, CallOpInterface>(op) ||
      isMemoryEffectFree(op))
    return true;
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface)
    return op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
           op->hasTrait<OpTrait::IsTerminator>();
  return !interface.hasEffect<MemoryEffects::Free>() &&
         !interface.hasEffect<MemoryEffects::Allocate>();
}

static bool canDeallocate(func::FuncOp function) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return false;
  WalkResult walked = function.getBody().walk([](Operation *op) {
    return isUnderstood(op) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted();
}

/// Functions with attention, and those that get arrays from them.
static SmallVector<func::FuncOp> functionsOfAttention(ModuleOp module) {
  SymbolTableCollection symbols;
  llvm::SetVector<Operation *> found;
  module.walk([&](AttentionOpInterface op) {
    if (auto function = op->getParentOfType<func::FuncOp>())
      found.insert(function);
  });
  for (bool grows = true; grows;) {
    size_t before = found.size();
    module.walk([&](func::CallOp call) {
      Operation *callee =
          symbols.lookupNearestSymbolFrom(call, call.getCalleeAttr());
      auto caller = call->getParentOfType<func::FuncOp>();
      if (caller && callee && found.contains(callee))
        found.insert(caller);
    });
    grows = found.size() != before;
  }
  return llvm::map_to_vector(
      found, [](Operation *op) { return cast<func::FuncOp>(op); });
}

static OpPassManager ofFunction() {
  OpPassManager passes(func::FuncOp::getOperationName());
  passes.addPass(bufferization::createOwnershipBasedBufferDeallocationPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(bufferization::createBufferDeallocationSimplificationPass());
  return passes;
}

static OpPassManager ofModule() {
  OpPassManager passes(ModuleOp::getOperationName());
  passes.addPass(bufferization::createLowerDeallocationsPass());
  passes.addPass(createConvertBufferizationToMemRefPass());
  return passes;
}

namespace {

struct DeallocateBuffersPass
    : attn::impl::DeallocateBuffersPassBase<DeallocateBuffersPass> {
  using DeallocateBuffersPassBase::DeallocateBuffersPassBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    DeallocateBuffersPassBase::getDependentDialects(registry);
    ofFunction().getDependentDialects(registry);
    ofModule().getDependentDialects(registry);
  }

  void runOnOperation() override {
    OpPassManager each = ofFunction(), whole = ofModule();
    bool isChanged = false;
    for (func::FuncOp function : functionsOfAttention(getOperation())) {
      if (!canDeallocate(function))
        continue;
      isChanged = true;
      if (failed(runPipeline(each, function)))
        return signalPassFailure();
    }
    if (isChanged && failed(runPipeline(whole, getOperation())))
      signalPassFailure();
  }
};

} // namespace
