//===- Blocks.h - Which blocks are visible, as options ----------*- C++ -*-===//
//
// `--blocks 128x64 --density 0.125` plans without lists; `--pattern FILE` has
// them (PatternFile.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_PLAN_BLOCKS_H
#define ATTN_TOOLS_PLAN_BLOCKS_H

#include "attn/Schedule/Problem.h"
#include "llvm/Support/CommandLine.h"
#include <optional>
#include <string>

namespace attn {

struct BlockOptions {
  explicit BlockOptions(llvm::cl::OptionCategory &category);

  llvm::cl::opt<std::string> blocks;
  llvm::cl::opt<double> density;
  llvm::cl::opt<bool> perHead;
  llvm::cl::opt<std::string> pattern;

  /// Gives a problem that has its sizes the pattern that is asked for, if one
  /// is; or a sentence.
  std::optional<std::string> read(Problem &problem) const;

  /// What a plan with such a pattern is not worth; empty if nothing is odd.
  static std::string note(const Problem &problem);
};

} // namespace attn

#endif // ATTN_TOOLS_PLAN_BLOCKS_H
