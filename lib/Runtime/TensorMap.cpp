//===- TensorMap.cpp - Writing tensor maps --------------------------------===//

#include "attn/Runtime/TensorMap.h"

#include "State.h"

#include <cstring>

using namespace attn::runtime;

/// L2 fetches as much of a row as a box has of it.  Of 256 bytes the box beside
/// it would ask for the other half at the same time: a cache was read at 4.12
/// TB/s, and at 4.41 so (64 x 8192 keys, d = 128, H200; cuDNN 4.34).
static constexpr int64_t kPanelBytes = 128;

int64_t TensorMapShape::elementBytes() const {
  switch (element) {
  case MapElement::bf16:
  case MapElement::f16:
    return 2;
  case MapElement::u8:
    return 1;
  case MapElement::f32:
    return 4;
  }
  return 0;
}

bool TensorMapShape::isEmpty() const {
  for (int64_t extent : extents)
    if (extent == 0)
      return true;
  return false;
}

/// What the driver's documentation asks for; it would only say "invalid value".
static Status check(const TensorMapShape &shape) {
  constexpr int64_t maxExtent = int64_t(1) << 32, maxBoxRows = 256;
  constexpr int64_t strideLimit = int64_t(1) << 40;
  static const char *const names[] = {"columns", "rows", "heads",
                                      "batch entries"};
  for (int i = 0; i < 4; ++i)
    if (shape.extents[i] < 0 || shape.extents[i] > maxExtent)
      return Status::failure("expects at most " + std::to_string(maxExtent) +
                             " " + names[i] + ", but got " +
                             std::to_string(shape.extents[i]));
  for (int i = 0; i < 3; ++i) {
    int64_t stride = shape.strides[i];
    if (shape.extents[i + 1] <= 1 || (stride >= 0 && stride < strideLimit &&
                                      stride % TensorMap::kArrayAlignment == 0))
      continue;
    return Status::failure(std::string("expects ") + names[i + 1] +
                           " that are a multiple of " +
                           std::to_string(TensorMap::kArrayAlignment) +
                           " bytes below " + std::to_string(strideLimit) +
                           " apart, but got " + std::to_string(stride));
  }
  if (shape.boxRows < 1 || shape.boxRows > maxBoxRows)
    return Status::failure("expects boxes of 1 to " +
                           std::to_string(maxBoxRows) + " rows, but got " +
                           std::to_string(shape.boxRows));
  return Status::success();
}

static MapDataType dataType(MapElement element) {
  switch (element) {
  case MapElement::bf16:
    return MapDataType::bf16;
  case MapElement::f16:
    return MapDataType::f16;
  case MapElement::u8:
    return MapDataType::u8;
  case MapElement::f32:
    return MapDataType::f32;
  }
  return MapDataType::u8;
}

/// The array of one element, for one that has none.
static TensorMapShape single(TensorMapShape shape) {
  shape.extents.fill(1);
  return shape;
}

Expected<TensorMap> Gpu::tensorMap(const TensorMapShape &wanted) const {
  const Driver &driver = *state->driver;
  if (Status status = check(wanted); !status.ok())
    return status.during("making a tensor map");
  if (!driver.encodeMap || !driver.replaceMapAddress)
    return Status::failure("the CUDA driver is too old: it has no "
                           "cuTensorMapEncodeTiled, which came with CUDA 12");
  TensorMap map;
  map.gpu = state;
  map.isFixed = wanted.isEmpty();
  // Any address will do until the launch says which.
  DeviceAddress address = TensorMap::kAlignment;
  if (map.isFixed) {
    Expected<DeviceAddress> zeros = state->few.zeros(*state);
    if (!zeros)
      return zeros.status();
    address = *zeros;
  }
  TensorMapShape shape = map.isFixed ? single(wanted) : wanted;
  uint64_t extents[4], strides[3];
  for (int i = 0; i < 4; ++i)
    extents[i] = static_cast<uint64_t>(shape.extents[i]);
  for (int i = 0; i < 3; ++i)
    strides[i] =
        extents[i + 1] == 1 ? 0 : static_cast<uint64_t>(shape.strides[i]);
  const uint32_t box[4] = {
      static_cast<uint32_t>(kPanelBytes / shape.elementBytes()),
      static_cast<uint32_t>(shape.boxRows), 1, 1};
  const uint32_t elementStrides[4] = {1, 1, 1, 1};
  Current current(*state);
  Status status =
      current.check(driver.encodeMap(map.bits.data(), dataType(shape.element),
                                     4, reinterpret_cast<void *>(address),
                                     extents, strides, box, elementStrides,
                                     MapInterleave::none, MapSwizzle::bytes128,
                                     MapPromotion::bytes128, MapFill::none),
                    "making a tensor map");
  if (!status.ok())
    return status;
  return map;
}

Status TensorMap::write(DeviceAddress address, void *place) const {
  std::memcpy(place, bits.data(), kBytes);
  if (isFixed)
    return Status::success();
  if (address % kArrayAlignment != 0)
    return Status::failure(
        "expects an array for a tensor map at a multiple of " +
        std::to_string(kArrayAlignment) +
        " bytes, but got an address that is " +
        std::to_string(address % kArrayAlignment) + " bytes off");
  Current current(*gpu);
  return current.check(
      gpu->driver->replaceMapAddress(place, reinterpret_cast<void *>(address)),
      "writing an address into a tensor map");
}
