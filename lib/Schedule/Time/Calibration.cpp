//===- Calibration.cpp - The constants of time, by machine ----------------===//

#include "attn/Schedule/Calibration.h"
#include "attn/Machine/Machine.h"
#include <vector>

using namespace attn;

/// A row for each machine that somebody measured.
static const std::vector<Calibration> &fittedRows() {
  static const std::vector<Calibration> rows = [] {
    std::vector<Calibration> table;
#define ATTN_TIMES(MACHINE, SOURCE)                                            \
  table.emplace_back();                                                        \
  table.back().machine = #MACHINE, table.back().source = SOURCE;
#define ATTN_SET(MACHINE, NAME, VALUE)                                         \
  for (Calibration &row : table)                                               \
    if (row.machine == #MACHINE)                                               \
      row.NAME = VALUE;
#include "attn/Schedule/Times.def"
    return table;
  }();
  return rows;
}

bool attn::setTime(Calibration &calibration, std::string_view name,
                   double value) {
#define ATTN_TIME(NAME, WORDS)                                                 \
  if (name == #NAME) {                                                         \
    calibration.NAME = value;                                                  \
    return true;                                                               \
  }
#include "attn/Schedule/Times.def"
  return false;
}

const Calibration &attn::calibrationOf(const Machine &machine) {
  for (const Calibration &row : fittedRows())
    if (row.machine == machine.name)
      return row;
  for (const Calibration &row : fittedRows())
    if (findMachine(row.machine)->family == machine.family)
      return row;
  return fittedRows().front();
}

bool attn::isCalibrated(const Machine &machine) {
  return calibrationOf(machine).machine == machine.name;
}
