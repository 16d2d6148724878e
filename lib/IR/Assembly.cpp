//===- Assembly.cpp - The text of the ops of the attn dialect -------------===//
//
//   attn.forward %q, %k, %v CLAUSES {attributes} : types -> types
//
// Clauses come in any order, each once, and are printed in one.
//
//===----------------------------------------------------------------------===//

#include "ClauseText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace attn;

static constexpr StringLiteral kMask = "mask", kScale = "scale",
                               kPrecision = "precision", kOuts = "outs";

/// Inputs that are listed without a clause.
static size_t countPlain(ArrayRef<StringLiteral> inputs,
                         ArrayRef<OperandClause> clauses) {
  size_t count = inputs.size();
  for (const OperandClause &clause : clauses)
    count -= clause.roles.size();
  return count;
}

/// All clauses that an op has: `dlse(..), mask(..)`.
static std::string listOf(ArrayRef<OperandClause> clauses, StringRef op) {
  std::string text;
  for (const OperandClause &clause : clauses)
    text += clause.keyword.str() + "(..), ";
  for (StringRef keyword : {kMask, kScale, kPrecision})
    text += keyword.str() + "(..), ";
  for (StringRef keyword : ClauseParser::keywords(op))
    text += keyword.str() + "(..), ";
  return text + kOuts.str() + "(..)";
}

//===----------------------------------------------------------------------===//
// Attributes that nobody reads
//===----------------------------------------------------------------------===//

/// The clause that says what someone wanted who wrote such an attribute, or
/// nothing.
static std::string clauseMeantBy(StringRef name) {
  if (std::optional<Mask> mask = parseMask({name.data(), name.size()}))
    return kMask.str() + "(" + str(*mask) + ")";
  return llvm::StringSwitch<std::string>(name.lower())
      .Cases({"is_causal", "iscausal", "causal_mask"}, "mask(causal)")
      .Cases({"window", "window_size", "sliding_window", "local_window_size"},
             "mask(window<left, right>)")
      .Cases({"attn_mask", "attention_mask", "is_masked"}, "mask(..)")
      .Cases({"softmax_scale", "sm_scale", "qk_scale", "sc"}, "scale(..)")
      .Cases({"tf32", "tf32x3", "allow_tf32", "input_precision"},
             "precision(tf32) or precision(tf32x3)")
      .Cases({"out", "destination", "dst"}, "outs(..)")
      .Default("");
}

/// What is near to a name by letters, of those that there are.
static StringRef nearest(StringRef name, ArrayRef<StringRef> known) {
  constexpr unsigned mostEdits = 2;
  for (StringRef each : known)
    if (name.edit_distance(each, /*AllowReplacements=*/true, mostEdits) <=
        mostEdits)
      return each;
  return {};
}

/// Whether an attribute is what a clause says.
static bool isClause(StringRef name) {
  return llvm::is_contained({kMask, kScale, kPrecision, kBlocksAttr,
                             kGradientsAttr, kLongestAttr, kValuesAttr},
                            name);
}

/// Attributes without a dialect are ours to know; those that we do not know say
/// nothing, and whoever wrote one believes that it does.
static void warnOfUnknown(OpAsmParser &parser, SMLoc loc,
                          const OperationState &result,
                          ArrayRef<OperandClause> clauses) {
  SmallVector<StringRef> known, listed;
  for (StringAttr name : result.name.getAttributeNames()) {
    known.push_back(name);
    if (!isClause(name) && !name.getValue().starts_with("operand"))
      listed.push_back(name);
  }
  for (NamedAttribute attribute : result.attributes) {
    StringRef name = attribute.getName();
    if (llvm::is_contained(known, name) || name.contains('.') ||
        name.starts_with("operand"))
      continue;
    InFlightDiagnostic warning = emitWarning(parser.getEncodedSourceLoc(loc))
                                 << "'" << result.name.getStringRef()
                                 << "' op ignores the unknown "
                                 << "attribute '" << name << "'";
    if (std::string meant = clauseMeantBy(name); !meant.empty())
      warning.attachNote() << "the clause for it is " << meant
                           << ", in front of the attributes";
    else if (StringRef near = nearest(name, known); !near.empty())
      warning.attachNote() << "the nearest name is '" << near << "'";
    warning.attachNote() << "clauses: "
                         << listOf(clauses, result.name.getStringRef())
                         << "; attributes: " << llvm::join(listed, ", ");
  }
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

using Operands = UnresolvedOperands;

class Parser {
public:
  Parser(OpAsmParser &parser, OperationState &result,
         ArrayRef<StringLiteral> inputs, ArrayRef<OperandClause> clauses)
      : parser(parser), result(result), clauses(clauses),
        plainCount(countPlain(inputs, clauses)), given(clauses.size()),
        others(parser, result) {
    // V may be columns of K, which is in front of it.
    if (others.has(kValuesAttr))
      values = llvm::find(inputs, "v") - inputs.begin();
  }

  ParseResult parse() {
    if (parsePlain() || parseClauses() || others.finish(said) ||
        checkValues() || parseAttributes() || parser.parseColon() ||
        parsePlainTypes())
      return failure();
    if (succeeded(parser.parseOptionalArrow()) &&
        parser.parseTypeList(result.types))
      return failure();
    return addOperands();
  }

private:
  ParseResult parsePlain() {
    plain.loc = parser.getCurrentLocation();
    for (size_t i = 0; i < plainCount; ++i) {
      if (i == values && failed(parser.parseOptionalComma()))
        return success();
      if ((i > 0 && i != values && parser.parseComma()) ||
          parser.parseOperand(plain.names.emplace_back()))
        return failure();
    }
    return success();
  }

  /// V is an operand, or columns of K.
  ParseResult checkValues() {
    bool hasValues = plain.names.size() == plainCount,
         hasColumns = said.get(kValuesAttr) != nullptr;
    if (!values || hasValues != hasColumns)
      return success();
    return parser.emitError(plain.loc)
           << "expects either V or values(keys, first n), but got "
           << (hasValues ? "both" : "neither");
  }

  ParseResult parsePlainTypes() {
    for (size_t i = 0; i < plain.names.size(); ++i)
      if ((i > 0 && parser.parseComma()) ||
          parser.parseType(plain.types.emplace_back()))
        return failure();
    return success();
  }

  ParseResult parseClauses() {
    SmallVector<StringRef> seen;
    while (true) {
      SMLoc loc = parser.getCurrentLocation();
      StringRef keyword;
      if (failed(parser.parseOptionalKeyword(&keyword, offered(seen))) &&
          failed(parser.parseOptionalKeyword(&keyword)))
        return success();
      if (llvm::is_contained(seen, keyword))
        return parser.emitError(loc) << "expects every clause once, but got '"
                                     << keyword << "' twice";
      seen.push_back(keyword);
      if (parseClause(loc, keyword))
        return failure();
    }
  }

  /// The clauses that are not there yet, for editors to offer.
  SmallVector<StringRef> offered(ArrayRef<StringRef> seen) const {
    SmallVector<StringRef> words = {kMask, kScale, kPrecision, kOuts};
    for (const OperandClause &clause : clauses)
      words.push_back(clause.keyword);
    llvm::append_range(words,
                       ClauseParser::keywords(result.name.getStringRef()));
    llvm::erase_if(
        words, [&](StringRef word) { return llvm::is_contained(seen, word); });
    return words;
  }

  ParseResult parseClause(SMLoc loc, StringRef keyword) {
    if (keyword == kMask)
      return parseInBrackets([&] { return parseMask(); });
    if (keyword == kScale)
      return parseInBrackets([&] { return parseScale(); });
    if (keyword == kPrecision)
      return parseInBrackets([&] { return parsePrecision(); });
    if (keyword == kOuts)
      return parseInBrackets([&] { return parseOperands(outs); });
    for (auto [clause, operands] : llvm::zip_equal(clauses, given))
      if (keyword == clause.keyword)
        return parseInBrackets(
            [&, &operands = operands] { return parseOperands(operands); });
    if (others.has(keyword))
      return others.parse(loc, keyword);
    std::string meant = clauseMeantBy(keyword);
    // Another word belongs to what follows: then it is the types that lack.
    if (meant.empty() && failed(parser.parseOptionalLParen()))
      return parser.emitError(loc, "expected ':'");
    InFlightDiagnostic error = parser.emitError(loc)
                               << "expects a clause, but got '" << keyword
                               << "'";
    if (!meant.empty())
      error.attachNote() << "the clause for it is " << meant;
    error.attachNote() << "clauses: "
                       << listOf(clauses, result.name.getStringRef());
    return error;
  }

  ParseResult parseInBrackets(function_ref<ParseResult()> body) {
    return failure(parser.parseLParen() || body() || parser.parseRParen());
  }

  ParseResult parseMask() {
    MaskAttr mask = MaskAttr::parseBody(parser);
    if (!mask)
      return failure();
    // One spelling in memory and in print: no mask is no attribute.
    if (!mask.getValue().isOpen())
      said.set(kMask, mask);
    return success();
  }

  ParseResult parseScale() {
    FloatAttr scale;
    if (parser.parseAttribute(scale, parser.getBuilder().getF32Type()))
      return failure();
    said.set(kScale, scale);
    return success();
  }

  ParseResult parsePrecision() {
    PrecisionAttr precision = PrecisionAttr::parseBody(parser);
    if (!precision)
      return failure();
    said.set(kPrecision, precision);
    return success();
  }

  ParseResult parseOperands(Operands &operands) {
    operands.loc = parser.getCurrentLocation();
    return failure(parser.parseOperandList(operands.names) ||
                   parser.parseColonTypeList(operands.types));
  }

  ParseResult parseAttributes() {
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseOptionalAttrDict(result.attributes))
      return failure();
    for (NamedAttribute attribute : said) {
      if (result.attributes.get(attribute.getName()))
        return parser.emitError(loc)
               << "expects every clause once, but got " << attribute.getName()
               << " as an attribute too";
      result.attributes.push_back(attribute);
    }
    warnOfUnknown(parser, loc, result, clauses);
    return result.name.verifyInherentAttrs(result.attributes, [&] {
      return parser.emitError(loc)
             << "'" << result.name.getStringRef() << "' op ";
    });
  }

  ParseResult addOperands() {
    SmallVector<int32_t> segments(plainCount, 1);
    auto add = [&](const Operands &group) {
      return parser.resolveOperands(group.names, group.types, group.loc,
                                    result.operands);
    };
    if (add(plain))
      return failure();
    if (plain.names.size() < plainCount)
      result.operands.push_back(result.operands.back());
    for (const Operands &group : given) {
      if (add(group))
        return failure();
      segments.push_back(int32_t(group.names.size()));
    }
    size_t before = result.operands.size();
    for (const Operands &group : others.groups())
      if (add(group))
        return failure();
    if (add(outs))
      return failure();
    segments.push_back(int32_t(result.operands.size() - before));
    if (!clauses.empty())
      result.addAttribute(kSegmentsAttr,
                          parser.getBuilder().getDenseI32ArrayAttr(segments));
    return success();
  }

  OpAsmParser &parser;
  OperationState &result;
  ArrayRef<OperandClause> clauses;
  size_t plainCount;
  std::optional<size_t> values; ///< the place of V, if it may be left out
  Operands plain, outs;
  std::vector<Operands> given; ///< one for each of `clauses`
  ClauseParser others;
  NamedAttrList said; ///< in clauses
};

} // namespace

ParseResult attn::parseAttention(OpAsmParser &parser, OperationState &result,
                                 ArrayRef<StringLiteral> inputs,
                                 ArrayRef<OperandClause> clauses) {
  return Parser(parser, result, inputs, clauses).parse();
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

void attn::printAttention(AttentionOpInterface op, OpAsmPrinter &printer) {
  ArrayRef<OperandClause> clauses = op.operandClauses();
  size_t count = countPlain(op.inputRoles(), clauses);
  OperandRange plain =
      op.inputs().take_front(valueColumns(op) ? count - 1 : count);
  printer << ' ' << plain;
  for (const OperandClause &clause : clauses) {
    SmallVector<Value> operands;
    for (auto [role, value] : llvm::zip(op.givenInputs(), op.inputs()))
      if (llvm::is_contained(clause.roles, role))
        operands.push_back(value);
    printOperands(printer, clause.keyword, operands);
  }
  if (MaskAttr mask = op.getMaskAttr()) {
    printer << ' ' << kMask << '(';
    mask.printBody(printer);
    printer << ')';
  }
  if (FloatAttr scale = op.getScaleAttr()) {
    printer << ' ' << kScale << '(';
    printer.printAttributeWithoutType(scale);
    printer << ')';
  }
  if (PrecisionAttr precision = op.getPrecisionAttr()) {
    printer << ' ' << kPrecision << '(';
    precision.printBody(printer);
    printer << ')';
  }
  printClauses(op, printer);
  printOperands(printer, kOuts, op.getOuts());
  printer.printOptionalAttrDict(op->getAttrs(),
                                {kMask, kScale, kPrecision, kSegmentsAttr,
                                 kClauseSizesAttr, kBlocksAttr, kGradientsAttr,
                                 kLongestAttr, kValuesAttr});
  printer << " : " << plain.getTypes();
  if (op->getNumResults() != 0)
    printer << " -> " << op->getResultTypes();
}
