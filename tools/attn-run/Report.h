//===- Report.h - What attn-run tells ---------------------------*- C++ -*-===//

#ifndef ATTN_TOOLS_RUN_REPORT_H
#define ATTN_TOOLS_RUN_REPORT_H

#include "Reference.h"

#include "attn/CAPI/Compile.h"

namespace attn::run {

struct Report {
  std::string file, function, machine;
  /// The GPU's name, or "interpreter".
  std::string device;
  bool onGpu = false;
  std::vector<std::string> problems;
  /// Kernels of the program, with their schedules.
  const Program *program = nullptr;
  std::vector<Comparison> comparisons;
  /// Input arrays that were changed.
  std::vector<std::string> changedInputs;
  /// Bytes that were watched on both sides of every array; 0 if none were.
  int64_t guardBytes = 0;
  /// Median of the launches that were timed; 0 when none was.
  double seconds = 0;
  int64_t repeat = 0;
  /// Arithmetic of the visible pairs.
  double flops = 0;
  /// Counted by the interpreter.
  tile::Traffic traffic;

  bool ok() const;
  void print(llvm::raw_ostream &out) const;
  void printJson(llvm::raw_ostream &out) const;
};

} // namespace attn::run

#endif
