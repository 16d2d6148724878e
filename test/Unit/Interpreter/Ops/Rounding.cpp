//===- Rounding.cpp - Is the nearest number of each format taken? ---------===//
//
// LLVM's APFloat is the judge.
//
//===----------------------------------------------------------------------===//

#include "attn/Host/Rounding.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace attn;
using llvm::APFloat;

static uint16_t bitsOf(float value, const llvm::fltSemantics &format) {
  APFloat number(value);
  bool lost;
  number.convert(format, APFloat::rmNearestTiesToEven, &lost);
  return uint16_t(number.bitcastToAPInt().getZExtValue());
}

static float valueOf(uint16_t bits, const llvm::fltSemantics &format) {
  return APFloat(format, llvm::APInt(16, bits)).convertToFloat();
}

static bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : bitsOfFloat(a) == bitsOfFloat(b);
}

TEST(Rounding, EveryNumberOfAFormatKeepsItsValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    uint16_t word = uint16_t(bits);
    EXPECT_TRUE(same(floatFromF16(word), valueOf(word, APFloat::IEEEhalf())))
        << bits;
    EXPECT_TRUE(same(floatFromBf16(word), valueOf(word, APFloat::BFloat())))
        << bits;
    EXPECT_TRUE(same(roundToF16(floatFromF16(word)), floatFromF16(word)));
    EXPECT_TRUE(same(roundToBf16(floatFromBf16(word)), floatFromBf16(word)));
  }
}

TEST(Rounding, EveryNumberOfE4m3KeepsItsValue) {
  for (uint32_t bits = 0; bits < 0x100; ++bits) {
    uint8_t byte = uint8_t(bits);
    APFloat number(APFloat::Float8E4M3FN(), llvm::APInt(8, bits));
    EXPECT_TRUE(same(floatFromE4m3(byte), number.convertToFloat())) << bits;
    EXPECT_TRUE(same(roundToE4m3(floatFromE4m3(byte)), floatFromE4m3(byte)));
  }
}

TEST(Rounding, Tf32IsTheNearestAndOfTwoTheOneFurtherFromZero) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    // Every other one lies half-way between two.
    uint32_t bits = uint32_t(random());
    float value = floatOfBits(i % 2 ? bits : (bits & 0xffffe000) | 0x1000);
    APFloat number(value);
    bool lost;
    number.convert(APFloat::FloatTF32(), APFloat::rmNearestTiesToAway, &lost);
    number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
    EXPECT_TRUE(same(roundToTf32(value), number.convertToFloat())) << value;
  }
  EXPECT_EQ(roundToTf32(1 + 0x1p-11f), 1 + 0x1p-10f);
  EXPECT_TRUE(std::isinf(roundToTf32(HUGE_VALF)));
}

/// What exceeds the largest number becomes it, as cvt.rn.satfinite has it.
static uint8_t e4m3Of(float value) {
  if (std::fabs(value) > 448)
    return value < 0 ? 0xfe : 0x7e;
  APFloat number(value);
  bool lost;
  number.convert(APFloat::Float8E4M3FN(), APFloat::rmNearestTiesToEven, &lost);
  return uint8_t(number.bitcastToAPInt().getZExtValue());
}

TEST(Rounding, E4m3SaturatesAndKeepsNaN) {
  float infinity = INFINITY;
  EXPECT_EQ(e4m3FromFloat(infinity), 0x7e);
  EXPECT_EQ(e4m3FromFloat(-infinity), 0xfe);
  EXPECT_EQ(e4m3FromFloat(1e30f), 0x7e);
  EXPECT_EQ(e4m3FromFloat(460.0f), 0x7e);
  EXPECT_EQ(e4m3FromFloat(-1000.0f), 0xfe);
  EXPECT_EQ(e4m3FromFloat(NAN), 0x7f);
  EXPECT_TRUE(std::isnan(floatFromE4m3(0xff)));
}

static void expectRounded(uint32_t bits) {
  float value = floatOfBits(bits);
  if (std::isnan(value)) {
    EXPECT_TRUE(std::isnan(roundToF16(value)));
    EXPECT_TRUE(std::isnan(roundToBf16(value)));
    EXPECT_TRUE(std::isnan(roundToE4m3(value)));
    return;
  }
  EXPECT_EQ(f16FromFloat(value), bitsOf(value, APFloat::IEEEhalf())) << bits;
  EXPECT_EQ(bf16FromFloat(value), bitsOf(value, APFloat::BFloat())) << bits;
  EXPECT_EQ(e4m3FromFloat(value), e4m3Of(value)) << bits;
}

TEST(Rounding, RandomBitsAgree) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i)
    expectRounded(uint32_t(random()));
}

TEST(Rounding, TiesAndTheirNeighboursAgree) {
  // Half-way points of both formats, and one bit to each side, at every
  // exponent.
  for (uint32_t exponent = 0; exponent < 256; ++exponent)
    for (uint32_t tie :
         {0x1000u, 0x3000u, 0x8000u, 0x18000u, 0x7ff000u, 0x7f8000u, 0u})
      for (int32_t side : {-1, 0, 1})
        for (uint32_t sign : {0u, 0x80000000u})
          expectRounded((sign | exponent << 23 | tie) + uint32_t(side));
}

TEST(Rounding, TheExampleOfTheHeader) {
  EXPECT_EQ(bf16FromFloat(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(bf16FromFloat(1 + 0x1p-7f), 0x3f81);
  EXPECT_EQ(bf16FromFloat(1 + 0x1p-7f + 0x1p-8f), 0x3f82);
}

TEST(Rounding, PartsOfANumberAreAllOfItAndHaveItsSign) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    float value = floatOfBits(uint32_t(random()));
    // Its parts are numbers with all their bits.
    if (!(std::fabs(value) > 0x1p-60f && std::fabs(value) < 0x1p100f))
      continue;
    if (i % 4 == 0)
      value = roundToBf16(value);
    Bf16Parts parts = splitToBf16(value);
    double sum = 0;
    for (float part : {parts.first, parts.second, parts.third}) {
      EXPECT_EQ(roundToBf16(part), part);
      EXPECT_EQ(std::signbit(part), std::signbit(value));
      EXPECT_NE(part, 0);
      sum += part;
    }
    EXPECT_LE(std::fabs(sum - value), 0x1p-29 * std::fabs(value));
  }
}

TEST(Rounding, PartsOfInfinitiesAndOfZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (float value : {infinity, -infinity}) {
    Bf16Parts parts = splitToBf16(value);
    EXPECT_EQ(parts.first, value);
    EXPECT_TRUE(std::isfinite(parts.second));
    EXPECT_TRUE(std::isfinite(parts.third));
  }
  Bf16Parts none = splitToBf16(0);
  EXPECT_EQ(none.first + none.second + none.third, 0);
  EXPECT_TRUE(
      std::isnan(splitToBf16(std::numeric_limits<float>::quiet_NaN()).first));
}
