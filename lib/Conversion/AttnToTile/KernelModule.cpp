//===- KernelModule.cpp - Where kernels of a module go --------------------===//

#include "KernelModule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OperationSupport.h"

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

std::unique_ptr<Region> attn::copyOf(Region *region) {
  if (!region)
    return nullptr;
  auto copy = std::make_unique<Region>();
  IRMapping mapping;
  region->cloneInto(copy.get(), mapping);
  return copy;
}

bool attn::sameRegion(Region *a, Region *b) {
  if (!a || !b)
    return a == b;
  return OperationEquivalence::isRegionEquivalentTo(
      a, b, OperationEquivalence::IgnoreLocations);
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

void ArgumentValues::setArray(ImplicitLocOpBuilder &b,
                              const ArgumentRole &array, Value memref) {
  auto wide = [&](Value index) {
    return b.createOrFold<arith::IndexCastOp>(b.getI64Type(), index);
  };
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
  set(array, memref);
  for (Facet map : kMaps)
    set(array.at(map), memref);
  set(array.at(Facet::offset), wide(metadata.getOffset()));
  for (auto [facet, stride] : llvm::zip(kStrides, metadata.getStrides()))
    set(array.at(facet), wide(stride));
}

void ArgumentValues::setShared(ImplicitLocOpBuilder &b,
                               const ArgumentRole &array, Value memref) {
  setArray(b, array, memref);
  ArrayRef<int64_t> sizes = cast<ShapedType>(memref.getType()).getShape();
  for (auto [stride, size] : llvm::zip(kStrides, sizes))
    if (size == 1)
      set(array.at(stride),
          arith::ConstantOp::create(b, b.getI64IntegerAttr(0)));
}

void ArgumentValues::setCapture(ImplicitLocOpBuilder &b,
                                const ArgumentRole &capture, Value memref) {
  auto wide = [&](Value index) {
    return b.createOrFold<arith::IndexCastOp>(b.getI64Type(), index);
  };
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
  set(capture, memref);
  set(capture.at(Facet::offset), wide(metadata.getOffset()));
  for (auto [facet, stride] :
       llvm::zip(kCapturedStrides, metadata.getStrides()))
    set(capture.at(facet), wide(stride));
  for (auto [facet, size] : llvm::zip(kCapturedSizes, metadata.getSizes()))
    set(capture.at(facet), wide(size));
}

Value ArgumentValues::lookup(const ArgumentRole &role) const {
  auto found = values.find(role);
  return found == values.end() ? Value() : found->second;
}

LogicalResult attn::launch(ImplicitLocOpBuilder &b, SymbolRefAttr symbol,
                           tile::KernelOp kernel, std::array<Value, 3> grid,
                           ArrayRef<Value> operands) {
  for (auto [i, operand] : llvm::enumerate(operands))
    if (!operand)
      return kernel.emitOpError("expects a value for argument ")
             << i << ", " << str(*roleOf(kernel, i))
             << ", but its launch has none";
  auto [x, y, z] = grid;
  tile::LaunchOp::create(b, symbol, x, y, z, operands);
  return success();
}

LogicalResult attn::launch(ImplicitLocOpBuilder &b, SymbolRefAttr symbol,
                           tile::KernelOp kernel, std::array<Value, 3> grid,
                           const ArgumentValues &values) {
  FailureOr<SmallVector<ArgumentRole>> roles = rolesOf(kernel);
  if (failed(roles))
    return failure();
  SmallVector<Value> operands;
  for (const ArgumentRole &role : *roles)
    operands.push_back(values.lookup(role));
  return launch(b, symbol, kernel, grid, operands);
}

FailureOr<ArgumentRole> attn::roleOfArray(Operation *op, StringRef name) {
  std::optional<ArgumentRole> role = parseRole(std::string_view(name));
  if (role && role->facet == Facet::itself && role->facts().isArray())
    return *role;
  InFlightDiagnostic error =
      op->emitOpError("expects arrays that play a role in kernels, but got '")
      << name << "'";
  error.attachNote() << "roles: " << roleNames();
  return error;
}
