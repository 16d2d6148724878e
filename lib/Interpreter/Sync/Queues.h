//===- Queues.h - Messages between warps, counters of the grid --*- C++ -*-===//
//
// A slot of a queue has two mbarriers: the message fills one phase of `full`,
// the readers' arrivals one phase of `empty`.  Message k of a queue of n slots
// goes to slot k % n with parity (k / n) % 2, which is checked where the warp
// says otherwise and not where it then hangs.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_SYNC_QUEUES_H
#define ATTN_LIB_INTERPRETER_SYNC_QUEUES_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace attn::interpreter {

/// A queue, each by itself of those that share slots.
struct QueueState {
  int64_t pushed = 0;
  std::optional<unsigned> pusher;
  /// Per warp.
  std::vector<int64_t> popped;
  /// Per slot.
  std::vector<llvm::SmallVector<int64_t, 4>> messages;
};

/// By the program's number of the barrier of its first slot, of a queue alone;
/// of others by numbers behind that of the first.
using Queues = llvm::DenseMap<unsigned, QueueState>;

} // namespace attn::interpreter

#endif
