//===- KernelModule.cpp - Where kernels of a module go --------------------===//

#include "KernelModule.h"

#include "attn/Kernels/Kernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

static constexpr StringLiteral kModuleName = "attn_kernels";

gpu::GPUModuleOp KernelModule::at(Location loc) {
  if (kernels)
    return kernels;
  auto existing = module.lookupSymbol<gpu::GPUModuleOp>(kModuleName);
  if (existing && !existing.getOps<tile::KernelOp>().empty())
    return kernels = existing;
  OpBuilder builder(module.getContext());
  kernels = gpu::GPUModuleOp::create(builder, loc, kModuleName);
  SymbolTable(module).insert(kernels, module.getBody()->begin());
  return kernels;
}

std::string KernelModule::uniqueName(const std::string &name) {
  std::string candidate = name;
  for (int i = 1; kernels.lookupSymbol(candidate); ++i)
    candidate = name + "_" + std::to_string(i);
  return candidate;
}

SymbolRefAttr KernelModule::symbolOf(Operation *kernel) {
  return SymbolRefAttr::get(
      kernel->getContext(), kernels.getName(),
      {FlatSymbolRefAttr::get(SymbolTable::getSymbolName(kernel))});
}

LogicalResult attn::checkPlace(Operation *op, ModuleOp module) {
  for (Operation *parent = op->getParentOp(); parent && parent != module;
       parent = parent->getParentOp())
    if (isa<gpu::GPUFuncOp, gpu::LaunchOp, gpu::GPUModuleOp>(parent))
      return op->emitOpError("expects to stand in a function of the host, "
                             "which launches kernels, but got '")
             << parent->getName() << "'";
  return success();
}

void attn::addArray(ImplicitLocOpBuilder &b, llvm::StringMap<Value> &to,
                    StringRef name, Value memref) {
  auto wide = [&](Value index) {
    return b.createOrFold<arith::IndexCastOp>(b.getI64Type(), index);
  };
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
  to[name] = to[mapRole(name)] = memref;
  to[offsetRole(name)] = wide(metadata.getOffset());
  constexpr StringLiteral axes[] = {"batch", "head", "row"};
  for (auto [axis, stride] : llvm::zip(axes, metadata.getStrides()))
    to[strideRole(name, axis)] = wide(stride);
}
