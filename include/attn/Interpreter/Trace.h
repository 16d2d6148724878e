//===- Trace.h - What the warps of a block did, in order --------*- C++ -*-===//
//
// The interpreter can record what the warps of the first block of each launch
// do to each other: copies they start, arrivals, waits, products, arithmetic,
// stores.  What is recorded is an *order*, that of the kernel as it was built;
// the interpreter has no clock.
//
// `writeTrace` gives the events durations by the rates of a machine, and writes
// them in the trace format that chrome://tracing and Perfetto show: a process
// for each launch, a thread for each warp, for the copy engine, and for each
// quarter of the tensor cores.  A wait lasts until all that its phase takes has
// arrived, a copy arrives a latency after it has begun, and a warp that waits
// for a product waits for its end.
//
//   warp 0 (producer)   copy K | copy V | wait 'key_empty' (slot 0) ....
//   warp 4 (consumer)   wait 'key_full' (slot 0) ... | wgmma | wgmma_wait .. |
//   copy engine              [ K ........ ]
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERPRETER_TRACE_H
#define ATTN_INTERPRETER_TRACE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attn {

enum class TraceKind {
  copy,        ///< starts a copy that arrives at a barrier by itself
  groupCopy,   ///< starts its share of a copy of a group
  commit,      ///< ends the group
  groupWait,   ///< until `amount` groups are in flight
  arrive,      ///< at a barrier
  wait,        ///< has passed a barrier
  product,     ///< starts a product
  productWait, ///< until `amount` products are in flight
  store,       ///< starts a copy to global memory
  storeWait,   ///< until `amount` stores are in flight
  transfer,    ///< reads or writes global memory by itself
  work         ///< arithmetic
};

struct TraceEvent {
  TraceKind kind;
  unsigned warp;
  llvm::StringRef what; ///< an op, or the buffer of a copy; the context's
  unsigned channel = 0; ///< of copies, arrivals and waits: the barrier
  int64_t phase = 0;    ///< of it
  int64_t amount = 0;   ///< bytes; FLOPs or instructions of the warp
};

/// The first block of a launch.
struct KernelTrace {
  std::string kernel;
  std::vector<std::string> warps;    ///< "consumer", by warp
  std::vector<std::string> channels; ///< names of barriers
  std::vector<TraceEvent> events;    ///< in the order of the interpreter
  int64_t factorBytes = 2;           ///< of an element of its products
};
using Trace = std::vector<KernelTrace>;

/// What takes how long, in clocks of a multiprocessor.
struct TraceRates {
  std::string machine;
  double clockHz = 0;
  double copyBytesPerClock = 0, copyLatency = 0;
  double flopsPerClock = 0; ///< of products of 16 bits, in all four quarters
};

/// As JSON.  Every event says that its duration is the model's.
void writeTrace(llvm::raw_ostream &out, const Trace &trace,
                const TraceRates &rates);

} // namespace attn

#endif
