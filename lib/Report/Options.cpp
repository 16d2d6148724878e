//===- Options.cpp - Parsers of command lines' values ---------------------===//

#include "attn/Report/Options.h"

using namespace attn;

std::optional<std::string>
attn::repeatedOption(const llvm::cl::OptionCategory &category) {
  for (const auto &[name, option] : llvm::cl::getRegisteredOptions()) {
    bool isOurs = llvm::is_contained(option->Categories, &category);
    bool holdsOne = option->getNumOccurrencesFlag() == llvm::cl::Optional ||
                    option->getNumOccurrencesFlag() == llvm::cl::Required;
    if (isOurs && holdsOne && option->getNumOccurrences() > 1)
      return "expects --" + name.str() + " once, but got it " +
             std::to_string(option->getNumOccurrences()) + " times";
  }
  return std::nullopt;
}
