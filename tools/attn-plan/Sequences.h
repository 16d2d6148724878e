//===- Sequences.h - Lengths of ragged sequences, as an option --*- C++ -*-===//
//
// `--ragged FILE` plans sequences that lie one behind the other.  A line has
// the queries of one, and its keys if they are others; # begins a comment:
//
//   4000
//   1 8192   # one query behind a cache of keys
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_PLAN_SEQUENCES_H
#define ATTN_TOOLS_PLAN_SEQUENCES_H

#include "attn/Schedule/Problem.h"
#include "llvm/Support/CommandLine.h"
#include <optional>
#include <string>

namespace attn {

struct SequenceOptions {
  explicit SequenceOptions(llvm::cl::OptionCategory &category);

  llvm::cl::opt<std::string> file;

  bool isGiven() const { return file.getNumOccurrences() > 0; }
  /// Makes a problem that of the sequences, if there are some; or a sentence.
  std::optional<std::string> read(Problem &problem) const;
};

} // namespace attn

#endif // ATTN_TOOLS_PLAN_SEQUENCES_H
