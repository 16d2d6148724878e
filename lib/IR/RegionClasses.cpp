//===- RegionClasses.cpp - Which pairs a region of `sees` shows -----------===//

#include "attn/IR/RegionClasses.h"

#include "ScalarArithmetic.h"

#include "attn/IR/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"

#include <array>

using namespace mlir;
using namespace attn;

namespace {

/// Wide enough for every op on two integers of 64 bits.
using Wide = __int128;

struct Range {
  Wide least, most;
  bool isPoint() const { return least == most; }
};

/// Batch entry, head, query and key: the positions that vary within a tile.
constexpr unsigned kVarying = 4;

/// A sum of multiples of positions, and a constant.
struct Affine {
  std::array<Wide, kVarying> factors = {};
  Wide constant = 0;
};

/// What is known of an integer; of a truth value, 0 is false and -1 is true.
struct Known {
  Range range;
  std::optional<Affine> affine;
};

class Classifier {
public:
  Classifier(Region &region, const PairsOfRows &pairs) {
    const Interval varying[kVarying] = {pairs.batch, pairs.head, pairs.query,
                                        pairs.key};
    for (unsigned i = 0; i < kVarying; ++i) {
      box[i] = {varying[i].first, varying[i].last};
      Affine affine;
      affine.factors[i] = 1;
      known[region.getArgument(i)] = {box[i], affine};
    }
    known[region.getArgument(kVarying)] = point(pairs.queries);
    known[region.getArgument(kVarying + 1)] = point(pairs.keys);
    for (Operation &op : region.front().without_terminator())
      known[op.getResult(0)] = resultOf(op);
    result = known.lookup(region.front().back().getOperand(0)).range;
  }

  TileClass classOf() const {
    if (result.most < 0)
      return TileClass::open;
    return result.least == 0 ? TileClass::hidden : TileClass::cut;
  }

private:
  static Known point(Wide value) {
    Affine affine;
    affine.constant = value;
    return {{value, value}, affine};
  }
  static Range allOf(Type type) {
    auto integer = dyn_cast<IntegerType>(type);
    unsigned width = integer ? integer.getWidth() : 64;
    Wide half = Wide(1) << (width - 1);
    return {-half, half - 1};
  }
  static Known anything(Type type) { return {allOf(type), std::nullopt}; }

  /// The range of an affine function over the tile.
  Range rangeOf(const Affine &affine) const {
    Range range = {affine.constant, affine.constant};
    for (unsigned i = 0; i < kVarying; ++i) {
      Wide factor = affine.factors[i];
      range.least += factor * (factor > 0 ? box[i].least : box[i].most);
      range.most += factor * (factor > 0 ? box[i].most : box[i].least);
    }
    return range;
  }

  /// What fits the type; numbers that wrap around may be anything.
  static Known within(Type type, Known value) {
    Range all = allOf(type);
    if (value.range.least < all.least || value.range.most > all.most)
      return anything(type);
    return value;
  }
  /// A sum whose numbers leave room for what is computed of them; beyond that
  /// the range is known and no more.
  static bool isSmall(const Affine &affine) {
    constexpr Wide most = Wide(1) << 62;
    auto fits = [](Wide number) { return number <= most && number >= -most; };
    return fits(affine.constant) && llvm::all_of(affine.factors, fits);
  }

  Known resultOf(Operation &op);
  Known sum(const Known &a, const Known &b, int sign) const;
  Known product(const Known &a, const Known &b) const;
  Known quotient(const Known &a, const Known &b, ScalarKind op) const;
  Known remainder(const Known &a, Wide divisor) const;
  Known extreme(const Known &a, const Known &b, bool isMost) const;
  Known truth(bool canBeTrue, bool canBeFalse) const {
    return {{canBeTrue ? -1 : 0, canBeFalse ? 0 : -1}, std::nullopt};
  }
  Known compared(arith::CmpIPredicate predicate, const Known &a,
                 const Known &b) const;
  Known logical(ScalarKind op, const Known &a, const Known &b) const;

  std::array<Range, kVarying> box;
  llvm::DenseMap<Value, Known> known;
  Range result = {-1, 0};
};

} // namespace

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Known Classifier::sum(const Known &a, const Known &b, int sign) const {
  if (a.affine && b.affine) {
    Affine affine = *a.affine;
    for (unsigned i = 0; i < kVarying; ++i)
      affine.factors[i] += sign * b.affine->factors[i];
    affine.constant += sign * b.affine->constant;
    if (isSmall(affine))
      return {rangeOf(affine), affine};
  }
  Wide least = sign > 0 ? b.range.least : -b.range.most,
       most = sign > 0 ? b.range.most : -b.range.least;
  return {{a.range.least + least, a.range.most + most}, std::nullopt};
}

Known Classifier::product(const Known &a, const Known &b) const {
  if (b.range.isPoint() && a.affine) {
    Affine affine = *a.affine;
    for (Wide &factor : affine.factors)
      factor *= b.range.least;
    affine.constant *= b.range.least;
    if (isSmall(affine))
      return {rangeOf(affine), affine};
  }
  if (a.range.isPoint() && b.affine && !b.range.isPoint())
    return product(b, a);
  Wide corners[] = {a.range.least * b.range.least, a.range.least * b.range.most,
                    a.range.most * b.range.least, a.range.most * b.range.most};
  return {{*llvm::min_element(corners), *llvm::max_element(corners)},
          std::nullopt};
}

static Wide floored(Wide a, Wide b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

static Wide divided(Wide a, Wide b, ScalarKind op) {
  if (op == ScalarKind::floordivsi)
    return floored(a, b);
  return op == ScalarKind::ceildivsi ? -floored(-a, b) : a / b;
}

/// By a positive number quotients rise with what is divided.
Known Classifier::quotient(const Known &a, const Known &b,
                           ScalarKind op) const {
  Range range = {divided(a.range.least, b.range.least, op),
                 divided(a.range.most, b.range.least, op)};
  if (range.isPoint())
    return point(range.least);
  return {range, std::nullopt};
}

/// Where all that is divided has one quotient, its remainder is as affine as
/// itself.
Known Classifier::remainder(const Known &a, Wide divisor) const {
  Wide whole = a.range.least / divisor;
  if (whole == a.range.most / divisor &&
      (a.range.least >= 0 || a.range.most <= 0))
    return sum(a, point(whole * divisor), -1);
  Wide most = divisor - 1;
  return {{a.range.least < 0 ? std::max(-most, a.range.least) : 0,
           a.range.most > 0 ? std::min(most, a.range.most) : 0},
          std::nullopt};
}

Known Classifier::extreme(const Known &a, const Known &b, bool isMost) const {
  const Known &less = isMost ? a : b, &more = isMost ? b : a;
  if (less.range.most <= more.range.least)
    return b;
  if (more.range.most <= less.range.least)
    return a;
  if (isMost)
    return {{std::max(a.range.least, b.range.least),
             std::max(a.range.most, b.range.most)},
            std::nullopt};
  return {{std::min(a.range.least, b.range.least),
           std::min(a.range.most, b.range.most)},
          std::nullopt};
}

//===----------------------------------------------------------------------===//
// Truth
//===----------------------------------------------------------------------===//

Known Classifier::compared(arith::CmpIPredicate predicate, const Known &a,
                           const Known &b) const {
  using P = arith::CmpIPredicate;
  Range apart = sum(a, b, -1).range; // of a - b
  bool canBeLess = apart.least < 0, canBeMore = apart.most > 0,
       canBeSame = apart.least <= 0 && apart.most >= 0;
  switch (predicate) {
  case P::eq:
    return truth(canBeSame, canBeLess || canBeMore);
  case P::ne:
    return truth(canBeLess || canBeMore, canBeSame);
  case P::slt:
  case P::ult:
    return truth(canBeLess, canBeSame || canBeMore);
  case P::sle:
  case P::ule:
    return truth(canBeLess || canBeSame, canBeMore);
  case P::sgt:
  case P::ugt:
    return truth(canBeMore, canBeSame || canBeLess);
  case P::sge:
  case P::uge:
    return truth(canBeMore || canBeSame, canBeLess);
  }
  llvm_unreachable("closed enum");
}

Known Classifier::logical(ScalarKind op, const Known &a, const Known &b) const {
  bool trueA = a.range.least < 0, falseA = a.range.most == 0;
  bool trueB = b.range.least < 0, falseB = b.range.most == 0;
  if (op == ScalarKind::andi)
    return truth(trueA && trueB, falseA || falseB);
  if (op == ScalarKind::ori)
    return truth(trueA || trueB, falseA && falseB);
  return truth((trueA && falseB) || (falseA && trueB),
               (trueA && trueB) || (falseA && falseB));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static bool isUnsigned(arith::CmpIPredicate predicate) {
  return predicate >= arith::CmpIPredicate::ult;
}

static std::optional<Wide> constantOf(Operation &op) {
  Attribute value = op.getAttr("value");
  if (auto truth = dyn_cast<BoolAttr>(value))
    return truth.getValue() ? -1 : 0;
  if (auto number = dyn_cast<IntegerAttr>(value))
    return number.getValue().getSExtValue();
  return std::nullopt;
}

/// The same op on numbers that are not below zero, where both are one.
static ScalarKind withSignOf(ScalarKind op) {
  switch (op) {
  case ScalarKind::divui:
    return ScalarKind::divsi;
  case ScalarKind::ceildivui:
    return ScalarKind::ceildivsi;
  case ScalarKind::remui:
    return ScalarKind::remsi;
  case ScalarKind::shrui:
    return ScalarKind::shrsi;
  case ScalarKind::maxui:
    return ScalarKind::maxsi;
  case ScalarKind::minui:
    return ScalarKind::minsi;
  case ScalarKind::extui:
    return ScalarKind::extsi;
  default:
    return op;
  }
}

static unsigned widthOf(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer ? integer.getWidth() : 64;
}

/// Of single numbers the result is a single one, with the op's own wrapping.
static Wide resultOfPoints(Operation &op, ScalarKind operation, Wide left,
                           Wide right) {
  unsigned width = widthOf(op.getResult(0).getType()),
           operandWidth = widthOf(op.getOperand(0).getType());
  int64_t a = int64_t(left), b = int64_t(right);
  if (operation == ScalarKind::cmpi)
    return arith::applyCmpPredicate(
               integerPredicateOf(op),
               llvm::APInt(64, uint64_t(a)).trunc(operandWidth),
               llvm::APInt(64, uint64_t(b)).trunc(operandWidth))
               ? -1
               : 0;
  if (operation == ScalarKind::extsi)
    return withSign(a, width);
  if (operation == ScalarKind::extui)
    return withSign(int64_t(withoutSign(a, std::min(operandWidth, width))),
                    width);
  return wholeOf(operation, a, b, width);
}

Known Classifier::resultOf(Operation &op) {
  Type type = op.getResult(0).getType();
  if (!isa<IntegerType, IndexType>(type))
    return {{0, 0}, std::nullopt}; // a float, which nobody asks
  ScalarKind operation = *scalarKindOf(&op);
  if (operation == ScalarKind::constant)
    return point(*constantOf(op));
  if (operation == ScalarKind::read)
    return anything(type);
  bool isOfIntegers = llvm::all_of(op.getOperandTypes(), [](Type type) {
    return isa<IntegerType, IndexType>(type);
  });
  if (!isOfIntegers)
    return anything(type);
  Known operands[3] = {point(0), point(0), point(0)};
  for (auto [place, operand] : llvm::enumerate(op.getOperands()))
    operands[place] = known.lookup(operand);
  auto &[a, b, c] = operands;
  if (operation == ScalarKind::select) {
    if (a.range.isPoint())
      return a.range.least != 0 ? b : c;
    return {{std::min(b.range.least, c.range.least),
             std::max(b.range.most, c.range.most)},
            std::nullopt};
  }
  if (a.range.isPoint() && b.range.isPoint())
    return point(resultOfPoints(op, operation, a.range.least, b.range.least));
  bool isNegative = a.range.least < 0 || b.range.least < 0;
  if (operation == ScalarKind::cmpi) {
    arith::CmpIPredicate predicate = integerPredicateOf(op);
    if (isUnsigned(predicate) && isNegative)
      return anything(type);
    return compared(predicate, a, b);
  }
  if (operation == ScalarKind::extui && op.getOperand(0).getType().isInteger(1))
    return {{-a.range.most, -a.range.least}, std::nullopt};
  bool isTruth = type.isInteger(1);
  if (isTruth &&
      (operation == ScalarKind::andi || operation == ScalarKind::ori ||
       operation == ScalarKind::xori))
    return logical(operation, a, b);
  ScalarKind same = withSignOf(operation);
  if (same != operation && isNegative)
    return anything(type);
  bool isByPositive = b.range.isPoint() && b.range.least > 0;
  constexpr Wide mostShift = 62;
  bool isShift =
      b.range.isPoint() && b.range.least >= 0 && b.range.least <= mostShift;
  Known power = isShift ? point(Wide(1) << int(b.range.least)) : point(1);
  switch (same) {
  case ScalarKind::addi:
    return within(type, sum(a, b, 1));
  case ScalarKind::subi:
    return within(type, sum(a, b, -1));
  case ScalarKind::muli:
    return within(type, product(a, b));
  case ScalarKind::divsi:
  case ScalarKind::floordivsi:
  case ScalarKind::ceildivsi:
    return isByPositive ? quotient(a, b, same) : anything(type);
  case ScalarKind::remsi:
    return isByPositive ? remainder(a, b.range.least) : anything(type);
  case ScalarKind::andi: // with 2^n - 1
    return isByPositive && !isNegative &&
                   (b.range.least & (b.range.least + 1)) == 0
               ? remainder(a, b.range.least + 1)
               : anything(type);
  case ScalarKind::shli:
    return isShift ? within(type, product(a, power)) : anything(type);
  case ScalarKind::shrsi:
    return isShift ? quotient(a, power, ScalarKind::floordivsi)
                   : anything(type);
  case ScalarKind::maxsi:
  case ScalarKind::minsi:
    return extreme(a, b, same == ScalarKind::maxsi);
  case ScalarKind::absi:
    return a.range.least >= 0
               ? a
               : within(type, extreme(a, sum(point(0), a, -1), true));
  case ScalarKind::extsi:
    return within(type, a);
  default:
    return anything(type);
  }
}

TileClass attn::classify(Region &sees, const PairsOfRows &pairs) {
  return Classifier(sees, pairs).classOf();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Appends the runs of some keys; false where a pair has no class.
static bool addRuns(Region &sees, PairsOfRows &pairs, Interval keys,
                    std::vector<Interval> &runs) {
  pairs.key = keys;
  TileClass found = classify(sees, pairs);
  if (found == TileClass::hidden)
    return true;
  if (found == TileClass::open) {
    if (!runs.empty() && runs.back().last + 1 == keys.first)
      runs.back().last = keys.last;
    else
      runs.push_back(keys);
    return true;
  }
  if (keys.first == keys.last)
    return false;
  int64_t middle = keys.first + (keys.last - keys.first) / 2;
  return addRuns(sees, pairs, {keys.first, middle}, runs) &&
         addRuns(sees, pairs, {middle + 1, keys.last}, runs);
}

std::optional<std::vector<Interval>> attn::keysSeen(Region &sees, int64_t batch,
                                                    int64_t head, int64_t query,
                                                    int64_t queries,
                                                    int64_t keys) {
  std::vector<Interval> runs;
  PairsOfRows pairs = {{batch, batch}, {head, head}, {query, query},
                       {0, 0},         queries,      keys};
  if (keys > 0 && !addRuns(sees, pairs, {0, keys - 1}, runs))
    return std::nullopt;
  return runs;
}

std::optional<std::vector<Interval>> attn::boundsOf(Region &sees, int64_t batch,
                                                    int64_t head,
                                                    int64_t queries,
                                                    int64_t keys) {
  std::vector<Interval> bounds;
  Interval before = {0, -1};
  for (int64_t query = 0; query < queries; ++query) {
    std::optional<std::vector<Interval>> runs =
        keysSeen(sees, batch, head, query, queries, keys);
    if (!runs || runs->size() > 1)
      return std::nullopt;
    Interval run = {before.first, before.first - 1};
    if (!runs->empty()) {
      run = runs->front();
      if (run.first < before.first || run.last < before.last)
        return std::nullopt;
      before = run;
    }
    bounds.push_back(run);
  }
  return bounds;
}
