//===- Format.cpp - How attn-plan prints its answer -----------------------===//

#include "Format.h"

#include "attn/Report/Tool.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace attn;
namespace cl = llvm::cl;

/// On a terminal, unless NO_COLOR is set (https://no-color.org); always with
/// `--color`, which even a stream without a terminal has then.
static bool hasColors(const llvm::raw_ostream &out) {
  auto asked = llvm::WithColor::defaultAutoDetectFunction();
  const char *without = std::getenv("NO_COLOR");
  return asked(without && *without ? llvm::nulls() : out);
}

FormatOptions::FormatOptions(cl::OptionCategory &category)
    : format("format", cl::value_desc("format"),
             cl::desc("table (default), wide, markdown, json, or of several "
                      "plans svg"),
             cl::init("table"), cl::cat(category)),
      output("output", cl::value_desc("file"),
             cl::desc("Write to a file instead of the standard output"),
             cl::cat(category)),
      json("json", cl::desc("Same as --format json: everything"),
           cl::cat(category)),
      explain("explain", cl::desc("Say what was chosen and why"),
              cl::cat(category)) {
  llvm::WithColor::setAutoDetectFunction(hasColors);
}

TableForm attn::tableForm(Format format) {
  return format == Format::wide       ? TableForm::wide
         : format == Format::markdown ? TableForm::markdown
                                      : TableForm::narrow;
}

bool FormatOptions::isGiven() const {
  return format.getNumOccurrences() || output.getNumOccurrences() || json ||
         explain;
}

std::optional<Format> FormatOptions::read(std::string &error) const {
  auto known = llvm::StringSwitch<std::optional<Format>>(format)
                   .Case("table", Format::table)
                   .Case("wide", Format::wide)
                   .Case("markdown", Format::markdown)
                   .Case("json", Format::json)
                   .Case("svg", Format::svg)
                   .Default(std::nullopt);
  auto fails = [&](const char *expected, const std::string &got) {
    error = std::string("expects ") + expected + ", but got " + got;
    return std::nullopt;
  };
  if (!known)
    return fails("--format table, wide, markdown, json or svg",
                 "'" + format + "'");
  if (json && explain)
    return fails("--json or --explain", "both");
  if (format.getNumOccurrences() && explain)
    return fails("--format or --explain", "both");
  if (format.getNumOccurrences() && json && known != Format::json)
    return fails("--format or --json", "both");
  return json ? Format::json : explain ? Format::explain : known;
}

std::optional<std::string>
attn::writeAnswer(const std::string &file,
                  llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (file.empty()) {
    print(llvm::outs());
    return std::nullopt;
  }
  return writeFile(file, print);
}
