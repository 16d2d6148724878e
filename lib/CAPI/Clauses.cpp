//===- Clauses.cpp - Clauses of attention that a caller wrote -------------===//

#include "Clauses.h"

#include "attn/IR/Attn.h"
#include "attn/InitAll.h"
#include "attn/Pipelines/Nesting.h"

#include "mlir/Parser/Parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

#include <mutex>

using namespace attn;
using namespace mlir;

/// All others are told by the request's own fields, or are not of this call.
static constexpr StringLiteral kKeywords[] = {"captures", "sees",    "score",
                                              "document", "softcap", "alibi",
                                              "bias",     "sinks",   "scales"};
/// What lists are made of, in the order of the op.
static constexpr StringLiteral kOfLists[] = {"captures", "sees"};
/// Of elements of captures.
static constexpr StringLiteral kTypes[] = {"i1",  "i8",   "i16", "i32",
                                           "i64", "bf16", "f16", "f32"};

static bool isWordStart(char c) { return llvm::isAlpha(c) || c == '_'; }
static bool isWord(char c) { return llvm::isAlnum(c) || c == '_'; }

//===----------------------------------------------------------------------===//
// What stands between clauses
//===----------------------------------------------------------------------===//

namespace {

/// Walks over the text, and knows where it is.
class Reader {
public:
  Reader(StringRef text, ArrayRef<AttentionArrays::Capture> captures,
         ArrayRef<StringLiteral> keywords)
      : text(text), captures(captures), keywords(keywords) {}

  Outcome read();

private:
  bool isAtEnd() const { return place == text.size(); }
  char next() const { return isAtEnd() ? '\0' : text[place]; }
  StringRef word() const { return text.drop_front(place).take_while(isWord); }
  void skipBlanks();
  bool skipString();
  Outcome wrong(size_t at, const Twine &sentence) const;
  Outcome clause(StringRef keyword);
  Outcome brackets(bool namesCaptures);
  Outcome name(size_t at, bool namesCaptures);
  std::string choices() const;

  StringRef text;
  ArrayRef<AttentionArrays::Capture> captures;
  ArrayRef<StringLiteral> keywords;
  size_t place = 0;
  llvm::StringSet<> named;
};

} // namespace

/// As MLIR places its own errors, counted from 1.
static Outcome wrongAt(size_t line, size_t column, const Twine &sentence) {
  return invalid(
      ("clauses:" + Twine(line) + ":" + Twine(column) + ": " + sentence).str());
}

Outcome Reader::wrong(size_t at, const Twine &sentence) const {
  StringRef before = text.take_front(at);
  size_t lineStart = before.rfind('\n');
  size_t column = lineStart == StringRef::npos ? at + 1 : at - lineStart;
  return wrongAt(before.count('\n') + 1, column, sentence);
}

std::string Reader::choices() const {
  SmallVector<StringRef> names;
  for (const AttentionArrays::Capture &capture : captures)
    names.push_back(capture.name);
  return names.empty() ? "there are no captures"
                       : "captures: " + llvm::join(names, ", ");
}

void Reader::skipBlanks() {
  while (!isAtEnd()) {
    if (text.drop_front(place).starts_with("//"))
      place = std::min(text.find('\n', place), text.size());
    else if (llvm::isSpace(next()))
      ++place;
    else
      return;
  }
}

/// Whether it ends.
bool Reader::skipString() {
  for (++place; !isAtEnd() && next() != '"' && next() != '\n'; ++place)
    if (next() == '\\')
      ++place;
  if (place >= text.size() || next() != '"')
    return false;
  ++place;
  return true;
}

/// A value in the brackets of a clause, or a type anywhere, is a capture's.
Outcome Reader::name(size_t at, bool namesCaptures) {
  char sigil = text[at];
  place = at + 1;
  StringRef found = word();
  place += found.size();
  bool isCapture = llvm::any_of(
      captures, [&](const auto &capture) { return capture.name == found; });
  if (isCapture && sigil == '%' && namesCaptures)
    named.insert(found);
  bool isOfDialect = sigil == '!' && next() == '.';
  if (isCapture || isOfDialect || (sigil == '%' && !namesCaptures))
    return std::nullopt;
  return wrong(at, "expects a capture, but got '" + Twine(sigil) + found +
                       "'; " + choices());
}

/// From an opening bracket to behind the one that closes it.
Outcome Reader::brackets(bool namesCaptures) {
  static constexpr StringLiteral kOpening = "([{", kClosing = ")]}";
  SmallVector<size_t> open;
  do {
    skipBlanks();
    size_t at = place;
    char c = next();
    if (isAtEnd())
      return wrong(open.back(), "expects a bracket that closes this");
    if (c == '%' || c == '!') {
      if (Outcome fault = name(at, namesCaptures))
        return fault;
      continue;
    }
    if (c == '"') {
      if (!skipString())
        return wrong(at, "expects a string that ends");
      continue;
    }
    ++place;
    if (kOpening.contains(c))
      open.push_back(at);
    size_t kind = kClosing.find(c);
    if (kind == StringRef::npos)
      continue;
    if (text[open.back()] != kOpening[kind])
      return wrong(at, "expects '" +
                           Twine(kClosing[kOpening.find(text[open.back()])]) +
                           "', but got '" + Twine(c) + "'");
    open.pop_back();
  } while (!open.empty());
  return std::nullopt;
}

Outcome Reader::clause(StringRef keyword) {
  bool hasRegion = keyword == "sees" || keyword == "score";
  for (char opening : hasRegion ? StringRef("({") : StringRef("(")) {
    skipBlanks();
    if (next() != opening)
      return wrong(place, "expects '" + Twine(opening) + "' of " + keyword);
    if (Outcome fault = brackets(/*namesCaptures=*/!hasRegion))
      return fault;
  }
  return std::nullopt;
}

Outcome Reader::read() {
  for (skipBlanks(); !isAtEnd(); skipBlanks()) {
    size_t at = place;
    StringRef keyword = word();
    if (!llvm::is_contained(keywords, keyword)) {
      StringRef got = keyword.empty() ? text.substr(at, 1) : keyword;
      return wrong(at, "expects a clause, but got '" + got + "'; clauses: " +
                           llvm::join(keywords, "(..), ") + "(..)");
    }
    place += keyword.size();
    if (Outcome fault = clause(keyword))
      return fault;
  }
  for (const AttentionArrays::Capture &capture : captures)
    if (!named.contains(capture.name))
      return invalid("clauses: expects that they name capture '" +
                     capture.name + "', as captures(%" + capture.name + " : !" +
                     capture.name + ") does");
  return std::nullopt;
}

static Outcome checkNames(const AttentionRequest &request,
                          ArrayRef<AttentionArrays::Capture> captures) {
  SmallVector<StringRef> taken;
  for (const ArrayPlace &place : arraysOf(request.direction))
    taken.push_back(place.role);
  size_t ofCall = taken.size();
  for (auto [number, capture] : llvm::enumerate(captures)) {
    StringRef name = capture.name;
    std::string which = "capture " + std::to_string(number);
    if (name.empty() || !isWordStart(name[0]) || !llvm::all_of(name, isWord))
      return invalid(which +
                     ": expects a name of letters, digits and _, but "
                     "got '" +
                     name.str() + "'");
    if (llvm::is_contained(ArrayRef(taken).drop_front(ofCall), name))
      return invalid(which + ": expects a name of its own, but got '" +
                     name.str() + "' twice");
    if (llvm::is_contained(taken, name))
      return invalid(which + ": expects a name of its own, but got '" +
                     name.str() + "'; arrays of the call: " +
                     llvm::join(ArrayRef(taken).take_front(ofCall), ", "));
    taken.push_back(name);
    if (!llvm::is_contained(kTypes, capture.type))
      return invalid("capture '" + name.str() +
                     "': expects elements that clauses read, but got '" +
                     capture.type +
                     "'; types: " + llvm::join(ArrayRef(kTypes), ", "));
  }
  return std::nullopt;
}

Outcome attn::checkClauses(const AttentionRequest &request,
                           const AttentionArrays &arrays) {
  if (Outcome fault = checkNames(request, arrays.captures))
    return fault;
  return Reader(request.clauses, arrays.captures, kKeywords).read();
}

Outcome attn::checkListClauses(const AttentionRequest &request,
                               const AttentionArrays &arrays) {
  if (Outcome fault = checkNames(request, arrays.captures))
    return fault;
  return Reader(request.clauses, arrays.captures, kOfLists).read();
}

//===----------------------------------------------------------------------===//
// What they say
//===----------------------------------------------------------------------===//

/// What was said about a class, by lines and columns of its clauses.
static void note(const Diagnostic &diagnostic, size_t firstLine,
                 std::string &said) {
  std::string where;
  if (auto at = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    if (at.getLine() >= firstLine)
      where = ":" + std::to_string(at.getLine() - firstLine + 1) + ":" +
              std::to_string(at.getColumn());
  if (!said.empty())
    said += "\n  ";
  std::string sentence = diagnostic.str();
  StringRef words = sentence;
  for (StringRef op :
       {ForwardOp::getOperationName(), BackwardOp::getOperationName()})
    if (!words.consume_front(("'" + op + "' op ").str()))
      words.consume_front(("custom op '" + op + "' ").str());
  bool isNote = diagnostic.getSeverity() == DiagnosticSeverity::Note;
  said += (isNote ? "" : "clauses" + where + ": ") + words.str();
}

/// The problem that the op of a class poses.
static Outcome parse(const KernelClass &kernelClass, Problem &problem) {
  std::string text = textOf(kernelClass), said;
  llvm::raw_string_ostream stream(said);
  std::unique_ptr<llvm::MemoryBuffer> buffer =
      llvm::MemoryBuffer::getMemBufferCopy(text, "<clauses>");
  if (failed(checkNesting(*buffer, stream)))
    return invalid(said);
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  size_t firstLine = lineOfClauses(kernelClass);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &one) {
    note(one, firstLine, said);
    for (Diagnostic &behind : one.getNotes())
      note(behind, firstLine, said);
    return success();
  });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    return invalid(said);
  module->walk([&](AttentionOpInterface op) { problem = problemOf(op); });
  return std::nullopt;
}

Outcome attn::readClauses(KernelClass &kernelClass) {
  if (kernelClass.clauses.empty())
    return std::nullopt;
  // Parsing takes a millisecond; all go when there are so many.
  constexpr size_t mostKnown = 1024;
  static std::mutex mutex;
  static auto *known = new llvm::StringMap<Problem>();
  KernelClass anySizes = kernelClass;
  anySizes.problem.batch = anySizes.problem.keys = -1;
  anySizes.problem.queries = -1;
  std::string key = textOf(anySizes);
  Problem problem;
  std::lock_guard<std::mutex> lock(mutex);
  if (auto found = known->find(key); found != known->end()) {
    problem = found->second;
  } else {
    if (Outcome fault = parse(anySizes, problem))
      return fault;
    if (known->size() >= mostKnown)
      known->clear();
    (*known)[key] = problem;
  }
  const Problem &sized = kernelClass.problem;
  problem.batch = sized.batch;
  problem.queries = sized.queries;
  problem.keys = sized.keys;
  kernelClass.problem = problem;
  return std::nullopt;
}
