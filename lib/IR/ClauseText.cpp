//===- ClauseText.cpp - The text of what clauses take ---------------------===//

#include "ClauseText.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace attn;

static constexpr StringLiteral kCaptures = "captures", kSees = "sees",
                               kScore = "score", kBlocks = "blocks",
                               kSinks = "sinks", kRagged = "ragged",
                               kLengths = "lengths", kPages = "pages",
                               kScales = "scales", kKeys = "keys",
                               kFirst = "first", kTransposed = "transposed",
                               kGradients = "gradients";

ArrayRef<StringLiteral> ClauseParser::keywords(StringRef op) {
  static constexpr StringLiteral all[] = {
      kValuesAttr, kCaptures, kSees,       kScore,    "document", "softcap",
      "alibi",     "bias",    kBlocks,     kSinks,    kRagged,    kLengths,
      kPages,      kScales,   kTransposed, kGradients};
  constexpr size_t ofForward = 1, ofGradients = 2;
  return op == BackwardOp::getOperationName()
             ? ArrayRef(all).drop_front(ofForward)
             : ArrayRef(all).drop_back(ofGradients);
}

ClauseParser::ClauseParser(OpAsmParser &parser, OperationState &result)
    : parser(parser), result(result), operands(kClauseGroups) {}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

ParseResult ClauseParser::parse(SMLoc loc, StringRef keyword) {
  if (keyword == kSees || keyword == kScore)
    return parseRegion(loc, keyword == kScore);
  auto inBrackets = [&](function_ref<ParseResult()> body) {
    return failure(parser.parseLParen() || body() || parser.parseRParen());
  };
  if (keyword == kCaptures)
    return inBrackets([&] { return parseCaptures(loc); });
  if (keyword == kSinks)
    return inBrackets([&] { return parseOperands(group(ClauseGroup::sinks)); });
  if (keyword == kPages)
    return inBrackets(
        [&] { return parseOperands(group(ClauseGroup::pageTable)); });
  if (keyword == kLengths)
    return inBrackets([&] { return parseLengths(); });
  if (keyword == kScales)
    return inBrackets([&] { return parseScales(); });
  if (keyword == kBlocks)
    return inBrackets([&] {
      return parseLists(ClauseGroup::partial, ClauseGroup::full,
                        /*hasSize=*/true);
    });
  if (keyword == kTransposed)
    return inBrackets([&] {
      return parseLists(ClauseGroup::transposedPartial,
                        ClauseGroup::transposedFull, /*hasSize=*/false);
    });
  if (keyword == kGradients)
    return inBrackets([&] { return parseGradients(); });
  if (keyword == kRagged)
    return inBrackets([&] { return parseRagged(); });
  if (keyword == kValuesAttr)
    return inBrackets([&] { return parseValues(); });
  return inBrackets([&] { return parseShortForm(loc, *shortFormOf(keyword)); });
}

ParseResult ClauseParser::parseOperands(UnresolvedOperands &operands) {
  operands.loc = parser.getCurrentLocation();
  return failure(parser.parseOperandList(operands.names) ||
                 parser.parseColonTypeList(operands.types));
}

ParseResult ClauseParser::parseCaptures(SMLoc loc) {
  if (sees || score)
    return parser.emitError(loc) << "expects captures(..) in front of the "
                                    "regions that name them";
  return parseOperands(group(ClauseGroup::captures));
}

ParseResult attn::parseFunction(OpAsmParser &parser, SMLoc loc, bool isScore,
                                TypeRange captures, Region &region) {
  using Argument = OpAsmParser::Argument;
  SmallVector<Argument> arguments;
  // Types may be left out: they follow from the captures.
  auto parseArgument = [&]() -> ParseResult {
    Argument &argument = arguments.emplace_back();
    return failure(parser.parseArgument(argument) ||
                   (succeeded(parser.parseOptionalColon()) &&
                    parser.parseType(argument.type)));
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parseArgument))
    return failure();
  SmallVector<Type> wanted =
      argumentTypes(parser.getContext(), isScore, captures);
  if (arguments.size() != wanted.size()) {
    InFlightDiagnostic error = parser.emitError(loc)
                               << "expects " << wanted.size()
                               << " arguments, but got " << arguments.size();
    error.attachNote() << "arguments: " << (isScore ? "the score, " : "")
                       << llvm::join(ArrayRef(kPositions), ", ")
                       << ", and one for each of captures(..)";
    return error;
  }
  for (auto [argument, type] : llvm::zip_equal(arguments, wanted)) {
    if (argument.type && argument.type != type)
      return parser.emitError(argument.ssaName.location)
             << "expects an argument of " << type << ", but got "
             << argument.type;
    argument.type = type;
  }
  return parser.parseRegion(region, arguments, /*enableNameShadowing=*/true);
}

ParseResult ClauseParser::parseRegion(SMLoc loc, bool isScore) {
  std::unique_ptr<Region> &region = isScore ? score : sees;
  region = std::make_unique<Region>();
  return parseFunction(parser, loc, isScore, group(ClauseGroup::captures).types,
                       *region);
}

ParseResult ClauseParser::parseShortForm(SMLoc loc, ShortForm::Kind kind) {
  Form &form = forms.emplace_back();
  form.form.kind = kind;
  form.loc = loc;
  if (kind == ShortForm::softcap) {
    FloatAttr cap;
    if (parser.parseAttribute(cap, parser.getBuilder().getF32Type()))
      return failure();
    form.form.cap = cap.getValueAsDouble();
    if (std::isfinite(form.form.cap) && form.form.cap > 0)
      return success();
    return parser.emitError(loc)
           << "expects a finite and positive softcap, but got " << cap;
  }
  OpAsmParser::UnresolvedOperand name;
  Type type;
  form.array.loc = parser.getCurrentLocation();
  if (parser.parseOperand(name) || parser.parseColonType(type))
    return failure();
  form.array.names = {name};
  form.array.types = {type};
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank())
    return parser.emitError(loc)
           << "expects " << keywordOf(kind)
           << " of a ranked tensor or memref, but got " << type;
  if (std::optional<std::string> wanted = wrongCapture(kind, shaped))
    return parser.emitError(loc) << "expects " << keywordOf(kind) << " of "
                                 << *wanted << ", but got " << type;
  return success();
}

ParseResult ClauseParser::parseSize() {
  blocks.emplace();
  return failure(parser.parseInteger(blocks->queries) ||
                 parser.parseKeyword("x") || parser.parseInteger(blocks->keys));
}

ParseResult ClauseParser::parseLengths() {
  if (parser.parseKeyword("k"))
    return failure();
  return parseOperands(group(ClauseGroup::usedKeys));
}

/// What scales are of, in the order of kScaleGroups.
static constexpr StringLiteral kScaled[] = {"q", "k", "v"};

ParseResult ClauseParser::parseScales() {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<UnresolvedOperands *> inOrder;
  auto parseOne = [&]() -> ParseResult {
    for (auto [name, which] : llvm::zip_equal(kScaled, kScaleGroups)) {
      if (!group(which).names.empty() ||
          failed(parser.parseOptionalKeyword(name)))
        continue;
      inOrder.push_back(&group(which));
      group(which).loc = parser.getCurrentLocation();
      return parser.parseOperand(group(which).names.emplace_back());
    }
    return parser.emitError(parser.getCurrentLocation())
           << "expects q %scale, k %scale or v %scale, each once";
  };
  SmallVector<Type> types;
  if (parser.parseCommaSeparatedList(parseOne) ||
      parser.parseColonTypeList(types))
    return failure();
  if (types.size() != inOrder.size())
    return parser.emitError(loc) << "expects " << inOrder.size()
                                 << " types, but got " << types.size();
  for (auto [scale, type] : llvm::zip_equal(inOrder, types))
    scale->types = {type};
  return success();
}

ParseResult ClauseParser::parseLists(ClauseGroup partial, ClauseGroup full,
                                     bool hasSize) {
  SmallVector<UnresolvedOperands *> inOrder;
  auto parseList = [&](ClauseGroup which) -> ParseResult {
    UnresolvedOperands &list = group(which);
    list.loc = parser.getCurrentLocation();
    inOrder.push_back(&list);
    return failure(parser.parseOperand(list.names.emplace_back()) ||
                   parser.parseComma() ||
                   parser.parseOperand(list.names.emplace_back()));
  };
  auto parseOne = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalKeyword("partial")) &&
        group(partial).names.empty())
      return parseList(partial);
    if (succeeded(parser.parseOptionalKeyword("full")) &&
        group(full).names.empty())
      return parseList(full);
    if (hasSize && succeeded(parser.parseOptionalKeyword("size")) && !blocks)
      return parseSize();
    return parser.emitError(loc)
           << "expects partial %counts, %indices, full %counts, %indices"
           << (hasSize ? " or size QUERIES x KEYS" : "") << ", each once";
  };
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<Type> types;
  if (parser.parseCommaSeparatedList(parseOne))
    return failure();
  if (inOrder.empty() || (hasSize && !blocks))
    return parser.emitError(loc)
           << "expects partial or full lists of blocks"
           << (hasSize ? ", and size QUERIES x KEYS" : "");
  if (parser.parseColonTypeList(types))
    return failure();
  if (types.size() != 2 * inOrder.size())
    return parser.emitError(loc) << "expects " << 2 * inOrder.size()
                                 << " types, but got " << types.size();
  for (auto [number, list] : llvm::enumerate(inOrder))
    list->types = {types[2 * number], types[2 * number + 1]};
  return success();
}

ParseResult ClauseParser::parseGradients() {
  gradientsLoc = parser.getCurrentLocation();
  return parser.parseCommaSeparatedList([&]() -> ParseResult {
    auto &[number, name] = gradients.emplace_back();
    number = -1;
    OptionalParseResult isNumber = parser.parseOptionalInteger(number);
    if (isNumber.has_value())
      return *isNumber;
    return parser.parseOperand(name);
  });
}

ParseResult ClauseParser::parseRagged() {
  UnresolvedOperands &offsets = group(ClauseGroup::offsets);
  offsets.loc = parser.getCurrentLocation();
  if (parser.parseOperand(offsets.names.emplace_back()) || parser.parseComma())
    return failure();
  // On a cache keys have no offsets, and no longest.
  OpAsmParser::UnresolvedOperand ofKeys;
  OptionalParseResult hasKeys = parser.parseOptionalOperand(ofKeys);
  if (hasKeys.has_value()) {
    if (failed(*hasKeys) || parser.parseComma())
      return failure();
    offsets.names.push_back(ofKeys);
  }
  if (parser.parseKeyword(kLongestAttr) ||
      parser.parseInteger(longest.emplace_back()))
    return failure();
  if (hasKeys.has_value() &&
      (parser.parseComma() || parser.parseInteger(longest.emplace_back())))
    return failure();
  return parser.parseColonTypeList(offsets.types);
}

ParseResult ClauseParser::parseValues() {
  return failure(parser.parseKeyword(kKeys) || parser.parseComma() ||
                 parser.parseKeyword(kFirst) ||
                 parser.parseInteger(columns.emplace()));
}

//===----------------------------------------------------------------------===//
// What was parsed becomes an op
//===----------------------------------------------------------------------===//

/// Short forms capture after everybody else, and the document first.
ParseResult ClauseParser::addCaptures() {
  auto *document = llvm::find_if(forms, [](const Form &form) {
    return form.form.kind == ShortForm::document;
  });
  if (document != forms.end())
    std::rotate(forms.begin(), document, std::next(document));
  UnresolvedOperands &captures = group(ClauseGroup::captures);
  if (captures.names.size() != captures.types.size())
    return parser.emitError(captures.loc)
           << "expects as many types as captures, " << captures.names.size()
           << ", but got " << captures.types.size();
  for (Form &form : forms) {
    bool isScoreForm = form.form.kind != ShortForm::document;
    if (isScoreForm ? score != nullptr : sees != nullptr)
      return parser.emitError(form.loc)
             << "expects either " << (isScoreForm ? kScore : kSees) << " or "
             << keywordOf(form.form.kind) << "(..), which is short for one, "
             << "but got both";
    if (form.array.names.empty())
      continue;
    form.form.capture = captures.names.size();
    if (captures.names.empty())
      captures.loc = form.array.loc;
    captures.names.push_back(form.array.names.front());
    captures.types.push_back(form.array.types.front());
    for (Region *region : {sees.get(), score.get()})
      if (region && !region->empty())
        region->addArgument(form.array.types.front(),
                            parser.getEncodedSourceLoc(form.array.loc));
  }
  return success();
}

ParseResult ClauseParser::addRegions() {
  Location loc = parser.getEncodedSourceLoc(parser.getNameLoc());
  TypeRange captures = group(ClauseGroup::captures).types;
  SmallVector<ShortForm> ofSees, ofScore;
  for (const Form &form : forms)
    (form.form.kind == ShortForm::document ? ofSees : ofScore)
        .push_back(form.form);
  auto add = [&](std::unique_ptr<Region> &region, ArrayRef<ShortForm> forms) {
    if (!forms.empty()) {
      region = std::make_unique<Region>();
      buildRegion(*region, loc, forms, captures);
    }
    if (region)
      result.addRegion(std::move(region));
  };
  add(sees, ofSees);
  add(score, ofScore);
  return success();
}

FailureOr<int64_t>
ClauseParser::numberOf(const OpAsmParser::UnresolvedOperand &name) {
  int64_t number = 0;
  std::optional<int64_t> found;
  for (ClauseGroup which : {ClauseGroup::captures, ClauseGroup::sinks})
    for (const OpAsmParser::UnresolvedOperand &each : group(which).names) {
      if (each.name == name.name && each.number == name.number) {
        if (found)
          return parser.emitError(name.location)
                 << "expects a gradient of an array that clauses name once, or "
                    "its number, but got "
                 << name.name << ", which has the numbers " << *found << " and "
                 << number;
        found = number;
      }
      ++number;
    }
  if (!found)
    return parser.emitError(name.location)
           << "expects a gradient of a capture or of sinks";
  return *found;
}

ParseResult ClauseParser::finish(NamedAttrList &said) {
  if (addCaptures() || addRegions())
    return failure();
  Builder b(parser.getContext());
  if (blocks)
    said.set(kBlocksAttr,
             b.getDenseI64ArrayAttr({blocks->queries, blocks->keys}));
  if (!longest.empty())
    said.set(kLongestAttr, b.getDenseI64ArrayAttr(longest));
  if (columns)
    said.set(kValuesAttr, b.getI64IntegerAttr(*columns));
  SmallVector<int64_t> numbers;
  for (auto &[number, name] : gradients) {
    FailureOr<int64_t> found =
        name.name.empty() ? FailureOr<int64_t>(number) : numberOf(name);
    if (failed(found))
      return failure();
    numbers.push_back(*found);
  }
  if (!numbers.empty())
    said.set(kGradientsAttr, b.getDenseI64ArrayAttr(numbers));
  SmallVector<int32_t> sizes = llvm::map_to_vector(
      operands, [](auto &group) { return int32_t(group.names.size()); });
  if (llvm::any_of(sizes, [](int32_t size) { return size != 0; }))
    result.addAttribute(kClauseSizesAttr, b.getDenseI32ArrayAttr(sizes));
  return success();
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

void attn::printOperands(OpAsmPrinter &printer, StringRef keyword,
                         ValueRange operands) {
  if (operands.empty())
    return;
  printer << ' ' << keyword << '(' << operands << " : " << operands.getTypes()
          << ')';
}

namespace {

/// What is printed as short forms, and how many captures they have.
struct Forms {
  SmallVector<ShortForm> ofSees, ofScore;
  unsigned captures = 0;
};

} // namespace

/// Whether forms capture the last of so many captures, in order, and nobody
/// else reads these.
static bool canPrint(AttentionOpInterface op, Forms &forms) {
  SmallVector<ShortForm> all = forms.ofSees;
  llvm::append_range(all, forms.ofScore);
  llvm::erase_if(all, [](const ShortForm &form) {
    return form.kind == ShortForm::softcap;
  });
  forms.captures = all.size();
  size_t first = op.captures().size() - all.size();
  for (auto [number, form] : llvm::enumerate(all))
    if (form.capture != first + number)
      return false;
  auto reads = [&](Region *region) {
    return llvm::any_of(capturesIn(*region).drop_front(first),
                        [](BlockArgument arg) { return !arg.use_empty(); });
  };
  return !(op.sees() && forms.ofSees.empty() && reads(op.sees())) &&
         !(op.score() && forms.ofScore.empty() && reads(op.score()));
}

/// The forms that an op is printed with: as many as can be.
static Forms formsOf(AttentionOpInterface op) {
  Forms all;
  if (Region *sees = op.sees())
    all.ofSees = shortFormsOf(*sees);
  if (Region *score = op.score())
    all.ofScore = shortFormsOf(*score);
  Forms seesOnly = {all.ofSees, {}}, scoreOnly = {{}, all.ofScore};
  for (Forms *forms : {&all, &scoreOnly, &seesOnly})
    if (canPrint(op, *forms))
      return *forms;
  return {};
}

void attn::printFunction(OpAsmPrinter &printer, Region &region,
                         unsigned hidden) {
  printer << ' ' << (isScore(region) ? kScore : kSees) << " (";
  llvm::interleaveComma(region.getArguments().drop_back(hidden), printer,
                        [&](BlockArgument argument) {
                          printer.printRegionArgument(
                              argument, {},
                              /*omitType=*/!isa<FloatType>(argument.getType()));
                        });
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

static void printForms(AttentionOpInterface op, OpAsmPrinter &printer,
                       ArrayRef<ShortForm> forms) {
  for (const ShortForm &form : forms) {
    if (form.kind != ShortForm::softcap) {
      printOperands(printer, keywordOf(form.kind),
                    op.captures().slice(form.capture, 1));
      continue;
    }
    printer << ' ' << keywordOf(form.kind) << '(';
    Builder b(op->getContext());
    printer.printAttributeWithoutType(
        b.getF32FloatAttr(static_cast<float>(form.cap)));
    printer << ')';
  }
}

static void printLists(AttentionOpInterface op, OpAsmPrinter &printer,
                       StringRef keyword, ClauseGroup partial, ClauseGroup full,
                       std::optional<BlockSize> size) {
  SmallVector<Type> types;
  bool isFirst = true;
  auto print = [&](StringRef name, ClauseGroup group) {
    OperandRange list = op.clauseOperands(group);
    if (list.empty())
      return;
    printer << (isFirst ? "" : ", ") << name << ' ' << list;
    isFirst = false;
    llvm::append_range(types, list.getTypes());
  };
  if (op.clauseOperands(partial).empty() && op.clauseOperands(full).empty())
    return;
  printer << ' ' << keyword << '(';
  print("partial", partial);
  print("full", full);
  if (size)
    printer << ", size " << size->queries << " x " << size->keys;
  printer << " : " << types << ')';
}

/// By name where that tells which one it is.
static void printGradients(AttentionOpInterface op, OpAsmPrinter &printer) {
  auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(kGradientsAttr);
  if (!numbers)
    return;
  SmallVector<Value> all(op.captures());
  llvm::append_range(all, op.clauseOperands(ClauseGroup::sinks));
  printer << ' ' << kGradients << '(';
  llvm::interleaveComma(
      llvm::zip_equal(numbers.asArrayRef(), op.gradientTargets()), printer,
      [&](auto pair) {
        auto [number, value] = pair;
        llvm::count(all, value) == 1 ? printer << value : printer << number;
      });
  printer << ')';
}

static void printRagged(AttentionOpInterface op, OpAsmPrinter &printer) {
  OperandRange offsets = op.clauseOperands(ClauseGroup::offsets);
  auto longest = op->getAttrOfType<DenseI64ArrayAttr>(kLongestAttr);
  if (offsets.empty() || !longest)
    return;
  printer << ' ' << kRagged << '(' << offsets << ", " << kLongestAttr << ' ';
  llvm::interleaveComma(longest.asArrayRef(), printer);
  printer << " : " << offsets.getTypes() << ')';
}

static void printScales(AttentionOpInterface op, OpAsmPrinter &printer) {
  SmallVector<std::pair<StringRef, Value>> scales;
  for (auto [name, which] : llvm::zip_equal(kScaled, kScaleGroups))
    for (Value scale : op.clauseOperands(which))
      scales.push_back({name, scale});
  if (scales.empty())
    return;
  printer << ' ' << kScales << '(';
  llvm::interleaveComma(scales, printer, [&](const auto &scale) {
    printer << scale.first << ' ' << scale.second;
  });
  printer << " : ";
  llvm::interleaveComma(scales, printer, [&](const auto &scale) {
    printer << scale.second.getType();
  });
  printer << ')';
}

void attn::printClauses(AttentionOpInterface op, OpAsmPrinter &printer) {
  if (!op.hasClauses())
    return;
  Forms forms = formsOf(op);
  printOperands(printer, kCaptures, op.captures().drop_back(forms.captures));
  if (Region *sees = op.sees(); sees && forms.ofSees.empty())
    printFunction(printer, *sees, forms.captures);
  if (Region *score = op.score(); score && forms.ofScore.empty())
    printFunction(printer, *score, forms.captures);
  printForms(op, printer, forms.ofSees);
  printForms(op, printer, forms.ofScore);
  printLists(op, printer, kBlocks, ClauseGroup::partial, ClauseGroup::full,
             op.blockSize());
  printLists(op, printer, kTransposed, ClauseGroup::transposedPartial,
             ClauseGroup::transposedFull, std::nullopt);
  printOperands(printer, kSinks, op.clauseOperands(ClauseGroup::sinks));
  printRagged(op, printer);
  if (int64_t columns = valueColumns(op))
    printer << ' ' << kValuesAttr << '(' << kKeys << ", " << kFirst << ' '
            << columns << ')';
  OperandRange used = op.clauseOperands(ClauseGroup::usedKeys);
  if (!used.empty())
    printer << ' ' << kLengths << "(k " << used << " : " << used.getTypes()
            << ')';
  printOperands(printer, kPages, op.clauseOperands(ClauseGroup::pageTable));
  printScales(op, printer);
  printGradients(op, printer);
}
