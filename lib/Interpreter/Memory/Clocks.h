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
// asynchronously by w if clock(w)[fences of u] >= f.  So may what others stored
// and u knew of then, whose times are kept for each fence.
//
// Blocks that run at once have their parties side by side; a clock holds times
// only of the blocks that it knows something of.  Such a clock is two: what
// lies before, and of that the part whose writes to global memory are in sight
// (Visibility.h).  Both move together, but for arrivals and bytes from another
// block, which tell that something is over and show nothing.  A third part is
// what the copy engine sees as well, since a proxy fence of global memory lies
// behind it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_MEMORY_CLOCKS_H
#define ATTN_LIB_INTERPRETER_MEMORY_CLOCKS_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace attn::interpreter {

/// One entry per party of a block.
using Times = std::vector<uint32_t>;

/// What lies before something: times by block and party, 0 where nothing does.
class Past {
public:
  uint32_t of(unsigned block, unsigned party) const {
    return block < blocks.size() && party < blocks[block].size()
               ? blocks[block][party]
               : 0;
  }
  void raise(unsigned block, unsigned party, uint32_t time) {
    if (blocks.size() <= block)
      blocks.resize(block + 1);
    Times &times = blocks[block];
    if (times.size() <= party)
      times.resize(party + 1);
    times[party] = std::max(times[party], time);
  }
  void join(const Past &other) {
    blocks.resize(std::max(blocks.size(), other.blocks.size()));
    for (size_t block = 0; block < other.blocks.size(); ++block) {
      Times &into = blocks[block];
      const Times &from = other.blocks[block];
      into.resize(std::max(into.size(), from.size()));
      for (size_t party = 0; party < from.size(); ++party)
        into[party] = std::max(into[party], from[party]);
    }
  }
  void clear() {
    for (Times &times : blocks)
      std::fill(times.begin(), times.end(), 0);
  }
  /// Null when nothing is known of the block.
  const Times *of(unsigned block) const {
    return block < blocks.size() && !blocks[block].empty() ? &blocks[block]
                                                           : nullptr;
  }

private:
  std::vector<Times> blocks;
};

struct Clock {
  Past known;
  /// Empty where a block runs alone, as is `fenced`.
  Past sight;
  /// What of `sight` lies before a proxy fence of global memory.
  Past fenced;

  void join(const Clock &other) {
    known.join(other.known);
    sight.join(other.sight);
    fenced.join(other.fenced);
  }
  void clear() {
    known.clear();
    sight.clear();
    fenced.clear();
  }
};

/// Barriers 1 to 15 of a block have names, 0 is that of the whole block.
constexpr unsigned kNamedBarriers = 16;

/// The clocks of a block's warps.
class Clocks {
public:
  /// `block` is the number of the block among those that run at once.
  Clocks(unsigned block, bool together, unsigned warps, unsigned mbarriers)
      : block(block), together(together), count(warps), clocks(warps),
        knownAtFences(warps),
        nothing(2 * warps + kNamedBarriers + mbarriers, 0) {
    for (unsigned warp = 0; warp < warps; ++warp)
      tick(warp);
  }

  /// Warp w is party w; the others are numbered behind.
  unsigned warps() const { return count; }
  unsigned fencesOf(unsigned warp) const { return count + warp; }
  unsigned named(unsigned id) const { return 2 * count + id; }
  unsigned mbarrier(unsigned slot) const {
    return 2 * count + kNamedBarriers + slot;
  }

  const Clock &of(unsigned warp) const { return clocks[warp]; }
  /// What the clock of any warp says of this block's parties.
  const Times &times(const Clock &clock) const {
    const Times *times = clock.known.of(block);
    return times ? *times : nothing;
  }

  uint32_t now(unsigned warp) const { return known(warp, warp); }
  /// The last time of the party that the warp is ordered behind.
  uint32_t known(unsigned warp, unsigned party) const {
    return known(clocks[warp], party);
  }
  /// The same of the party of a clock that passed through a barrier.
  uint32_t known(const Clock &clock, unsigned party) const {
    return clock.known.of(block, party);
  }
  /// Puts a time of the party before whoever acquires the clock; it then has
  /// times of all parties of the block.
  void raise(Clock &clock, unsigned party, uint32_t time) const {
    clock.known.raise(block, unsigned(nothing.size()) - 1, 0);
    clock.known.raise(block, party, time);
  }

  void release(unsigned warp, Clock &into) {
    into.join(clocks[warp]);
    tick(warp);
  }
  /// Tells that what was before is over, but shows no write.
  void releaseUnseen(unsigned warp, Clock &into) {
    into.known.join(clocks[warp].known);
    tick(warp);
  }
  void acquire(unsigned warp, const Clock &from) { clocks[warp].join(from); }
  /// The warp is ordered behind a time of a party of its own block.
  void learn(unsigned warp, unsigned party, uint32_t time) {
    raise(clocks[warp], party, time);
  }
  void fence(unsigned warp) {
    learn(warp, fencesOf(warp), known(warp, fencesOf(warp)) + 1);
    for (unsigned other = 0; other < count; ++other)
      knownAtFences[warp].push_back(known(warp, other));
  }
  /// The same for global memory: what is in sight is so of the copy engine too,
  /// and what the warp does next is of a new time.
  void fenceGlobal(unsigned warp) {
    if (!together)
      return;
    clocks[warp].fenced.join(clocks[warp].sight);
    tick(warp);
  }
  /// Whether a fence lies between what a warp did at a time and whoever knows
  /// these times: its own from number `fence` on, or that of another warp which
  /// was ordered behind that time.
  bool isFenced(const Times &times, unsigned warp, uint32_t time,
                uint32_t fence) const {
    if (times[fencesOf(warp)] >= fence)
      return true;
    for (unsigned other = 0; other < count; ++other) {
      uint32_t fences = times[fencesOf(other)];
      if (other != warp && fences > 0 &&
          knownAtFences[other][(fences - 1) * count + warp] >= time)
        return true;
    }
    return false;
  }
  /// All warps meet: everything before is ordered before everything after.
  void meet() {
    Clock joined;
    releaseAll(joined);
    acquireAll(joined);
  }
  void releaseAll(Clock &into) {
    for (unsigned warp = 0; warp < count; ++warp)
      release(warp, into);
  }
  void acquireAll(const Clock &from) {
    for (unsigned warp = 0; warp < count; ++warp)
      acquire(warp, from);
  }

private:
  void tick(unsigned warp) {
    uint32_t time = now(warp) + 1;
    raise(clocks[warp], warp, time);
    if (together)
      clocks[warp].sight.raise(block, warp, time);
  }

  unsigned block;
  bool together;
  unsigned count;
  std::vector<Clock> clocks;
  /// Per warp: the times of all warps that it knew, fence by fence.
  std::vector<Times> knownAtFences;
  /// Of whom nothing is known.
  Times nothing;
};

} // namespace attn::interpreter

#endif
