//===- RegionConditions.cpp - Regions of `sees` as inequalities -----------===//

#include "RegionConditions.h"

#include "attn/IR/ScalarOps.h"
#include "attn/Schedule/Problem.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace attn;

using P = arith::CmpIPredicate;
using Pieces = std::vector<Piece>;

/// Beyond so many a union is taken for one piece of which nothing is known.
static constexpr size_t kMostPieces = 8, kMostSums = 16;
/// Factors and constants that leave room for what is computed of them.
static constexpr int64_t kMostFactor = int64_t(1) << 32;

__int128 Sum::most() const {
  static constexpr int64_t least[kPositionCount] = {0, 0, 0, 0, 1, 1};
  static constexpr int64_t largest[kPositionCount] = {
      kMaxRows, kMaxHeads, kMaxRows, kMaxRows, kMaxRows, kMaxRows};
  __int128 sum = constant;
  for (unsigned i = 0; i < kPositionCount; ++i)
    sum += __int128(factors[i]) * (factors[i] > 0 ? largest[i] : least[i]);
  return sum;
}

Sum attn::atLastRows(const Sum &sum) {
  Sum ends = sum;
  for (auto [row, count] : {std::pair(query, queries), std::pair(key, keys)}) {
    if (ends.factors[row] <= 0)
      continue;
    ends.factors[count] += ends.factors[row];
    ends.constant -= ends.factors[row];
    ends.factors[row] = 0;
  }
  return ends;
}

static Sum scaled(const Sum &sum, int64_t by) {
  Sum result = sum;
  for (int64_t &factor : result.factors)
    factor *= by;
  result.constant *= by;
  return result;
}

static Sum plus(const Sum &a, const Sum &b, int64_t constant = 0) {
  Sum result = a;
  for (unsigned i = 0; i < kPositionCount; ++i)
    result.factors[i] += b.factors[i];
  result.constant += b.constant + constant;
  return result;
}

static bool isSmall(const Sum &sum) {
  auto fits = [](int64_t n) { return n <= kMostFactor && n >= -kMostFactor; };
  return fits(sum.constant) && llvm::all_of(sum.factors, fits);
}

//===----------------------------------------------------------------------===//
// Unions
//===----------------------------------------------------------------------===//

static Pieces all() { return {Piece()}; }
static Pieces none() { return {}; }
static Pieces unknown() {
  Piece piece;
  piece.isWhole = false;
  return {piece};
}

static Pieces either(Pieces a, const Pieces &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a.size() > kMostPieces ? unknown() : a;
}

static Pieces both(const Pieces &a, const Pieces &b) {
  Pieces result;
  for (const Piece &x : a)
    for (const Piece &y : b) {
      Piece piece = x;
      piece.isWhole &= y.isWhole;
      for (const Sum &sum : y.sums) {
        // One that is left out makes the piece larger.
        if (piece.sums.size() < kMostSums)
          piece.sums.push_back(sum);
        else
          piece.isWhole = false;
      }
      result.push_back(std::move(piece));
    }
  return result.size() > kMostPieces ? unknown() : result;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

namespace {

class Reader {
public:
  /// The pairs for which a truth value is `wanted`.
  Pieces truth(Value value, bool wanted) const;

private:
  Pieces compared(Operation &op, bool wanted) const;
  /// x - y + more <= 0.
  Pieces atMost(Value x, Value y, int64_t more) const;
  Pieces atMost(const Sum &x, Value y, int64_t more) const;
  Pieces atMostUnsigned(Value x, Value y, int64_t more) const;
  std::optional<Sum> sumOf(Value value) const;
  std::optional<Sum> computed(Operation &op) const;
  bool isNatural(Value value) const {
    std::optional<Sum> sum = sumOf(value);
    return sum && scaled(*sum, -1).most() <= 0;
  }
};

} // namespace

static std::optional<int64_t> constantOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || scalarKindOf(op) != ScalarKind::constant)
    return std::nullopt;
  Attribute attribute = op->getAttr("value");
  if (auto truth = dyn_cast<BoolAttr>(attribute))
    return truth.getValue();
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getValue().getSExtValue();
  return std::nullopt;
}

static unsigned widthOf(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer ? integer.getWidth() : 64;
}

/// Whether all values of a sum are numbers of a type, so that none wraps.
static bool fits(const Sum &sum, Type type) {
  __int128 half = __int128(1) << (widthOf(type) - 1);
  return isSmall(sum) && sum.most() < half && scaled(sum, -1).most() <= half;
}

std::optional<Sum> Reader::sumOf(Value value) const {
  Sum sum;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getArgNumber() >= kPositionCount)
      return std::nullopt;
    sum.factors[argument.getArgNumber()] = 1;
    return sum;
  }
  if (std::optional<int64_t> number = constantOf(value)) {
    sum.constant = *number;
    return isSmall(sum) ? std::optional(sum) : std::nullopt;
  }
  std::optional<Sum> found = computed(*value.getDefiningOp());
  return found && fits(*found, value.getType()) ? found : std::nullopt;
}

std::optional<Sum> Reader::computed(Operation &op) const {
  std::optional<ScalarKind> kind = scalarKindOf(&op);
  auto of = [&](unsigned place) { return sumOf(op.getOperand(place)); };
  if (kind == ScalarKind::extsi && widthOf(op.getOperand(0).getType()) > 1)
    return of(0);
  if (kind == ScalarKind::extui && isNatural(op.getOperand(0)))
    return of(0);
  if (kind != ScalarKind::addi && kind != ScalarKind::subi &&
      kind != ScalarKind::muli)
    return std::nullopt;
  std::optional<Sum> a = of(0), b = of(1);
  if (!a || !b)
    return std::nullopt;
  if (kind != ScalarKind::muli)
    return plus(*a, kind == ScalarKind::addi ? *b : scaled(*b, -1));
  auto isConstant = [](const Sum &sum) {
    return llvm::all_of(sum.factors, [](int64_t f) { return f == 0; });
  };
  if (!isConstant(*b))
    std::swap(a, b);
  constexpr int64_t most = int64_t(1) << 30; // no product overflows
  if (!isConstant(*b) || b->constant > most || b->constant < -most)
    return std::nullopt;
  return scaled(*a, b->constant);
}

/// The operands of a maximum or minimum of numbers with a sign.
static std::optional<std::pair<Value, Value>> extremeOf(Value value,
                                                        ScalarKind kind) {
  Operation *op = value.getDefiningOp();
  if (!op || scalarKindOf(op) != kind)
    return std::nullopt;
  return std::pair(op->getOperand(0), op->getOperand(1));
}

Pieces Reader::atMost(Value x, Value y, int64_t more) const {
  if (auto of = extremeOf(x, ScalarKind::maxsi))
    return both(atMost(of->first, y, more), atMost(of->second, y, more));
  if (auto of = extremeOf(x, ScalarKind::minsi))
    return either(atMost(of->first, y, more), atMost(of->second, y, more));
  // |a| is the larger of a and -a.
  Operation *op = x.getDefiningOp();
  if (op && scalarKindOf(op) == ScalarKind::absi) {
    std::optional<Sum> of = sumOf(op->getOperand(0));
    return of ? both(atMost(*of, y, more), atMost(scaled(*of, -1), y, more))
              : unknown();
  }
  std::optional<Sum> sum = sumOf(x);
  return sum ? atMost(*sum, y, more) : unknown();
}

Pieces Reader::atMost(const Sum &x, Value y, int64_t more) const {
  if (auto of = extremeOf(y, ScalarKind::maxsi))
    return either(atMost(x, of->first, more), atMost(x, of->second, more));
  if (auto of = extremeOf(y, ScalarKind::minsi))
    return both(atMost(x, of->first, more), atMost(x, of->second, more));
  Operation *op = y.getDefiningOp();
  std::optional<Sum> sum = sumOf(y);
  if (op && scalarKindOf(op) == ScalarKind::absi)
    if (std::optional<Sum> of = sumOf(op->getOperand(0))) {
      Piece one, other;
      one.sums = {plus(x, scaled(*of, -1), more)};
      other.sums = {plus(x, *of, more)};
      return {one, other};
    }
  if (!sum)
    return unknown();
  Piece piece;
  piece.sums = {plus(x, scaled(*sum, -1), more)};
  return {piece};
}

/// Of a y that is never below 0, an x below 0 is more as a number without a
/// sign.
Pieces Reader::atMostUnsigned(Value x, Value y, int64_t more) const {
  if (isNatural(x))
    return isNatural(y) ? atMost(x, y, more) : unknown();
  std::optional<Sum> sum = sumOf(x);
  if (!sum || !isNatural(y))
    return unknown();
  Piece natural;
  natural.sums = {scaled(*sum, -1)};
  return both({natural}, atMost(x, y, more));
}

Pieces Reader::compared(Operation &op, bool wanted) const {
  P predicate = integerPredicateOf(op);
  if (!wanted)
    predicate = arith::invertPredicate(predicate);
  Value x = op.getOperand(0), y = op.getOperand(1);
  switch (predicate) {
  case P::eq:
    return both(atMost(x, y, 0), atMost(y, x, 0));
  case P::ne:
    return either(atMost(x, y, 1), atMost(y, x, 1));
  case P::slt:
    return atMost(x, y, 1);
  case P::sle:
    return atMost(x, y, 0);
  case P::sgt:
    return atMost(y, x, 1);
  case P::sge:
    return atMost(y, x, 0);
  case P::ult:
    return atMostUnsigned(x, y, 1);
  case P::ule:
    return atMostUnsigned(x, y, 0);
  case P::ugt:
    return atMostUnsigned(y, x, 1);
  case P::uge:
    return atMostUnsigned(y, x, 0);
  }
  llvm_unreachable("closed enum");
}

Pieces Reader::truth(Value value, bool wanted) const {
  if (std::optional<int64_t> number = constantOf(value))
    return (*number != 0) == wanted ? all() : none();
  Operation *op = value.getDefiningOp();
  if (!op)
    return unknown();
  auto of = [&](unsigned place, bool isTrue) {
    return truth(op->getOperand(place), isTrue);
  };
  switch (*scalarKindOf(op)) {
  case ScalarKind::cmpi:
    // Of truth values 1 is -1, and they are not compared as these.
    if (widthOf(op->getOperand(0).getType()) == 1)
      return unknown();
    return compared(*op, wanted);
  case ScalarKind::andi:
  case ScalarKind::ori: {
    bool isBoth = (*scalarKindOf(op) == ScalarKind::andi) == wanted;
    return isBoth ? both(of(0, wanted), of(1, wanted))
                  : either(of(0, wanted), of(1, wanted));
  }
  case ScalarKind::xori:
    return either(both(of(0, true), of(1, !wanted)),
                  both(of(0, false), of(1, wanted)));
  case ScalarKind::select:
    return either(both(of(0, true), of(1, wanted)),
                  both(of(0, false), of(2, wanted)));
  default:
    return unknown();
  }
}

Pieces attn::piecesOf(Region &sees) {
  return Reader().truth(sees.front().back().getOperand(0), /*wanted=*/true);
}
