//===- Mbarriers.h - Barriers that count arrivals and bytes -----*- C++ -*-===//
//
// An mbarrier goes from phase to phase.  A phase ends when all its arrivals
// have come and all bytes announced in it have landed.  Who waits names a
// parity and passes while the phase under way has the other one, as the
// hardware does.
//
// A parity is one bit, so both sides must stay within one phase of each other.
// Whether they do must not hang on a lucky order of warps, so it is checked
// with clocks (Clocks.h), where a warp's entry for a barrier is the number of
// phases it knows to have ended:
//
// * An arrival belongs to phase k only if its warp knows that phase k - 1 has
//   ended.  Otherwise it may come early and be counted there: one arrival too
//   many, or one that nobody waited for.  So do bytes that another block of the
//   cluster loads.  A warp whose arrival is the only one knows the end.
// * A wait with parity p of a warp that knows m phases is for phase m if that
//   has parity p, else for phase m - 1, which it knows already.
// * Phase k + 1 may end only behind all waits for phase k.  Otherwise a waiter
//   may find that parity gone, and hang or take a later phase for its own.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_SYNC_MBARRIERS_H
#define ATTN_LIB_INTERPRETER_SYNC_MBARRIERS_H

#include "Memory/Clocks.h"

#include <deque>
#include <random>
#include <string>
#include <vector>

namespace attn::interpreter {

class ThreadBlock;
class Warp;
enum class Step;
struct Instruction;

/// What a blocked warp waits for: the phase of an mbarrier, a named barrier, or
/// a value of a flag.
struct Obstacle {
  enum class Kind { none, mbarrier, named, flag } kind = Kind::none;
  unsigned barrier = 0;
  int64_t phase = 0;
  /// Of a flag.
  uint64_t address = 0;
};

class Mbarriers {
public:
  explicit Mbarriers(ThreadBlock &block);

  /// Waits for the end of the phase of that parity.
  Step wait(Warp &warp, const Instruction &in, unsigned barrier,
            int64_t parity);
  /// One arrival, which announces bytes, by a warp of this block or of another.
  /// False, and reported, when it is wrong.
  bool arrive(Warp &warp, const Instruction &in, unsigned barrier,
              int64_t bytes = 0);
  /// Announced bytes are on their way.
  bool bring(Warp &warp, const Instruction &in, unsigned barrier,
             int64_t bytes);

  /// The phase under way.
  unsigned phase(unsigned barrier) const { return all[barrier].phase; }
  /// What has yet to come: `1 of 4 arrivals and 1024 bytes`.
  std::string missing(unsigned barrier) const;

  /// Lets announced bytes land: all of them, or those that chance picks.  True
  /// if some did.
  bool land(std::mt19937_64 *random);
  /// Whether bytes land when they are announced.
  bool landAtOnce = true;

private:
  /// The last wait of a warp that passed.
  struct Wait {
    int64_t phase = -1;
    uint32_t time = 0;
    unsigned instruction = 0;
  };
  struct Mbarrier {
    unsigned phase = 0;
    /// Of the phase under way.
    unsigned missingArrivals;
    int64_t missingBytes = 0;
    Clock arrived;
    /// The arrival that came last.
    Warp *lastWarp = nullptr;
    unsigned lastInstruction = 0;
    /// Of all phases before.
    Clock ended;
    std::vector<Wait> waits;
  };
  struct Landing {
    unsigned barrier;
    int64_t bytes;
  };

  bool check(Warp &warp, const Instruction &in, unsigned barrier,
             bool isArrival);
  void endIfComplete(unsigned barrier);

  ThreadBlock &block;
  std::vector<Mbarrier> all;
  std::deque<Landing> landings;
};

} // namespace attn::interpreter

#endif
