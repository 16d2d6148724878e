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

#include <deque>

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

namespace {

/// Regions of attention are functions of numbers, in which nobody owns arrays:
/// they stand aside while ownership is worked out, which would give each array
/// that they capture an owner.
class RegionsAside {
public:
  explicit RegionsAside(func::FuncOp function) : function(function) {
    for (AttentionOpInterface op : opsWith(
             [](AttentionOpInterface op) { return op->getNumRegions() != 0; }))
      take(op);
  }

  void putBack() {
    for (AttentionOpInterface op :
         opsWith([](AttentionOpInterface op) { return op->hasAttr(kNumber); }))
      give(op);
  }

private:
  static constexpr StringLiteral kNumber = "aside.regions";

  SmallVector<AttentionOpInterface>
  opsWith(function_ref<bool(AttentionOpInterface)> isMeant) {
    SmallVector<AttentionOpInterface> ops;
    function.walk([&](AttentionOpInterface op) {
      if (isMeant(op))
        ops.push_back(op);
    });
    return ops;
  }

  /// The same op, with no regions so far.
  static OperationState without(Operation *op) {
    return {op->getLoc(), op->getName(), op->getOperands(),
            op->getResultTypes(), op->getAttrs()};
  }
  static void replace(Operation *op, OperationState &state) {
    OpBuilder b(op);
    op->replaceAllUsesWith(b.create(state));
    op->erase();
  }

  void take(Operation *op) {
    OperationState state = without(op);
    auto first = int64_t(aside.size());
    state.addAttribute(kNumber, OpBuilder(op).getI64IntegerAttr(first));
    counts[first] = op->getNumRegions();
    for (Region &region : op->getRegions())
      aside.emplace_back().takeBody(region);
    replace(op, state);
  }

  void give(Operation *op) {
    int64_t first = op->getAttrOfType<IntegerAttr>(kNumber).getInt();
    OperationState state = without(op);
    state.attributes.erase(kNumber);
    for (unsigned i = 0; i < counts.lookup(first); ++i)
      state.addRegion()->takeBody(aside[size_t(first) + i]);
    replace(op, state);
  }

  func::FuncOp function;
  std::deque<Region> aside;
  llvm::DenseMap<int64_t, unsigned> counts;
};

} // namespace

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
      RegionsAside regions(function);
      if (failed(runPipeline(each, function)))
        return signalPassFailure();
      regions.putBack();
    }
    if (isChanged && failed(runPipeline(whole, getOperation())))
      signalPassFailure();
  }
};

} // namespace
