//===- Scalars.cpp - Scalar ops, one lane or many -------------------------===//

#include "attn/Host/Scalars.h"

#include "attn/Host/Rounding.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static std::optional<ScalarCode> codeOf(StringRef name) {
  using C = ScalarCode;
  using Code = std::optional<ScalarCode>;
  return llvm::StringSwitch<Code>(name)
      .Case("arith.constant", C::constant)
      .Case("arith.addi", C::addi)
      .Case("arith.subi", C::subi)
      .Case("arith.muli", C::muli)
      .Case("arith.divsi", C::divsi)
      .Case("arith.divui", C::divui)
      .Case("arith.remsi", C::remsi)
      .Case("arith.remui", C::remui)
      .Case("arith.ceildivsi", C::ceildivsi)
      .Case("arith.ceildivui", C::ceildivui)
      .Case("arith.floordivsi", C::floordivsi)
      .Case("arith.minsi", C::minsi)
      .Case("arith.maxsi", C::maxsi)
      .Case("arith.minui", C::minui)
      .Case("arith.maxui", C::maxui)
      .Case("arith.andi", C::andi)
      .Case("arith.ori", C::ori)
      .Case("arith.xori", C::xori)
      .Case("arith.shli", C::shli)
      .Case("arith.shrsi", C::shrsi)
      .Case("arith.shrui", C::shrui)
      .Case("arith.cmpi", C::cmpi)
      .Case("arith.select", C::select)
      .Cases({"arith.extsi", "arith.index_cast"}, C::extend)
      .Cases({"arith.extui", "arith.index_castui"}, C::extendUnsigned)
      .Case("arith.trunci", C::truncate)
      .Case("arith.sitofp", C::sitofp)
      .Case("arith.uitofp", C::uitofp)
      .Case("arith.fptosi", C::fptosi)
      .Case("arith.bitcast", C::bitcast)
      .Case("arith.addf", C::addf)
      .Case("arith.subf", C::subf)
      .Case("arith.mulf", C::mulf)
      .Case("arith.divf", C::divf)
      .Case("arith.negf", C::negf)
      .Case("arith.maximumf", C::maximumf)
      .Case("arith.minimumf", C::minimumf)
      .Case("arith.maxnumf", C::maxnumf)
      .Case("arith.minnumf", C::minnumf)
      .Case("arith.cmpf", C::cmpf)
      .Case("math.exp", C::exp)
      .Case("math.ceil", C::ceil)
      .Case("math.exp2", C::exp2)
      .Case("math.log", C::log)
      .Case("math.log2", C::log2)
      .Case("math.sqrt", C::sqrt)
      .Case("math.rsqrt", C::rsqrt)
      .Case("math.absf", C::absf)
      .Case("math.fma", C::fma)
      .Case("math.tanh", C::tanh)
      .Case("math.floor", C::floor)
      .Case("math.roundeven", C::roundeven)
      .Case("math.trunc", C::trunc)
      .Case("math.copysign", C::copysign)
      .Case("arith.extf", C::extf)
      .Case("arith.truncf", C::truncf)
      .Default(std::nullopt);
}

/// Bits of a scalar type we can hold, or 0.
static unsigned widthOf(Type type) {
  if (type.isBF16() || type.isF16())
    return 16;
  if (type.isIndex() || type.isInteger(64))
    return 64;
  if (type.isInteger(32) || type.isF32())
    return 32;
  return type.isInteger(1) ? 1 : 0;
}

/// A predicate as the set of relations it accepts: equal 1, greater 2, less 4,
/// unordered 8.
static unsigned relationsOf(arith::CmpFPredicate predicate) {
  unsigned number = unsigned(predicate);
  if (predicate == arith::CmpFPredicate::UNO)
    return 8;
  if (predicate == arith::CmpFPredicate::AlwaysTrue)
    return 15;
  return number < unsigned(arith::CmpFPredicate::UEQ) ? number
                                                      : 8 | (number - 7);
}

std::optional<ScalarOp> attn::decodeScalar(Operation *op) {
  std::optional<ScalarCode> code = codeOf(op->getName().getStringRef());
  if (!code || op->getNumResults() != 1)
    return std::nullopt;
  ScalarOp scalar{*code};
  for (Type type : op->getOperandTypes())
    if (widthOf(type) == 0)
      return std::nullopt;
  Type result = op->getResult(0).getType();
  scalar.resultWidth = widthOf(result);
  if (scalar.resultWidth == 0)
    return std::nullopt;
  scalar.realResult = isa<FloatType>(result);
  scalar.isBf16 = result.isBF16();
  bool holdsNarrow = *code == ScalarCode::extf || *code == ScalarCode::truncf ||
                     *code == ScalarCode::constant;
  if (scalar.resultWidth == 16 && !holdsNarrow)
    return std::nullopt;
  if (op->getNumOperands() != 0) {
    scalar.operandWidth = widthOf(op->getOperand(0).getType());
    scalar.realOperand = isa<FloatType>(op->getOperand(0).getType());
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    scalar.predicate = unsigned(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    scalar.predicate = relationsOf(compare.getPredicate());
  if (*code == ScalarCode::bitcast && scalar.realOperand == scalar.realResult)
    return std::nullopt;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()))
      scalar.integer = scalar.resultWidth == 1
                           ? int64_t(integer.getValue().getBoolValue())
                           : integer.getValue().getSExtValue();
    else
      scalar.real =
          cast<FloatAttr>(constant.getValue()).getValue().convertToFloat();
  }
  return scalar;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// Brings a result back into its width.
static int64_t wrap(int64_t value, unsigned width) {
  if (width == 64)
    return value;
  return width == 1 ? value & 1 : int64_t(int32_t(value));
}

/// The bits of a value as an unsigned number.
static uint64_t unsignedOf(int64_t value, unsigned width) {
  return width == 64 ? uint64_t(value)
                     : uint64_t(value) & ((uint64_t(1) << width) - 1);
}

/// Wrapping arithmetic, without the undefined behaviour of signed overflow.
static int64_t wrapping(uint64_t value) { return int64_t(value); }

static int64_t floorDivide(int64_t a, int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

static bool compare(unsigned predicate, int64_t a, int64_t b, unsigned width) {
  uint64_t ua = unsignedOf(a, width), ub = unsignedOf(b, width);
  switch (arith::CmpIPredicate(predicate)) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  return false;
}

static bool compare(unsigned relations, float a, float b) {
  unsigned relation = a == b ? 1 : a > b ? 2 : a < b ? 4 : 8;
  return (relations & relation) != 0;
}

/// IEEE maximum: NaN wins.  (The numbers' order decides between zeros.)
static float maximum(float a, float b) {
  return a != a ? a : b != b ? b : std::max(a, b);
}

template <typename Function> static void each(int64_t count, Function apply) {
  for (int64_t i = 0; i < count; ++i)
    apply(i);
}

static bool divides(ScalarCode code) {
  switch (code) {
  case ScalarCode::divsi:
  case ScalarCode::divui:
  case ScalarCode::remsi:
  case ScalarCode::remui:
  case ScalarCode::ceildivsi:
  case ScalarCode::ceildivui:
  case ScalarCode::floordivsi:
    return true;
  default:
    return false;
  }
}

/// Ops with two integer operands and an integer result.
static int64_t evaluateInteger(const ScalarOp &op, int64_t a, int64_t b) {
  unsigned width = op.operandWidth;
  auto unsignedA = [&] { return unsignedOf(a, width); };
  auto unsignedB = [&] { return unsignedOf(b, width); };
  uint64_t wa = uint64_t(a), wb = uint64_t(b);
  switch (op.code) {
  case ScalarCode::addi:
    return wrapping(wa + wb);
  case ScalarCode::subi:
    return wrapping(wa - wb);
  case ScalarCode::muli:
    return wrapping(wa * wb);
  case ScalarCode::divsi:
    return b == -1 ? wrapping(-wa) : a / b;
  case ScalarCode::remsi:
    return b == -1 ? 0 : a % b;
  case ScalarCode::floordivsi:
    return b == -1 ? wrapping(-wa) : floorDivide(a, b);
  case ScalarCode::ceildivsi:
    return b == -1 ? wrapping(-wa) : floorDivide(a, b) + (a % b != 0);
  case ScalarCode::divui:
    return wrapping(unsignedA() / unsignedB());
  case ScalarCode::remui:
    return wrapping(unsignedA() % unsignedB());
  case ScalarCode::ceildivui:
    return wrapping(unsignedA() / unsignedB() +
                    (unsignedA() % unsignedB() != 0));
  case ScalarCode::minsi:
    return std::min(a, b);
  case ScalarCode::maxsi:
    return std::max(a, b);
  case ScalarCode::minui:
    return unsignedA() < unsignedB() ? a : b;
  case ScalarCode::maxui:
    return unsignedA() > unsignedB() ? a : b;
  case ScalarCode::andi:
    return a & b;
  case ScalarCode::ori:
    return a | b;
  case ScalarCode::xori:
    return a ^ b;
  case ScalarCode::shli:
    return b >= int64_t(width) ? 0 : wrapping(wa << wb);
  case ScalarCode::shrsi:
    return a >> std::min<uint64_t>(wb, 63);
  case ScalarCode::shrui:
    return b >= int64_t(width) ? 0 : wrapping(unsignedA() >> wb);
  default:
    return compare(op.predicate, a, b, width);
  }
}

/// Ops that change the type, and `select`.
static bool evaluateConversion(const ScalarOp &op, ArrayRef<Lanes> in,
                               Lanes out, int64_t count) {
  switch (op.code) {
  case ScalarCode::constant:
    each(count, [&](int64_t i) {
      if (op.realResult)
        out.reals[i] = op.real;
      else
        out.integers[i] = op.integer;
    });
    return true;
  case ScalarCode::select:
    each(count, [&](int64_t i) {
      const Lanes &chosen = in[0].integers[i] ? in[1] : in[2];
      if (op.realResult)
        out.reals[i] = chosen.reals[i];
      else
        out.integers[i] = chosen.integers[i];
    });
    return true;
  case ScalarCode::extend:
  case ScalarCode::truncate:
    each(count, [&](int64_t i) {
      int64_t value = in[0].integers[i];
      out.integers[i] =
          wrap(op.operandWidth == 1 ? -value : value, op.resultWidth);
    });
    return true;
  case ScalarCode::extendUnsigned:
    each(count, [&](int64_t i) {
      out.integers[i] =
          wrap(int64_t(unsignedOf(in[0].integers[i], op.operandWidth)),
               op.resultWidth);
    });
    return true;
  case ScalarCode::sitofp:
    each(count, [&](int64_t i) { out.reals[i] = float(in[0].integers[i]); });
    return true;
  case ScalarCode::uitofp:
    each(count, [&](int64_t i) {
      out.reals[i] = float(unsignedOf(in[0].integers[i], op.operandWidth));
    });
    return true;
  case ScalarCode::fptosi:
    // Out of range is poison in arith; the nearest number is as good as any.
    each(count, [&](int64_t i) {
      double value = in[0].reals[i];
      double limit = op.resultWidth == 64 ? 0x1p62 : 0x1p31 - 1;
      value = value != value ? 0 : std::clamp(value, -limit, limit);
      out.integers[i] = wrap(int64_t(value), op.resultWidth);
    });
    return true;
  case ScalarCode::extf:
    each(count, [&](int64_t i) { out.reals[i] = in[0].reals[i]; });
    return true;
  case ScalarCode::truncf:
    each(count, [&](int64_t i) {
      out.reals[i] =
          op.isBf16 ? roundToBf16(in[0].reals[i]) : roundToF16(in[0].reals[i]);
    });
    return true;
  case ScalarCode::bitcast:
    each(count, [&](int64_t i) {
      if (op.realResult)
        out.reals[i] = attn::floatOfBits(uint32_t(in[0].integers[i]));
      else
        out.integers[i] = int32_t(attn::bitsOfFloat(in[0].reals[i]));
    });
    return true;
  default:
    return false;
  }
}

/// Ops on reals with a real result.
static bool evaluateReal(ScalarCode code, ArrayRef<Lanes> in, float *r,
                         int64_t count) {
  const float *a = in[0].reals;
  const float *b = in.size() > 1 ? in[1].reals : nullptr;
  const float *c = in.size() > 2 ? in[2].reals : nullptr;
  auto loop = [&](auto apply) {
    for (int64_t i = 0; i < count; ++i)
      r[i] = apply(i);
    return true;
  };
  switch (code) {
  case ScalarCode::addf:
    return loop([=](int64_t i) { return a[i] + b[i]; });
  case ScalarCode::subf:
    return loop([=](int64_t i) { return a[i] - b[i]; });
  case ScalarCode::mulf:
    return loop([=](int64_t i) { return a[i] * b[i]; });
  case ScalarCode::divf:
    return loop([=](int64_t i) { return a[i] / b[i]; });
  case ScalarCode::negf:
    return loop([=](int64_t i) { return -a[i]; });
  case ScalarCode::maximumf:
    return loop([=](int64_t i) { return maximum(a[i], b[i]); });
  case ScalarCode::minimumf:
    return loop([=](int64_t i) { return -maximum(-a[i], -b[i]); });
  case ScalarCode::maxnumf:
    return loop([=](int64_t i) { return std::fmax(a[i], b[i]); });
  case ScalarCode::minnumf:
    return loop([=](int64_t i) { return std::fmin(a[i], b[i]); });
  case ScalarCode::exp:
    return loop([=](int64_t i) { return std::exp(a[i]); });
  case ScalarCode::ceil:
    return loop([=](int64_t i) { return std::ceil(a[i]); });
  case ScalarCode::exp2:
    return loop([=](int64_t i) { return std::exp2(a[i]); });
  case ScalarCode::log:
    return loop([=](int64_t i) { return std::log(a[i]); });
  case ScalarCode::log2:
    return loop([=](int64_t i) { return std::log2(a[i]); });
  case ScalarCode::sqrt:
    return loop([=](int64_t i) { return std::sqrt(a[i]); });
  case ScalarCode::rsqrt:
    return loop([=](int64_t i) { return 1 / std::sqrt(a[i]); });
  case ScalarCode::absf:
    return loop([=](int64_t i) { return std::fabs(a[i]); });
  case ScalarCode::fma:
    return loop([=](int64_t i) { return std::fma(a[i], b[i], c[i]); });
  case ScalarCode::tanh:
    return loop([=](int64_t i) { return std::tanh(a[i]); });
  case ScalarCode::floor:
    return loop([=](int64_t i) { return std::floor(a[i]); });
  case ScalarCode::roundeven:
    return loop([=](int64_t i) { return std::nearbyint(a[i]); });
  case ScalarCode::trunc:
    return loop([=](int64_t i) { return std::trunc(a[i]); });
  case ScalarCode::copysign:
    return loop([=](int64_t i) { return std::copysign(a[i], b[i]); });
  default:
    return false;
  }
}

const char *attn::evaluate(const ScalarOp &op, ArrayRef<Lanes> in, Lanes out,
                           int64_t count) {
  if (divides(op.code))
    for (int64_t i = 0; i < count; ++i)
      if (in[1].integers[i] == 0)
        return "expects a divisor other than 0, but got 0";
  if (evaluateConversion(op, in, out, count))
    return nullptr;
  if (op.code == ScalarCode::cmpf) {
    each(count, [&](int64_t i) {
      out.integers[i] = compare(op.predicate, in[0].reals[i], in[1].reals[i]);
    });
    return nullptr;
  }
  if (op.realResult) {
    evaluateReal(op.code, in, out.reals, count);
    return nullptr;
  }
  each(count, [&](int64_t i) {
    out.integers[i] =
        wrap(evaluateInteger(op, in[0].integers[i], in[1].integers[i]),
             op.resultWidth);
  });
  return nullptr;
}
