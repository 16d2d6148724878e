//===- Tool.cpp - Versions, and options that look like help ---------------===//

#include "attn/Report/Tool.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"

using namespace attn;
using llvm::StringRef;

void attn::printVersion(llvm::raw_ostream &out) {
  out << "attn " ATTN_VERSION "\nLLVM " LLVM_VERSION_STRING "\n";
}

/// The known option that is spelled most alike, or nothing.
static StringRef nearest(StringRef name) {
  StringRef best;
  unsigned least = 3; // further off is another word
  for (const auto &option : llvm::cl::getRegisteredOptions()) {
    unsigned distance =
        name.edit_distance(option.first, /*AllowReplacements=*/true, least);
    if (distance < least) {
      least = distance;
      best = option.first;
    }
  }
  return best;
}

std::optional<std::string> attn::prepareTool(int argc, char **argv) {
  llvm::cl::SetVersionPrinter(printVersion);
  const StringRef help[] = {"h", "help", "help-hidden", "help-list",
                            "help-list-hidden"};
  for (int i = 1; i < argc && StringRef(argv[i]) != "--"; ++i) {
    StringRef given = argv[i];
    StringRef name = given.ltrim('-').split('=').first;
    if (!given.starts_with("-") || !name.starts_with("h") ||
        llvm::is_contained(help, name) ||
        llvm::cl::getRegisteredOptions().count(name))
      continue;
    std::string sentence =
        "expects a known option, but got '" + given.str() + "'";
    if (StringRef other = nearest(name); !other.empty())
      sentence += "; the nearest is '--" + other.str() + "'";
    return sentence;
  }
  return std::nullopt;
}
