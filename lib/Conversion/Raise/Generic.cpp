//===- Generic.cpp - Ops of dialects that are not registered --------------===//

#include "Generic.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace attn::raise;
using namespace mlir;

Attribute attn::raise::attributeOf(Operation *op, StringRef name) {
  if (Attribute found = op->getDiscardableAttr(name))
    return found;
  auto properties =
      dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  return properties ? properties.get(name) : Attribute();
}

std::optional<double> attn::raise::numberIn(Attribute attribute) {
  if (auto number = dyn_cast_or_null<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto number = dyn_cast_or_null<BoolAttr>(attribute))
    return number.getValue();
  if (auto number = dyn_cast_or_null<IntegerAttr>(attribute))
    return number.getValue().roundToDouble(
        /*isSigned=*/!number.getType().isUnsignedInteger());
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> attn::raise::segmentsOf(Operation *op) {
  Attribute attribute = attributeOf(op, "operandSegmentSizes");
  SmallVector<int64_t> sizes;
  if (auto array = dyn_cast_or_null<DenseI32ArrayAttr>(attribute))
    sizes.assign(array.asArrayRef().begin(), array.asArrayRef().end());
  else if (auto elements = dyn_cast_or_null<DenseIntElementsAttr>(attribute))
    for (const APInt &size : elements.getValues<APInt>())
      sizes.push_back(size.getSExtValue());
  else
    return std::nullopt;
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 0)
      return std::nullopt;
    sum += size;
  }
  if (sum != op->getNumOperands())
    return std::nullopt;
  return sizes;
}

bool attn::raise::isTensor(Value value, int64_t rank) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == rank;
}

int64_t attn::raise::sizeOf(Value tensor, int64_t dim) {
  return cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
}
