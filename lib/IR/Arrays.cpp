//===- Arrays.cpp - What ops of the attn dialect demand of arrays ---------===//
//
// The constraints that say nothing of attention: forms, layouts, places.
//
//===----------------------------------------------------------------------===//

#include "Constraints.h"

#include "attn/Schedule/Layout.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace attn;

Diagnostic &attn::operator<<(Diagnostic &diagnostic, SizeForPeople size) {
  return ShapedType::isDynamic(size.value) ? diagnostic << '?'
                                           : diagnostic << size.value;
}

void attn::printShape(InFlightDiagnostic &error, ArrayRef<int64_t> shape) {
  llvm::interleave(
      shape, [&](int64_t s) { error << SizeForPeople{s}; },
      [&] { error << 'x'; });
}

bool attn::compatible(int64_t a, int64_t b) {
  return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
}

/// The first columns of rows that keep their strides.
ShapedType AttentionArray::type() const {
  auto type = cast<ShapedType>(value.getType());
  if (columns == 0 || !type.hasRank() || type.getRank() == 0)
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = columns;
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return type.clone(shape);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(memref.getStridesAndOffset(strides, offset)))
    return type; // has a rule of its own
  return MemRefType::get(
      shape, memref.getElementType(),
      StridedLayoutAttr::get(memref.getContext(), offset, strides),
      memref.getMemorySpace());
}

LogicalResult attn::verifyForm(Operation *op) {
  bool isOnTensors = isa<RankedTensorType>(op->getOperand(0).getType());
  for (Value operand : op->getOperands()) {
    if (isa<MemRefType>(operand.getType()) == isOnTensors)
      return op->emitOpError("expects operands to be all tensors or all "
                             "memrefs, but got ")
             << op->getOperand(0).getType() << " and " << operand.getType();
  }
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && tensor.getEncoding())
      return op->emitOpError("expects tensors without encoding, but got ")
             << type;
  }
  return success();
}

LogicalResult attn::verifyDestinations(Operation *op, TypeRange outs,
                                       TypeRange outputs) {
  bool isOnTensors = isa<RankedTensorType>(op->getOperand(0).getType());
  if (!isOnTensors && op->getNumResults())
    return op->emitOpError("expects no results on memrefs, but got ")
           << op->getNumResults();
  if (!outs.empty() && !llvm::equal(outs, outputs))
    return op->emitOpError("expects outs to be absent or of the types of the "
                           "results, but got ")
           << outs << " and " << outputs;
  return success();
}

/// What a layout must have that this type has not.
static std::optional<std::string> wrongLayoutOf(MemRefType type,
                                                bool isWritten) {
  static_assert(kOpen == ShapedType::kDynamic);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return "an innermost stride of 1";
  int64_t bits = type.getElementType().isIntOrFloat()
                     ? type.getElementTypeBitWidth()
                     : 8; // has a rule of its own
  ArrayRef<int64_t> sizes = type.getShape();
  Layout layout{{sizes.begin(), sizes.end()},
                {strides.begin(), strides.end()},
                offset,
                std::max<int64_t>(bits / 8, 1)};
  return attn::wrongLayout(layout, isWritten);
}

LogicalResult attn::verifyLayouts(Operation *op,
                                  ArrayRef<AttentionArray> arrays) {
  for (const AttentionArray &array : arrays) {
    auto memref = dyn_cast<MemRefType>(array.type());
    if (!memref)
      continue;
    if (std::optional<std::string> wanted =
            wrongLayoutOf(memref, array.isOutput))
      return op->emitOpError("expects ")
             << array.role << " to have " << *wanted << ", but got " << memref;
  }
  return success();
}

/// Global memory, by the numbers of NVPTX, where 0 is any memory.
static bool isGlobal(Attribute space) {
  if (auto number = dyn_cast_or_null<IntegerAttr>(space))
    return number.getValue() == 0 || number.getValue() == 1;
  if (auto named = dyn_cast_or_null<gpu::AddressSpaceAttr>(space))
    return named.getValue() == gpu::AddressSpace::Global;
  return !space;
}

LogicalResult attn::verifySpaces(Operation *op,
                                 ArrayRef<AttentionArray> arrays) {
  for (const AttentionArray &array : arrays) {
    auto memref = dyn_cast<MemRefType>(array.type());
    if (!memref || isGlobal(memref.getMemorySpace()))
      continue;
    InFlightDiagnostic error = op->emitOpError("expects ")
                               << array.role
                               << " in global memory, but got memory space "
                               << memref.getMemorySpace();
    error.attachNote() << "memory spaces: none, 0, 1, "
                          "#gpu.address_space<global>";
    return error;
  }
  return success();
}

LogicalResult attn::verifyAliases(Operation *op,
                                  ArrayRef<AttentionArray> arrays) {
  if (isa<RankedTensorType>(op->getOperand(0).getType()))
    return success();
  for (auto [index, array] : llvm::enumerate(arrays)) {
    if (!array.isOutput)
      continue;
    for (const AttentionArray &other : arrays.take_front(index))
      if (array.value == other.value)
        return op->emitOpError("expects outs in buffers of their own, but got "
                               "that of ")
               << other.role;
  }
  return success();
}
