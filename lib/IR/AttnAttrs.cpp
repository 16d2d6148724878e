//===- AttnAttrs.cpp - Masks, precisions, machines, schedules -------------===//
//
// The attributes hold names and numbers that people write.  What a name means,
// and which names there are, is asked of Machine and Schedule.
//
//===----------------------------------------------------------------------===//

#include "attn/IR/Attn.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using namespace attn;

static StringRef ref(std::string_view text) {
  return {text.data(), text.size()};
}

/// Emits an error with a note; fits at the end of a `return`.
static LogicalResult fail(InFlightDiagnostic error, const Twine &note) {
  error.attachNote() << note;
  return failure();
}

/// A word out of some that an editor offers; what follows judges any other.
template <typename Words>
static ParseResult parseWord(AsmParser &parser, StringRef &word,
                             const Words &offered) {
  SmallVector<StringRef> words;
  for (const auto &one : offered)
    words.push_back(StringRef(one.data(), one.size()));
  if (succeeded(parser.parseOptionalKeyword(&word, words)))
    return success();
  return parser.parseKeyword(&word);
}

//===----------------------------------------------------------------------===//
// Mask
//===----------------------------------------------------------------------===//

llvm::hash_code attn::hash_value(const Mask &mask) {
  std::vector<int64_t> numbers = numbersOf(mask);
  return llvm::hash_combine(
      mask.kind, llvm::hash_combine_range(numbers.begin(), numbers.end()));
}

MaskAttr MaskAttr::parseBody(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  std::vector<int64_t> numbers;
  auto parseNumber = [&] {
    return parser.parseInteger(numbers.emplace_back());
  };
  if (parseWord(parser, keyword, maskKeywords()))
    return {};
  if (succeeded(parser.parseOptionalLess()) &&
      (parser.parseCommaSeparatedList(parseNumber) || parser.parseGreater()))
    return {};
  std::optional<Mask> mask = maskOf({keyword.data(), keyword.size()}, numbers);
  if (mask)
    return parser.getChecked<MaskAttr>(loc, parser.getContext(), *mask);
  InFlightDiagnostic error = parser.emitError(loc)
                             << "expects a mask, but got '" << keyword;
  if (!numbers.empty()) {
    error << '<';
    llvm::interleaveComma(numbers, error);
    error << '>';
  }
  error << "'";
  error.attachNote() << "masks: " << StringRef(kMaskNames);
  return {};
}

void MaskAttr::printBody(AsmPrinter &printer) const {
  printer << str(getValue());
}

Attribute MaskAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  MaskAttr mask = parseBody(parser);
  if (!mask || parser.parseGreater())
    return {};
  return mask;
}

void MaskAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBody(printer);
  printer << '>';
}

LogicalResult MaskAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               Mask mask) {
  if (std::optional<std::string> sentence = check(mask))
    return emitError() << *sentence;
  return success();
}

//===----------------------------------------------------------------------===//
// Precision
//===----------------------------------------------------------------------===//

static constexpr StringRef kPrecisionNames[] = {"tf32x3", "tf32"};

PrecisionAttr PrecisionAttr::parseBody(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parseWord(parser, keyword, kPrecisionNames))
    return {};
  if (std::optional<Precision> named =
          parsePrecision({keyword.data(), keyword.size()}))
    return get(parser.getContext(), *named);
  bool isPriced = keyword == ref(attn::name(Precision::f8_qk));
  (void)fail(parser.emitError(loc)
                 << "expects the name of a precision, but got '" << keyword
                 << "'"
                 << (isPriced ? ", which attn-plan prices and no kernel "
                                "has"
                              : ""),
             "precisions: " + llvm::join(ArrayRef(kPrecisionNames), ", "));
  return {};
}

void PrecisionAttr::printBody(AsmPrinter &printer) const {
  printer << ref(attn::name(getValue()));
}

Attribute PrecisionAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  PrecisionAttr precision = parseBody(parser);
  if (!precision || parser.parseGreater())
    return {};
  return precision;
}

void PrecisionAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBody(printer);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Machine
//===----------------------------------------------------------------------===//

/// Applies the overrides to a known machine; a sentence on failure, also when
/// facts contradict each other.
static std::optional<std::string>
applyOverrides(Machine &machine, ArrayRef<NamedAttribute> overrides) {
  for (NamedAttribute field : overrides) {
    StringRef name = field.getName().getValue();
    double value = cast<FloatAttr>(field.getValue()).getValueAsDouble();
    if (auto error = overrideField(machine, {name.data(), name.size()}, value))
      return error;
  }
  return check(machine);
}

static std::vector<std::string_view> namesOfMachines() {
  std::vector<std::string_view> names;
  for (const Machine &machine : machines())
    names.push_back(machine.name);
  return names;
}

static std::vector<std::string_view> namesOfFields() {
  std::vector<std::string_view> names;
  for (const MachineField &field : machineFields())
    names.push_back(field.name);
  return names;
}

Machine MachineAttr::resolve() const {
  Machine machine = *findMachine(getName().str());
  [[maybe_unused]] auto error = applyOverrides(machine, getOverrides());
  assert(!error && "verified");
  return machine;
}

LogicalResult MachineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  StringAttr name,
                                  ArrayRef<NamedAttribute> overrides) {
  const Machine *known = findMachine(name.str());
  if (!known)
    return fail(emitError() << "expects the name of a machine, but got '"
                            << name.getValue() << "'",
                "known machines: " + machineNames());
  for (auto [index, field] : llvm::enumerate(overrides)) {
    if (!isa<FloatAttr>(field.getValue()))
      return emitError() << "expects a number for " << field.getName()
                         << ", but got " << field.getValue();
    for (NamedAttribute earlier : overrides.take_front(index))
      if (earlier.getName() == field.getName())
        return emitError() << "expects every field once, but got "
                           << field.getName() << " twice";
  }
  Machine machine = *known;
  auto error = applyOverrides(machine, overrides);
  if (!error)
    return success();
  SmallVector<StringRef> names;
  for (std::string_view field : namesOfFields())
    names.push_back(ref(field));
  return fail(emitError() << *error, "fields: " + llvm::join(names, ", "));
}

/// Parses an integer or a floating-point number.
static ParseResult parseNumber(AsmParser &parser, double &value) {
  int64_t integer;
  OptionalParseResult result = parser.parseOptionalInteger(integer);
  if (!result.has_value())
    return parser.parseFloat(value);
  value = integer;
  return *result;
}

/// Prints whole numbers as integers, which is how people write bytes.
static void printNumber(AsmPrinter &printer, FloatAttr number) {
  double value = number.getValueAsDouble();
  if (value == std::floor(value) && std::abs(value) < 0x1p53)
    printer << int64_t(value);
  else
    printer << number.getValue();
}

Attribute MachineAttr::parse(AsmParser &parser, Type) {
  Builder builder(parser.getContext());
  StringRef name;
  SmallVector<NamedAttribute> overrides;
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parseWord(parser, name, namesOfMachines()))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef field;
    double value;
    if (parseWord(parser, field, namesOfFields()) || parser.parseEqual() ||
        parseNumber(parser, value))
      return {};
    overrides.push_back(
        builder.getNamedAttr(field, builder.getF64FloatAttr(value)));
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<MachineAttr>(loc, parser.getContext(),
                                        builder.getStringAttr(name),
                                        ArrayRef(overrides));
}

void MachineAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName().getValue();
  for (NamedAttribute field : getOverrides()) {
    printer << ", " << field.getName().getValue() << " = ";
    printNumber(printer, cast<FloatAttr>(field.getValue()));
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

Tiles ScheduleAttr::tiles() const {
  Tiles tiles;
  for (auto [name, size] : getSizes())
    tiles.set(name.str(), size);
  return tiles;
}

ScheduleAttr ScheduleAttr::get(MLIRContext *context, StringRef name,
                               const Tiles &tiles) {
  SmallVector<std::pair<StringAttr, int64_t>> sizes;
  for (const auto &[tile, size] : tiles)
    sizes.push_back({StringAttr::get(context, tile), size});
  return get(context, StringAttr::get(context, name), sizes);
}

LogicalResult
ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                     StringAttr name,
                     ArrayRef<std::pair<StringAttr, int64_t>> sizes) {
  std::vector<std::string> schedules = scheduleNames();
  if (!llvm::is_contained(schedules, name.getValue()))
    return fail(emitError()
                    << "expects the name of a schedule, but got '"
                    << name.getValue() << "'" << whatReplaced(name.str()),
                "schedules: " + llvm::join(schedules, ", "));
  std::vector<std::string> known = tileNames(name.str());
  for (auto [index, item] : llvm::enumerate(sizes)) {
    auto [tile, size] = item;
    if (!llvm::is_contained(known, tile.getValue()))
      return fail(emitError() << "expects the name of a tile size of "
                              << name.getValue() << ", but got '"
                              << tile.getValue() << "'",
                  "tile sizes of " + name.getValue() + ": " +
                      llvm::join(known, ", "));
    int64_t least = mayBeZero(name.str(), tile.str()) ? 0 : 1;
    if (size < least)
      return emitError() << "expects " << tile.getValue() << " to be at least "
                         << least << ", but got " << size;
    for (const auto &earlier : sizes.take_front(index))
      if (earlier.first == tile)
        return emitError() << "expects every tile size once, but got '"
                           << tile.getValue() << "' twice";
  }
  return success();
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  StringRef name;
  SmallVector<std::pair<StringAttr, int64_t>> sizes;
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parseWord(parser, name, scheduleNames()))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef tile;
    int64_t size;
    if (parseWord(parser, tile, tileNames(name.str())) || parser.parseEqual() ||
        parser.parseInteger(size))
      return {};
    sizes.push_back({StringAttr::get(context, tile), size});
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ScheduleAttr>(
      loc, context, StringAttr::get(context, name), ArrayRef(sizes));
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName().getValue();
  for (auto [tile, size] : getSizes())
    printer << ", " << tile.getValue() << " = " << size;
  printer << '>';
}
