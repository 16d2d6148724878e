//===- Flags.h - What blocks publish and await ------------------*- C++ -*-===//
//
// A flag is an i32 in global memory that `tile.publish` sets, `tile.count`
// counts and `tile.await` polls.  It keeps all its values, each with what its
// release showed.
//
// **Which value an await sees** is left open by the hardware: any one that is
// at least what was asked for and not older than the last that its warp knows
// of.  If the kernel does not look at the value, the await sees the oldest, so
// that it learns no more than it may count on.  Else it sees the newest
// (forward), the oldest (reverse), or any (shuffled).
//
// **Down.** A publish of less than the value before must lie behind all awaits
// of it: one that comes later, or has not looked yet, would wait for ever.
//
// Publishes of one flag are ordered, one behind the other; a count shows what
// all before it showed.  Flags are 0 when a kernel begins and when it ends, but
// for what is `kept`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_MEMORY_FLAGS_H
#define ATTN_LIB_INTERPRETER_MEMORY_FLAGS_H

#include "Memory/Clocks.h"
#include "Memory/Visibility.h"

#include <deque>

namespace attn::interpreter {

enum class Step;

class Flags {
public:
  /// The op's operands are the array of flags, an index and a value.
  Step publish(Warp &warp, const Instruction &in);
  /// Likewise, with the value to begin again at.
  Step count(Warp &warp, const Instruction &in);
  Step await(Warp &warp, const Instruction &in);
  /// The value of the flag at an address.
  int64_t value(uint64_t address) const;

private:
  struct Release {
    int64_t value = 0;
    /// None is the 0 that the kernel began with.
    std::optional<Event> by;
    Clock clock;
  };
  struct Flag {
    /// Oldest first.
    std::deque<Release> releases;
    /// The last await of each warp that was over.
    std::vector<Event> awaits;
  };
  /// Sets the flag, if that is no lower, or no await of more is in the way; who
  /// sees it sees `clock` too.
  void release(Warp &warp, const Instruction &in, Flag &flag, int32_t value,
               Clock clock);
  /// Null, and reported, when it is not a flag.
  Flag *find(Warp &warp, const Instruction &in, uint64_t address);
  /// The first value of a flag that held anything.
  Step begin(Warp &warp, const Instruction &in);
  size_t choose(Warp &warp, const Instruction &in, const Flag &flag,
                llvm::ArrayRef<size_t> seen) const;

  std::map<uint64_t, Flag> flags;
};

} // namespace attn::interpreter

#endif
