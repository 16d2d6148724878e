//===- Format.h - How attn-plan prints its answer ---------------*- C++ -*-===//
//
// `--format`, its older spelling `--json`, and `--explain`.  Colours are for
// terminals; LLVM's `--color` and `--color=0` say otherwise, and NO_COLOR does.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_PLAN_FORMAT_H
#define ATTN_TOOLS_PLAN_FORMAT_H

#include "attn/Report/Report.h"
#include "llvm/Support/CommandLine.h"
#include <optional>
#include <string>

namespace attn {

enum class Format { table, wide, markdown, json, explain };

/// The table of a format that has one.
TableForm tableForm(Format format);

/// Made when the command runs, like all its options.
struct FormatOptions {
  explicit FormatOptions(llvm::cl::OptionCategory &category);

  llvm::cl::opt<std::string> format;
  llvm::cl::opt<bool> json, explain;

  /// Whether one is named.
  bool isGiven() const;

  /// What is asked for; nothing, and a sentence, if that is unknown or two
  /// things at once.
  std::optional<Format> read(std::string &error) const;
};

} // namespace attn

#endif // ATTN_TOOLS_PLAN_FORMAT_H
