//===- ScalarOps.cpp - What regions of attention are made of --------------===//

#include "attn/IR/ScalarOps.h"

#include "attn/IR/Clauses.h"

#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace attn;

std::optional<ScalarKind> attn::scalarKindOf(Operation *op) {
  static const llvm::StringMap<ScalarKind> known = {
#define ATTN_SCALAR(operation, name) {name, ScalarKind::operation},
#include "attn/IR/ScalarOps.def"
  };
  auto found = known.find(op->getName().getStringRef());
  if (found == known.end())
    return std::nullopt;
  return found->second;
}

std::string attn::scalarOpNames() {
  std::string names;
#define ATTN_SCALAR(operation, name) names += names.empty() ? name : ", " name;
#include "attn/IR/ScalarOps.def"
  return names;
}

arith::CmpIPredicate attn::integerPredicateOf(Operation &op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compare.getPredicate();
  return *arith::symbolizeCmpIPredicate(
      index::stringifyIndexCmpPredicate(cast<index::CmpOp>(op).getPred()));
}

bool attn::isScalar(Type type) {
  constexpr unsigned mostBits = 64;
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() && integer.getWidth() <= mostBits;
  return isa<IndexType>(type) || type.isF32() || type.isF16() || type.isBF16();
}

bool attn::isFunction(ScalarKind op) {
  switch (op) {
  case ScalarKind::exp:
  case ScalarKind::exp2:
  case ScalarKind::log:
  case ScalarKind::log2:
  case ScalarKind::log10:
  case ScalarKind::sqrt:
  case ScalarKind::rsqrt:
  case ScalarKind::tanh:
    return true;
  default:
    return false;
  }
}

bool attn::isIntegerQuotient(ScalarKind op) {
  switch (op) {
  case ScalarKind::divsi:
  case ScalarKind::divui:
  case ScalarKind::ceildivsi:
  case ScalarKind::ceildivui:
  case ScalarKind::floordivsi:
  case ScalarKind::remsi:
  case ScalarKind::remui:
    return true;
  default:
    return false;
  }
}

bool attn::hasDerivative(ScalarKind op) {
  switch (op) {
  case ScalarKind::yield:
  case ScalarKind::select:
  case ScalarKind::addf:
  case ScalarKind::subf:
  case ScalarKind::mulf:
  case ScalarKind::divf:
  case ScalarKind::negf:
  case ScalarKind::maximumf:
  case ScalarKind::minimumf:
  case ScalarKind::maxnumf:
  case ScalarKind::minnumf:
  case ScalarKind::extf:
  case ScalarKind::truncf:
  case ScalarKind::fma:
  case ScalarKind::absf:
  case ScalarKind::exp:
  case ScalarKind::exp2:
  case ScalarKind::expm1:
  case ScalarKind::log:
  case ScalarKind::log2:
  case ScalarKind::log10:
  case ScalarKind::log1p:
  case ScalarKind::sqrt:
  case ScalarKind::rsqrt:
  case ScalarKind::cbrt:
  case ScalarKind::powf:
  case ScalarKind::tanh:
  case ScalarKind::sinh:
  case ScalarKind::cosh:
  case ScalarKind::sin:
  case ScalarKind::cos:
  case ScalarKind::tan:
  case ScalarKind::atan:
  case ScalarKind::erf:
    return true;
  default:
    return false;
  }
}

bool attn::hasCode(ScalarKind op) {
  switch (op) {
  case ScalarKind::remf:
  case ScalarKind::expm1:
  case ScalarKind::log1p:
  case ScalarKind::cbrt:
  case ScalarKind::powf:
  case ScalarKind::sinh:
  case ScalarKind::cosh:
  case ScalarKind::sin:
  case ScalarKind::cos:
  case ScalarKind::tan:
  case ScalarKind::atan:
  case ScalarKind::erf:
  case ScalarKind::round:
    return false;
  default:
    return true;
  }
}

Operation *attn::withoutCode(Region &region) {
  for (Operation &op : region.front())
    if (!hasCode(*scalarKindOf(&op)))
      return &op;
  return nullptr;
}

llvm::DenseMap<Value, unsigned> attn::dependencesIn(Region &region) {
  llvm::DenseMap<Value, unsigned> dependences;
  bool isOfScores = isScore(region);
  if (isOfScores)
    dependences[region.getArgument(0)] = onScore;
  dependences[region.getArgument(isOfScores + 2)] = onQuery;
  dependences[region.getArgument(isOfScores + 3)] = onKey;
  for (Operation &op : region.front().without_terminator()) {
    unsigned on = 0;
    for (Value operand : op.getOperands())
      on |= dependences.lookup(operand);
    dependences[op.getResult(0)] = on;
  }
  return dependences;
}

Operation *attn::withoutDerivative(Region &region, ArrayRef<Value> sources) {
  llvm::DenseSet<Value> active;
  active.insert_range(sources);
  for (Operation &op : region.front()) {
    if (llvm::none_of(op.getOperands(),
                      [&](Value v) { return active.contains(v); }))
      continue;
    std::optional<ScalarKind> operation = scalarKindOf(&op);
    if (operation == ScalarKind::cmpf)
      continue;
    bool passes = operation &&
                  (*operation == ScalarKind::read || hasDerivative(*operation));
    if (!passes)
      return &op;
    active.insert_range(op.getResults());
  }
  return nullptr;
}
