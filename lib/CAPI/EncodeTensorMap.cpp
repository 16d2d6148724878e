//===- EncodeTensorMap.cpp - The work of attn_encode_tensor_map -----------===//

#include "EncodeTensorMap.h"

#include "attn/Runtime/TensorMap.h"

#include <map>
#include <mutex>

using namespace attn;

/// The GPU of an array.  That of the context that is current on this thread, if
/// there is one: MLIR's host code enters one only for calls of the driver. Then
/// the one that the address belongs to; an address of nothing belongs to none.
static runtime::Expected<int> ordinalOf(uint64_t address) {
  runtime::Expected<int> current = runtime::Gpu::currentOrdinal();
  if (current)
    return current;
  runtime::Expected<int> count = runtime::Gpu::count();
  if (!count)
    return count.status();
  runtime::Expected<int> owner = runtime::Gpu::ordinalOf(address);
  return owner ? owner : runtime::Expected<int>(0);
}

/// The same, opened once.
static runtime::Expected<runtime::Gpu> gpuOf(uint64_t address) {
  runtime::Expected<int> ordinal = ordinalOf(address);
  if (!ordinal)
    return ordinal.status();
  static std::mutex mutex;
  static auto *gpus = new std::map<int, runtime::Gpu>(); // may outlive statics
  std::lock_guard<std::mutex> lock(mutex);
  if (auto known = gpus->find(*ordinal); known != gpus->end())
    return known->second;
  runtime::Expected<runtime::Gpu> gpu = runtime::Gpu::open(*ordinal);
  if (gpu)
    gpus->emplace(*ordinal, *gpu);
  return gpu;
}

static std::optional<runtime::MapElement> mapElementOf(int32_t number) {
  switch (number) {
  case ATTN_ELEMENT_BF16:
    return runtime::MapElement::bf16;
  case ATTN_ELEMENT_F16:
    return runtime::MapElement::f16;
  case ATTN_ELEMENT_U8:
    return runtime::MapElement::u8;
  case ATTN_ELEMENT_F32:
    return runtime::MapElement::f32;
  default:
    return std::nullopt;
  }
}

Outcome attn::encodeTensorMap(void *map, int32_t number, uint64_t address,
                              const int64_t *sizes, const int64_t *strides,
                              int32_t boxRows) {
  using runtime::TensorMap;
  if (!map || !sizes || !strides)
    return invalid("expects a place for the map, sizes and strides");
  if (reinterpret_cast<uintptr_t>(map) % TensorMap::kAlignment != 0)
    return invalid("expects a place for the map at a multiple of " +
                   std::to_string(TensorMap::kAlignment) + " bytes");
  std::optional<runtime::MapElement> element = mapElementOf(number);
  if (!element)
    return invalid("expects an element of 0 to 3, but got " +
                   std::to_string(number));
  if (sizes[3] > 1 && strides[3] != 1)
    return invalid("expects columns side by side, but got a stride of " +
                   std::to_string(strides[3]));
  runtime::Expected<runtime::Gpu> gpu = gpuOf(address);
  if (!gpu)
    return Fault{ATTN_DEVICE_ERROR, gpu.message()};
  runtime::TensorMapShape shape;
  shape.element = *element;
  shape.boxRows = boxRows;
  for (int i = 0; i < 4; ++i)
    shape.extents[i] = sizes[3 - i];
  for (int i = 0; i < 3; ++i)
    if (sizes[2 - i] > 1)
      shape.strides[i] = strides[2 - i] * shape.elementBytes();
  runtime::Expected<TensorMap> made = gpu->tensorMap(shape);
  if (!made)
    return invalid(made.message());
  if (runtime::Status status = made->write(address, map); !status.ok())
    return invalid(status.message());
  return std::nullopt;
}
