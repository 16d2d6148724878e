//===- Elements.cpp - Elements of arrays as scalars -----------------------===//

#include "attn/Host/Elements.h"

#include "attn/Host/Rounding.h"
#include "llvm/Support/MathExtras.h"

using namespace attn;
using namespace mlir;

bool attn::isElement(Type type) {
  if (type.isInteger())
    return type.getIntOrFloatBitWidth() <= 64;
  return type.isBF16() || type.isF16() || type.isF32();
}

int64_t attn::bytesOfElement(Type type) {
  return (type.getIntOrFloatBitWidth() + 7) / 8;
}

HostScalar attn::fromBits(Type type, uint64_t bits) {
  if (type.isBF16())
    return {0, floatFromBf16(uint16_t(bits))};
  if (type.isF16())
    return {0, floatFromF16(uint16_t(bits))};
  if (type.isF32())
    return {0, floatOfBits(uint32_t(bits))};
  if (type.isInteger(1))
    return {int64_t(bits & 1)};
  return {llvm::SignExtend64(bits, type.getIntOrFloatBitWidth())};
}

uint64_t attn::toBits(Type type, const HostScalar &value) {
  if (type.isBF16())
    return bf16FromFloat(float(value.real));
  if (type.isF16())
    return f16FromFloat(float(value.real));
  if (type.isF32())
    return bitsOfFloat(float(value.real));
  return uint64_t(value.integer);
}

const char *const attn::kNoElementLoops =
    "expects launches and copies, but got a loop over elements, which only the "
    "interpreter runs";

LogicalResult Device::runLoops(const ElementLoops &loops) {
  return loops.loop->emitError(kNoElementLoops);
}

FailureOr<HostScalar> Device::load(Type, uint64_t, Location location) {
  return emitError(location) << kNoElementLoops;
}

LogicalResult Device::store(const HostScalar &, Type, uint64_t,
                            Location location) {
  return emitError(location) << kNoElementLoops;
}
