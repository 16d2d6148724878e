//===- Launches.cpp - tile.launch on the host -----------------------------===//
//
// Upstream's lowering of gpu.launch_func puts each operand into memory and
// gives the driver its address, which is how an argument is passed by value
// whatever its size.  So a tensor map is an operand of 128 bytes, while the
// kernel's argument is a pointer `byval`; the verifier compares types for
// gpu.func only.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

#include "attn/Conversion/DeviceMemory.h"
#include "attn/Tile/SharedMemory.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

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

/// Four i64 in the function's stack, of index values.
static Value onStack(ImplicitLocOpBuilder &b, ValueRange indices) {
  Type i64 = b.getI64Type();
  auto type = LLVM::LLVMArrayType::get(i64, indices.size());
  Value list = LLVM::PoisonOp::create(b, type);
  for (auto [position, index] : llvm::enumerate(indices)) {
    Value value = arith::IndexCastOp::create(b, i64, index);
    list = LLVM::InsertValueOp::create(b, list, value, position);
  }
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value one = arith::ConstantOp::create(b, b.getI32IntegerAttr(1));
  Value place = LLVM::AllocaOp::create(b, pointer, type, one);
  LLVM::StoreOp::create(b, list, place);
  return place;
}

/// attn_element of the C interface.
static int32_t elementNumber(Type type) {
  if (type.isBF16())
    return 0;
  if (type.isF32())
    return 3;
  return type.isF16() ? 1 : 2;
}

/// libattn's function; the linker knows it by this name, which therefore cannot
/// be another one.
static FailureOr<LLVM::LLVMFuncOp> findEncoder(ImplicitLocOpBuilder &b,
                                               ModuleOp module) {
  constexpr StringLiteral name = "attn_encode_tensor_map";
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Type> arguments = {pointer, i32, i64,    pointer,
                                 pointer, i32, pointer};
  Operation *known = SymbolTable::lookupSymbolIn(module, name);
  if (!known)
    return LLVM::lookupOrCreateFn(b, module, name, arguments, i32);
  auto type = LLVM::LLVMFunctionType::get(i32, arguments);
  auto function = dyn_cast<LLVM::LLVMFuncOp>(known);
  if (function && function.getFunctionType() == type)
    return function;
  InFlightDiagnostic error =
      known->emitOpError("expects another name than '")
      << name << "', which is libattn's: host code calls it for tensor maps";
  error.attachNote() << "it may also be declared here, as llvm.func of type "
                     << type;
  return error;
}

/// The tensor map of an array: what libattn's attn_encode_tensor_map writes.
static FailureOr<Value> encode(ImplicitLocOpBuilder &b, ModuleOp module,
                               Value memref, TensorMapType type) {
  constexpr int64_t bytes = 128, alignment = 64;
  Type i64 = b.getI64Type();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  FailureOr<LLVM::LLVMFuncOp> encoder = findEncoder(b, module);
  if (failed(encoder))
    return failure();
  auto array = memref::ExtractStridedMetadataOp::create(b, memref);
  Value start = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  Value elementBytes = arith::ConstantIndexOp::create(
      b, type.getElementType().getIntOrFloatBitWidth() / 8);
  Value offset = arith::MulIOp::create(b, array.getOffset(), elementBytes);
  Value address = arith::IndexCastOp::create(
      b, i64, arith::AddIOp::create(b, start, offset));
  Value sizes = onStack(b, array.getSizes());
  Value strides = onStack(b, array.getStrides());
  Value element = arith::ConstantOp::create(
      b, b.getI32IntegerAttr(elementNumber(type.getElementType())));
  Value boxRows =
      arith::ConstantOp::create(b, b.getI32IntegerAttr(type.getBoxRows()));
  auto mapType = LLVM::LLVMArrayType::get(i64, bytes / 8);
  Value one = arith::ConstantOp::create(b, b.getI32IntegerAttr(1));
  Value map = LLVM::AllocaOp::create(b, pointer, mapType, one, alignment);
  Value noStatus = LLVM::ZeroOp::create(b, pointer);
  auto call = LLVM::CallOp::create(
      b, *encoder,
      ValueRange{map, element, address, sizes, strides, boxRows, noStatus});
  Value zero = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  Value isOk = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                     call.getResult(), zero);
  cf::AssertOp::create(b, isOk, "expects an array that has a tensor map");
  return LLVM::LoadOp::create(b, mapType, map).getResult();
}

/// The strides of an array without gaps, and last the number of its elements.
static SmallVector<OpFoldResult> suffixProducts(ImplicitLocOpBuilder &b,
                                                ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> products;
  Value product = arith::ConstantIndexOp::create(b, 1);
  for (OpFoldResult size : llvm::reverse(sizes)) {
    products.insert(products.begin(), getAsOpFoldResult(product));
    product = b.createOrFold<arith::MulIOp>(
        product, getValueOrCreateConstantIndexOp(b, b.getLoc(), size));
  }
  products.push_back(getAsOpFoldResult(product));
  return products;
}

/// Memory of the function itself, which waits for its launches.  A driver has
/// none without a size, so an array that may be empty is a view of one element.
static void lowerMemory(Operation *op, bool isZero) {
  OpBuilder builder(op);
  ImplicitLocOpBuilder b(op->getLoc(), builder);
  auto type = cast<MemRefType>(op->getResult(0).getType());
  SmallVector<OpFoldResult> sizes =
      getMixedValues(type.getShape(), op->getOperands(), b.getContext());
  SmallVector<OpFoldResult> strides = suffixProducts(b, sizes);
  Value count = b.createOrFold<arith::MaxSIOp>(
      getValueOrCreateConstantIndexOp(b, b.getLoc(), strides.pop_back_val()),
      arith::ConstantIndexOp::create(b, 1));
  bool isSome = type.hasStaticShape() && type.getNumElements() > 0;
  StreamOps before(b);
  Value memory = isSome
                     ? before.allocate(type, {})
                     : before.allocate(MemRefType::get(ShapedType::kDynamic,
                                                       type.getElementType()),
                                       count);
  if (isZero)
    before.fill(memory, arith::ConstantOp::create(b, b.getI32IntegerAttr(0)));
  before.wait();
  Value array = memory;
  if (!isSome)
    array = memref::ReinterpretCastOp::create(
        b, type, memory, b.getIndexAttr(0), sizes, strides);
  b.setInsertionPoint(op->getBlock()->getTerminator());
  StreamOps after(b);
  after.free(memory);
  after.wait();
  op->replaceAllUsesWith(ValueRange{array});
  op->erase();
}

/// The outermost loop around a launch in which an operand does not change, or
/// the launch: a map is made once, and its place in the stack taken once.
static Operation *whereToEncode(LaunchOp launch, Value operand) {
  Operation *place = launch;
  while (auto loop = dyn_cast<LoopLikeOpInterface>(place->getParentOp())) {
    if (!loop.isDefinedOutsideOfLoop(operand))
      break;
    place = loop;
  }
  return place;
}

/// Whether there are blocks, which CUDA demands of a launch; null if that is
/// known.
static Value isThere(ImplicitLocOpBuilder &b, LaunchOp op) {
  Value all;
  Value zero = arith::ConstantIndexOp::create(b, 0);
  for (Value extent : {op.getGridX(), op.getGridY(), op.getGridZ()}) {
    if (getConstantIntValue(extent).value_or(0) > 0)
      continue;
    Value some =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, extent, zero);
    all = all ? arith::AndIOp::create(b, all, some).getResult() : some;
  }
  return all;
}

static LogicalResult lowerLaunch(LaunchOp op, SymbolTableCollection &symbols) {
  auto kernel =
      symbols.lookupNearestSymbolFrom<KernelOp>(op, op.getKernelAttr());
  if (!kernel)
    return op.emitOpError("expects a kernel that is not lowered yet");
  OpBuilder builder(op);
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  SmallVector<Value> operands;
  for (auto [type, operand] :
       llvm::zip_equal(kernel.getArgumentTypes(), op.getKernelOperands())) {
    if (auto map = dyn_cast<TensorMapType>(type)) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(whereToEncode(op, operand));
      FailureOr<Value> encoded =
          encode(b, op->getParentOfType<ModuleOp>(), operand, map);
      if (failed(encoded))
        return failure();
      operands.push_back(*encoded);
    } else {
      operands.push_back(
          isa<MemRefType>(operand.getType()) ? addressOf(b, operand) : operand);
    }
  }
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value threads = arith::ConstantIndexOp::create(b, kernel.threads());
  Value shared = arith::ConstantOp::create(
      b, b.getI32IntegerAttr(SharedMemory(kernel).totalBytes()));
  std::optional<gpu::KernelDim3> cluster;
  if (kernel.getCluster() > 1)
    cluster = gpu::KernelDim3{
        arith::ConstantIndexOp::create(b, kernel.getCluster()), one, one};
  if (kernel.getCooperative())
    op.emitWarning("launches a kernel whose blocks wait for one another "
                   "without the guarantee that all of them run at once, which "
                   "gpu.launch_func cannot ask for; attn_launch does");
  if (Value some = isThere(b, op)) {
    auto branch = scf::IfOp::create(b, some, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  gpu::LaunchFuncOp::create(
      b, op.getKernelAttr(),
      gpu::KernelDim3{op.getGridX(), op.getGridY(), op.getGridZ()},
      gpu::KernelDim3{threads, one, one}, shared, operands,
      /*asyncObject=*/Value(), cluster);
  op.erase();
  return success();
}

LogicalResult attn::lowerLaunches(ModuleOp module) {
  SymbolTableCollection symbols;
  SmallVector<LaunchOp> launches;
  module.walk([&](LaunchOp op) { launches.push_back(op); });
  SmallVector<Operation *> memories;
  module.walk([&](Operation *op) {
    if (isa<CounterOp, ScratchOp>(op))
      memories.push_back(op);
  });
  for (Operation *op : memories)
    lowerMemory(op, /*isZero=*/isa<CounterOp>(op));
  llvm::SetVector<ModuleOp> containers;
  for (LaunchOp op : launches)
    containers.insert(op->getParentOfType<ModuleOp>());
  for (LaunchOp op : launches)
    if (failed(lowerLaunch(op, symbols)))
      return failure();
  for (ModuleOp each : containers)
    each->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                  UnitAttr::get(module.getContext()));
  return success();
}
