//===- ScalarArithmetic.cpp - Arithmetic of regions on the host -----------===//

#include "ScalarArithmetic.h"

#include "llvm/ADT/APInt.h"
#include "llvm/Support/ErrorHandling.h"

#include <cmath>

using namespace attn;
using llvm::APInt;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

int64_t attn::withSign(int64_t bits, unsigned width) {
  return APInt(64, uint64_t(bits)).trunc(width).getSExtValue();
}

uint64_t attn::withoutSign(int64_t bits, unsigned width) {
  return APInt(64, uint64_t(bits)).trunc(width).getZExtValue();
}

/// The quotient rounded down, or up.
static APInt flooredQuotient(const APInt &a, const APInt &b, bool isUp) {
  APInt quotient, remainder;
  APInt::sdivrem(a, b, quotient, remainder);
  if (remainder.isZero())
    return quotient;
  bool isBelow = remainder.isNegative() != b.isNegative();
  if (isUp)
    return isBelow ? quotient : quotient + 1;
  return isBelow ? quotient - 1 : quotient;
}

static APInt divided(ScalarOp op, const APInt &a, const APInt &b) {
  if (b.isZero())
    return APInt(a.getBitWidth(), 0);
  switch (op) {
  case ScalarOp::divsi:
    return a.sdiv(b);
  case ScalarOp::divui:
    return a.udiv(b);
  case ScalarOp::remsi:
    return a.srem(b);
  case ScalarOp::remui:
    return a.urem(b);
  case ScalarOp::ceildivui:
    return a.udiv(b) + (a.urem(b).isZero() ? 0 : 1);
  case ScalarOp::ceildivsi:
    return flooredQuotient(a, b, /*isUp=*/true);
  default:
    return flooredQuotient(a, b, /*isUp=*/false);
  }
}

static APInt shifted(ScalarOp op, const APInt &a, const APInt &b) {
  unsigned width = a.getBitWidth();
  if (b.uge(width))
    return APInt(width, 0);
  if (op == ScalarOp::shli)
    return a.shl(b);
  return op == ScalarOp::shrsi ? a.ashr(b) : a.lshr(b);
}

int64_t attn::wholeOf(ScalarOp op, int64_t left, int64_t right,
                      unsigned width) {
  APInt a = APInt(64, uint64_t(left)).trunc(width),
        b = APInt(64, uint64_t(right)).trunc(width), result;
  switch (op) {
  case ScalarOp::addi:
    result = a + b;
    break;
  case ScalarOp::subi:
    result = a - b;
    break;
  case ScalarOp::muli:
    result = a * b;
    break;
  case ScalarOp::andi:
    result = a & b;
    break;
  case ScalarOp::ori:
    result = a | b;
    break;
  case ScalarOp::xori:
    result = a ^ b;
    break;
  case ScalarOp::shli:
  case ScalarOp::shrsi:
  case ScalarOp::shrui:
    result = shifted(op, a, b);
    break;
  case ScalarOp::maxsi:
    result = a.sgt(b) ? a : b;
    break;
  case ScalarOp::maxui:
    result = a.ugt(b) ? a : b;
    break;
  case ScalarOp::minsi:
    result = a.slt(b) ? a : b;
    break;
  case ScalarOp::minui:
    result = a.ult(b) ? a : b;
    break;
  case ScalarOp::absi:
    result = a.abs();
    break;
  default:
    result = divided(op, a, b);
    break;
  }
  return result.getSExtValue();
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

double attn::rounded(double number, const llvm::fltSemantics &type) {
  llvm::APFloat value(number);
  bool losesInfo;
  value.convert(type, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

/// NaN where one of both is.
static double largest(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : std::fmax(a, b);
}
static double least(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : std::fmin(a, b);
}

double attn::realOf(ScalarOp op, double a, double b, double c) {
  switch (op) {
  case ScalarOp::addf:
    return a + b;
  case ScalarOp::subf:
    return a - b;
  case ScalarOp::mulf:
    return a * b;
  case ScalarOp::divf:
    return a / b;
  case ScalarOp::remf:
    return std::fmod(a, b);
  case ScalarOp::negf:
    return -a;
  case ScalarOp::maximumf:
    return largest(a, b);
  case ScalarOp::minimumf:
    return least(a, b);
  case ScalarOp::maxnumf:
    return std::fmax(a, b);
  case ScalarOp::minnumf:
    return std::fmin(a, b);
  case ScalarOp::fma:
    return a * b + c;
  case ScalarOp::absf:
    return std::abs(a);
  case ScalarOp::exp:
    return std::exp(a);
  case ScalarOp::exp2:
    return std::exp2(a);
  case ScalarOp::expm1:
    return std::expm1(a);
  case ScalarOp::log:
    return std::log(a);
  case ScalarOp::log2:
    return std::log2(a);
  case ScalarOp::log10:
    return std::log10(a);
  case ScalarOp::log1p:
    return std::log1p(a);
  case ScalarOp::sqrt:
    return std::sqrt(a);
  case ScalarOp::rsqrt:
    return 1 / std::sqrt(a);
  case ScalarOp::cbrt:
    return std::cbrt(a);
  case ScalarOp::powf:
    return std::pow(a, b);
  case ScalarOp::tanh:
    return std::tanh(a);
  case ScalarOp::sinh:
    return std::sinh(a);
  case ScalarOp::cosh:
    return std::cosh(a);
  case ScalarOp::sin:
    return std::sin(a);
  case ScalarOp::cos:
    return std::cos(a);
  case ScalarOp::tan:
    return std::tan(a);
  case ScalarOp::atan:
    return std::atan(a);
  case ScalarOp::erf:
    return std::erf(a);
  case ScalarOp::floor:
    return std::floor(a);
  case ScalarOp::ceil:
    return std::ceil(a);
  case ScalarOp::round:
    return std::round(a);
  case ScalarOp::roundeven:
    return std::nearbyint(a);
  case ScalarOp::trunc:
    return std::trunc(a);
  case ScalarOp::copysign:
    return std::copysign(a, b);
  case ScalarOp::extf:
  case ScalarOp::truncf:
    return a;
  default:
    llvm_unreachable("no op of floats");
  }
}

/// Of ops of one operand.
static double derivativeOf(ScalarOp op, double a) {
  constexpr double ln2 = 0.693147180559945309417, ln10 = 2.30258509299404568402,
                   twoByRootPi = 1.12837916709551257390;
  switch (op) {
  case ScalarOp::negf:
    return -1;
  case ScalarOp::absf:
    return a > 0 ? 1 : a < 0 ? -1 : 0;
  case ScalarOp::exp:
  case ScalarOp::expm1:
    return std::exp(a);
  case ScalarOp::exp2:
    return ln2 * std::exp2(a);
  case ScalarOp::log:
    return 1 / a;
  case ScalarOp::log2:
    return 1 / (a * ln2);
  case ScalarOp::log10:
    return 1 / (a * ln10);
  case ScalarOp::log1p:
    return 1 / (1 + a);
  case ScalarOp::sqrt:
    return 0.5 / std::sqrt(a);
  case ScalarOp::rsqrt:
    return -0.5 / (a * std::sqrt(a));
  case ScalarOp::cbrt:
    return 1 / (3 * std::cbrt(a) * std::cbrt(a));
  case ScalarOp::tanh:
    return 1 - std::tanh(a) * std::tanh(a);
  case ScalarOp::sinh:
    return std::cosh(a);
  case ScalarOp::cosh:
    return std::sinh(a);
  case ScalarOp::sin:
    return std::cos(a);
  case ScalarOp::cos:
    return -std::sin(a);
  case ScalarOp::tan:
    return 1 + std::tan(a) * std::tan(a);
  case ScalarOp::atan:
    return 1 / (1 + a * a);
  case ScalarOp::erf:
    return twoByRootPi * std::exp(-a * a);
  default:
    return 1; // another type of float
  }
}

Derivatives attn::derivativesOf(ScalarOp op, double a, double b, double c) {
  bool takesA = realOf(ScalarOp::maxnumf, a, b, c) == a;
  switch (op) {
  case ScalarOp::addf:
    return {1, 1};
  case ScalarOp::subf:
    return {1, -1};
  case ScalarOp::mulf:
    return {b, a};
  case ScalarOp::divf:
    return {1 / b, -a / (b * b)};
  case ScalarOp::maximumf:
  case ScalarOp::maxnumf:
    return takesA ? Derivatives{1, 0} : Derivatives{0, 1};
  case ScalarOp::minimumf:
  case ScalarOp::minnumf:
    return takesA && a != b ? Derivatives{0, 1} : Derivatives{1, 0};
  case ScalarOp::fma:
    return {b, a, 1};
  case ScalarOp::powf:
    return {b * std::pow(a, b - 1), std::pow(a, b) * std::log(a)};
  default:
    return {derivativeOf(op, a)};
  }
}
