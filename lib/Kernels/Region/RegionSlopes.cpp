//===- RegionSlopes.cpp - Writes derivatives of a region ------------------===//
//
// Forward: the slope of an op's result is the sum of those of its operands,
// each times the op's derivative in it (ScalarArithmetic.cpp has the same).
//
//===----------------------------------------------------------------------===//

#include "Region/RegionWriter.h"

#include "Softmax/ScoreScale.h"

using namespace mlir;
using namespace attn;

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

std::optional<Scalar> RegionWriter::slope(Value value) {
  if (!isOnSource(value))
    return std::nullopt;
  if (value == (source ? source : Value(code.region.getArgument(0))))
    return real(1);
  if (auto found = slopes.find(value); found != slopes.end())
    return found->second;
  Operation &op = *value.getDefiningOp();
  std::optional<Scalar> is = slopeOf(op, *scalarKindOf(&op));
  slopes[value] = is;
  return is;
}

std::optional<Scalar> RegionWriter::slopeOf(Operation &op, ScalarKind kind) {
  auto number = [&](unsigned place) {
    return b.wrap(write(op.getOperand(place)));
  };
  auto times = [&](unsigned place,
                   function_ref<Scalar()> factor) -> std::optional<Scalar> {
    std::optional<Scalar> of = slope(op.getOperand(place));
    return of ? std::optional(*of * factor()) : std::nullopt;
  };
  auto sum = [](std::optional<Scalar> x, std::optional<Scalar> y) {
    return x && y ? std::optional(*x + *y) : x ? x : y;
  };
  auto orNone = [&](std::optional<Scalar> x) { return x ? *x : real(0); };
  auto either = [&](Scalar takesFirst, unsigned first) {
    return b.select(takesFirst, orNone(slope(op.getOperand(first))),
                    orNone(slope(op.getOperand(first + 1))));
  };
  switch (kind) {
  case ScalarKind::addf:
    return sum(slope(op.getOperand(0)), slope(op.getOperand(1)));
  case ScalarKind::subf: {
    std::optional<Scalar> less = slope(op.getOperand(1));
    return sum(slope(op.getOperand(0)),
               less ? std::optional(-*less) : std::nullopt);
  }
  case ScalarKind::mulf:
    return sum(times(0, [&] { return number(1); }),
               times(1, [&] { return number(0); }));
  case ScalarKind::divf:
    return sum(times(0, [&] { return real(1) / number(1); }), times(1, [&] {
                 return -(b.wrap(write(op.getResult(0))) / number(1));
               }));
  case ScalarKind::fma:
    return sum(sum(times(0, [&] { return number(1); }),
                   times(1, [&] { return number(0); })),
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

Scalar RegionWriter::steepness(ScalarKind kind, Value operand, Value result) {
  auto x = [&] { return b.wrap(write(operand)); };
  auto y = [&] { return b.wrap(write(result)); };
  Scalar one = real(1);
  switch (kind) {
  case ScalarKind::extf:
  case ScalarKind::truncf:
    return one;
  case ScalarKind::negf:
    return real(-1);
  case ScalarKind::absf:
    return b.select(x() < real(0), real(-1),
                    b.select(x() == real(0), real(0), one));
  case ScalarKind::exp:
    return y();
  case ScalarKind::exp2:
    return y() * real(1 / kLog2E);
  case ScalarKind::log:
    return one / x();
  case ScalarKind::log2:
    return real(kLog2E) / x();
  case ScalarKind::log10:
    return real(kLog2E * std::log10(2.0)) / x();
  case ScalarKind::sqrt:
    return real(0.5) / y();
  case ScalarKind::rsqrt:
    return real(-0.5) * y() / x();
  case ScalarKind::tanh:
    return one - y() * y();
  default:
    llvm_unreachable("gradients pass through ops with derivatives");
  }
}
