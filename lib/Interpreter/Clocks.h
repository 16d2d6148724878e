//===- Clocks.h - What is ordered before what -------------------*- C++ -*-===//
//
// Warp w's clock is a vector of times.  Its own entry counts w's releases.  An
// access by u at u's time t is ordered before what w does now if
// clock(w)[u] >= t.  Example, two warps: warp 0 stores at time 1; warp 1's
// clock is (0, 1), so its read is a race; behind a barrier it is (1, 2).
//
// Whoever *releases* (arrives at a barrier) joins its clock into that of the
// barrier and starts a new time; whoever *acquires* (has waited) joins the
// barrier's clock into its own.  A barrier of the whole block does both for
// everyone.
//
// Warps are not the only parties.  The entry of an mbarrier is the number of
// its phases that the warp knows to have ended, so bytes that TMA brings in
// phase 3 are there for w if clock(w)[mbarrier] >= 4.  The entry of a named
// barrier is the number of its openings.  A second entry of each warp counts
// its fences: what warp u stored before its fence number f may be read
// asynchronously by w if clock(w)[fences of u] >= f.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_CLOCKS_H
#define ATTN_LIB_INTERPRETER_CLOCKS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace attn::interpreter {

/// One entry per party.
using Clock = std::vector<uint32_t>;

inline void join(Clock &into, const Clock &from) {
  into.resize(std::max(into.size(), from.size()));
  for (size_t party = 0; party < from.size(); ++party)
    into[party] = std::max(into[party], from[party]);
}

/// Barriers 1 to 15 of a block have names, 0 is that of the whole block.
constexpr unsigned kNamedBarriers = 16;

class Clocks {
public:
  Clocks(unsigned warps, unsigned mbarriers)
      : count(warps),
        clocks(warps, Clock(2 * warps + kNamedBarriers + mbarriers, 0)) {
    for (unsigned warp = 0; warp < warps; ++warp)
      clocks[warp][warp] = 1;
  }

  /// Warp w is party w; the others are numbered behind.
  unsigned warps() const { return count; }
  unsigned fencesOf(unsigned warp) const { return count + warp; }
  unsigned named(unsigned id) const { return 2 * count + id; }
  unsigned mbarrier(unsigned slot) const {
    return 2 * count + kNamedBarriers + slot;
  }

  uint32_t now(unsigned warp) const { return clocks[warp][warp]; }
  /// The last time of the party that the warp is ordered behind.
  uint32_t known(unsigned warp, unsigned party) const {
    return clocks[warp][party];
  }
  bool ordered(unsigned warp, unsigned party, uint32_t time) const {
    return warp == party || clocks[warp][party] >= time;
  }

  void release(unsigned warp, Clock &into) {
    join(into, clocks[warp]);
    ++clocks[warp][warp];
  }
  void acquire(unsigned warp, const Clock &from) { join(clocks[warp], from); }
  void fence(unsigned warp) { ++clocks[warp][fencesOf(warp)]; }
  /// All warps meet: everything before is ordered before everything after.
  void meet() {
    Clock joined;
    for (unsigned warp = 0; warp < count; ++warp)
      release(warp, joined);
    for (unsigned warp = 0; warp < count; ++warp)
      acquire(warp, joined);
  }

private:
  unsigned count;
  std::vector<Clock> clocks;
};

} // namespace attn::interpreter

#endif
