//===- Options.h - Parsers of command lines' values -------------*- C++ -*-===//
//
// LLVM's own take 010 for 8, keep the last of an option that is given twice,
// and do not say what there is to choose from.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REPORT_OPTIONS_H
#define ATTN_REPORT_OPTIONS_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include <cstdint>
#include <optional>
#include <string>

namespace attn {

/// Digits, and a sign in front where the type has one; nothing for all else.
template <typename Number>
std::optional<Number> readDecimal(llvm::StringRef text) {
  Number number;
  if (text.getAsInteger(10, number))
    return std::nullopt;
  return number;
}

/// A number as the parser below gives it: of numbers themselves LLVM's
/// templates want LLVM's own parser.
template <typename Number> struct Decimal {
  Number value = 0;
  operator Number() const { return value; }
};

/// Whole numbers, in decimal.
template <typename Number>
class DecimalParser : public llvm::cl::basic_parser<Decimal<Number>> {
public:
  using Base = llvm::cl::basic_parser<Decimal<Number>>;
  using Base::Base;

  /// Whether it fails, as LLVM has it.
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text,
             Decimal<Number> &number) {
    std::optional<Number> read = readDecimal<Number>(text);
    if (!read)
      return option.error("expects a whole decimal number of " +
                          llvm::Twine(8 * sizeof(Number)) + " bits, but got '" +
                          text + "'");
    number.value = *read;
    return false;
  }
  llvm::StringRef getValueName() const override { return "number"; }
};

template <typename Number>
using DecimalOption = llvm::cl::opt<Number, false, DecimalParser<Number>>;

/// One of several names; what is none of them is told what they are.
template <typename Choice>
class ChoiceParser : public llvm::cl::parser<Choice> {
public:
  using Base = llvm::cl::parser<Choice>;
  using Base::Base;

  bool parse(llvm::cl::Option &option, llvm::StringRef name,
             llvm::StringRef text, Choice &choice) {
    if (this->findOption(text) != this->getNumOptions())
      return Base::parse(option, name, text, choice);
    llvm::SmallVector<llvm::StringRef> names;
    for (unsigned i = 0; i < this->getNumOptions(); ++i)
      names.push_back(this->getOption(i));
    llvm::StringRef last = names.pop_back_val();
    return option.error("expects " + llvm::join(names, ", ") + " or " + last +
                        ", but got '" + text + "'");
  }
};

template <typename Choice>
using ChoiceOption = llvm::cl::opt<Choice, false, ChoiceParser<Choice>>;

/// Of an option of this category that holds one value and is given several
/// times, a sentence.
std::optional<std::string>
repeatedOption(const llvm::cl::OptionCategory &category);

} // namespace attn

template <typename Number>
struct llvm::cl::OptionDiffPrinter<attn::Decimal<Number>, Number> {
  void print(const Option &option, const attn::DecimalParser<Number> &parser,
             const Number &, const OptionValue<Number> &, size_t width) {
    parser.printOptionNoValue(option, width);
  }
};

#endif // ATTN_REPORT_OPTIONS_H
