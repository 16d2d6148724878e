//===- Execution.h - Runs a program on a GPU or interpreted -----*- C++ -*-===//
//
// Takes the arrays of the host to a device, runs the recorded program there,
// and brings them back.  Both devices see the same bytes at the same distances:
// poison in every gap, around the arrays, and in every output.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_EXECUTION_H
#define ATTN_TOOLS_RUN_EXECUTION_H

#include "Arrays.h"
#include "Function.h"

#include "attn/CAPI/Compile.h"
#include "attn/Host/Recording.h"
#include "attn/Interpreter/Trace.h"
#include "attn/Runtime/Cuda.h"

namespace attn::run {

/// What is run: the arrays in the order of the recording's slots.
struct Execution {
  Recording recording;
  std::vector<HostBytes> arrays;
  /// Position in `arrays` of every output of the function.
  std::vector<size_t> outputs;
};

/// Records the program's version of the function and makes the arrays: inputs
/// drawn at random, the rest poison.
mlir::FailureOr<Execution> prepare(const Function &function,
                                   const Program &program, Inputs inputs,
                                   uint64_t seed, int64_t guardBytes);

/// Runs once on the interpreter; returns the bytes that the kernels moved, and
/// records what they did if somebody wants a trace.
mlir::FailureOr<tile::Traffic> runInterpreted(Execution &execution,
                                              mlir::Location location,
                                              Trace *trace = nullptr);

/// Runs once on the GPU for the results, then so many times for the clock;
/// returns the seconds of each.  Appends a line per kernel to `kernels`.
mlir::FailureOr<std::vector<double>>
runOnGpu(Execution &execution, const Program &program, const runtime::Gpu &gpu,
         int64_t repeat, mlir::Location location);

} // namespace attn::run

#endif
