//===- MachineName.cpp - How answers call a machine -----------------------===//

#include "MachineName.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

std::string attn::nameWithFacts(const Machine &machine) {
  std::string text = machine.name;
  const Machine *row = findMachine(machine.name);
  if (!row)
    return text;
  llvm::raw_string_ostream out(text);
  const char *before = " with ";
  for (const MachineField &field : machineFields()) {
    double value = *fieldValue(machine, field.name);
    if (value == *fieldValue(*row, field.name))
      continue;
    out << before << field.name << " = ";
    if (field.isInteger)
      out << int64_t(value);
    else
      out << llvm::format("%.10g", value);
    before = ", ";
  }
  return text;
}
