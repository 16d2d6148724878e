//===- RegionRanges.cpp - How large the integers of a region get ----------===//

#include "Region/RegionRanges.h"

#include "attn/IR/Clauses.h"
#include "attn/Schedule/Problem.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

/// Beyond the last key a tile has a few more.
static constexpr int64_t kMostRows = kMaxRows + 65536;

unsigned attn::bitsOf(Type integer) {
  return integer.isIndex() ? 64 : integer.getIntOrFloatBitWidth();
}

std::optional<int64_t> attn::integerOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || scalarKindOf(op) != ScalarKind::constant)
    return std::nullopt;
  Attribute attribute = op->getAttr("value");
  if (auto truth = dyn_cast<BoolAttr>(attribute))
    return truth.getValue() ? -1 : 0;
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getValue().getSExtValue();
  return std::nullopt;
}

static bool isInteger(Type type) { return isa<IntegerType, IndexType>(type); }

RegionRanges::Range RegionRanges::allOf(Type type) {
  Wide half = Wide(1) << (bitsOf(type) - 1);
  return {-half, half - 1};
}

RegionRanges::RegionRanges(Region &region) {
  unsigned first = isScore(region) ? 1 : 0;
  const Wide most[kPositionCount] = {kMostRows, kMaxHeads, kMostRows,
                                     kMostRows, kMaxRows,  kMaxRows};
  for (unsigned i = 0; i < kPositionCount; ++i)
    ranges[region.getArgument(first + i)] = {0, most[i]};
  for (Operation &op : region.front().without_terminator())
    if (isInteger(op.getResult(0).getType()))
      ranges[op.getResult(0)] = resultOf(op);
}

bool RegionRanges::isSmall(Value integer) const {
  Range range = ranges.lookup(integer);
  return range.least >= INT32_MIN && range.most <= INT32_MAX;
}

bool RegionRanges::isNatural(Value integer) const {
  return ranges.lookup(integer).least >= 0;
}

/// What does not fit the type wraps around and may be anything.
RegionRanges::Range RegionRanges::resultOf(Operation &op) const {
  Range all = allOf(op.getResult(0).getType());
  std::optional<ScalarKind> kind = scalarKindOf(&op);
  if (std::optional<int64_t> number = integerOf(op.getResult(0)))
    return {*number, *number};
  bool isOfIntegers = llvm::all_of(op.getOperandTypes(), isInteger);
  if (!kind || !isOfIntegers || op.getNumOperands() == 0)
    return all;
  Range range = computed(*kind, op);
  return range.least < all.least || range.most > all.most ? all : range;
}

RegionRanges::Range RegionRanges::computed(ScalarKind kind,
                                           Operation &op) const {
  Range all = allOf(op.getResult(0).getType());
  auto of = [&](unsigned place) { return ranges.lookup(op.getOperand(place)); };
  Range a = of(0), b = op.getNumOperands() > 1 ? of(1) : Range{0, 0};
  bool areNatural = a.least >= 0 && b.least >= 0;
  switch (kind) {
  case ScalarKind::addi:
    return {a.least + b.least, a.most + b.most};
  case ScalarKind::subi:
    return {a.least - b.most, a.most - b.least};
  case ScalarKind::muli: {
    Wide corners[] = {a.least * b.least, a.least * b.most, a.most * b.least,
                      a.most * b.most};
    return {*llvm::min_element(corners), *llvm::max_element(corners)};
  }
  case ScalarKind::maxsi:
    return {std::max(a.least, b.least), std::max(a.most, b.most)};
  case ScalarKind::minsi:
    return {std::min(a.least, b.least), std::min(a.most, b.most)};
  case ScalarKind::absi:
    return {0, std::max(a.most, -a.least)};
  case ScalarKind::select: {
    Range c = of(2);
    return {std::min(b.least, c.least), std::max(b.most, c.most)};
  }
  case ScalarKind::extsi:
    return a;
  case ScalarKind::extui:
    return areNatural ? a : all;
  case ScalarKind::divsi:
  case ScalarKind::floordivsi:
  case ScalarKind::ceildivsi: {
    Wide most = std::max(a.most, -a.least);
    return {-most - 1, most + 1};
  }
  case ScalarKind::remsi: {
    Wide most = std::max(b.most, -b.least);
    return {a.least < 0 ? -most : 0, most};
  }
  case ScalarKind::divui:
  case ScalarKind::ceildivui:
  case ScalarKind::shrui:
  case ScalarKind::shrsi:
    return areNatural ? Range{0, a.most} : all;
  case ScalarKind::remui:
    return areNatural ? Range{0, b.most} : all;
  case ScalarKind::andi:
    return areNatural ? Range{0, std::min(a.most, b.most)} : all;
  case ScalarKind::minui:
    return areNatural ? Range{0, std::min(a.most, b.most)} : all;
  case ScalarKind::maxui:
    return areNatural ? Range{0, std::max(a.most, b.most)} : all;
  case ScalarKind::shli:
    if (b.least == b.most && b.least >= 0 && b.least < 63) {
      Wide factor = Wide(1) << int(b.least);
      return {a.least * factor, a.most * factor};
    }
    return all;
  default:
    return all;
  }
}
