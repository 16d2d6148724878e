//===- Nesting.cpp - Text that a recursive parser survives ----------------===//

#include "attn/Pipelines/Nesting.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

/// The offset behind the string literal that opens at `at`.  A newline ends it
/// too: the lexer rejects such a string, and what follows is code again.
static size_t skipString(StringRef text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"' || text[at] == '\n')
      return at + 1;
    if (text[at] == '\\')
      ++at;
  }
  return text.size();
}

std::optional<size_t> attn::findDeepNesting(StringRef text) {
  constexpr StringLiteral opening = "([{<", closing = ")]}>";
  unsigned depth[4] = {};
  for (size_t at = 0; at < text.size();) {
    StringRef rest = text.substr(at);
    if (rest.front() == '"') {
      at = skipString(text, at);
      continue;
    }
    if (rest.starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (rest.starts_with("->") || rest.starts_with(">=")) {
      at += 2;
      continue;
    }
    if (size_t kind = opening.find(rest.front()); kind != StringRef::npos) {
      if (++depth[kind] > maximalNesting)
        return at;
    } else if (kind = closing.find(rest.front()); kind != StringRef::npos) {
      depth[kind] -= depth[kind] != 0;
    }
    ++at;
  }
  return std::nullopt;
}

LogicalResult attn::checkNesting(llvm::MemoryBufferRef text,
                                 llvm::raw_ostream &errors) {
  std::optional<size_t> at = findDeepNesting(text.getBuffer());
  if (!at)
    return success();
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(text, /*RequiresNullTerminator=*/false),
      SMLoc());
  const char *place =
      sources.getMemoryBuffer(sources.getMainFileID())->getBufferStart() + *at;
  // Only the place: the line itself may be the whole file.
  auto [line, column] = sources.getLineAndColumn(SMLoc::getFromPointer(place));
  errors << text.getBufferIdentifier() << ":" << line << ":" << column
         << ": error: expects at most " << maximalNesting
         << " nested brackets, but got more\n";
  return failure();
}
