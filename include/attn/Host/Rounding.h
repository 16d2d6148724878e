//===- Rounding.h - bf16, f16, tf32 and e4m3 as bits ------------*- C++ -*-===//
//
// Conversion between float and the narrow formats, rounding to nearest even.
// Example: 1 + 2^-8 lies half-way between two bf16 numbers, 1 (0x3f80) and
// 1 + 2^-7 (0x3f81), and becomes the even one, 0x3f80.  NaN stays NaN, and
// what exceeds the largest number becomes infinity; e4m3 has none, there it
// becomes the largest number, 448.  tf32 is f32 with ten bits of fraction, and
// of two as near the one further from zero.  Standard library only.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOST_ROUNDING_H
#define ATTN_HOST_ROUNDING_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace attn {

inline uint32_t bitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float floatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float floatFromBf16(uint16_t bits) {
  return floatOfBits(uint32_t(bits) << 16);
}

inline uint16_t bf16FromFloat(float value) {
  uint32_t bits = bitsOfFloat(value);
  if (value != value)
    return uint16_t(bits >> 16 | 0x0040); // keep it a NaN
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float floatFromF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f)
    return floatOfBits(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0)
    return floatOfBits(sign | (exponent + 112) << 23 | fraction << 13);
  float magnitude = float(fraction) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

inline uint16_t f16FromFloat(float value) {
  uint32_t bits = bitsOfFloat(value);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x477ff000) // rounds to 2^16 or more
    return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // A subnormal is a multiple of 2^-24, which is the last bit of numbers
    // between 1/2 and 1: adding 1/2 rounds to it.
    float shifted = floatOfBits(magnitude) + 0.5f;
    return sign | uint16_t(bitsOfFloat(shifted) - 0x3f000000);
  }
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | uint16_t((rounded - 0x38000000) >> 13);
}

inline float floatFromE4m3(uint8_t bits) {
  uint32_t sign = uint32_t(bits & 0x80) << 24;
  uint32_t exponent = bits >> 3 & 0xf, fraction = bits & 0x7;
  if ((bits & 0x7f) == 0x7f)
    return floatOfBits(sign | 0x7fc00000);
  if (exponent != 0)
    return floatOfBits(sign | (exponent + 120) << 23 | fraction << 20);
  float magnitude = float(fraction) * 0x1p-9f;
  return sign ? -magnitude : magnitude;
}

/// As `cvt.rn.satfinite.e4m3x2.f32` converts.
inline uint8_t e4m3FromFloat(float value) {
  uint32_t bits = bitsOfFloat(value);
  uint8_t sign = uint8_t(bits >> 24 & 0x80);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return 0x7f;
  if (magnitude >= 0x43e00000) // 448
    return sign | 0x7e;
  if (magnitude < 0x3c800000) {
    // A subnormal is a multiple of 2^-9, which is the last bit of numbers
    // between 2^14 and 2^15: adding 2^14 rounds to it.
    float shifted = floatOfBits(magnitude) + 0x1p14f;
    return sign | uint8_t(bitsOfFloat(shifted) - 0x46800000);
  }
  uint32_t rounded = magnitude + 0x7ffff + (magnitude >> 20 & 1);
  return sign | uint8_t((rounded - 0x3c000000) >> 20);
}

/// As `cvt.rna.tf32.f32` converts.
inline float roundToTf32(float value) {
  if (value != value)
    return value;
  return floatOfBits((bitsOfFloat(value) + 0x1000) & 0xffffe000);
}

/// Towards zero; as the tensor cores read a register.
inline float cutOffToTf32(float value) {
  return floatOfBits(bitsOfFloat(value) & 0xffffe000);
}

/// A number as the sum of three of bf16, as `tile.split_bf16` says.
struct Bf16Parts {
  float first, second, third;
};
inline Bf16Parts splitToBf16(float value) {
  auto cutOff = [](float x) {
    return floatOfBits(bitsOfFloat(x) & 0xffff0000);
  };
  Bf16Parts parts;
  parts.first = cutOff(value);
  // Of a NaN the minimum is the other one.
  float rest =
      std::fmin(std::fma(value, 0x1p-30f, value - parts.first), 0x1p100f);
  parts.second = cutOff(rest);
  parts.third = cutOff(std::fma(rest, 0x1p-24f, rest - parts.second));
  return parts;
}

/// The same of f16, of a number between -2^16 and 2^16 that may be infinite.
/// The rest, and its share of the product that is left out, is 2^-24 at least,
/// and no more than the number.
struct F16Parts {
  float first, second;
};
inline F16Parts splitToF16(float value) {
  uint16_t nearest = f16FromFloat(value);
  // The next one towards zero, if that is further away.
  if (std::fabs(floatFromF16(nearest)) > std::fabs(value))
    --nearest;
  float first = floatFromF16(nearest);
  float share = (value - first) * (1 + 0x3p-14f);
  float rest =
      std::fmin(std::fmax(std::fabs(share), 0x1p-24f), std::fabs(value));
  return {first, floatFromF16(f16FromFloat(std::copysign(rest, value)))};
}

inline float roundToBf16(float value) {
  return floatFromBf16(bf16FromFloat(value));
}
inline float roundToF16(float value) {
  return floatFromF16(f16FromFloat(value));
}
inline float roundToE4m3(float value) {
  return floatFromE4m3(e4m3FromFloat(value));
}

} // namespace attn

#endif
