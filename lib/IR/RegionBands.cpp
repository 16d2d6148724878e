//===- RegionBands.cpp - Unions of bands that regions show ----------------===//

#include "attn/IR/RegionBands.h"

#include "RegionConditions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdlib>

using namespace mlir;
using namespace attn;

namespace {

/// Whether a side is the last that belongs to a band, or the first.
bool isLast(BandSide side) {
  return side == BandSide::lastDiagonal || side == BandSide::lastKey ||
         side == BandSide::lastQuery;
}

/// What two bounds of a side leave, if that is known for all sizes.
std::optional<RowBound> nearer(BandSide side, RowBound a, const RowBound &b) {
  if (a.ofQueries != b.ofQueries || a.ofKeys != b.ofKeys)
    return std::nullopt;
  a.constant = isLast(side) ? std::min(a.constant, b.constant)
                            : std::max(a.constant, b.constant);
  return a;
}

void narrow(Band &band, BandSide side, RowBound bound) {
  bool isPlain = bound.ofQueries == 0 && bound.ofKeys == 0;
  if (isPlain) // farther away than any row
    bound.constant = std::clamp(bound.constant, -kUnbounded, kUnbounded);
  std::optional<RowBound> &own = band.at(side);
  std::optional<RowBound> both = own ? nearer(side, *own, bound) : bound;
  if (both && fits(*both))
    own = both;
  else
    band.isWhole = false;
}

/// The side that a sum bounds, if it bounds one.
std::optional<BandSide> sideOf(const Sum &sum) {
  int64_t ofQuery = sum.factors[query], ofKey = sum.factors[key];
  if (sum.factors[batch] != 0 || sum.factors[head] != 0)
    return std::nullopt;
  if (ofKey != 0 && ofQuery == -ofKey)
    return ofKey > 0 ? BandSide::lastDiagonal : BandSide::firstDiagonal;
  if (ofKey != 0 && ofQuery == 0)
    return ofKey > 0 ? BandSide::lastKey : BandSide::firstKey;
  if (ofQuery != 0 && ofKey == 0)
    return ofQuery > 0 ? BandSide::lastQuery : BandSide::firstQuery;
  return std::nullopt;
}

/// Of scale * x + rest <= 0 the most that x is, or of a negative scale the
/// least.
std::optional<RowBound> boundOf(const Sum &sum, int64_t scale) {
  int64_t by = std::abs(scale), sign = scale > 0 ? -1 : 1;
  int64_t ofQueries = sum.factors[queries], ofKeys = sum.factors[keys];
  if (ofQueries % by != 0 || ofKeys % by != 0)
    return std::nullopt;
  int64_t constant = scale > 0 ? llvm::divideFloorSigned(-sum.constant, by)
                               : -llvm::divideFloorSigned(-sum.constant, by);
  return RowBound{constant, sign * ofQueries / by, sign * ofKeys / by};
}

/// Nothing of a piece that has no pair.
std::optional<Band> bandOf(const Piece &piece) {
  Band band;
  band.isWhole = piece.isWhole;
  for (const Sum &sum : piece.sums) {
    if (atLastRows(sum).most() <= 0)
      continue;
    if (llvm::all_of(sum.factors, [](int64_t factor) { return factor == 0; }))
      return std::nullopt;
    std::optional<BandSide> side = sideOf(sum);
    int64_t scale =
        sum.factors[key] != 0 ? sum.factors[key] : sum.factors[query];
    std::optional<RowBound> bound =
        side ? boundOf(sum, scale) : std::optional<RowBound>();
    if (bound)
      narrow(band, *side, *bound);
    else
      band.isWhole = false;
  }
  return band;
}

/// Whether one band has all pairs of another, for all sizes.
bool covers(const Band &band, const Band &other) {
  if (other.isWhole && !band.isWhole)
    return false;
  for (size_t i = 0; i < kBandSides; ++i) {
    const std::optional<RowBound> &own = band.sides[i], &its = other.sides[i];
    if (own && !(its && nearer(BandSide(i), *own, *its) == its))
      return false;
  }
  return true;
}

/// The bands that a mask leaves of one.
std::vector<Band> withMask(const Band &band, const Mask &mask) {
  Band cut = band;
  // The place of a query is i + (keys - queries).
  auto diagonal = [](int64_t constant) { return RowBound{constant, -1, 1}; };
  switch (mask.kind) {
  case MaskKind::none:
    return {band};
  case MaskKind::causal:
    narrow(cut, BandSide::lastDiagonal, {});
    return {cut};
  case MaskKind::causalBottomRight:
    narrow(cut, BandSide::lastDiagonal, diagonal(0));
    return {cut};
  case MaskKind::window:
    if (mask.left < kUnbounded)
      narrow(cut, BandSide::firstDiagonal, diagonal(-mask.left));
    if (mask.right < kUnbounded)
      narrow(cut, BandSide::lastDiagonal, diagonal(mask.right));
    return {cut};
  case MaskKind::prefix: {
    Band first = band;
    narrow(first, BandSide::lastKey, {mask.keys - 1});
    narrow(cut, BandSide::lastDiagonal, diagonal(0));
    return {first, cut};
  }
  }
  llvm_unreachable("closed enum");
}

} // namespace

Bands attn::bandsOfRegion(Region &sees, const Mask &mask) {
  std::vector<Band> bands;
  for (const Piece &piece : piecesOf(sees)) {
    std::optional<Band> whole = bandOf(piece);
    if (!whole)
      continue;
    for (const Band &band : withMask(*whole, mask)) {
      auto isCovered = [&](const Band &other) { return covers(other, band); };
      if (llvm::any_of(bands, isCovered))
        continue;
      llvm::erase_if(bands,
                     [&](const Band &other) { return covers(band, other); });
      bands.push_back(band);
    }
  }
  bool anyWhole =
      llvm::any_of(bands, [](const Band &band) { return band.isWhole; });
  bool isWorthIt = anyWhole || bands.size() > 1;
  if (bands.empty() || bands.size() > kMostBands || !isWorthIt)
    return {};
  return Bands(std::move(bands));
}

std::optional<std::string> attn::whyNoRuns(const Problem &problem) {
  if (problem.pattern)
    return "blocks are listed";
  if (problem.ragged)
    return "sequences are ragged";
  if (problem.place.any())
    return "keys lie where the device says";
  if (problem.queries > kMostRowsOfBands || problem.keys > kMostRowsOfBands)
    return "there are more than " + std::to_string(kMostRowsOfBands) + " rows";
  return std::nullopt;
}
