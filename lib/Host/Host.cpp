//===- Host.cpp - Runs the host function around the kernels ---------------===//

#include "attn/Host/Host.h"

#include "attn/Host/Scalars.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// HostArray
//===----------------------------------------------------------------------===//

int64_t HostArray::count() const {
  int64_t total = 1;
  for (int64_t size : sizes)
    total *= size;
  return total;
}

int64_t HostArray::extent() const {
  if (count() == 0)
    return 0;
  int64_t last = offset;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides))
    last += (size - 1) * stride;
  return last + 1;
}

HostArray HostArray::contiguous(uint64_t base, ArrayRef<int64_t> sizes,
                                Type elementType) {
  HostArray array{base, 0, SmallVector<int64_t>(sizes),
                  SmallVector<int64_t>(sizes.size(), 1), elementType};
  for (size_t i = sizes.size(); i-- > 1;)
    array.strides[i - 1] = array.strides[i] * sizes[i];
  return array;
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

/// Says where a static fact of the type is not true of the array.
static LogicalResult checkArray(Location location, const HostArray &array,
                                MemRefType type) {
  auto check = [&](const Twine &what, int64_t want, int64_t got) {
    if (ShapedType::isDynamic(want) || want == got)
      return success();
    return LogicalResult(emitError(location)
                         << "expects " << what << " " << want << " of " << type
                         << ", but got " << got);
  };
  if (array.elementType != type.getElementType() ||
      int64_t(array.sizes.size()) != type.getRank())
    return emitError(location)
           << "expects an array for " << type << ", but got "
           << array.sizes.size() << " extents of " << array.elementType;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return emitError(location) << "expects strides in " << type;
  if (failed(check("offset", offset, array.offset)))
    return failure();
  for (auto [want, got] : llvm::zip_equal(type.getShape(), array.sizes))
    if (failed(check("extent", want, got)))
      return failure();
  // The stride of one element, or of none, is never used.
  for (unsigned i = 0; i < array.sizes.size(); ++i)
    if (array.sizes[i] > 1 &&
        failed(check("stride", strides[i], array.strides[i])))
      return failure();
  return success();
}

namespace {
class Host {
public:
  explicit Host(Device &device) : device(device) {}

  FailureOr<SmallVector<HostValue>> run(func::FuncOp function,
                                        ArrayRef<HostValue> arguments) {
    FailureOr<SmallVector<HostValue>> results = runBody(function, arguments);
    if (succeeded(results))
      for (const HostValue &value : *results)
        if (auto *array = std::get_if<HostArray>(&value))
          owned.erase(array->base);
    for (uint64_t address : owned)
      if (failed(device.free(address, function.getLoc())))
        return failure();
    return results;
  }

private:
  FailureOr<SmallVector<HostValue>> runBody(func::FuncOp function,
                                            ArrayRef<HostValue> arguments);
  LogicalResult bindArgument(BlockArgument argument, const HostValue &value);

  LogicalResult execute(Operation *op);
  LogicalResult executeScalar(Operation *op);
  LogicalResult execute(scf::ForOp op);
  LogicalResult handOver(scf::ForOp op);
  LogicalResult execute(cf::AssertOp op);
  LogicalResult execute(memref::AllocOp op);
  LogicalResult allocate(Operation *op, HostArray array);
  LogicalResult allocate(Operation *op, MemRefType type,
                         ValueRange dynamicSizes);
  LogicalResult execute(memref::DeallocOp op);
  LogicalResult execute(memref::DimOp op);
  LogicalResult execute(memref::CastOp op);
  LogicalResult execute(memref::ExtractAlignedPointerAsIndexOp op);
  LogicalResult execute(memref::ExtractStridedMetadataOp op);
  LogicalResult execute(memref::ReinterpretCastOp op);
  LogicalResult execute(memref::SubViewOp op);
  LogicalResult execute(memref::TransposeOp op);
  LogicalResult execute(memref::ExpandShapeOp op);
  LogicalResult execute(memref::CollapseShapeOp op);
  LogicalResult execute(memref::CopyOp op);
  LogicalResult execute(tile::CounterOp op);
  LogicalResult execute(tile::ScratchOp op);
  LogicalResult execute(tile::LaunchOp op);
  FailureOr<TensorMapArgument> describe(tile::LaunchOp op, unsigned index);

  const HostArray &array(Value value) {
    return std::get<HostArray>(values.find(value)->second);
  }
  const HostScalar &scalar(Value value) {
    return std::get<HostScalar>(values.find(value)->second);
  }
  int64_t integer(OpFoldResult value) {
    if (auto constant = dyn_cast<Attribute>(value))
      return cast<IntegerAttr>(constant).getInt();
    return scalar(cast<Value>(value)).integer;
  }
  SmallVector<int64_t> integers(ArrayRef<OpFoldResult> list) {
    return llvm::map_to_vector(list,
                               [&](OpFoldResult v) { return integer(v); });
  }
  void set(Value value, HostValue to) { values[value] = std::move(to); }

  Device &device;
  llvm::DenseMap<Value, HostValue> values;
  /// Allocations that nobody has freed.
  std::set<uint64_t> owned;
};
} // namespace

LogicalResult Host::bindArgument(BlockArgument argument,
                                 const HostValue &value) {
  auto memref = dyn_cast<MemRefType>(argument.getType());
  const auto *array = std::get_if<HostArray>(&value);
  if (bool(memref) != bool(array))
    return emitError(argument.getLoc())
           << "expects argument " << argument.getArgNumber() << " to be "
           << argument.getType() << ", but got "
           << (array ? "an array" : "a scalar");
  if (memref && failed(checkArray(argument.getLoc(), *array, memref)))
    return failure();
  set(argument, value);
  return success();
}

FailureOr<SmallVector<HostValue>> Host::runBody(func::FuncOp function,
                                                ArrayRef<HostValue> arguments) {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError("expects a function of one block, but got ")
           << function.getBody().getBlocks().size();
  if (function.getNumArguments() != arguments.size())
    return function.emitError("expects ")
           << function.getNumArguments() << " arguments, but got "
           << arguments.size();
  for (auto [argument, value] :
       llvm::zip_equal(function.getArguments(), arguments))
    if (failed(bindArgument(argument, value)))
      return failure();
  for (Operation &op : function.front()) {
    if (auto result = dyn_cast<func::ReturnOp>(op)) {
      SmallVector<HostValue> results;
      for (Value operand : result.getOperands())
        results.push_back(values.find(operand)->second);
      return results;
    }
    if (failed(execute(&op)))
      return failure();
  }
  return function.emitError("expects func.return at the end");
}

LogicalResult Host::execute(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<memref::AllocOp, memref::DeallocOp, memref::DimOp, memref::CastOp,
            memref::ExtractAlignedPointerAsIndexOp,
            memref::ExtractStridedMetadataOp, memref::ReinterpretCastOp,
            memref::SubViewOp, memref::TransposeOp, memref::ExpandShapeOp,
            memref::CollapseShapeOp, memref::CopyOp, tile::CounterOp,
            tile::ScratchOp, tile::LaunchOp, scf::ForOp, cf::AssertOp>(
          [&](auto known) { return execute(known); })
      .Default([&](Operation *other) { return executeScalar(other); });
}

LogicalResult Host::executeScalar(Operation *op) {
  std::optional<ScalarOp> decoded = decodeScalar(op);
  if (!decoded)
    return op->emitError("expects an op that the host function may have, but "
                         "got '")
           << op->getName() << "'";
  SmallVector<Number, 3> numbers;
  for (Value operand : op->getOperands())
    numbers.push_back({scalar(operand).integer, float(scalar(operand).real)});
  SmallVector<Lanes, 3> operands;
  for (Number &number : numbers)
    operands.push_back({&number.integer, &number.real});
  Number result;
  if (const char *error =
          evaluate(*decoded, operands, {&result.integer, &result.real}, 1))
    return op->emitError(error);
  set(op->getResult(0), HostScalar{result.integer, result.real});
  return success();
}

static bool touchesElements(scf::ForOp op) {
  return op
      .walk([](Operation *inside) {
        return isa<memref::LoadOp, memref::StoreOp>(inside)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Gives the device a nest of loops over elements as one step.
LogicalResult Host::handOver(scf::ForOp op) {
  if (op.getNumResults() != 0)
    return op.emitError("expects a loop over elements to carry nothing");
  ElementLoops loops = {op, {}};
  llvm::SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  for (Value value : used)
    loops.values.push_back({value, values.find(value)->second});
  return device.runLoops(loops);
}

LogicalResult Host::execute(scf::ForOp op) {
  if (touchesElements(op))
    return handOver(op);
  int64_t upper = scalar(op.getUpperBound()).integer;
  int64_t step = scalar(op.getStep()).integer;
  if (step <= 0)
    return op.emitError("expects a step of at least 1, but got ") << step;
  // All are read before the first is set: a loop may swap what it carries.
  auto carry = [&](ValueRange from, ValueRange to) {
    SmallVector<HostValue> carried;
    for (Value value : from)
      carried.push_back(values.find(value)->second);
    for (auto [value, place] : llvm::zip_equal(carried, to))
      set(place, value);
  };
  carry(op.getInitArgs(), op.getRegionIterArgs());
  for (int64_t i = scalar(op.getLowerBound()).integer; i < upper; i += step) {
    set(op.getInductionVar(), HostScalar{i});
    for (Operation &inside : op.getBody()->without_terminator())
      if (failed(execute(&inside)))
        return failure();
    carry(op.getYieldedValues(), op.getRegionIterArgs());
  }
  carry(op.getRegionIterArgs(), op.getResults());
  return success();
}

LogicalResult Host::execute(cf::AssertOp op) {
  if (scalar(op.getArg()).integer)
    return success();
  return op.emitError(op.getMsg());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Far more than any device has, and far from overflow.
static constexpr int64_t kMaxElements = int64_t(1) << 48;

LogicalResult Host::execute(memref::AllocOp op) {
  MemRefType type = op.getType();
  if (!type.getLayout().isIdentity())
    return op.emitError("expects a row-major array, but got ") << type;
  return allocate(op, type, op.getDynamicSizes());
}

LogicalResult Host::execute(tile::ScratchOp op) {
  return allocate(op, cast<MemRefType>(op.getType()), op.getSizes());
}

/// Gives the op's result an array of that type.
LogicalResult Host::allocate(Operation *op, MemRefType type,
                             ValueRange dynamicSizes) {
  SmallVector<int64_t> sizes(type.getShape());
  auto dynamic = dynamicSizes.begin();
  for (int64_t &size : sizes)
    if (ShapedType::isDynamic(size))
      size = scalar(*dynamic++).integer;
  int64_t count = 1;
  for (int64_t size : sizes) {
    if (size < 0)
      return op->emitError("expects extents of at least 0, but got ") << size;
    if (llvm::MulOverflow(count, std::max<int64_t>(size, 1), count) ||
        count > kMaxElements)
      return op->emitError("expects at most ")
             << kMaxElements << " elements in an array of extents " << sizes;
  }
  HostArray array = HostArray::contiguous(0, sizes, type.getElementType());
  return allocate(op, std::move(array));
}

/// Gives the op's result memory, which the function owns until it is freed.
LogicalResult Host::allocate(Operation *op, HostArray array) {
  FailureOr<uint64_t> base =
      device.allocate(array.extent() * array.elementBytes(), op->getLoc());
  if (failed(base))
    return failure();
  array.base = *base;
  owned.insert(*base);
  set(op->getResult(0), array);
  return success();
}

LogicalResult Host::execute(memref::DeallocOp op) {
  uint64_t base = array(op.getMemref()).base;
  if (owned.erase(base) == 0)
    return op.emitError("expects an array that this function allocated and "
                        "has not freed");
  return device.free(base, op.getLoc());
}

LogicalResult Host::execute(memref::CopyOp op) {
  const HostArray &source = array(op.getSource());
  const HostArray &target = array(op.getTarget());
  if (source.sizes != target.sizes)
    return op.emitError("expects arrays of equal extents");
  return device.copy(source, target, op.getLoc());
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

LogicalResult Host::execute(memref::DimOp op) {
  const HostArray &source = array(op.getSource());
  int64_t index = scalar(op.getIndex()).integer;
  if (index < 0 || index >= int64_t(source.sizes.size()))
    return op.emitError("expects a dimension from 0 to ")
           << int64_t(source.sizes.size()) - 1 << ", but got " << index;
  set(op.getResult(), HostScalar{source.sizes[index]});
  return success();
}

LogicalResult Host::execute(memref::CastOp op) {
  auto type = dyn_cast<MemRefType>(op.getType());
  if (!type)
    return op.emitError("expects a ranked array, but got ") << op.getType();
  HostArray source = array(op.getSource());
  if (failed(checkArray(op.getLoc(), source, type)))
    return failure();
  set(op.getResult(), source);
  return success();
}

LogicalResult Host::execute(memref::ExtractAlignedPointerAsIndexOp op) {
  set(op.getResult(), HostScalar{int64_t(array(op.getSource()).base)});
  return success();
}

LogicalResult Host::execute(memref::ExtractStridedMetadataOp op) {
  HostArray source = array(op.getSource());
  set(op.getBaseBuffer(),
      HostArray{source.base, 0, {}, {}, source.elementType});
  set(op.getOffset(), HostScalar{source.offset});
  for (auto [result, size] : llvm::zip_equal(op.getSizes(), source.sizes))
    set(result, HostScalar{size});
  for (auto [result, stride] : llvm::zip_equal(op.getStrides(), source.strides))
    set(result, HostScalar{stride});
  return success();
}

LogicalResult Host::execute(memref::ReinterpretCastOp op) {
  HostArray source = array(op.getSource());
  set(op.getResult(),
      HostArray{source.base, integer(op.getMixedOffsets().front()),
                integers(op.getMixedSizes()), integers(op.getMixedStrides()),
                source.elementType});
  return success();
}

LogicalResult Host::execute(memref::SubViewOp op) {
  const HostArray &source = array(op.getSource());
  SmallVector<int64_t> offsets = integers(op.getMixedOffsets());
  SmallVector<int64_t> sizes = integers(op.getMixedSizes());
  SmallVector<int64_t> steps = integers(op.getMixedStrides());
  llvm::SmallBitVector dropped = op.getDroppedDims();
  HostArray part{source.base, source.offset, {}, {}, source.elementType};
  for (unsigned i = 0; i < sizes.size(); ++i) {
    int64_t last = offsets[i] + (sizes[i] - 1) * steps[i];
    if (sizes[i] < 0 || (sizes[i] > 0 && (offsets[i] < 0 || last < 0 ||
                                          last >= source.sizes[i])))
      return op.emitError("expects indices 0 to ")
             << source.sizes[i] - 1 << " in dimension " << i << ", but got "
             << offsets[i] << " to " << last;
    part.offset += offsets[i] * source.strides[i];
    if (dropped[i])
      continue;
    part.sizes.push_back(sizes[i]);
    part.strides.push_back(source.strides[i] * steps[i]);
  }
  set(op.getResult(), part);
  return success();
}

LogicalResult Host::execute(memref::TransposeOp op) {
  HostArray source = array(op.getIn());
  HostArray result = source;
  for (auto [to, expr] : llvm::enumerate(op.getPermutation().getResults())) {
    unsigned from = cast<AffineDimExpr>(expr).getPosition();
    result.sizes[to] = source.sizes[from];
    result.strides[to] = source.strides[from];
  }
  set(op.getResult(), result);
  return success();
}

LogicalResult Host::execute(memref::ExpandShapeOp op) {
  HostArray source = array(op.getSrc());
  HostArray result{
      source.base,
      source.offset,
      integers(getMixedValues(op.getStaticOutputShape(), op.getOutputShape(),
                              op.getContext())),
      {},
      source.elementType};
  result.strides.assign(result.sizes.size(), 0);
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    int64_t stride = source.strides[dim], count = 1;
    for (int64_t part : llvm::reverse(group)) {
      result.strides[part] = stride;
      stride *= result.sizes[part];
      count *= result.sizes[part];
    }
    if (count != source.sizes[dim])
      return op.emitError("expects extents of ")
             << source.sizes[dim] << " elements in place of dimension " << dim
             << ", but got " << count;
  }
  set(op.getResult(), result);
  return success();
}

LogicalResult Host::execute(memref::CollapseShapeOp op) {
  HostArray source = array(op.getSrc());
  HostArray result{source.base, source.offset, {}, {}, source.elementType};
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    // Extents of 1 do not count; the others must lie in one row.
    int64_t size = 1, stride = 1;
    for (int64_t part : llvm::reverse(group)) {
      if (source.sizes[part] == 1)
        continue;
      if (size == 1)
        stride = source.strides[part];
      else if (source.strides[part] != stride * size)
        return op.emitError("expects dimensions that lie in one row, but got "
                            "a stride of ")
               << source.strides[part] << " in dimension " << part;
      size *= source.sizes[part];
    }
    result.sizes.push_back(size);
    result.strides.push_back(stride);
  }
  set(op.getResult(), result);
  return success();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

LogicalResult Host::execute(tile::CounterOp op) {
  auto type = cast<MemRefType>(op.getType());
  FailureOr<uint64_t> address =
      device.counters(type.getNumElements(), op.getLoc());
  if (failed(address))
    return failure();
  set(op.getResult(),
      HostArray::contiguous(*address, type.getShape(), type.getElementType()));
  return success();
}

/// What a tensor map says of an operand, or why TMA cannot reach it.
FailureOr<TensorMapArgument> Host::describe(tile::LaunchOp op, unsigned index) {
  constexpr int64_t alignment = 16;
  const HostArray &source = array(op.getKernelOperands()[index]);
  TensorMapArgument map;
  map.address = source.address();
  llvm::copy(source.sizes, map.sizes.begin());
  llvm::copy(source.strides, map.strides.begin());
  bool isAligned = map.address % alignment == 0;
  for (unsigned i = 0; i < 3; ++i)
    if (source.sizes[i] > 1)
      isAligned &= map.strides[i] * source.elementBytes() % alignment == 0;
  if (!isAligned)
    return op.emitError(
               "expects the rows, heads and batch entries of argument ")
           << index << " at multiples of " << alignment
           << " bytes, but got offset " << source.offset << " and strides "
           << source.strides << " of " << source.elementType;
  if (source.sizes[3] > 1 && source.strides[3] != 1)
    return op.emitError("expects the columns of argument ")
           << index << " side by side, but got a stride of "
           << source.strides[3];
  map.strides[3] = 1;
  return map;
}

LogicalResult Host::execute(tile::LaunchOp op) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<tile::KernelOp>(
      op, op.getKernelAttr());
  if (!kernel)
    return op.emitError("expects the name of a tile.kernel, but got ")
           << op.getKernelAttr();
  std::array<int64_t, 3> grid = {scalar(op.getGridX()).integer,
                                 scalar(op.getGridY()).integer,
                                 scalar(op.getGridZ()).integer};
  if (llvm::is_contained(grid, 0))
    return success();
  SmallVector<KernelArgument> arguments;
  for (auto [index, operand] : llvm::enumerate(op.getKernelOperands())) {
    Type type = operand.getType();
    if (isa<tile::TensorMapType>(kernel.getArgumentTypes()[index])) {
      FailureOr<TensorMapArgument> map = describe(op, index);
      if (failed(map))
        return failure();
      arguments.push_back(*map);
    } else if (isa<MemRefType>(type))
      arguments.push_back(array(operand).base);
    else if (type.isInteger(32))
      arguments.push_back(int32_t(scalar(operand).integer));
    else if (type.isInteger(64))
      arguments.push_back(scalar(operand).integer);
    else
      arguments.push_back(float(scalar(operand).real));
  }
  return device.launch(kernel, grid, arguments, op.getLoc());
}

FailureOr<SmallVector<HostValue>> attn::runHost(func::FuncOp function,
                                                ArrayRef<HostValue> arguments,
                                                Device &device) {
  return Host(device).run(function, arguments);
}
