//===- Format.h - How attn-plan prints its answer ---------------*- C++ -*-===//
//
// `--format`, its older spelling `--json`, and `--explain`.  Colours are for
// terminals; LLVM's `--color` and `--color=0` say otherwise, and NO_COLOR does.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_PLAN_FORMAT_H
#define ATTN_TOOLS_PLAN_FORMAT_H

#include "attn/Report/Report.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/CommandLine.h"
#include <optional>
#include <string>

namespace attn {

enum class Format { table, wide, markdown, json, svg, explain };

/// The table of a format that has one.
TableForm tableForm(Format format);

/// Made when the command runs, like all its options.
struct FormatOptions {
  explicit FormatOptions(llvm::cl::OptionCategory &category);

  llvm::cl::opt<std::string> format, output;
  llvm::cl::opt<bool> json, explain;

  /// Whether one is named.
  bool isGiven() const;

  /// What is asked for; nothing, and a sentence, if that is unknown or two
  /// things at once.
  std::optional<Format> read(std::string &error) const;
};

/// Writes an answer to that file, or to the standard output if it has no name.
/// The file is there as a whole or as it was before; a sentence if it cannot be
/// written.
std::optional<std::string>
writeAnswer(const std::string &file,
            llvm::function_ref<void(llvm::raw_ostream &)> print);

} // namespace attn

#endif // ATTN_TOOLS_PLAN_FORMAT_H
