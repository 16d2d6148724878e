//===- Masks.cpp - The band that a mask is --------------------------------===//

#include "Masks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace attn::raise;
using namespace attn;
using namespace mlir;
using Reason = std::optional<std::string>;

static constexpr StringLiteral isData =
    "the mask is neither a constant nor made of row numbers, so it may be no "
    "band";
static constexpr StringLiteral isNoBand =
    "the mask hides other keys than those beyond two offsets from the diagonal";

void VisibleBand::narrow(int64_t first, int64_t last) {
  band.first = std::max(band.first, first);
  band.last = std::min(band.last, last);
}

bool MaskReader::hides(double value, Type type, VisibleBand &visible) {
  if (value == -std::numeric_limits<double>::infinity())
    return true;
  // The exponential of the difference to any score is 0 in f32.
  double low = type.isF16() ? -65504 : -1e30;
  if (!(value <= low))
    return false;
  visible.isExact = false;
  return true;
}

//===----------------------------------------------------------------------===//
// Row numbers
//===----------------------------------------------------------------------===//

/// A constant such as 0, 1, 2, ..., which is a sum of its index.
static std::optional<Index> progression(const Number &number) {
  DenseIntElementsAttr elements;
  if (number.at.size() != 1 ||
      !matchPattern(number.value, m_Constant(&elements)))
    return std::nullopt;
  SmallVector<int64_t> values;
  for (const APInt &value : elements.getValues<APInt>())
    values.push_back(value.getSExtValue());
  int64_t step = values.size() > 1 ? values[1] - values[0] : 0;
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] - values[i - 1] != step)
      return std::nullopt;
  return number.at[0] * step + (values.empty() ? 0 : values[0]);
}

/// The integer as a sum of loops and constants.
std::optional<Index> MaskReader::integer(Number number) {
  number = numbers.source(number);
  if (std::optional<double> value = numbers.constant(number))
    return getAffineConstantExpr(int64_t(*value), number.value.getContext());
  if (std::optional<Index> sum = progression(number))
    return sum;
  Maker made = numbers.maker(number);
  if (auto index = dyn_cast_or_null<linalg::IndexOp>(made.op))
    return made.at[index.getDim()];
  SmallVector<Index, 2> of;
  for (const Number &operand : made.operands) {
    std::optional<Index> term = integer(operand);
    if (!term)
      return std::nullopt;
    of.push_back(*term);
  }
  if (made.isAny("arith.index_cast", "arith.extsi", "arith.extui",
                 "arith.trunci"))
    return of[0];
  if (made.is("arith.addi"))
    return of[0] + of[1];
  if (made.is("arith.subi"))
    return of[0] - of[1];
  if (made.is("arith.muli") &&
      (isa<AffineConstantExpr>(of[0]) || isa<AffineConstantExpr>(of[1])))
    return of[0] * of[1];
  return std::nullopt;
}

/// Keeps the pairs for which a sum of row numbers is 0 or more.
Reason MaskReader::narrow(Index sum, VisibleBand &visible) {
  MLIRContext *context = sum.getContext();
  auto at = [&](int64_t query, int64_t key) -> std::optional<int64_t> {
    llvm::DenseMap<Index, Index> values;
    values[rows.query] = getAffineConstantExpr(query, context);
    values[rows.key] = getAffineConstantExpr(key, context);
    auto value = dyn_cast<AffineConstantExpr>(sum.replace(values));
    return value ? std::optional(value.getValue()) : std::nullopt;
  };
  std::optional<int64_t> base = at(0, 0), down = at(1, 0), right = at(0, 1);
  if (!base || !down || !right)
    return std::string(isNoBand);
  // A dimension of one row has no loop, and its row number is 0.
  int64_t slope = *right - *base;
  if (rows.keys == 1)
    slope = *base - *down;
  if (slope == 0 || (rows.queries != 1 && *down - *base != -slope))
    return std::string(isNoBand);
  // slope * (j - i) + base >= 0
  if (slope > 0)
    visible.narrow(-llvm::divideFloorSigned(*base, slope), kUnbounded);
  else
    visible.narrow(-kUnbounded, llvm::divideFloorSigned(*base, -slope));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

Reason MaskReader::compare(const Maker &made, bool wanted,
                           VisibleBand &visible) {
  using arith::CmpIPredicate;
  auto compare = cast<arith::CmpIOp>(made.op);
  std::optional<Index> left = integer(made.operands[0]),
                       right = integer(made.operands[1]);
  if (!left || !right)
    return std::string(isData);
  CmpIPredicate predicate = compare.getPredicate();
  if (!wanted)
    predicate = arith::invertPredicate(predicate);
  Index difference = *left - *right;
  switch (predicate) {
  case CmpIPredicate::sge:
  case CmpIPredicate::uge:
    return narrow(difference, visible);
  case CmpIPredicate::sgt:
  case CmpIPredicate::ugt:
    return narrow(difference - 1, visible);
  case CmpIPredicate::sle:
  case CmpIPredicate::ule:
    return narrow(-difference, visible);
  case CmpIPredicate::slt:
  case CmpIPredicate::ult:
    return narrow(-difference - 1, visible);
  case CmpIPredicate::eq:
    if (Reason reason = narrow(difference, visible))
      return reason;
    return narrow(-difference, visible);
  case CmpIPredicate::ne:
    return std::string(isNoBand);
  }
  llvm_unreachable("closed enum");
}

Reason MaskReader::readCondition(const Number &condition, bool wanted,
                                 VisibleBand &visible) {
  if (std::optional<double> value = numbers.constant(condition)) {
    if (bool(*value) != wanted)
      return std::string("the mask hides every key");
    return std::nullopt;
  }
  Maker made = numbers.maker(condition);
  if (made.is("arith.cmpi"))
    return compare(made, wanted, visible);
  // All of several, or none of several.
  if (made.is(wanted ? "arith.andi" : "arith.ori")) {
    if (Reason reason = readCondition(made.operands[0], wanted, visible))
      return reason;
    return readCondition(made.operands[1], wanted, visible);
  }
  if (made.is("arith.xori"))
    for (unsigned i : {0, 1})
      if (numbers.constant(made.operands[i]) == 1.0)
        return readCondition(made.operands[1 - i], !wanted, visible);
  return readConstant(numbers.source(condition), wanted, visible);
}

Reason MaskReader::readAddend(const Number &addend, VisibleBand &visible) {
  if (std::optional<double> value = numbers.constant(addend)) {
    if (*value == 0)
      return std::nullopt;
    return std::string("the mask adds the same number to all scores");
  }
  Maker made = numbers.maker(addend);
  if (made.isAny("arith.extf", "arith.truncf"))
    return readAddend(made.operands[0], visible);
  if (made.is("arith.addf")) {
    if (Reason reason = readAddend(made.operands[0], visible))
      return reason;
    return readAddend(made.operands[1], visible);
  }
  if (made.is("arith.select")) {
    std::optional<double> yes = numbers.constant(made.operands[1]),
                          no = numbers.constant(made.operands[2]);
    if (yes == 0.0 && no && hides(*no, addend.type(), visible))
      return readCondition(made.operands[0], true, visible);
    if (no == 0.0 && yes && hides(*yes, addend.type(), visible))
      return readCondition(made.operands[0], false, visible);
  }
  return readConstant(numbers.source(addend), true, visible);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

namespace {
/// A constant tensor as matrices of queries and keys, one after another.
struct Matrices {
  int64_t count, queries, keys, queryStride, keyStride;
};
} // namespace

/// Looks whether the visible keys of every row are those of one band.
static bool findBand(llvm::function_ref<bool(int64_t, int64_t)> sees,
                     const Rows &rows, raise::Band &band) {
  // The widest band that no row contradicts, then whether it is the mask.
  for (int64_t i = 0; i < rows.queries; ++i) {
    int64_t first = 0, last = rows.keys - 1;
    while (first < rows.keys && !sees(i, first))
      ++first;
    while (last >= first && !sees(i, last))
      --last;
    if (first > last)
      continue; // Which band hides all of a row is not clear.
    if (first > 0)
      band.first = std::max(band.first, first - i);
    if (last < rows.keys - 1)
      band.last = std::min(band.last, last - i);
  }
  for (int64_t i = 0; i < rows.queries; ++i)
    for (int64_t j = 0; j < rows.keys; ++j)
      if (sees(i, j) != (j >= i + band.first && j <= i + band.last))
        return false;
  return true;
}

Reason MaskReader::readConstant(const Number &number, bool wanted,
                                VisibleBand &visible) {
  DenseElementsAttr elements;
  if (!matchPattern(number.value, m_Constant(&elements)) || !number.tensor() ||
      ShapedType::isDynamic(rows.queries) || ShapedType::isDynamic(rows.keys))
    return std::string(isData);
  // Whether each element hides.
  SmallVector<bool> hidden;
  bool isBoolean = number.type().isInteger(1);
  if (!isBoolean && !isa<FloatType>(number.type()))
    return std::string(isData);
  if (isBoolean)
    for (bool value : elements.getValues<bool>())
      hidden.push_back(value != wanted);
  else
    for (const APFloat &value : elements.getValues<APFloat>()) {
      APFloat copy = value;
      bool loses;
      copy.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
      hidden.push_back(hides(copy.convertToDouble(), number.type(), visible));
      if (!hidden.back() && !value.isZero())
        return std::string("the mask adds other numbers than 0 and -inf to "
                           "scores");
    }
  // What the indices make of row numbers; other indices must not matter.
  SmallVector<int64_t> strides = computeStrides(number.tensor().getShape());
  int64_t queryStride = 0, keyStride = 0;
  SmallVector<int64_t> others = {0};
  for (auto [index, stride, size] :
       llvm::zip_equal(number.at, strides, number.tensor().getShape())) {
    if (index == rows.query && size == rows.queries && size != 1) {
      queryStride += stride;
    } else if (index == rows.key && size == rows.keys && size != 1) {
      keyStride += stride;
    } else {
      size_t before = others.size();
      for (int64_t i = 1; i < size; ++i)
        for (size_t each = 0; each < before; ++each)
          others.push_back(others[each] + i * stride);
    }
  }
  for (int64_t offset : others)
    for (int64_t i = 0; i < rows.queries; ++i)
      for (int64_t j = 0; j < rows.keys; ++j)
        if (hidden[offset + i * queryStride + j * keyStride] !=
            hidden[i * queryStride + j * keyStride])
          return std::string("the mask differs between heads or batch entries");
  raise::Band found;
  if (!findBand(
          [&](int64_t i, int64_t j) {
            return !hidden[i * queryStride + j * keyStride];
          },
          rows, found))
    return std::string(isNoBand);
  visible.narrow(found.first, found.last);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

bool attn::raise::mayHideAll(const raise::Band &band, const Rows &rows) {
  bool mayLackFirst = band.last < 0;
  bool mayLackLast = band.first > -kUnbounded &&
                     (ShapedType::isDynamic(rows.queries) ||
                      ShapedType::isDynamic(rows.keys) ||
                      rows.queries - 1 + band.first > rows.keys - 1);
  return mayLackFirst || mayLackLast || band.first > band.last;
}

std::optional<NamedMask> attn::raise::nameMask(MLIRContext *context,
                                               const raise::Band &band,
                                               const Rows &rows,
                                               std::string &reason) {
  auto named = [&](MaskKind kind, int64_t keys, int64_t left = 0,
                   int64_t right = 0) {
    return NamedMask{MaskAttr::get(context, Mask{kind, left, right}), keys};
  };
  bool isStatic =
      !ShapedType::isDynamic(rows.queries) && !ShapedType::isDynamic(rows.keys);
  raise::Band wide = band;
  // A side that no row reaches is none.
  if (isStatic && wide.first <= 1 - rows.queries)
    wide.first = -kUnbounded;
  if (isStatic && wide.last >= rows.keys - 1)
    wide.last = kUnbounded;
  bool hasFirst = wide.first > -kUnbounded, hasLast = wide.last < kUnbounded;
  if (!hasFirst && !hasLast)
    return named(MaskKind::none, rows.keys);
  if (!hasFirst && wide.last == 0)
    return named(MaskKind::causal, rows.keys);
  if (!isStatic) {
    reason = "a window of rows whose number is not static has no name";
    return std::nullopt;
  }
  // Windows count from the last query and key.  Keys behind the last that a
  // query sees are cut off, so that these meet.
  int64_t corner = rows.keys - rows.queries;
  int64_t last = hasLast ? std::min(wide.last, corner) : corner;
  int64_t keys = std::max<int64_t>(rows.queries + last, 0);
  if (!hasFirst && wide.last <= corner)
    return named(MaskKind::causalBottomRight, keys);
  if (wide.first > last || wide.first > wide.last) {
    reason = "a window that begins right of the diagonal of the last query and "
             "key has no name";
    return std::nullopt;
  }
  return named(MaskKind::window, keys,
               hasFirst ? last - wide.first : kUnbounded,
               hasLast ? wide.last - last : kUnbounded);
}
