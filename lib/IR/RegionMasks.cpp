//===- RegionMasks.cpp - Named masks that regions of `sees` are -----------===//
//
// Pieces of a region (RegionConditions.h) become bands: their sums that compare
// a key with a query bound the band on one side, those of a key alone open the
// first keys.  What a piece demands besides makes it no more than a part of its
// band.
//
//===----------------------------------------------------------------------===//

#include "attn/IR/RegionMasks.h"

#include "RegionConditions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace attn;

namespace {

/// What a piece demands.  Numbers are those of `window`: a query sees the keys
/// up to `right` behind its own place, where the last query's is the last key.
struct SidedBand {
  std::optional<int64_t> left, right;
  /// It sees keys up to its own number; where sizes are known that is a
  /// `right` too.
  bool isTopLeft = false;
  std::optional<int64_t> first; ///< it has so many first keys, or all
  bool isWhole = true;

  bool hasSides() const { return left || right || isTopLeft; }
};

class Matcher {
public:
  Matcher(std::optional<int64_t> queryCount, std::optional<int64_t> keyCount)
      : queryCount(queryCount), keyCount(keyCount) {}

  /// Nothing of a piece that has no pair.
  std::optional<SidedBand> bandOf(const Piece &piece) const;
  /// The masks of one band, of two, and of any number.
  RegionMask maskOf(const SidedBand &band) const;
  RegionMask maskOf(const SidedBand &a, const SidedBand &b) const;
  RegionMask maskAround(ArrayRef<SidedBand> bands) const;

private:
  /// With the sizes that are known.
  Sum substituted(Sum sum) const;
  /// Whether a sum is 0 or less for every pair there may be.
  bool isAlways(const Sum &sum) const;
  void add(const Sum &sum, SidedBand &band) const;
  void bound(const Sum &sum, bool isRight, SidedBand &band) const;

  /// How many more keys there are than queries.
  std::optional<int64_t> more() const {
    if (queryCount && keyCount)
      return *keyCount - *queryCount;
    return std::nullopt;
  }

  std::optional<int64_t> queryCount, keyCount;
};

} // namespace

Sum Matcher::substituted(Sum sum) const {
  for (auto [position, size] :
       {std::pair(queries, queryCount), std::pair(keys, keyCount)}) {
    if (!size)
      continue;
    sum.constant += sum.factors[position] * *size;
    sum.factors[position] = 0;
  }
  return sum;
}

bool Matcher::isAlways(const Sum &sum) const {
  return substituted(atLastRows(sum)).most() <= 0;
}

static void keepLeast(std::optional<int64_t> &least, int64_t value) {
  least = least ? std::min(*least, value) : value;
}

/// j - i <= bound on the right, i - j <= bound on the left.
void Matcher::bound(const Sum &sum, bool isRight, SidedBand &band) const {
  int64_t sign = isRight ? 1 : -1, scale = sum.factors[key] * sign;
  int64_t ofQueries = sum.factors[queries], ofKeys = sum.factors[keys];
  // The place of a query is i + (keys - queries).
  bool isBottomRight = ofKeys == -sign * scale && ofQueries == sign * scale;
  bool isPlain = ofKeys == 0 && ofQueries == 0;
  if (!isPlain && !isBottomRight) {
    band.isWhole = false;
    return;
  }
  int64_t number = llvm::divideFloorSigned(-sum.constant, scale);
  std::optional<int64_t> &side = isRight ? band.right : band.left;
  if (isPlain && isRight && number <= 0) {
    band.isTopLeft = true;
    band.isWhole &= more() || number == 0;
  }
  if (isPlain && more())
    keepLeast(side, number - sign * *more());
  else if (isBottomRight && !isPlain)
    keepLeast(side, number);
  else if (!band.isTopLeft || !isRight)
    band.isWhole = false;
}

void Matcher::add(const Sum &sum, SidedBand &band) const {
  if (sum.factors[batch] != 0 || sum.factors[head] != 0) {
    band.isWhole = false;
    return;
  }
  int64_t ofQuery = sum.factors[query], ofKey = sum.factors[key];
  if (ofKey > 0 && ofQuery == -ofKey)
    return bound(sum, /*isRight=*/true, band);
  if (ofKey < 0 && ofQuery == -ofKey)
    return bound(sum, /*isRight=*/false, band);
  bool isOfKey = ofKey > 0 && ofQuery == 0 && sum.factors[queries] == 0 &&
                 sum.factors[keys] == 0;
  if (!isOfKey) {
    band.isWhole = false;
    return;
  }
  keepLeast(
      band.first,
      std::max<int64_t>(0, llvm::divideFloorSigned(-sum.constant, ofKey) + 1));
}

std::optional<SidedBand> Matcher::bandOf(const Piece &piece) const {
  SidedBand band;
  band.isWhole = piece.isWhole;
  for (const Sum &given : piece.sums) {
    Sum sum = substituted(given);
    if (isAlways(sum))
      continue;
    bool isConstant =
        llvm::all_of(sum.factors, [](int64_t factor) { return factor == 0; });
    if (isConstant)
      return std::nullopt;
    add(sum, band);
  }
  // A mask bounds by queries' numbers or by their places, not by both, unless
  // sizes say which of them is nearer.
  if (band.isTopLeft && band.right && !more())
    band.isTopLeft = band.isWhole = false;
  return band;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

RegionMask Matcher::maskOf(const SidedBand &band) const {
  RegionMask result;
  result.isExact = band.isWhole && !band.first;
  bool isTopLeft = band.isTopLeft && (!band.right || -*band.right == more());
  if (band.isTopLeft && (!band.right || (isTopLeft && !band.left))) {
    result.mask.kind = MaskKind::causal;
    result.isExact &= isTopLeft && !band.left;
    return result;
  }
  if (!band.left && !band.right)
    return result;
  // Sides of windows are 0 or more; one that is far away is none.
  int64_t left = std::clamp<int64_t>(band.left.value_or(kUnbounded), 0,
                                     kUnbounded),
          right = std::clamp<int64_t>(band.right.value_or(kUnbounded), 0,
                                      kUnbounded);
  result.isExact &= band.left.value_or(0) >= 0 && band.right.value_or(0) >= 0;
  if (left == kUnbounded && right == kUnbounded)
    return result;
  if (left == kUnbounded && right == 0)
    result.mask.kind = MaskKind::causalBottomRight;
  else
    result.mask = {MaskKind::window, left, right};
  return result;
}

/// The least mask that has both.
RegionMask Matcher::maskOf(const SidedBand &a, const SidedBand &b) const {
  auto isSides = [](const SidedBand &band) {
    return !band.first && band.right;
  };
  auto isFirst = [](const SidedBand &band) {
    return band.first && !band.hasSides();
  };
  const SidedBand &sides = isSides(a) ? a : b, &first = isSides(a) ? b : a;
  RegionMask result;
  if (isSides(sides) && isFirst(first) && *sides.right <= 0) {
    result.mask.kind = MaskKind::prefix;
    result.mask.keys = std::min(*first.first, kUnbounded);
    result.isExact = a.isWhole && b.isWhole && !sides.left && *sides.right == 0;
    return result;
  }
  return maskAround({a, b});
}

/// Both sides of a window: what any band shows, and what is between.
RegionMask Matcher::maskAround(ArrayRef<SidedBand> bands) const {
  SidedBand hull = bands.front();
  for (const SidedBand &band : bands.drop_front()) {
    auto widen = [](std::optional<int64_t> &side, std::optional<int64_t> by) {
      side = side && by ? std::optional(std::max(*side, *by)) : std::nullopt;
    };
    widen(hull.left, band.left);
    widen(hull.right, band.right);
    hull.isTopLeft &= band.isTopLeft;
  }
  hull.first = std::nullopt;
  hull.isWhole = false;
  return maskOf(hull);
}

/// Whether one band has all pairs of another, as far as sides tell.
static bool covers(const SidedBand &band, const SidedBand &other) {
  auto isWithin = [](std::optional<int64_t> most, std::optional<int64_t> side) {
    return !most || (side && *side <= *most);
  };
  return band.isWhole && isWithin(band.left, other.left) &&
         isWithin(band.right, other.right) &&
         (!band.isTopLeft || other.isTopLeft) &&
         isWithin(band.first, other.first);
}

RegionMask attn::maskOfRegion(Region &sees, std::optional<int64_t> queries,
                              std::optional<int64_t> keys) {
  Matcher matcher(queries, keys);
  std::vector<SidedBand> bands;
  for (const Piece &piece : piecesOf(sees)) {
    std::optional<SidedBand> band = matcher.bandOf(piece);
    if (!band)
      continue;
    auto isCovered = [&](const SidedBand &other) {
      return covers(other, *band);
    };
    if (llvm::any_of(bands, isCovered))
      continue;
    llvm::erase_if(
        bands, [&](const SidedBand &other) { return covers(*band, other); });
    bands.push_back(*band);
  }
  if (bands.size() == 1)
    return matcher.maskOf(bands.front());
  if (bands.size() == 2)
    return matcher.maskOf(bands[0], bands[1]);
  if (bands.size() > 2)
    return matcher.maskAround(bands);
  return {}; // of no piece, which no mask is
}
