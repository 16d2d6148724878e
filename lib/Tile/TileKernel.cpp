//===- TileKernel.cpp - tile.kernel and tile.launch -----------------------===//

#include "attn/Tile/Tile.h"

#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// tile.kernel
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type, int64_t warps, int64_t minBlocksPerSm) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getWarpsAttrName(state.name),
                     builder.getI32IntegerAttr(warps));
  state.addAttribute(getMinBlocksPerSmAttrName(state.name),
                     builder.getI32IntegerAttr(minBlocksPerSm));
  state.addRegion();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(arguments, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), buildType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult KernelOp::verify() {
  if (getWarps() < 1 || getWarps() > 32)
    return emitOpError("expects 1 to 32 warps, but got ") << getWarps();
  if (getMinBlocksPerSm() < 1 || getMinBlocksPerSm() > 32)
    return emitOpError("expects 1 to 32 blocks per multiprocessor, but got ")
           << getMinBlocksPerSm();
  if (!getResultTypes().empty())
    return emitOpError("expects no results, but got ")
           << getResultTypes().size();
  for (Type type : getArgumentTypes())
    if (!isa<PtrType>(type) && !type.isInteger(32) && !type.isInteger(64) &&
        !type.isF32())
      return emitOpError("expects arguments of type !tile.ptr, i32, i64 or "
                         "f32, but got ")
             << type;
  if (getBody().empty())
    return emitOpError("expects a body, but got a declaration");
  if (getBody().back().empty() || !isa<ReturnOp>(getBody().back().back()))
    return emitOpError("expects tile.return at the end of its body");
  return success();
}

//===----------------------------------------------------------------------===//
// tile.launch
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel =
      symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("expects the name of a tile.kernel, but got ")
           << getKernelAttr();
  ArrayRef<Type> expected = kernel.getArgumentTypes();
  if (expected.size() != getKernelOperands().size())
    return emitOpError("expects ")
           << expected.size() << " arguments for " << getKernelAttr()
           << ", but got " << getKernelOperands().size();
  for (auto [index, pair] :
       llvm::enumerate(llvm::zip(expected, getKernelOperands().getTypes()))) {
    auto [want, got] = pair;
    auto memref = dyn_cast<MemRefType>(got);
    auto pointer = dyn_cast<PtrType>(want);
    bool matches =
        pointer ? memref && memref.getElementType() == pointer.getElementType()
                : want == got;
    if (!matches)
      return emitOpError("expects argument ")
             << index << " to match " << want << ", but got " << got;
  }
  return success();
}
