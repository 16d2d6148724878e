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

static APInt divided(ScalarKind op, const APInt &a, const APInt &b) {
  if (b.isZero())
    return APInt(a.getBitWidth(), 0);
  switch (op) {
  case ScalarKind::divsi:
    return a.sdiv(b);
  case ScalarKind::divui:
    return a.udiv(b);
  case ScalarKind::remsi:
    return a.srem(b);
  case ScalarKind::remui:
    return a.urem(b);
  case ScalarKind::ceildivui:
    return a.udiv(b) + (a.urem(b).isZero() ? 0 : 1);
  case ScalarKind::ceildivsi:
    return flooredQuotient(a, b, /*isUp=*/true);
  default:
    return flooredQuotient(a, b, /*isUp=*/false);
  }
}

static APInt shifted(ScalarKind op, const APInt &a, const APInt &b) {
  unsigned width = a.getBitWidth();
  if (b.uge(width))
    return APInt(width, 0);
  if (op == ScalarKind::shli)
    return a.shl(b);
  return op == ScalarKind::shrsi ? a.ashr(b) : a.lshr(b);
}

int64_t attn::wholeOf(ScalarKind op, int64_t left, int64_t right,
                      unsigned width) {
  APInt a = APInt(64, uint64_t(left)).trunc(width),
        b = APInt(64, uint64_t(right)).trunc(width), result;
  switch (op) {
  case ScalarKind::addi:
    result = a + b;
    break;
  case ScalarKind::subi:
    result = a - b;
    break;
  case ScalarKind::muli:
    result = a * b;
    break;
  case ScalarKind::andi:
    result = a & b;
    break;
  case ScalarKind::ori:
    result = a | b;
    break;
  case ScalarKind::xori:
    result = a ^ b;
    break;
  case ScalarKind::shli:
  case ScalarKind::shrsi:
  case ScalarKind::shrui:
    result = shifted(op, a, b);
    break;
  case ScalarKind::maxsi:
    result = a.sgt(b) ? a : b;
    break;
  case ScalarKind::maxui:
    result = a.ugt(b) ? a : b;
    break;
  case ScalarKind::minsi:
    result = a.slt(b) ? a : b;
    break;
  case ScalarKind::minui:
    result = a.ult(b) ? a : b;
    break;
  case ScalarKind::absi:
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

double attn::realOf(ScalarKind op, double a, double b, double c) {
  switch (op) {
  case ScalarKind::addf:
    return a + b;
  case ScalarKind::subf:
    return a - b;
  case ScalarKind::mulf:
    return a * b;
  case ScalarKind::divf:
    return a / b;
  case ScalarKind::remf:
    return std::fmod(a, b);
  case ScalarKind::negf:
    return -a;
  case ScalarKind::maximumf:
    return largest(a, b);
  case ScalarKind::minimumf:
    return least(a, b);
  case ScalarKind::maxnumf:
    return std::fmax(a, b);
  case ScalarKind::minnumf:
    return std::fmin(a, b);
  case ScalarKind::fma:
    return a * b + c;
  case ScalarKind::absf:
    return std::abs(a);
  case ScalarKind::exp:
    return std::exp(a);
  case ScalarKind::exp2:
    return std::exp2(a);
  case ScalarKind::expm1:
    return std::expm1(a);
  case ScalarKind::log:
    return std::log(a);
  case ScalarKind::log2:
    return std::log2(a);
  case ScalarKind::log10:
    return std::log10(a);
  case ScalarKind::log1p:
    return std::log1p(a);
  case ScalarKind::sqrt:
    return std::sqrt(a);
  case ScalarKind::rsqrt:
    return 1 / std::sqrt(a);
  case ScalarKind::cbrt:
    return std::cbrt(a);
  case ScalarKind::powf:
    return std::pow(a, b);
  case ScalarKind::tanh:
    return std::tanh(a);
  case ScalarKind::sinh:
    return std::sinh(a);
  case ScalarKind::cosh:
    return std::cosh(a);
  case ScalarKind::sin:
    return std::sin(a);
  case ScalarKind::cos:
    return std::cos(a);
  case ScalarKind::tan:
    return std::tan(a);
  case ScalarKind::atan:
    return std::atan(a);
  case ScalarKind::erf:
    return std::erf(a);
  case ScalarKind::floor:
    return std::floor(a);
  case ScalarKind::ceil:
    return std::ceil(a);
  case ScalarKind::round:
    return std::round(a);
  case ScalarKind::roundeven:
    return std::nearbyint(a);
  case ScalarKind::trunc:
    return std::trunc(a);
  case ScalarKind::copysign:
    return std::copysign(a, b);
  case ScalarKind::extf:
  case ScalarKind::truncf:
    return a;
  default:
    llvm_unreachable("no op of floats");
  }
}

/// Of ops of one operand.
static double derivativeOf(ScalarKind op, double a) {
  constexpr double ln2 = 0.693147180559945309417, ln10 = 2.30258509299404568402,
                   twoByRootPi = 1.12837916709551257390;
  switch (op) {
  case ScalarKind::negf:
    return -1;
  case ScalarKind::absf:
    return a > 0 ? 1 : a < 0 ? -1 : 0;
  case ScalarKind::exp:
  case ScalarKind::expm1:
    return std::exp(a);
  case ScalarKind::exp2:
    return ln2 * std::exp2(a);
  case ScalarKind::log:
    return 1 / a;
  case ScalarKind::log2:
    return 1 / (a * ln2);
  case ScalarKind::log10:
    return 1 / (a * ln10);
  case ScalarKind::log1p:
    return 1 / (1 + a);
  case ScalarKind::sqrt:
    return 0.5 / std::sqrt(a);
  case ScalarKind::rsqrt:
    return -0.5 / (a * std::sqrt(a));
  case ScalarKind::cbrt:
    return 1 / (3 * std::cbrt(a) * std::cbrt(a));
  case ScalarKind::tanh:
    return 1 - std::tanh(a) * std::tanh(a);
  case ScalarKind::sinh:
    return std::cosh(a);
  case ScalarKind::cosh:
    return std::sinh(a);
  case ScalarKind::sin:
    return std::cos(a);
  case ScalarKind::cos:
    return -std::sin(a);
  case ScalarKind::tan:
    return 1 + std::tan(a) * std::tan(a);
  case ScalarKind::atan:
    return 1 / (1 + a * a);
  case ScalarKind::erf:
    return twoByRootPi * std::exp(-a * a);
  default:
    return 1; // another type of float
  }
}

Derivatives attn::derivativesOf(ScalarKind op, double a, double b, double c) {
  bool takesA = realOf(ScalarKind::maxnumf, a, b, c) == a;
  switch (op) {
  case ScalarKind::addf:
    return {1, 1};
  case ScalarKind::subf:
    return {1, -1};
  case ScalarKind::mulf:
    return {b, a};
  case ScalarKind::divf:
    return {1 / b, -a / (b * b)};
  case ScalarKind::maximumf:
  case ScalarKind::maxnumf:
    return takesA ? Derivatives{1, 0} : Derivatives{0, 1};
  case ScalarKind::minimumf:
  case ScalarKind::minnumf:
    return takesA && a != b ? Derivatives{0, 1} : Derivatives{1, 0};
  case ScalarKind::fma:
    return {b, a, 1};
  case ScalarKind::powf:
    return {b * std::pow(a, b - 1), std::pow(a, b) * std::log(a)};
  default:
    return {derivativeOf(op, a)};
  }
}
