//===- ScalarOps.cpp - What regions of attention are made of --------------===//

#include "attn/IR/ScalarOps.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace attn;

std::optional<ScalarOp> attn::scalarOpOf(Operation *op) {
  static const llvm::StringMap<ScalarOp> known = {
#define ATTN_SCALAR(operation, name) {name, ScalarOp::operation},
#include "attn/IR/ScalarOps.def"
#undef ATTN_SCALAR
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
#undef ATTN_SCALAR
  return names;
}

bool attn::isScalar(Type type) {
  constexpr unsigned mostBits = 64;
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() && integer.getWidth() <= mostBits;
  return isa<IndexType>(type) || type.isF32() || type.isF16() || type.isBF16();
}

bool attn::hasDerivative(ScalarOp op) {
  switch (op) {
  case ScalarOp::yield:
  case ScalarOp::select:
  case ScalarOp::addf:
  case ScalarOp::subf:
  case ScalarOp::mulf:
  case ScalarOp::divf:
  case ScalarOp::negf:
  case ScalarOp::maximumf:
  case ScalarOp::minimumf:
  case ScalarOp::maxnumf:
  case ScalarOp::minnumf:
  case ScalarOp::extf:
  case ScalarOp::truncf:
  case ScalarOp::fma:
  case ScalarOp::absf:
  case ScalarOp::exp:
  case ScalarOp::exp2:
  case ScalarOp::expm1:
  case ScalarOp::log:
  case ScalarOp::log2:
  case ScalarOp::log10:
  case ScalarOp::log1p:
  case ScalarOp::sqrt:
  case ScalarOp::rsqrt:
  case ScalarOp::cbrt:
  case ScalarOp::powf:
  case ScalarOp::tanh:
  case ScalarOp::sinh:
  case ScalarOp::cosh:
  case ScalarOp::sin:
  case ScalarOp::cos:
  case ScalarOp::tan:
  case ScalarOp::atan:
  case ScalarOp::erf:
    return true;
  default:
    return false;
  }
}

Operation *attn::withoutDerivative(Region &region, ArrayRef<Value> sources) {
  llvm::DenseSet<Value> active;
  active.insert_range(sources);
  for (Operation &op : region.front()) {
    if (llvm::none_of(op.getOperands(),
                      [&](Value v) { return active.contains(v); }))
      continue;
    std::optional<ScalarOp> operation = scalarOpOf(&op);
    if (operation == ScalarOp::cmpf)
      continue;
    bool passes = operation &&
                  (*operation == ScalarOp::read || hasDerivative(*operation));
    if (!passes)
      return &op;
    active.insert_range(op.getResults());
  }
  return nullptr;
}
