//===- MachineText.cpp - A machine as people write it ---------------------===//

#include "attn/Machine/MachineText.h"
#include <algorithm>
#include <cstdlib>
#include <vector>

using namespace attn;

static constexpr std::string_view kSpace = " \t\n";

static std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos)
    return text.substr(0, 0);
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// A number as MLIR reads it too: digits, of which some may follow a point.
static std::optional<double> decimal(std::string_view text) {
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  auto isPart = [&](char c) { return isDigit(c) || c == '.'; };
  if (text.empty() || !isDigit(text.front()) ||
      !std::all_of(text.begin(), text.end(), isPart) ||
      std::count(text.begin(), text.end(), '.') > 1)
    return std::nullopt;
  return std::strtod(std::string(text).c_str(), nullptr);
}

std::optional<Machine> attn::parseMachine(std::string_view text,
                                          std::string &error) {
  std::string_view rest = text;
  auto next = [&] {
    size_t comma = std::min(rest.find(','), rest.size());
    std::string_view piece = trimmed(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    return piece;
  };
  std::string_view name = next();
  const Machine *row = findMachine(name);
  if (!row) {
    error = unknownMachine(name);
    return std::nullopt;
  }
  Machine machine = *row;
  std::vector<std::string_view> seen;
  bool hasMore = text.find(',') != std::string_view::npos;
  while (hasMore) {
    hasMore = rest.find(',') != std::string_view::npos;
    std::string_view piece = next();
    auto fails = [&](const std::string &sentence) {
      error = sentence + " (at character " +
              std::to_string(piece.data() - text.data() + 1) + " of '" +
              std::string(text) + "'); fields: " + machineFieldNames();
      return std::nullopt;
    };
    size_t equal = piece.find('=');
    std::optional<double> value;
    if (equal != std::string_view::npos)
      value = decimal(trimmed(piece.substr(equal + 1)));
    if (!value)
      return fails("expects a field and a number, as in 'sms = 64', but got '" +
                   std::string(piece) + "'");
    std::string_view field = trimmed(piece.substr(0, equal));
    if (std::find(seen.begin(), seen.end(), field) != seen.end())
      return fails("expects every field once, but got '" + std::string(field) +
                   "' twice");
    seen.push_back(field);
    if (auto sentence = overrideField(machine, field, *value))
      return fails(*sentence);
  }
  if (auto sentence = check(machine)) {
    error = *sentence + " (in '" + std::string(text) + "')";
    return std::nullopt;
  }
  return machine;
}
