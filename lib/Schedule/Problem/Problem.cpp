//===- Problem.cpp - Masks, limits, arithmetic ----------------------------===//

#include "attn/Schedule/Problem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Limits.h"
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

using namespace attn;

std::string_view attn::name(Precision precision) {
  switch (precision) {
  case Precision::tf32x3:
    return "tf32x3";
  case Precision::tf32:
    return "tf32";
  case Precision::f8_qk:
    return "f8_qk";
  }
  return "";
}

std::optional<Precision> attn::parsePrecision(std::string_view text) {
  for (Precision precision : {Precision::tf32x3, Precision::tf32})
    if (name(precision) == text)
      return precision;
  return std::nullopt;
}

std::string_view attn::name(Direction direction) {
  switch (direction) {
  case Direction::forward:
    return "forward";
  case Direction::backward:
    return "backward";
  }
  return "";
}

std::optional<Direction> attn::parseDirection(std::string_view text) {
  for (Direction direction : {Direction::forward, Direction::backward})
    if (name(direction) == text)
      return direction;
  return std::nullopt;
}

int64_t attn::productsPerProduct(const Problem &problem) {
  bool isSplit =
      problem.dtype == DataType::f32 && problem.precision == Precision::tf32x3;
  return isSplit ? 3 : 1;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

namespace {

/// A mask by its name and the numbers behind it.
struct MaskName {
  MaskKind kind;
  std::string_view name;
  std::vector<int64_t Mask::*> numbers;
};

} // namespace

static const std::vector<MaskName> &maskNames() {
  static const std::vector<MaskName> names = {
      {MaskKind::none, "none", {}},
      {MaskKind::causal, "causal", {}},
      {MaskKind::causalBottomRight, "causal_bottom_right", {}},
      {MaskKind::window, "window", {&Mask::left, &Mask::right}},
      {MaskKind::prefix, "prefix", {&Mask::keys}}};
  return names;
}

std::vector<std::string_view> attn::maskKeywords() {
  std::vector<std::string_view> words;
  for (const MaskName &mask : maskNames())
    words.push_back(mask.name);
  return words;
}

static const MaskName &nameOf(const Mask &mask) {
  return *std::find_if(
      maskNames().begin(), maskNames().end(),
      [&](const MaskName &name) { return name.kind == mask.kind; });
}

std::vector<int64_t> attn::numbersOf(const Mask &mask) {
  std::vector<int64_t> numbers;
  for (int64_t Mask::*number : nameOf(mask).numbers)
    numbers.push_back(mask.*number);
  return numbers;
}

std::string attn::str(const Mask &mask) {
  std::string text(nameOf(mask).name), before = "<";
  for (int64_t number : numbersOf(mask)) {
    text += before + std::to_string(number);
    before = ", ";
  }
  return before == "<" ? text : text + ">";
}

std::optional<Mask> attn::maskOf(std::string_view name,
                                 const std::vector<int64_t> &numbers) {
  for (const MaskName &known : maskNames()) {
    if (known.name != name || known.numbers.size() != numbers.size())
      continue;
    Mask mask{known.kind};
    for (size_t i = 0; i < numbers.size(); ++i)
      mask.*known.numbers[i] = numbers[i];
    return mask;
  }
  return std::nullopt;
}

/// Takes an integer with blanks around it from the front of `text`; one that is
/// too large for 64 bits is the largest, which `check` then refuses.
static bool takeInteger(std::string_view &text, int64_t &value) {
  auto skipBlanks = [&] {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text[0])))
      text.remove_prefix(1);
  };
  skipBlanks();
  auto [next, error] = std::from_chars(text.begin(), text.end(), value);
  using Limits = std::numeric_limits<int64_t>;
  if (error == std::errc::result_out_of_range)
    value = text.front() == '-' ? Limits::min() : Limits::max();
  else if (error != std::errc())
    return false;
  text.remove_prefix(next - text.begin());
  skipBlanks();
  return true;
}

static bool take(std::string_view &text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix)
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<Mask> attn::parseMask(std::string_view text) {
  size_t end = std::min(text.find('<'), text.size());
  std::string_view name = text.substr(0, end);
  text.remove_prefix(end);
  std::vector<int64_t> numbers;
  for (const char *before = "<"; take(text, before); before = ",")
    if (!takeInteger(text, numbers.emplace_back()))
      return std::nullopt;
  if (text != (numbers.empty() ? "" : ">"))
    return std::nullopt;
  return maskOf(name, numbers);
}

bool Mask::operator==(const Mask &other) const {
  return kind == other.kind && numbersOf(*this) == numbersOf(other);
}

bool Mask::isOpen() const { return !hidesBefore() && !hidesBehind(); }

bool Mask::hidesBefore() const { return kind == MaskKind::window; }

bool Mask::hidesBehind() const { return kind != MaskKind::none; }

bool Mask::opensKeys() const { return kind == MaskKind::prefix; }

bool Mask::mayHideKeys() const {
  return kind == MaskKind::causal || kind == MaskKind::window;
}

bool Mask::endsAtCorners() const { return kind == MaskKind::causal; }

/// From the diagonal of a sequence on, whose lengths are known elsewhere.
static Visible visibleOfSequence(const Mask &mask) {
  Visible seen;
  if (mask.hidesBefore())
    seen.first = -mask.left;
  if (mask.hidesBehind())
    seen.last = mask.right; // 0 but of windows
  if (mask.opensKeys())
    seen.openColumns = mask.keys;
  return seen;
}

Visible attn::visible(const Problem &problem) {
  if (problem.ragged && !problem.ragged->isStandIn)
    return visibleOfSequence(problem.mask);
  int64_t queries = problem.queries / problem.rowHeads;
  int64_t diagonal = problem.keys - queries;
  switch (problem.mask.kind) {
  case MaskKind::none:
    return {};
  case MaskKind::causal:
    return {-kUnbounded, 0};
  case MaskKind::causalBottomRight:
    return {-kUnbounded, diagonal};
  case MaskKind::window:
    // A side that is farther away bounds nothing.
    return {std::max(diagonal - problem.mask.left, -queries),
            std::min(diagonal + problem.mask.right, problem.keys)};
  case MaskKind::prefix:
    return {-kUnbounded, diagonal, std::min(problem.mask.keys, problem.keys)};
  }
  return {};
}

bool Visible::sees(int64_t row, int64_t column) const {
  bool isBetween = row + first <= column && column <= row + last;
  return isBetween || column < openColumns || row < openRows;
}

static Span clamped(int64_t begin, int64_t end, int64_t columns) {
  Span span = {std::max<int64_t>(0, begin), std::min(columns, end)};
  return span.isEmpty() ? Span() : span;
}

Span Visible::seenBySome(Span rows, int64_t columns) const {
  if (rows.begin < openRows)
    return clamped(0, columns, columns);
  return clamped(rows.begin + first, std::max(rows.end + last, openColumns),
                 columns);
}

Span Visible::seenByAll(Span rows, int64_t columns) const {
  if (rows.end <= openRows)
    return clamped(0, columns, columns);
  int64_t end = rows.begin < openRows ? columns : rows.begin + last + 1;
  return clamped(rows.end - 1 + first, std::max(end, openColumns), columns);
}

Visible Visible::transposed() const {
  return {-last, -first, openRows, openColumns};
}

Visible Visible::from(int64_t row, int64_t column) const {
  int64_t by = row - column;
  return {first + by, last + by, openColumns - column, openRows - row};
}

int64_t attn::keptRows(int64_t keys) {
  constexpr int64_t ofBlock = 2;
  return (keys + kKeptKeys - 1) / kKeptKeys * ofBlock;
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

static std::optional<std::string> checkRange(const char *what, int64_t value,
                                             int64_t least, int64_t most) {
  if (value >= least && value <= most)
    return std::nullopt;
  return std::string("expects ") + what + " between " + std::to_string(least) +
         " and " + std::to_string(most) + ", but got " + std::to_string(value);
}

std::optional<std::string> attn::checkAlignment(int64_t bytes, DataType type) {
  int64_t least = bytesOf(type);
  bool isPowerOfTwo = bytes > 0 && (bytes & (bytes - 1)) == 0;
  if (isPowerOfTwo && bytes >= least && bytes <= kMaxAlignment)
    return std::nullopt;
  return "expects an alignment that is a power of two from " +
         std::to_string(least) + " to " + std::to_string(kMaxAlignment) +
         " bytes, but got " + std::to_string(bytes);
}

/// A sentence when a size or a product of sizes leaves its limits.
static std::optional<std::string> checkLimits(const Problem &asked) {
  const Problem problem = asked.ragged ? limitedBy(asked) : asked;
  for (const Limit &limit : limits()) {
    double product = 1;
    for (const Factor &factor : limit.factors)
      product *= double(factor.of(problem));
    int64_t size = valueOf(limit.factors.front().size, problem);
    bool holds = limit.isProduct() ? product <= double(limit.most)
                                   : limit.least <= size && size <= limit.most;
    if (holds)
      continue;
    std::string got = std::to_string(size);
    if (limit.isProduct())
      got = product < 0x1p53
                ? std::to_string(static_cast<int64_t>(product))
                : "about 2^" +
                      std::to_string(static_cast<int>(std::log2(product)));
    return limit.sentence() + ", but got " + got;
  }
  return std::nullopt;
}

std::optional<std::string> attn::check(const Mask &mask) {
  if (auto sentence =
          checkRange("the window's left side", mask.left, 0, kUnbounded))
    return sentence;
  if (auto sentence =
          checkRange("the window's right side", mask.right, 0, kUnbounded))
    return sentence;
  return checkRange("the keys of the prefix", mask.keys, 0, kUnbounded);
}

bool ScoreClauses::operator==(const ScoreClauses &other) const {
  return sees == other.sees && score == other.score && sinks == other.sinks &&
         pairGradients == other.pairGradients &&
         headGradients == other.headGradients &&
         sinkGradients == other.sinkGradients && seesCost == other.seesCost &&
         scoreCost == other.scoreCost;
}

bool RegionCost::operator==(const RegionCost &other) const {
  return issue == other.issue && functions == other.functions &&
         reads == other.reads && slopes == other.slopes && held == other.held;
}

RegionCost RegionCost::operator+(const RegionCost &other) const {
  return {issue + other.issue, functions + other.functions, reads + other.reads,
          slopes + other.slopes, held + other.held};
}

RegionCost RegionCost::operator*(double share) const {
  return {issue * share, functions * share, reads * share, slopes * share,
          held};
}

std::string attn::str(const ScoreClauses &clauses) {
  std::string text;
  bool hasGradients = clauses.pairGradients > 0 || clauses.headGradients > 0;
  const std::pair<bool, const char *> all[] = {
      {clauses.sees, "sees"},
      {clauses.score, "score"},
      {clauses.sinks, "sinks"},
      {hasGradients, "gradients of captures"},
      {clauses.sinkGradients, "gradients of sinks"}};
  for (auto [isThere, keyword] : all)
    if (isThere)
      text += (text.empty() ? "" : ", ") + std::string(keyword);
  return text;
}

static std::optional<std::string> checkScales(const Problem &p) {
  if (!p.scales.any())
    return std::nullopt;
  if (p.direction == Direction::backward)
    return "expects no " + str(p.scales) + " for gradients, but got some";
  if (p.keepsWeights)
    return "expects no weights to be kept beside " + str(p.scales) +
           ", but got some";
  return std::nullopt;
}

/// What tells on the device where rows lie goes with few other things yet.
static std::optional<std::string> checkPlace(const Problem &p) {
  if (!p.place.any())
    return std::nullopt;
  std::string what = str(p.place);
  int64_t bits = p.place.usedKeysBits;
  if (bits != 0 && bits != 32 && bits != 64)
    return "expects numbers of used keys of 32 or 64 bits, but got " +
           std::to_string(bits);
  if (int64_t rows = p.place.pageRows; rows < 0 || rows % kPageMultiple != 0)
    return "expects pages of a multiple of " + std::to_string(kPageMultiple) +
           " keys, but got " + std::to_string(rows);
  if (p.place.isPaged() && !p.place.usesSome())
    return std::string("expects lengths(k) beside pages, but got none");
  if (p.direction == Direction::backward)
    return "expects no " + what + " for gradients, but got some";
  if (p.pattern)
    return "expects no lists of blocks beside " + what + ", but got some";
  if (p.keepsWeights)
    return "expects no weights to be kept beside " + what + ", but got some";
  if (p.mask.kind == MaskKind::causal && p.ragged)
    return "expects the mask causal_bottom_right of ragged queries beside " +
           what + ", since causal counts from the first key, but got causal";
  if (p.mask.kind == MaskKind::causal && p.queries != p.keys)
    return "expects the mask causal_bottom_right beside " + what +
           ", since causal counts from the first key, but got causal for " +
           std::to_string(p.queries) + " queries and " +
           std::to_string(p.keys) + " keys";
  return std::nullopt;
}

static std::optional<std::string> checkBands(const Problem &p) {
  if (p.bands.isEmpty())
    return std::nullopt;
  if (p.pattern || p.ragged || p.place.any())
    return "expects runs of bands only of rows that lie in order and without "
           "lists of blocks, but got " +
           str(p.bands);
  return std::nullopt;
}

std::optional<std::string> attn::check(const Problem &p) {
  if (auto sentence = checkLimits(p))
    return sentence;
  if (p.ragged)
    if (auto sentence = checkRagged(p))
      return sentence;
  if (p.heads % p.kvHeads != 0)
    return "expects heads to be a multiple of kv heads, but got " +
           std::to_string(p.heads) + " heads and " + std::to_string(p.kvHeads) +
           " kv heads";
  if (auto sentence = check(p.mask))
    return sentence;
  if (p.pattern)
    if (auto sentence = check(*p.pattern, p))
      return sentence;
  if (auto sentence = checkBands(p))
    return sentence;
  if (auto sentence = checkKvType(p))
    return sentence;
  if (auto sentence = checkAlignment(p.alignment, kvTypeOf(p)))
    return sentence;
  if (auto sentence = checkPlace(p))
    return sentence;
  if (auto sentence = checkScales(p))
    return sentence;
  bool isBackward = p.direction == Direction::backward;
  if (isBackward && p.dtype == DataType::f8e4m3)
    return "expects bf16, f16 or f32 for gradients, but got " +
           std::string(name(p.dtype));
  bool is16Bit = p.dtype == DataType::bf16 || p.dtype == DataType::f16;
  if (p.precision == Precision::f8_qk && (isBackward || !is16Bit))
    return "expects bf16 or f16 and direction forward with precision f8_qk, "
           "but got " +
           std::string(name(p.dtype)) + " and " +
           std::string(name(p.direction));
  if (p.dlse && !isBackward)
    return "expects a gradient of the LSE only backward, but got one forward";
  if (p.lseLow && !isBackward && !p.lse)
    return "expects the LSE beside its low word, but got none";
  if (p.keepsWeights && bytesOf(p.dtype) != 2)
    return "expects bf16 or f16 to keep weights, but got " +
           std::string(name(p.dtype));
  if (p.keepsWeights && !isBackward && !p.lse)
    return "expects the LSE beside weights that are kept, but got none";
  if (p.valuesOfKeys && (isBackward || p.keepsWeights))
    return "expects V as an array of its own for gradients and with weights "
           "that are kept, but got the first columns of K";
  if (p.valuesOfKeys && p.headDimV > p.headDim)
    return "expects V of at most the " + std::to_string(p.headDim) +
           " columns of K, but got " + std::to_string(p.headDimV);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Σ over i in [0, n) of clamp(i + shift, least, most).
static int64_t sumClamped(int64_t n, int64_t shift, int64_t least,
                          int64_t most) {
  int64_t rising = std::clamp<int64_t>(least - shift, 0, n);
  int64_t flat = std::clamp<int64_t>(most - shift, rising, n);
  auto triangle = [](int64_t k) { return k * (k + 1) / 2; };
  int64_t lowest = rising + shift, highest = flat - 1 + shift;
  int64_t slope = flat > rising ? triangle(highest) -
                                      (lowest > 0 ? triangle(lowest - 1) : 0)
                                : 0;
  return rising * least + slope + (n - flat) * most;
}

/// Of the pairs of so many queries and keys, those that the mask shows.
static int64_t pairsOfMask(const Visible &seen, Span queries, Span keys) {
  int64_t open = std::clamp(seen.openColumns, keys.begin, keys.end);
  int64_t first = queries.begin;
  return sumClamped(queries.size(), first + seen.last + 1, open, keys.end) -
         sumClamped(queries.size(), first + seen.first, keys.begin, keys.end);
}

/// Of a list.
static int64_t pairsOfList(const BlockRows &list, const Problem &problem) {
  BlockSize size = problem.pattern->size();
  Visible seen = visible(problem);
  int64_t pairs = 0;
  for (int64_t row = 0; row < list.rows(); ++row) {
    int64_t first = row * size.queries;
    Span queries = {first, std::min(first + size.queries, problem.queries)};
    for (const int32_t *block = list.begin(row); block != list.end(row);
         ++block) {
      int64_t key = *block * size.keys;
      Span keys = {key, std::min(key + size.keys, problem.keys)};
      pairs += problem.mask.isOpen() ? queries.size() * keys.size()
                                     : pairsOfMask(seen, queries, keys);
    }
  }
  return pairs;
}

/// In one head, or the average of those with lists of their own.
static double averagePairs(const Problem &problem) {
  if (!problem.bands.isEmpty()) {
    Visits pairs = visits(problem, Axis::Query, 1, 1);
    return double(pairs.wholePairs + pairs.raggedPairs);
  }
  if (!problem.pattern || !problem.pattern->hasLists()) {
    double share = problem.pattern ? problem.pattern->density() : 1;
    int64_t queries = problem.queries / problem.rowHeads;
    return share *
           double(problem.rowHeads * pairsOfMask(visible(problem), {0, queries},
                                                 {0, problem.keys}));
  }
  const Pattern &pattern = *problem.pattern;
  double pairs = 0;
  for (int64_t i = 0; i < pattern.lists(); ++i)
    pairs += double(pairsOfList(pattern.byQueries(i), problem));
  return pairs / double(pattern.lists());
}

int64_t attn::visiblePairs(const Problem &problem) {
  return std::llround(averagePairs(problem));
}

/// In one head of all sequences.
static double raggedPairs(const Problem &problem) {
  double pairs = 0;
  for (const Sequences &each : sequencesOf(problem))
    pairs += double(each.count) * averagePairs(denseOf(problem, each.lengths));
  return pairs;
}

double attn::allVisiblePairs(const Problem &problem) {
  if (problem.ragged)
    return raggedPairs(problem) * double(problem.heads);
  return averagePairs(problem) * double(problem.batch) * double(problem.heads);
}

double attn::usefulFlops(const Problem &problem) {
  bool isBackward = problem.direction == Direction::backward;
  double products = isBackward ? 3.0 * problem.headDim + 2.0 * problem.headDimV
                               : double(problem.headDim) + problem.headDimV;
  return 2.0 * products * allVisiblePairs(problem);
}
