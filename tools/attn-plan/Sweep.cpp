//===- Sweep.cpp - Which values a size goes through -----------------------===//

#include "Sweep.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;
using llvm::StringRef;

static constexpr size_t kMostValues = 1000;

bool Swept::isOfMachine() const {
  return llvm::any_of(machineFields(), [&](const MachineField &one) {
    return one.name == field;
  });
}

/// Both ends, and between them what has at most three binary digits, as 64, 80,
/// 96, 112 and 128 do.
static std::vector<int64_t> between(int64_t first, int64_t last) {
  std::vector<int64_t> values = {first};
  for (int64_t octave = 1; octave <= last; octave *= 2)
    for (int64_t quarter = 4; quarter < 8; ++quarter) {
      int64_t value = octave * quarter / 4;
      if (octave * quarter % 4 == 0 && value > first && value < last)
        values.push_back(value);
    }
  if (last > first)
    values.push_back(last);
  return values;
}

/// A whole number that a problem or a machine might have.
static bool readValue(StringRef text, int64_t &value) {
  constexpr int64_t most = int64_t(1) << 50;
  return !text.trim().getAsInteger(10, value) && value >= 0 && value <= most;
}

static std::optional<Complaint> readValues(StringRef text,
                                           std::vector<int64_t> &values) {
  auto fails = [&](StringRef got) {
    return Complaint{"expects --sweep field=first..last or field=value,value, "
                     "whole numbers that rise, but got '" +
                         got.str() + "'",
                     ""};
  };
  if (text.contains("..")) {
    auto [first, last] = text.split("..");
    int64_t from = 0, to = 0;
    if (!readValue(first, from) || !readValue(last, to) || from > to)
      return fails(text);
    values = between(from, to);
    return std::nullopt;
  }
  llvm::SmallVector<StringRef> pieces;
  text.split(pieces, ',');
  for (StringRef piece : pieces) {
    int64_t value = 0;
    if (!readValue(piece, value) || (!values.empty() && value <= values.back()))
      return fails(text);
    values.push_back(value);
  }
  if (values.size() > kMostValues)
    return Complaint{"expects at most " + std::to_string(kMostValues) +
                         " values to sweep, but got " +
                         std::to_string(values.size()),
                     ""};
  return std::nullopt;
}

std::optional<Complaint>
attn::readSweep(StringRef text, llvm::ArrayRef<StringRef> sizes, Swept &swept) {
  if (!text.contains('='))
    return Complaint{"expects --sweep field=first..last or field=value,value, "
                     "but got '" +
                         text.str() + "'",
                     ""};
  auto [field, values] = text.split('=');
  swept.field = field.trim().str();
  if (!llvm::is_contained(sizes, swept.field) && !swept.isOfMachine())
    return Complaint{"expects a field to sweep, but got '" + swept.field + "'",
                     "fields: " + llvm::join(sizes, ", ") + ", " +
                         machineFieldNames()};
  return readValues(values, swept.values);
}
