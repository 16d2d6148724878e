//===- RegionCost.cpp - What kernels do for a region, per score -----------===//

#include "attn/IR/RegionCost.h"

#include "attn/IR/Clauses.h"
#include "attn/IR/ScalarOps.h"

#include "llvm/ADT/DenseMap.h"

#include <cmath>

using namespace mlir;
using namespace attn;

namespace {

/// Beside Dependence: on the difference of query and key alone.
constexpr unsigned onDiagonal = 8;

/// Of lane's scores of two rows and 2 n columns each diagonal has two, but the
/// outer ones.
constexpr double kShareOfDiagonal = 0.55, kShareOfKey = 0.5;
/// Instructions of a quotient of integers, and of floats besides its function.
constexpr double kQuotientSlots = 20, kDivisionSlots = 2;
/// Of tanh where it is exact (Region/Tanh.h): instructions, and of these
/// functions.
constexpr double kExactTanhSlots = 14, kExactTanhFunctions = 2;
/// Of a read: its address, its bound or check, and itself.
constexpr double kReadSlots = 3;
/// Of slopes: P times one, and 0 where P is.
constexpr double kSlopeSlots = 3;
/// Registers of a lane: an address, and a number of both of its rows.
constexpr int64_t kAddressRegisters = 2, kRowRegisters = 2;

class Counter {
public:
  Counter(Region &region, DataType inputs)
      : region(region), hasExactTanh(isTanhExact(region, inputs)) {
    bool isOfScores = isScore(region);
    if (isOfScores)
      dependence[region.getArgument(0)] = onScore;
    dependence[region.getArgument(isOfScores + 2)] = onQuery;
    dependence[region.getArgument(isOfScores + 3)] = onKey;
  }

  RegionCost count() {
    for (Operation &op : region.front().without_terminator())
      dependence[op.getResult(0)] = dependenceOf(op);
    for (Operation &op : region.front().without_terminator())
      add(op);
    if (isScore(region) && !addsToScore(region))
      cost.slopes += kSlopeSlots;
    else
      cost.slopes = 0;
    return cost;
  }

private:
  unsigned of(Value value) const { return dependence.lookup(value); }

  /// A position, and what is the same for all pairs added or taken.
  bool isPosition(Value value, unsigned which) const {
    if (isa<BlockArgument>(value))
      return of(value) == which;
    Operation *op = value.getDefiningOp();
    ScalarKind kind = *scalarKindOf(op);
    if (kind == ScalarKind::extsi || kind == ScalarKind::extui)
      return isPosition(op->getOperand(0), which);
    if (kind != ScalarKind::addi && kind != ScalarKind::subi)
      return false;
    return isPosition(op->getOperand(0), which) && of(op->getOperand(1)) == 0;
  }

  unsigned dependenceOf(Operation &op) const {
    unsigned all = 0;
    for (Value operand : op.getOperands())
      all |= of(operand);
    if (*scalarKindOf(&op) != ScalarKind::subi)
      return all;
    Value a = op.getOperand(0), b = op.getOperand(1);
    bool isDifference = (isPosition(a, onQuery) && isPosition(b, onKey)) ||
                        (isPosition(a, onKey) && isPosition(b, onQuery));
    return isDifference ? onDiagonal : all;
  }

  static double shareOf(unsigned dependence) {
    switch (dependence) {
    case 0:
    case onQuery:
      return 0;
    case onKey:
      return kShareOfKey;
    case onDiagonal:
      return kShareOfDiagonal;
    default:
      return 1;
    }
  }

  static bool isConstant(Value value) {
    Operation *op = value.getDefiningOp();
    return op && *scalarKindOf(op) == ScalarKind::constant;
  }

  bool isLastFactor(Operation &op) const {
    return isScore(region) &&
           region.front().back().getOperand(0) == op.getResult(0) &&
           llvm::any_of(op.getOperands(), isConstant);
  }

  /// Whether the one use of a product is a sum.
  static bool isContracted(Operation &op) {
    Value result = op.getResult(0);
    if (!result.hasOneUse())
      return false;
    std::optional<ScalarKind> user = scalarKindOf(*result.getUsers().begin());
    return user == ScalarKind::addf || user == ScalarKind::subf;
  }

  void add(Operation &op) {
    ScalarKind kind = *scalarKindOf(&op);
    double share = shareOf(of(op.getResult(0)));
    if (kind == ScalarKind::constant)
      return;
    if (share == 0) {
      hold(op);
      return;
    }
    cost.issue += share * slotsOf(op, kind);
    if (of(op.getResult(0)) & onScore)
      cost.slopes += slopeSlotsOf(kind);
    if (kind == ScalarKind::read) {
      cost.reads += share;
      cost.held += kAddressRegisters;
    }
    if (isFunction(kind) ||
        (kind == ScalarKind::divf && !isConstant(op.getOperand(1))))
      cost.functions += share * (isExactTanh(kind) ? kExactTanhFunctions : 1);
  }

  /// What is worked out before the blocks of a tile, where they use it.
  void hold(Operation &op) {
    Value result = op.getResult(0);
    bool isUsed = llvm::any_of(result.getUsers(), [&](Operation *user) {
      return user->getNumResults() == 1 && shareOf(of(user->getResult(0))) > 0;
    });
    if (isUsed)
      cost.held += of(result) == 0 ? 1 : kRowRegisters;
  }

  bool isExactTanh(ScalarKind kind) const {
    return hasExactTanh && kind == ScalarKind::tanh;
  }

  double slotsOf(Operation &op, ScalarKind kind) const {
    if (isExactTanh(kind))
      return kExactTanhSlots;
    if (isIntegerQuotient(kind))
      return kQuotientSlots;
    switch (kind) {
    case ScalarKind::read:
      return kReadSlots;
    case ScalarKind::extsi:
    case ScalarKind::extui:
    case ScalarKind::extf:
      return 0;
    case ScalarKind::mulf:
      return isLastFactor(op) || isContracted(op) ? 0 : 1;
    case ScalarKind::divf:
      return isConstant(op.getOperand(1)) ? 1 : kDivisionSlots + 1;
    case ScalarKind::exp:
    case ScalarKind::log:
    case ScalarKind::log10:
      return 2; // with a product for the base
    default:
      return 1;
    }
  }

  /// Sums, products with constants and exponentials have none of their own.
  static double slopeSlotsOf(ScalarKind kind) {
    switch (kind) {
    case ScalarKind::tanh:
    case ScalarKind::select:
      return 1;
    case ScalarKind::addf:
    case ScalarKind::subf:
    case ScalarKind::mulf:
    case ScalarKind::negf:
    case ScalarKind::exp:
    case ScalarKind::exp2:
    case ScalarKind::extf:
    case ScalarKind::truncf:
      return 0;
    default:
      return 2;
    }
  }

  Region &region;
  bool hasExactTanh;
  llvm::DenseMap<Value, unsigned> dependence;
  RegionCost cost;
};

/// Whether a value is z, or a function of it.
bool dependsOn(Value z, Value value) {
  if (value == z)
    return true;
  Operation *op = value.getDefiningOp();
  return op && llvm::any_of(op->getOperands(), [&](Value operand) {
           return dependsOn(z, operand);
         });
}

bool adds(Value z, Value value) {
  if (value == z)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  ScalarKind kind = *scalarKindOf(op);
  auto isSum = [&](unsigned place) {
    return adds(z, op->getOperand(place)) &&
           !dependsOn(z, op->getOperand(1 - place));
  };
  return ((kind == ScalarKind::addf || kind == ScalarKind::subf) && isSum(0)) ||
         (kind == ScalarKind::addf && isSum(1));
}

} // namespace

RegionCost attn::costOf(Region &region, DataType inputs) {
  return Counter(region, inputs).count();
}

bool attn::isTanhExact(Region &region, DataType inputs) {
  return !isScore(region) || inputs == DataType::f32;
}

bool attn::addsToScore(Region &score) {
  return adds(score.getArgument(0), score.front().back().getOperand(0));
}

/// With one digit behind the point, if it has some.
static std::string shortNumber(double value) {
  double tenths = std::round(value * 10);
  std::string text = std::to_string(int64_t(tenths / 10));
  int64_t rest = int64_t(tenths) % 10;
  return rest ? text + "." + std::to_string(rest) : text;
}

std::string attn::str(const RegionCost &cost) {
  std::string text = shortNumber(cost.issue) + " instructions a score";
  if (cost.functions > 0)
    text += ", " + shortNumber(cost.functions) + " functions";
  if (cost.reads > 0)
    text += ", " + shortNumber(cost.reads) + " reads";
  if (cost.slopes > 0)
    text += ", " + shortNumber(cost.slopes) + " more for its slope";
  if (cost.held > 0)
    text += ", " + std::to_string(cost.held) + " registers";
  return text;
}
