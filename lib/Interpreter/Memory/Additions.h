//===- Additions.h - Words that a launch adds to ----------------*- C++ -*-===//
//
// The copy engine adds words to global memory whenever it likes, until the warp
// that started it has waited for it to be complete.  So an ordinary access of
// the same words lies behind such a wait, of every warp that adds to them, or
// it is a write, and every addition lies behind that.  Additions among
// themselves commute, as far as it is open what rounding makes of them; one
// `in_order` lies behind the wait, of whoever it was, for all that were added
// to its words before.  Zeros need no order.
//
// What it stores, for sums to begin with, is recorded like what it adds, and
// lies behind the waits for all others to the same words.  Every addition lies
// behind the wait for what is stored.
//
// Example: a launch that adds to bytes 0 to 255 of an array may read byte 256
// at any time, and byte 255 behind the last wait.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_MEMORY_ADDITIONS_H
#define ATTN_LIB_INTERPRETER_MEMORY_ADDITIONS_H

#include "Memory/Visibility.h"

#include "llvm/ADT/STLExtras.h"

namespace attn::interpreter {

class Additions {
public:
  /// Which others lie before one, if they come before.
  enum class Order {
    behindStores, ///< what was stored
    behindSums,   ///< and added, but for zeros
    behindAll     ///< all of it: it is stored itself
  };
  /// An addition, or what is stored; its warp's copy of that number.
  struct Addition {
    Event event;
    uint64_t number;
    uint64_t begin, end;
    bool isNothing; ///< all of it zeros
    Order order;

    bool isStored() const { return order == Order::behindAll; }
    /// Whether it lies behind another that came before, to the same words.
    bool isBehind(bool isStored, bool isNothing) const;
  };
  /// Records it; the instruction of an ordinary access of some of its bytes, if
  /// there was one but writes that are `inSight`.
  std::optional<unsigned> add(const Addition &addition,
                              llvm::function_ref<bool(const Event &)> inSight);
  /// The instruction of an addition to some of its bytes, not recorded yet,
  /// behind which it should be and is not.
  std::optional<unsigned>
  before(const Addition &addition,
         llvm::function_ref<bool(const Event &)> inSight) const;
  /// What the event's warp has added is in memory, of numbers below `end`.
  void complete(const Event &event, uint64_t end);
  /// Records an ordinary access; the instruction of an addition to some of its
  /// bytes that is not complete, or whose completion is not `inSight`.
  std::optional<unsigned>
  access(const Event &event, bool isWrite, uint64_t address, int64_t bytes,
         llvm::function_ref<bool(const Event &)> inSight);

private:
  /// Bytes by the first one of each run, with the one behind its last.
  using Runs = std::map<uint64_t, uint64_t>;
  using RunsBy = std::map<unsigned, Runs>; ///< by instruction
  /// What a wait has completed.
  struct Batch {
    Event wait;
    RunsBy added, zeros, stored;

    RunsBy &runsFor(const Addition &one) {
      return one.isStored() ? stored : one.isNothing ? zeros : added;
    }
  };

  /// The last write of some bytes, by the first of them.
  struct Write {
    uint64_t end;
    Event event;
  };
  using Writes = std::map<uint64_t, Write>;
  void write(const Event &event, uint64_t begin, uint64_t end);

  std::vector<Addition> inFlight;
  std::vector<Batch> completed;
  RunsBy reads;
  Writes writes;
};

} // namespace attn::interpreter

#endif
