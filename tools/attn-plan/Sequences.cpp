//===- Sequences.cpp - Lengths of ragged sequences, as an option ----------===//

#include "Sequences.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;
namespace cl = llvm::cl;

SequenceOptions::SequenceOptions(cl::OptionCategory &category)
    : file("ragged", cl::value_desc("file"),
           cl::desc("Sequences one behind the other: a line for each, with its "
                    "queries, and its keys if they are others"),
           cl::cat(category)) {}

/// A line's numbers, or nothing if they are wrong.
static std::optional<Lengths> readLine(llvm::StringRef line) {
  llvm::SmallVector<llvm::StringRef> words;
  llvm::SplitString(line, words, " \t,");
  Lengths lengths;
  if (words.empty() || words.size() > 2 ||
      words[0].getAsInteger(10, lengths.queries) ||
      words.back().getAsInteger(10, lengths.keys))
    return std::nullopt;
  for (int64_t rows : {lengths.queries, lengths.keys})
    if (rows < 0 || rows > kMaxRows)
      return std::nullopt;
  return lengths;
}

std::optional<std::string> SequenceOptions::read(Problem &problem) const {
  if (!isGiven())
    return std::nullopt;
  if (problem.pattern)
    return std::string("expects --ragged or blocks, but got both");
  auto text = llvm::MemoryBuffer::getFile(file, /*IsText=*/true);
  if (!text)
    return "expects a file that can be read, but got '" + file +
           "': " + text.getError().message();
  std::vector<Lengths> lengths;
  size_t number = 0;
  for (llvm::StringRef line : llvm::split((*text)->getBuffer(), '\n')) {
    ++number;
    llvm::StringRef words = line.split('#').first.trim();
    if (words.empty())
      continue;
    std::optional<Lengths> one = readLine(words);
    if (!one) {
      // Of a file of something else, what a terminal can show.
      constexpr size_t most = 20;
      bool isText = words.size() <= most && llvm::all_of(words, llvm::isPrint);
      std::string got = isText ? "'" + words.str() + "'"
                               : std::to_string(words.size()) + " bytes";
      return file + ":" + std::to_string(number) +
             ": expects queries, and keys if they are others, between 0 and " +
             std::to_string(kMaxRows) + ", but got " + got;
    }
    lengths.push_back(*one);
  }
  if (lengths.empty())
    return "expects a line for each sequence, but got none in '" + file + "'";
  problem = raggedProblem(problem, std::move(lengths));
  return std::nullopt;
}
