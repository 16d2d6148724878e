//===- Arrays.cpp - Elements, poison and random numbers -------------------===//

#include "Arrays.h"

#include "attn/Host/Rounding.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <cstring>

using namespace attn;
using namespace attn::run;

HostBytes::HostBytes(HostArray shape, int64_t guardBytes)
    : shape(std::move(shape)), guardBytes(guardBytes),
      bytes(2 * guardBytes + this->shape.extent() * this->shape.elementBytes(),
            kPoison) {}

int64_t HostBytes::position(llvm::ArrayRef<int64_t> index) const {
  int64_t element = shape.offset;
  for (auto [i, stride] : llvm::zip_equal(index, shape.strides))
    element += i * stride;
  return guardBytes + element * shape.elementBytes();
}

double HostBytes::get(llvm::ArrayRef<int64_t> index) const {
  const uint8_t *from = bytes.data() + position(index);
  uint32_t bits = 0;
  std::memcpy(&bits, from, shape.elementBytes());
  if (shape.elementType.isBF16())
    return floatFromBf16(bits);
  if (shape.elementType.isF16())
    return floatFromF16(bits);
  if (llvm::isa<mlir::Float8E4M3FNType>(shape.elementType))
    return floatFromE4m3(bits);
  return floatOfBits(bits);
}

void HostBytes::set(llvm::ArrayRef<int64_t> index, double value) {
  float number = static_cast<float>(value);
  uint32_t bits = bitsOfFloat(number);
  if (shape.elementType.isBF16())
    bits = bf16FromFloat(number);
  else if (shape.elementType.isF16())
    bits = f16FromFloat(number);
  else if (llvm::isa<mlir::Float8E4M3FNType>(shape.elementType))
    bits = e4m3FromFloat(number);
  std::memcpy(bytes.data() + position(index), &bits, shape.elementBytes());
}

// The bytes of both are those of a small machine: the first is the lowest.
int64_t HostBytes::getWhole(llvm::ArrayRef<int64_t> index) const {
  int64_t value = 0;
  std::memcpy(&value, bytes.data() + position(index), shape.elementBytes());
  return llvm::SignExtend64(value, 8 * shape.elementBytes());
}

void HostBytes::setWhole(llvm::ArrayRef<int64_t> index, int64_t value) {
  std::memcpy(bytes.data() + position(index), &value, shape.elementBytes());
}

/// Whether so many bytes are all poison.
static bool isPoison(const uint8_t *bytes, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (bytes[i] != kPoison)
      return false;
  return true;
}

int64_t HostBytes::unwritten() const {
  int64_t count = 0;
  forEachIndex(shape.sizes, [&](llvm::ArrayRef<int64_t> index) {
    count += isPoison(bytes.data() + position(index), shape.elementBytes());
  });
  return count;
}

int64_t HostBytes::damaged() const {
  std::vector<bool> isElement(bytes.size(), false);
  forEachIndex(shape.sizes, [&](llvm::ArrayRef<int64_t> index) {
    int64_t at = position(index);
    for (int64_t i = 0; i < shape.elementBytes(); ++i)
      isElement[at + i] = true;
  });
  int64_t count = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    count += !isElement[i] && bytes[i] != kPoison;
  return count;
}

// The finaliser of splitmix64, public domain, S. Vigna.
uint64_t run::mixed(uint64_t counter) {
  uint64_t z = counter * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void run::fillRandom(HostBytes &array, uint64_t seed, double scale) {
  // Box-Muller: two uniform numbers give two normal ones.
  constexpr float kTwoPi = 6.2831853f;
  uint64_t counter = mixed(seed + 1);
  bool hasSpare = false;
  float spare = 0;
  auto normal = [&]() -> float {
    hasSpare = !hasSpare;
    if (!hasSpare)
      return spare;
    uint64_t bits = mixed(counter++);
    float radius = std::sqrt(-2 * std::log((float(bits >> 40) + 1) * 0x1p-24f));
    float angle = kTwoPi * float(bits & 0xffffff) * 0x1p-24f;
    spare = radius * std::sin(angle);
    return radius * std::cos(angle);
  };
  forEachIndex(array.shape.sizes, [&](llvm::ArrayRef<int64_t> index) {
    array.set(index, scale * normal());
  });
}
