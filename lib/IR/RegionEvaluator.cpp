//===- RegionEvaluator.cpp - Regions of attention as functions ------------===//

#include "attn/IR/RegionEvaluator.h"

#include "ScalarArithmetic.h"

#include "attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

static unsigned widthOf(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer ? integer.getWidth() : 64;
}

/// The predicates of the index dialect are those of arith, by name.
static int predicateOf(Operation &op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return int(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return int(compare.getPredicate());
  if (auto compare = dyn_cast<index::CmpOp>(op))
    return int(*arith::symbolizeCmpIPredicate(
        index::stringifyIndexCmpPredicate(compare.getPred())));
  return 0;
}

RegionEvaluator::RegionEvaluator(Region &region)
    : isScore(attn::isScore(region)), arguments(region.getNumArguments()) {
  steps.resize(arguments);
  llvm::append_range(values, region.getArguments());
  for (Operation &op : region.front())
    addStep(op);
}

void RegionEvaluator::addStep(Operation &op) {
  auto numberOf = [&](Value value) -> unsigned {
    return llvm::find(values, value) - values.begin();
  };
  Step step;
  step.op = *scalarKindOf(&op);
  if (step.op == ScalarKind::yield) {
    result = numberOf(op.getOperand(0));
    return;
  }
  Type type = op.getResult(0).getType();
  step.isReal = isa<FloatType>(type);
  step.width = widthOf(type);
  step.predicate = predicateOf(op);
  ValueRange operands = op.getOperands();
  if (step.op == ScalarKind::read) {
    auto array = cast<BlockArgument>(operands.front());
    step.capture = array.getArgNumber() - isScore - kPositionCount;
    operands = operands.drop_front();
    if (step.isReal)
      step.tangent = tangents++;
  } else if (!operands.empty()) {
    step.operandWidth = widthOf(operands.front().getType());
  }
  for (Value operand : operands)
    step.operands.push_back(numberOf(operand));
  if (step.op == ScalarKind::truncf)
    step.rounding = &cast<FloatType>(type).getFloatSemantics();
  if (step.op == ScalarKind::constant) {
    Attribute value = op.getAttr("value");
    if (auto real = dyn_cast<FloatAttr>(value))
      step.constant.real = real.getValueAsDouble();
    else if (auto truth = dyn_cast<BoolAttr>(value))
      step.constant.whole = truth.getValue() ? -1 : 0;
    else
      step.constant.whole = withSign(
          cast<IntegerAttr>(value).getValue().getSExtValue(), step.width);
  }
  steps.push_back(step);
  values.push_back(op.getResult(0));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static bool compareWholes(int predicate, int64_t a, int64_t b, unsigned width) {
  return arith::applyCmpPredicate(arith::CmpIPredicate(predicate),
                                  llvm::APInt(64, uint64_t(a)).trunc(width),
                                  llvm::APInt(64, uint64_t(b)).trunc(width));
}

static bool compareReals(int predicate, double a, double b) {
  return arith::applyCmpPredicate(arith::CmpFPredicate(predicate),
                                  llvm::APFloat(a), llvm::APFloat(b));
}

/// Toward zero, within the range of the type.
static int64_t wholeOfReal(double number, unsigned width, bool isSigned) {
  if (std::isnan(number))
    return 0;
  llvm::APSInt whole(width, /*isUnsigned=*/!isSigned);
  bool isExact;
  llvm::APFloat(number).convertToInteger(whole, llvm::APFloat::rmTowardZero,
                                         &isExact);
  return whole.getSExtValue();
}

std::string attn::str(const OutsideRead &read) {
  std::string text;
  llvm::raw_string_ostream(text)
      << "reads element " << read.index << " of " << read.size
      << " in dimension " << read.dimension << " of capture " << read.capture
      << " for batch entry " << read.pair.batch << ", head " << read.pair.head
      << ", query " << read.pair.query << " and key " << read.pair.key;
  return text;
}

void RegionEvaluator::noteOutside(const Step &step, unsigned dimension,
                                  int64_t index, int64_t size,
                                  const State &state) const {
  if (outside)
    return;
  auto position = [&](unsigned number) {
    return state.values[isScore + number].whole;
  };
  outside = OutsideRead{step.capture,
                        dimension,
                        index,
                        size,
                        {position(0), position(1), position(2), position(3),
                         position(4), position(5)}};
}

RegionEvaluator::Number
RegionEvaluator::read(const Step &step, State &state,
                      const std::vector<CapturedArray> &captures) const {
  const CapturedArray &array = captures[step.capture];
  Number nothing;
  if (step.isReal)
    nothing.real = std::numeric_limits<double>::quiet_NaN();
  int64_t offset = 0;
  for (auto [dim, place] :
       llvm::enumerate(llvm::zip_equal(step.operands, array.sizes))) {
    auto [operand, size] = place;
    int64_t index = state.values[operand].whole;
    if (index < 0 || index >= size) {
      noteOutside(step, dim, index, size, state);
      return nothing;
    }
    offset = offset * size + index;
  }
  Number number;
  if (!step.isReal) {
    number.whole = array.wholes[offset];
    return number;
  }
  number.real = array.reals[offset];
  state.elements[step.tangent - 1].offset = offset;
  return number;
}

RegionEvaluator::Number
RegionEvaluator::valueOf(const Step &step, State &state,
                         const std::vector<CapturedArray> &captures) const {
  Number operands[3];
  for (auto [place, operand] : llvm::enumerate(step.operands))
    if (place < std::size(operands))
      operands[place] = state.values[operand];
  auto [a, b, c] = operands;
  Number number;
  switch (step.op) {
  case ScalarKind::constant:
    return step.constant;
  case ScalarKind::read:
    return read(step, state, captures);
  case ScalarKind::select:
    return a.whole != 0 ? b : c;
  case ScalarKind::cmpi:
    number.whole = -int64_t(
        compareWholes(step.predicate, a.whole, b.whole, step.operandWidth));
    return number;
  case ScalarKind::cmpf:
    number.whole = -int64_t(compareReals(step.predicate, a.real, b.real));
    return number;
  case ScalarKind::extsi:
    number.whole = withSign(a.whole, step.width);
    return number;
  case ScalarKind::extui:
    number.whole = withSign(
        int64_t(withoutSign(a.whole, std::min(step.operandWidth, step.width))),
        step.width);
    return number;
  case ScalarKind::sitofp:
    number.real = double(a.whole);
    return number;
  case ScalarKind::uitofp:
    number.real = double(withoutSign(a.whole, step.operandWidth));
    return number;
  case ScalarKind::fptosi:
  case ScalarKind::fptoui:
    number.whole =
        wholeOfReal(a.real, step.width, step.op == ScalarKind::fptosi);
    return number;
  default:
    break;
  }
  if (!step.isReal) {
    number.whole = wholeOf(step.op, a.whole, b.whole, step.width);
    return number;
  }
  number.real = realOf(step.op, a.real, b.real, c.real);
  if (step.rounding)
    number.real = rounded(number.real, *step.rounding);
  return number;
}

/// A derivative of 0 takes no part, whatever it meets: at the border of where a
/// function is defined that is an infinity.
static void addProduct(double &sum, double factor, double tangent) {
  if (tangent != 0)
    sum += factor * tangent;
}

void RegionEvaluator::derive(const Step &step, unsigned number,
                             State &state) const {
  double *own = &state.tangents[number * tangents];
  if (step.tangent >= 0) {
    own[step.tangent] = 1;
    return;
  }
  if (!step.isReal || !hasDerivative(step.op))
    return;
  auto tangentOf = [&](unsigned place, unsigned tangent) {
    return state.tangents[step.operands[place] * tangents + tangent];
  };
  if (step.op == ScalarKind::select) {
    unsigned taken = state.values[step.operands[0]].whole != 0 ? 1 : 2;
    for (unsigned t = 0; t < tangents; ++t)
      own[t] = tangentOf(taken, t);
    return;
  }
  double reals[3] = {};
  for (auto [place, operand] : llvm::enumerate(step.operands))
    reals[place] = state.values[operand].real;
  Derivatives by = derivativesOf(step.op, reals[0], reals[1], reals[2]);
  double factors[3] = {by.a, by.b, by.c};
  for (unsigned place = 0; place < step.operands.size(); ++place)
    for (unsigned t = 0; t < tangents; ++t)
      addProduct(own[t], factors[place], tangentOf(place, t));
}

void RegionEvaluator::run(State &state, double z, const PairOfRows &pair,
                          const std::vector<CapturedArray> &captures,
                          bool derives) const {
  state.values.assign(steps.size(), Number());
  state.tangents.assign(derives ? steps.size() * tangents : 0, 0.0);
  state.elements.assign(tangents - 1, OfElement{0, -1, 0});
  const int64_t positions[kPositionCount] = {
      pair.batch, pair.head, pair.query, pair.key, pair.queries, pair.keys};
  if (isScore) {
    state.values[0].real = z;
    if (derives)
      state.tangents[0] = 1;
  }
  for (unsigned i = 0; i < kPositionCount; ++i)
    state.values[isScore + i].whole = positions[i];
  for (unsigned number = arguments; number < steps.size(); ++number) {
    state.values[number] = valueOf(steps[number], state, captures);
    if (derives)
      derive(steps[number], number, state);
  }
}

bool RegionEvaluator::sees(const PairOfRows &pair,
                           const std::vector<CapturedArray> &captures) const {
  State state;
  run(state, 0, pair, captures, /*derives=*/false);
  return state.values[result].whole != 0;
}

double
RegionEvaluator::score(double z, const PairOfRows &pair,
                       const std::vector<CapturedArray> &captures) const {
  State state;
  run(state, z, pair, captures, /*derives=*/false);
  return state.values[result].real;
}

RegionEvaluator::Slope
RegionEvaluator::slope(double z, const PairOfRows &pair,
                       const std::vector<CapturedArray> &captures) const {
  State state;
  run(state, z, pair, captures, /*derives=*/true);
  const double *own = &state.tangents[result * tangents];
  Slope slope = {state.values[result].real, own[0], {}};
  for (const Step &step : steps)
    if (step.tangent >= 0 && state.elements[step.tangent - 1].offset >= 0)
      slope.ofElements.push_back({step.capture,
                                  state.elements[step.tangent - 1].offset,
                                  own[step.tangent]});
  return slope;
}
