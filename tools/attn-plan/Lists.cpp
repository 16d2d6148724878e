//===- Lists.cpp - Several machines, several types ------------------------===//

#include "Lists.h"
#include "attn/Machine/MachineText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

using namespace attn;
using llvm::StringRef;

static constexpr StringRef kAll = "all";

static bool isAll(StringRef text) { return text.trim() == kAll; }

/// Of a list with `all` among others.
static std::optional<Complaint> refuseAllBeside(StringRef option,
                                                StringRef text) {
  llvm::SmallVector<StringRef> pieces;
  text.split(pieces, ',');
  if (llvm::none_of(pieces, isAll))
    return std::nullopt;
  return Complaint{"expects " + option.str() +
                       " all, or a list without it, but got '" + text.str() +
                       "'",
                   ""};
}

/// One text for each machine: a piece with `=` belongs to the one before.
static std::vector<std::string> machineTexts(StringRef text) {
  llvm::SmallVector<StringRef> pieces;
  text.split(pieces, ',');
  std::vector<std::string> texts;
  for (StringRef piece : pieces)
    if (piece.contains('=') && !texts.empty())
      texts.back() += "," + piece.str();
    else
      texts.push_back(piece.trim().str());
  return texts;
}

static std::optional<Complaint> readMachine(const std::string &text,
                                            Machine &machine) {
  std::string name = StringRef(text).split(',').first.trim().str();
  if (!findMachine(name))
    return Complaint{"expects a known machine, but got '" + name + "'",
                     "known machines: " + machineNames()};
  std::string error;
  std::optional<Machine> parsed = parseMachine(text, error);
  if (!parsed)
    return Complaint{error, ""};
  machine = *parsed;
  return std::nullopt;
}

static std::optional<Complaint>
overrideFields(llvm::ArrayRef<std::string> overrides, Machine &machine) {
  llvm::SmallVector<StringRef> seen;
  for (StringRef item : overrides) {
    auto [field, text] = item.split('=');
    if (llvm::is_contained(seen, field.trim()))
      return Complaint{"expects --set of every field once, but got '" +
                           field.trim().str() + "' twice",
                       ""};
    seen.push_back(field.trim());
    double value = 0;
    if (text.trim().empty() || text.trim().getAsDouble(value))
      return Complaint{
          "expects --set field=number, but got '" + item.str() + "'", ""};
    if (auto sentence = overrideField(machine, field.trim().str(), value))
      return Complaint{*sentence, "known fields: " + machineFieldNames()};
  }
  if (auto sentence = check(machine))
    return Complaint{*sentence, ""};
  return std::nullopt;
}

std::optional<Complaint>
attn::readMachines(const std::string &text,
                   llvm::ArrayRef<std::string> overrides,
                   std::vector<Machine> &machines) {
  if (isAll(text))
    machines = attn::machines();
  else if (auto complaint = refuseAllBeside("--machine", text))
    return complaint;
  else
    for (const std::string &one : machineTexts(text)) {
      if (llvm::count(machineTexts(text), one) > 1)
        return Complaint{
            "expects every machine once, but got '" + one + "' twice", ""};
      if (auto complaint = readMachine(one, machines.emplace_back()))
        return complaint;
    }
  for (Machine &machine : machines)
    if (auto complaint = overrideFields(overrides, machine))
      return complaint;
  return std::nullopt;
}

std::optional<Complaint> attn::readTypes(const std::string &text,
                                         std::vector<DataType> &types) {
  if (isAll(text)) {
    types.assign(std::begin(kDataTypes), std::end(kDataTypes));
    return std::nullopt;
  }
  if (auto complaint = refuseAllBeside("--dtype", text))
    return complaint;
  llvm::SmallVector<StringRef> pieces;
  StringRef(text).split(pieces, ',');
  for (StringRef piece : pieces) {
    auto type = parseDataType(std::string_view(piece.trim()));
    if (!type)
      return Complaint{"expects a known dtype, but got '" + piece.trim().str() +
                           "'",
                       "known types: bf16, f16, f32, f8e4m3"};
    if (llvm::is_contained(types, *type))
      return Complaint{"expects every type of --dtype once, but got '" +
                           piece.trim().str() + "' twice",
                       ""};
    types.push_back(*type);
  }
  return std::nullopt;
}
