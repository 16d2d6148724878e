//===- GpuMachine.h - Which row of the table a GPU is -----------*- C++ -*-===//

#ifndef ATTN_CAPI_GPUMACHINE_H
#define ATTN_CAPI_GPUMACHINE_H

#include "attn/Machine/Machine.h"
#include "attn/Runtime/Cuda.h"

namespace attn {

/// The row of the table that a GPU is: its compute capability and number of
/// multiprocessors, and of several such rows the one nearest in memory.  Null
/// if there is none.
const Machine *machineOf(const runtime::GpuFacts &facts);

/// Why a GPU has no row, and what can be done.
std::string unknownGpu(const runtime::GpuFacts &facts);

} // namespace attn

#endif
