//===- ProblemAttr.cpp - What a kernel was built for ----------------------===//

#include "attn/Kernels/Kernels.h"

using namespace mlir;
using namespace attn;

namespace {

/// One integer of a problem: its name in the attribute and its place.
struct Field {
  StringLiteral name;
  int64_t Problem::*member;
};

constexpr Field kFields[] = {
    {"batch", &Problem::batch},        {"heads", &Problem::heads},
    {"kv_heads", &Problem::kvHeads},   {"queries", &Problem::queries},
    {"keys", &Problem::keys},          {"head_dim", &Problem::headDim},
    {"head_dim_v", &Problem::headDimV}};

/// Yes or no.
struct Flag {
  StringLiteral name;
  bool Problem::*member;
};

constexpr Flag kBackwardFlags[] = {{"deterministic", &Problem::deterministic},
                                   {"dlse", &Problem::dlse}};
/// Of both directions, said only where it holds.
constexpr Flag kRareFlags[] = {{"lse_low", &Problem::lseLow},
                               {"keeps_weights", &Problem::keepsWeights},
                               {"values_of_keys", &Problem::valuesOfKeys}};

/// The same of clauses.
struct Clause {
  StringLiteral name;
  bool ScoreClauses::*member;
};
constexpr Clause kClauses[] = {
    {"sees", &ScoreClauses::sees},
    {"score", &ScoreClauses::score},
    {"sinks", &ScoreClauses::sinks},
    {"sink_gradients", &ScoreClauses::sinkGradients}};
/// How many there are of something, said where there is any.
struct Count {
  StringLiteral name;
  int64_t ScoreClauses::*member;
};
constexpr Count kCounts[] = {{"pair_gradients", &ScoreClauses::pairGradients},
                             {"head_gradients", &ScoreClauses::headGradients}};

/// Of where rows lie, said only where it is not 0.
struct PlaceField {
  StringLiteral name;
  int64_t Placement::*member;
};
constexpr PlaceField kPlaces[] = {{"used_keys_bits", &Placement::usedKeysBits},
                                  {"page_rows", &Placement::pageRows}};

/// What their regions cost, said where there is one: per score instructions,
/// functions, reads and those of slopes, and registers.
struct Cost {
  StringLiteral name;
  RegionCost ScoreClauses::*member;
};
constexpr Cost kCosts[] = {{"sees_cost", &ScoreClauses::seesCost},
                           {"score_cost", &ScoreClauses::scoreCost}};
constexpr size_t kCostNumbers = 5;

/// Of scales, said only where there is one.
struct ScaleFlag {
  StringLiteral name;
  bool OperandScales::*member;
};
constexpr ScaleFlag kScales[] = {{"q_scale", &OperandScales::q},
                                 {"k_scale", &OperandScales::k},
                                 {"v_scale", &OperandScales::v}};

/// The type of K and V, said only where it is another.
constexpr StringLiteral kKvDtype = "kv_dtype";

/// Of a pattern, without its lists.
constexpr StringLiteral kBlocks = "blocks", kDensity = "density",
                        kSharedBlocks = "shared_blocks";
/// The numbers of a union of bands.
constexpr StringLiteral kBands = "bands";
/// Of ragged sequences: the longest of queries and keys, and whether offsets
/// have 64 bits.
constexpr StringLiteral kRagged = "ragged";

} // namespace

DictionaryAttr attn::problemAttr(MLIRContext *context, const Problem &problem) {
  Builder b(context);
  std::string_view type = name(problem.dtype);
  SmallVector<NamedAttribute> attributes = {
      b.getNamedAttr("dtype", b.getStringAttr(StringRef(type))),
      b.getNamedAttr("mask", b.getStringAttr(str(problem.mask))),
      b.getNamedAttr("lse", b.getBoolAttr(problem.lse))};
  if (problem.kvDtype) {
    std::string_view ofKeys = name(*problem.kvDtype);
    attributes.push_back(
        b.getNamedAttr(kKvDtype, b.getStringAttr(StringRef(ofKeys))));
  }
  if (problem.dtype == DataType::f32) {
    std::string_view precision = name(problem.precision);
    attributes.push_back(
        b.getNamedAttr("precision", b.getStringAttr(StringRef(precision))));
  }
  // What is not said is forward.
  if (problem.direction == Direction::backward) {
    std::string_view direction = name(problem.direction);
    attributes.push_back(
        b.getNamedAttr("direction", b.getStringAttr(StringRef(direction))));
    for (const Flag &flag : kBackwardFlags)
      attributes.push_back(
          b.getNamedAttr(flag.name, b.getBoolAttr(problem.*flag.member)));
  }
  for (const Flag &flag : kRareFlags)
    if (problem.*flag.member)
      attributes.push_back(b.getNamedAttr(flag.name, b.getBoolAttr(true)));
  for (const Clause &clause : kClauses)
    if (problem.clauses.*clause.member)
      attributes.push_back(b.getNamedAttr(clause.name, b.getBoolAttr(true)));
  for (const Count &count : kCounts)
    if (int64_t number = problem.clauses.*count.member)
      attributes.push_back(
          b.getNamedAttr(count.name, b.getI64IntegerAttr(number)));
  for (const Cost &cost : kCosts) {
    const RegionCost &c = problem.clauses.*cost.member;
    if (!(c == RegionCost()))
      attributes.push_back(b.getNamedAttr(
          cost.name, b.getDenseF64ArrayAttr({c.issue, c.functions, c.reads,
                                             c.slopes, double(c.held)})));
  }
  for (const Field &field : kFields)
    attributes.push_back(
        b.getNamedAttr(field.name, b.getI64IntegerAttr(problem.*field.member)));
  for (const PlaceField &field : kPlaces)
    if (int64_t number = problem.place.*field.member)
      attributes.push_back(
          b.getNamedAttr(field.name, b.getI64IntegerAttr(number)));
  for (const ScaleFlag &flag : kScales)
    if (problem.scales.*flag.member)
      attributes.push_back(b.getNamedAttr(flag.name, b.getBoolAttr(true)));
  if (const std::optional<Ragged> &ragged = problem.ragged)
    attributes.push_back(b.getNamedAttr(
        kRagged,
        b.getDenseI64ArrayAttr({ragged->longest.queries, ragged->longest.keys,
                                int64_t(ragged->isWide)})));
  if (!problem.bands.isEmpty())
    attributes.push_back(b.getNamedAttr(
        kBands, b.getDenseI64ArrayAttr(numbersOf(problem.bands))));
  if (problem.pattern) {
    std::string size = str(problem.pattern->size());
    attributes.push_back(b.getNamedAttr(kBlocks, b.getStringAttr(size)));
    attributes.push_back(b.getNamedAttr(
        kDensity, b.getF64FloatAttr(problem.pattern->density())));
    attributes.push_back(b.getNamedAttr(
        kSharedBlocks, b.getBoolAttr(problem.pattern->isShared())));
  }
  return b.getDictionaryAttr(attributes);
}

std::optional<Problem> attn::problemFromAttr(DictionaryAttr attribute) {
  auto type = attribute.getAs<StringAttr>("dtype");
  auto mask = attribute.getAs<StringAttr>("mask");
  auto lse = attribute.getAs<BoolAttr>("lse");
  if (!type || !mask || !lse)
    return std::nullopt;
  std::optional<DataType> dtype =
      parseDataType(std::string_view(type.getValue()));
  std::optional<Mask> parsed = parseMask(std::string_view(mask.getValue()));
  if (!dtype || !parsed)
    return std::nullopt;
  Problem problem;
  problem.dtype = *dtype;
  problem.mask = *parsed;
  problem.lse = lse.getValue();
  if (auto text = attribute.getAs<StringAttr>(kKvDtype)) {
    problem.kvDtype = parseDataType(std::string_view(text.getValue()));
    if (!problem.kvDtype)
      return std::nullopt;
  }
  if (auto text = attribute.getAs<StringAttr>("precision")) {
    std::optional<Precision> precision =
        parsePrecision(std::string_view(text.getValue()));
    if (!precision)
      return std::nullopt;
    problem.precision = *precision;
  }
  if (auto text = attribute.getAs<StringAttr>("direction")) {
    std::optional<Direction> direction =
        parseDirection(std::string_view(text.getValue()));
    if (!direction)
      return std::nullopt;
    problem.direction = *direction;
  }
  for (ArrayRef<Flag> flags : {ArrayRef(kBackwardFlags), ArrayRef(kRareFlags)})
    for (const Flag &flag : flags)
      if (auto value = attribute.getAs<BoolAttr>(flag.name))
        problem.*flag.member = value.getValue();
  for (const Clause &clause : kClauses)
    if (auto value = attribute.getAs<BoolAttr>(clause.name))
      problem.clauses.*clause.member = value.getValue();
  for (const PlaceField &field : kPlaces)
    if (auto value = attribute.getAs<IntegerAttr>(field.name))
      problem.place.*field.member = value.getInt();
  for (const ScaleFlag &flag : kScales)
    if (auto value = attribute.getAs<BoolAttr>(flag.name))
      problem.scales.*flag.member = value.getValue();
  for (const Count &count : kCounts)
    if (auto value = attribute.getAs<IntegerAttr>(count.name))
      problem.clauses.*count.member = value.getInt();
  for (const Cost &cost : kCosts) {
    auto numbers = attribute.getAs<DenseF64ArrayAttr>(cost.name);
    if (!numbers)
      continue;
    if (numbers.size() != kCostNumbers)
      return std::nullopt;
    problem.clauses.*cost.member = {numbers[0], numbers[1], numbers[2],
                                    numbers[3], int64_t(numbers[4])};
  }
  for (const Field &field : kFields) {
    auto value = attribute.getAs<IntegerAttr>(field.name);
    if (!value)
      return std::nullopt;
    problem.*field.member = value.getInt();
  }
  if (auto ragged = attribute.getAs<DenseI64ArrayAttr>(kRagged)) {
    if (ragged.size() != 3)
      return std::nullopt;
    problem.ragged.emplace();
    problem.ragged->longest = {ragged[0], ragged[1]};
    problem.ragged->isWide = ragged[2] != 0;
  }
  if (auto numbers = attribute.getAs<DenseI64ArrayAttr>(kBands)) {
    std::optional<Bands> bands = bandsOf(numbers.asArrayRef().vec());
    if (!bands)
      return std::nullopt;
    problem.bands = *bands;
  }
  if (auto text = attribute.getAs<StringAttr>(kBlocks)) {
    std::optional<BlockSize> size =
        parseBlockSize(std::string_view(text.getValue()));
    auto density = attribute.getAs<FloatAttr>(kDensity);
    auto isShared = attribute.getAs<BoolAttr>(kSharedBlocks);
    if (!size || !density || !isShared)
      return std::nullopt;
    problem.pattern =
        Pattern(*size, density.getValueAsDouble(), isShared.getValue());
  }
  if (check(problem))
    return std::nullopt;
  return problem;
}
