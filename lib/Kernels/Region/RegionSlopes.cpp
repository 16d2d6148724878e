//===- RegionSlopes.cpp - Writes derivatives of a region ------------------===//
//
// Forward: the slope of an op's result is the sum of those of its operands,
// each times the op's derivative in it (ScalarArithmetic.cpp has the same).
//
// Constants are multiplied here.  Example: of 50 tanh(z / 50) the slope is
// 50 (1 - y y) / 50, of which 1 - y y is left to the kernel.
//
//===----------------------------------------------------------------------===//

#include "Region/RegionWriter.h"

#include "Softmax/ScoreScale.h"

using namespace mlir;
using namespace attn;

using Slope = RegionWriter::Slope;

void RegionWriter::setSource(Value value) {
  source = value;
  onSource = {value};
  for (Operation &op : code.region.front().without_terminator())
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return onSource.contains(operand); }))
      onSource.insert(op.getResult(0));
}

bool RegionWriter::isOnSource(Value value) const {
  return source ? onSource.contains(value)
                : (code.dependenceOf(value) & onScore) != 0;
}

/// A constant that is finite and not 0, whose reciprocal is one of f32 too.
static std::optional<double> ordinaryOf(Value number) {
  auto constant = number.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return std::nullopt;
  double value = cast<FloatAttr>(constant.getValue()).getValueAsDouble();
  constexpr double least = 0x1p-100, most = 0x1p100;
  bool isOrdinary = std::abs(value) >= least && std::abs(value) <= most;
  return isOrdinary ? std::optional(value) : std::nullopt;
}

static Slope slopeOf(Scalar number) {
  if (std::optional<double> constant = ordinaryOf(number))
    return {*constant, {}};
  return {1, number};
}

Scalar RegionWriter::numberOf(const Slope &slope) {
  if (slope.isConstant())
    return real(slope.factor);
  return slope.factor == 1 ? slope.value : slope.value * real(slope.factor);
}

Slope RegionWriter::sum(const Slope &x, const Slope &y) {
  if (x.isConstant() && y.isConstant())
    return {x.factor + y.factor, {}};
  return {1, numberOf(x) + numberOf(y)};
}

Slope RegionWriter::product(const Slope &x, const Slope &y) {
  double factor = x.factor * y.factor;
  if (x.isConstant() || y.isConstant())
    return {factor, x.isConstant() ? y.value : x.value};
  return {factor, x.value * y.value};
}

std::optional<Slope> RegionWriter::slope(Value value) {
  if (!isOnSource(value))
    return std::nullopt;
  if (value == (source ? source : Value(code.region.getArgument(0))))
    return Slope();
  if (auto found = slopes.find(value); found != slopes.end())
    return found->second;
  Operation &op = *value.getDefiningOp();
  std::optional<Slope> is = slopeOf(op, *scalarKindOf(&op));
  slopes[value] = is;
  return is;
}

Scalar RegionWriter::slopeOf(Value value, double factor) {
  std::optional<Slope> is = slope(value);
  return is ? numberOf(product(*is, {factor, {}})) : real(0);
}

std::optional<Slope> RegionWriter::slopeOf(Operation &op, ScalarKind kind) {
  auto number = [&](unsigned place) {
    return b.wrap(write(op.getOperand(place)));
  };
  auto times = [&](unsigned place,
                   function_ref<Slope()> factor) -> std::optional<Slope> {
    std::optional<Slope> of = slope(op.getOperand(place));
    return of ? std::optional(product(*of, factor())) : std::nullopt;
  };
  auto plus = [&](std::optional<Slope> x, std::optional<Slope> y) {
    return x && y ? std::optional(sum(*x, *y)) : x ? x : y;
  };
  auto orNone = [&](std::optional<Slope> x) {
    return x ? numberOf(*x) : real(0);
  };
  auto either = [&](Scalar takesFirst, unsigned first) {
    Scalar chosen = b.select(takesFirst, orNone(slope(op.getOperand(first))),
                             orNone(slope(op.getOperand(first + 1))));
    return Slope{1, chosen};
  };
  auto other = [&](unsigned place) { return ::slopeOf(number(place)); };
  auto inverse = [&](Scalar divisor) {
    if (std::optional<double> constant = ordinaryOf(divisor))
      return Slope{1 / *constant, {}};
    return Slope{1, real(1) / divisor};
  };
  switch (kind) {
  case ScalarKind::addf:
    return plus(slope(op.getOperand(0)), slope(op.getOperand(1)));
  case ScalarKind::subf:
    return plus(slope(op.getOperand(0)),
                times(1, [] { return Slope{-1, {}}; }));
  case ScalarKind::mulf:
    return plus(times(0, [&] { return other(1); }),
                times(1, [&] { return other(0); }));
  case ScalarKind::divf:
    return plus(times(0, [&] { return inverse(number(1)); }), times(1, [&] {
                  Scalar quotient = b.wrap(write(op.getResult(0)));
                  return Slope{-1, quotient / number(1)};
                }));
  case ScalarKind::fma:
    return plus(plus(times(0, [&] { return other(1); }),
                     times(1, [&] { return other(0); })),
                slope(op.getOperand(2)));
  case ScalarKind::select:
    return either(number(0), /*first=*/1);
  case ScalarKind::maximumf:
  case ScalarKind::maxnumf:
    return either(number(1) <= number(0), /*first=*/0);
  case ScalarKind::minimumf:
  case ScalarKind::minnumf:
    return either(number(0) <= number(1), /*first=*/0);
  default:
    return times(
        0, [&] { return steepness(kind, op.getOperand(0), op.getResult(0)); });
  }
}

Slope RegionWriter::steepness(ScalarKind kind, Value operand, Value result) {
  auto x = [&] { return b.wrap(write(operand)); };
  auto y = [&] { return b.wrap(write(result)); };
  Scalar one = real(1);
  switch (kind) {
  case ScalarKind::extf:
  case ScalarKind::truncf:
    return {};
  case ScalarKind::negf:
    return {-1, {}};
  case ScalarKind::absf:
    return {1, b.select(x() < real(0), real(-1),
                        b.select(x() == real(0), real(0), one))};
  case ScalarKind::exp:
    return {1, y()};
  case ScalarKind::exp2:
    return {1 / kLog2E, y()};
  case ScalarKind::log:
    return {1, one / x()};
  case ScalarKind::log2:
    return {kLog2E, one / x()};
  case ScalarKind::log10:
    return {kLog2E * std::log10(2.0), one / x()};
  case ScalarKind::sqrt:
    return {0.5, one / y()};
  case ScalarKind::rsqrt:
    return {-0.5, y() / x()};
  case ScalarKind::tanh:
    return {1, one - y() * y()};
  default:
    llvm_unreachable("gradients pass through ops with derivatives");
  }
}
