//===- AllocateOnDevice.cpp - Arrays of kernels are the GPU's -------------===//
//
// Kernels read and write memory of the GPU.  So whatever may be an array of a
// launch lies there: values between which an array flows, through views, loops,
// branches and calls, are all on the GPU or none is.  What the module allocates
// for them is allocated there, and what the host does with them is a copy or an
// error.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/DeviceMemory.h"
#include "attn/Tile/Tile.h"
#include "attn/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_ALLOCATEONDEVICEPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

namespace {

/// The arrays that launches may get.
class DeviceArrays {
public:
  explicit DeviceArrays(ModuleOp module) : flow(module) {
    module.walk([&](func::FuncOp function) {
      for (func::ReturnOp op : function.getOps<func::ReturnOp>())
        returns[function].push_back(op);
    });
    module.walk([&](func::CallOp call) {
      if (auto callee = dyn_cast_or_null<func::FuncOp>(
              symbols.lookupNearestSymbolFrom(call, call.getCalleeAttr())))
        calls[callee].push_back(call);
    });
    module.walk([&](tile::LaunchOp launch) {
      for (Value operand : launch.getKernelOperands())
        add(operand, launch);
    });
    for (size_t next = 0; next < arrays.size(); ++next)
      spread(arrays[next]);
  }

  bool contains(Value value) const { return launches.contains(value); }
  ArrayRef<Value> list() const { return arrays; }
  /// A launch that may get the array.
  Operation *launchOf(Value value) const { return launches.lookup(value); }

private:
  void add(Value value, Operation *launch) {
    if (isa<BaseMemRefType>(value.getType()) &&
        launches.try_emplace(value, launch).second)
      arrays.push_back(value);
  }

  void spread(Value value) {
    Operation *launch = launchOf(value);
    for (Value other : flow.resolve(value))
      add(other, launch);
    for (Value other : flow.resolveReverse(value))
      add(other, launch);
    // The analysis knows of it only where its interface is registered.
    if (auto select = value.getDefiningOp<arith::SelectOp>()) {
      add(select.getTrueValue(), launch);
      add(select.getFalseValue(), launch);
    }
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (auto function =
              dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
          function && argument.getOwner()->isEntryBlock())
        for (func::CallOp call : calls.lookup(function))
          add(call.getOperand(argument.getArgNumber()), launch);
    if (auto call = value.getDefiningOp<func::CallOp>())
      if (auto callee = dyn_cast_or_null<func::FuncOp>(
              symbols.lookupNearestSymbolFrom(call, call.getCalleeAttr())))
        for (func::ReturnOp op : returns.lookup(callee))
          add(op.getOperand(cast<OpResult>(value).getResultNumber()), launch);
    for (OpOperand &use : value.getUses())
      spreadInto(use, launch);
  }

  void spreadInto(OpOperand &use, Operation *launch) {
    unsigned number = use.getOperandNumber();
    if (auto call = dyn_cast<func::CallOp>(use.getOwner())) {
      auto callee = dyn_cast_or_null<func::FuncOp>(
          symbols.lookupNearestSymbolFrom(call, call.getCalleeAttr()));
      if (callee && !callee.isExternal())
        add(callee.getArgument(number), launch);
    }
    if (auto select = dyn_cast<arith::SelectOp>(use.getOwner()))
      add(select.getResult(), launch);
    if (auto op = dyn_cast<func::ReturnOp>(use.getOwner()))
      for (func::CallOp call :
           calls.lookup(op->getParentOfType<func::FuncOp>()))
        add(call.getResult(number), launch);
  }

  BufferViewFlowAnalysis flow;
  SymbolTableCollection symbols;
  llvm::DenseMap<Operation *, SmallVector<func::ReturnOp>> returns;
  llvm::DenseMap<Operation *, SmallVector<func::CallOp>> calls;
  llvm::DenseMap<Value, Operation *> launches;
  SmallVector<Value> arrays;
};

/// What the host does with arrays of the GPU.
class HostOps {
public:
  explicit HostOps(const DeviceArrays &arrays) : arrays(arrays) {}

  LogicalResult check(Value array) {
    if (Operation *op = array.getDefiningOp();
        op && isa<memref::AllocaOp, memref::GetGlobalOp>(op))
      return refuse(op, array, "makes");
    for (Operation *user : array.getUsers())
      if (failed(check(user, array)))
        return failure();
    return success();
  }

  void move(Value array) {
    if (auto op = array.getDefiningOp<memref::AllocOp>())
      changes.insert(op);
    for (Operation *user : array.getUsers())
      if (isa<memref::CopyOp, memref::DeallocOp>(user))
        changes.insert(user);
  }

  void apply() {
    for (Operation *op : changes) {
      OpBuilder builder(op);
      ImplicitLocOpBuilder b(op->getLoc(), builder);
      StreamOps stream(b);
      Value memory;
      llvm::TypeSwitch<Operation *>(op)
          .Case([&](memref::AllocOp alloc) {
            memory = stream.allocate(alloc.getType(), alloc.getDynamicSizes());
          })
          .Case([&](memref::CopyOp copy) {
            stream.copy(copy.getTarget(), copy.getSource());
          })
          .Case([&](memref::DeallocOp dealloc) {
            stream.free(dealloc.getMemref());
          });
      stream.wait();
      if (memory)
        op->getResult(0).replaceAllUsesWith(memory);
      op->erase();
    }
  }

private:
  LogicalResult check(Operation *user, Value array) {
    if (isa<tile::LaunchOp, memref::DeallocOp>(user) ||
        isa<gpu::GPUDialect>(user->getDialect()))
      return success();
    if (auto copy = dyn_cast<memref::CopyOp>(user)) {
      for (Value side : {copy.getSource(), copy.getTarget()})
        if (!cast<MemRefType>(side.getType()).getLayout().isIdentity())
          return refuse(user, array, "copies parts of");
      return success();
    }
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    if (!effects)
      return success();
    SmallVector<MemoryEffects::EffectInstance> ofArray;
    effects.getEffectsOnValue(array, ofArray);
    for (const MemoryEffects::EffectInstance &effect : ofArray)
      if (isa<MemoryEffects::Write>(effect.getEffect()))
        return refuse(user, array, "writes");
    return ofArray.empty() ? success() : refuse(user, array, "reads");
  }

  LogicalResult refuse(Operation *op, Value array, StringRef verb) {
    InFlightDiagnostic error =
        op->emitOpError("expects an array of the host, but ")
        << verb << " one that lies on the GPU, since a kernel gets it";
    error.attachNote(arrays.launchOf(array)->getLoc()) << "the kernel is here";
    error.attachNote() << "memory=host keeps arrays on the host, and copies "
                          "them for kernels";
    return error;
  }

  const DeviceArrays &arrays;
  llvm::SetVector<Operation *> changes;
};

struct AllocateOnDevicePass
    : attn::impl::AllocateOnDevicePassBase<AllocateOnDevicePass> {
  using AllocateOnDevicePassBase::AllocateOnDevicePassBase;

  void runOnOperation() override {
    DeviceArrays arrays(getOperation());
    HostOps ops(arrays);
    for (Value array : arrays.list()) {
      if (failed(ops.check(array)))
        return signalPassFailure();
      ops.move(array);
    }
    ops.apply();
  }
};

} // namespace
