//===- TileKernel.cpp - tile.kernel and tile.launch -----------------------===//

#include "attn/Tile/Grid.h"
#include "attn/Tile/Tile.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/FunctionImplementation.h"

#include <limits>

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
  // What every GPU with clusters can launch.
  constexpr int64_t mostBlocksOfCluster = 8;
  if (getCluster() < 1 || getCluster() > mostBlocksOfCluster)
    return emitOpError("expects clusters of 1 to ")
           << mostBlocksOfCluster << " blocks, but got " << getCluster();
  if (!getResultTypes().empty())
    return emitOpError("expects no results, but got ")
           << getResultTypes().size();
  for (Type type : getArgumentTypes())
    if (!isa<PtrType, TensorMapType>(type) && !type.isInteger(32) &&
        !type.isInteger(64) && !type.isF32())
      return emitOpError("expects arguments of type !tile.ptr, "
                         "!tile.tensor_map, i32, i64 or f32, but got ")
             << type;
  if (getBody().empty())
    return emitOpError("expects a body, but got a declaration");
  if (getBody().back().empty() || !isa<ReturnOp>(getBody().back().back()))
    return emitOpError("expects tile.return at the end of its body");
  return success();
}

//===----------------------------------------------------------------------===//
// tile.roles, tile.role
//===----------------------------------------------------------------------===//

/// A role that begins at a warp of the block has whole warpgroups, a part of
/// one, or the rest of one and whole ones; where it shares one, `before` asks
/// for as many registers.
static LogicalResult verifyPlace(RoleOp role, int64_t first, RoleOp before) {
  constexpr int64_t group = RoleOp::kWarpsPerGroup;
  int64_t warps = role.getWarps(), inGroup = first % group;
  bool isPart = inGroup + warps < group,
       endsOne = (inGroup + warps) % group == 0;
  if (!isPart && !endsOne)
    return role.emitOpError("expects whole warpgroups of ")
           << group
           << " warps, a part of one, or the rest of one and whole ones, but "
              "got warps "
           << first << " to " << first + warps - 1;
  if (inGroup != 0 && before.getRegisters() != role.getRegisters())
    return role.emitOpError("expects the ")
           << before.getRegisters()
           << " registers of the role it shares a warpgroup with, but got "
           << role.getRegisters();
  return success();
}

LogicalResult RolesOp::verify() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  int64_t warps = 0, registers = 0;
  RoleOp before;
  for (Operation &op : getBody().front()) {
    auto role = dyn_cast<RoleOp>(op);
    if (!role)
      return op.emitOpError("expects to stand outside of tile.roles, which "
                            "holds tile.role only");
    if (failed(verifyPlace(role, warps, before)))
      return failure();
    warps += role.getWarps();
    registers += int64_t(role.getWarps()) * role.getRegisters();
    before = role;
  }
  if (warps % RoleOp::kWarpsPerGroup != 0)
    return emitOpError("expects roles that fill warpgroups of ")
           << RoleOp::kWarpsPerGroup << " warps, but got " << warps << " warps";
  if (warps != kernel.getWarps())
    return emitOpError("expects roles for the ")
           << kernel.getWarps() << " warps of the kernel, but got " << warps;
  // What a launch gives each thread, in units of 8; roles only move it about.
  constexpr int64_t registersPerSm = 65536, unit = 8;
  int64_t threads = kernel.threads() * kernel.getMinBlocksPerSm();
  int64_t most = registersPerSm / threads / unit * unit;
  if (registers > most * warps)
    return emitOpError("expects at most ")
           << most << " registers per thread on average, but got "
           << registers / warps + (registers % warps != 0);
  return success();
}

LogicalResult RoleOp::verify() {
  if (getRegisters() % 8 != 0)
    return emitOpError("expects registers in multiples of 8, but got ")
           << getRegisters();
  if (!getSingleLane())
    return success();
  WalkResult result = getBody().walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (isa<FragType, RowType, PendingType>(type)) {
        op->emitOpError("expects all lanes of a warp, but stands in a role "
                        "of a single lane");
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

int64_t RoleOp::firstWarp() {
  int64_t first = 0;
  for (auto role : (*this)->getBlock()->getOps<RoleOp>()) {
    if (role == *this)
      break;
    first += role.getWarps();
  }
  return first;
}

RoleOp RoleOp::of(Operation *op) { return op->getParentOfType<RoleOp>(); }

//===----------------------------------------------------------------------===//
// tile.launch
//===----------------------------------------------------------------------===//

/// Whether a kernel argument of type `want` takes a host value of type `got`.
static bool takes(Type want, Type got) {
  auto memref = dyn_cast<MemRefType>(got);
  if (auto pointer = dyn_cast<PtrType>(want))
    return memref && memref.getElementType() == pointer.getElementType();
  if (auto map = dyn_cast<TensorMapType>(want))
    return memref && memref.getRank() == 4 &&
           memref.getElementType() == map.getElementType() &&
           (ShapedType::isDynamic(memref.getShape().back()) ||
            map.fits(memref.getShape().back()));
  return want == got;
}

LogicalResult CounterOp::verify() {
  auto type = cast<MemRefType>(getResult().getType());
  if (type.hasStaticShape() && type.getRank() == 1 &&
      type.getNumElements() > 0 && type.getElementType().isInteger(32))
    return success();
  return emitOpError("expects a memref of a number of i32, but got ") << type;
}

LogicalResult ScratchOp::verify() {
  auto type = dyn_cast<MemRefType>(getResult().getType());
  auto isKnown = [](Type element) {
    return element.isInteger(32) || element.isF32() || element.isBF16() ||
           element.isF16();
  };
  if (!type || !type.getLayout().isIdentity() ||
      !isKnown(type.getElementType()))
    return emitOpError(
               "expects a row-major memref of i32, f32, bf16 or f16, but got ")
           << getResult().getType();
  if (type.getNumDynamicDims() == getSizes().size())
    return success();
  return emitOpError("expects a size for each dynamic extent, but got ")
         << getSizes().size() << " for " << type;
}

std::optional<std::string>
attn::tile::checkGrid(const std::array<int64_t, 3> &grid) {
  constexpr int64_t most[] = {std::numeric_limits<int32_t>::max(), 65535,
                              65535};
  for (size_t i = 0; i < grid.size(); ++i)
    if (grid[i] < 0 || grid[i] > most[i])
      return "expects a grid of 0 to " + std::to_string(most[i]) +
             " blocks along dimension " + std::to_string(i) + ", but got " +
             std::to_string(grid[i]);
  return std::nullopt;
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto known = [](Value extent) {
    return getConstantIntValue(extent).value_or(1);
  };
  if (std::optional<std::string> wrong =
          checkGrid({known(getGridX()), known(getGridY()), known(getGridZ())}))
    return emitOpError(*wrong);

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
    if (!takes(want, got))
      return emitOpError("expects argument ")
             << index << " to match " << want << ", but got " << got;
  }
  return success();
}
