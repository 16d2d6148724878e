//===- Launches.cpp - tile.launch on the host -----------------------------===//

#include "Lane.h"

#include "attn/Tile/SharedMemory.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// The address that a kernel's pointer argument takes.
static Value addressOf(ImplicitLocOpBuilder &b, Value memref) {
  Value index = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  Value integer = arith::IndexCastOp::create(b, b.getI64Type(), index);
  return LLVM::IntToPtrOp::create(
      b,
      LLVM::LLVMPointerType::get(b.getContext(),
                                 unsigned(NVVM::NVVMMemorySpace::Global)),
      integer);
}

static LogicalResult lowerLaunch(LaunchOp op, SymbolTableCollection &symbols) {
  auto kernel =
      symbols.lookupNearestSymbolFrom<KernelOp>(op, op.getKernelAttr());
  if (!kernel)
    return op.emitOpError("expects a kernel that is not lowered yet");
  OpBuilder builder(op);
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  SmallVector<Value> operands;
  for (Value operand : op.getKernelOperands())
    operands.push_back(
        isa<MemRefType>(operand.getType()) ? addressOf(b, operand) : operand);
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value threads = arith::ConstantIndexOp::create(b, kernel.threads());
  Value shared = arith::ConstantOp::create(
      b, b.getI32IntegerAttr(SharedMemory(kernel).totalBytes()));
  gpu::LaunchFuncOp::create(
      b, op.getKernelAttr(),
      gpu::KernelDim3{op.getGridX(), op.getGridY(), op.getGridZ()},
      gpu::KernelDim3{threads, one, one}, shared, operands);
  op.erase();
  return success();
}

LogicalResult attn::lowerLaunches(ModuleOp module) {
  SymbolTableCollection symbols;
  SmallVector<LaunchOp> launches;
  module.walk([&](LaunchOp op) { launches.push_back(op); });
  for (LaunchOp op : launches)
    if (failed(lowerLaunch(op, symbols)))
      return failure();
  if (!launches.empty())
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    UnitAttr::get(module.getContext()));
  return success();
}
