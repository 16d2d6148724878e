//===- Visibility.h - Who sees what other blocks wrote ----------*- C++ -*-===//
//
// Global memory between blocks that run at once, and the order of it.
//
// **The model** keeps of PTX's: release and acquire at the scope of the GPU
// order memory, and so do barriers inside a block and the meetings of a
// cluster; order is transitive over all of these, so one lane may speak for a
// block.  A write is in sight of whoever is ordered behind it that way, and of
// nobody else: without that it may come to another block at any time, early or
// late, in any order with other writes.  The same holds the other way round
// for a read and the write that replaces what it read.
//
//   block 0, warps  store_registers A         write at warp 4's time 7
//   block 0, lane   mbarrier_wait; publish    a release that shows time 7
//   block 1, lane   await; mbarrier_arrive    has it in sight, and passes it on
//   block 1, warps  mbarrier_wait; load_registers A
//
// Every write and read is therefore checked against the clocks' `sight`.  What
// is not in order is an error in every schedule, and besides the reader gets
// the new bytes (forward), those from before (reverse; NaN where there were
// none), or either (shuffled), as if the writer's block kept them back.
//
// What the copy engine stores comes at any time until the warp that started it
// has waited for it to be complete: it is a write of that warp behind the wait,
// and before it in sight of nobody, that warp included.
//
// **Simpler than PTX**: accesses are never atomic (flags and counters are, and
// have ops of their own); a write that is in sight of two blocks appears to
// both at once; an arrival at another block's mbarrier, or bytes that are
// loaded there, tell that its warp's reads are over and that phases have ended,
// which PTX promises only with release, but show no writes; a store by the copy
// engine needs no fence behind generic reads and writes of what it replaces;
// draws from a counter order nothing.  What is added to has an order of its own
// (Additions.h).
//
// **Proxies.**  TMA reads through another path than ordinary loads do.  What it
// loads must lie behind a `tile.fence_async global` that is itself behind the
// write, on either side of the flag; but what a block's own copy engine stored
// needs none.
//
//   block 1, lane   await; fence_async global; tma_load A
//
// A block that runs alone keeps no such record.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_MEMORY_VISIBILITY_H
#define ATTN_LIB_INTERPRETER_MEMORY_VISIBILITY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attn::interpreter {

class Warp;
struct Instruction;

/// What a warp did when.
struct Event {
  unsigned block, warp;
  uint32_t time;
  unsigned instruction;
};

Event eventOf(const Warp &warp, const Instruction &in);
/// Whether the warp is ordered behind the event, with its writes in sight.
bool inSight(const Warp &warp, const Event &event);

class Visibility {
public:
  /// Checks and records a read.  `bytes` is what memory holds; where it is not
  /// in sight, it becomes what else the warp may get.
  void read(Warp &warp, const Instruction &in, uint64_t address,
            llvm::MutableArrayRef<uint8_t> bytes);
  /// The same by the copy engine.
  void load(Warp &warp, const Instruction &in, uint64_t address,
            llvm::MutableArrayRef<uint8_t> bytes);
  /// Checks and records a write.  `before` is what memory holds, or nothing.
  void write(Warp &warp, const Instruction &in, uint64_t address, int64_t bytes,
             llvm::ArrayRef<uint8_t> before);
  /// The same by the copy engine, for the store that the warp started last.
  void store(Warp &warp, const Instruction &in, uint64_t address, int64_t bytes,
             llvm::ArrayRef<uint8_t> before);
  /// The stores of a warp before number `end` are complete since its wait.
  void complete(const Event &wait, uint64_t end);
  /// The write that bytes come from, if it was one.
  std::optional<Event> writerOf(uint64_t address, int64_t bytes) const;

private:
  /// Bytes that were accessed alike.
  struct Range {
    uint64_t end;
    std::optional<Event> writer;
    bool isStored = false; ///< by the copy engine
    /// What it replaced; empty if nothing was there.
    std::vector<uint8_t> before;
    /// The last read of each warp since.
    llvm::SmallVector<Event, 2> readers;
  };
  /// What the copy engine has been told to store.
  struct Store {
    unsigned block, warp;
    uint64_t number; ///< among those of the warp
    uint64_t begin, end;
  };
  /// The time of a store that nobody has waited for.
  static constexpr uint32_t kInFlight = std::numeric_limits<uint32_t>::max();

  /// What keeps the bytes of a range from a read, if anything.
  enum class Gap { none, order, fence };
  static Gap gapBefore(const Warp &warp, const Range &range, bool isLoad);
  void read(Warp &warp, const Instruction &in, uint64_t address,
            llvm::MutableArrayRef<uint8_t> bytes, bool isLoad);
  static void report(Warp &warp, const Instruction &in, llvm::StringRef done,
                     const Event &event, llvm::StringRef now);
  static void reportUnfenced(Warp &warp, const Instruction &in,
                             const Event &writer);
  void write(Warp &warp, const Instruction &in, const Event &event,
             bool isStored, uint64_t address, int64_t bytes,
             llvm::ArrayRef<uint8_t> before);
  void split(uint64_t at);
  template <typename Apply>
  void cover(uint64_t begin, uint64_t end, Apply apply);

  /// By their first byte.
  std::map<uint64_t, Range> ranges;
  std::vector<Store> inFlight;
};

/// Reads or writes global memory on behalf of a warp.  The sentence that says
/// what is wrong with the access, or nothing; accesses out of order are
/// reported.  `loadGlobal` and `storeGlobal` are by the copy engine.
std::optional<std::string> readGlobal(Warp &warp, const Instruction &in,
                                      uint64_t address, void *target,
                                      int64_t bytes);
std::optional<std::string> loadGlobal(Warp &warp, const Instruction &in,
                                      uint64_t address, void *target,
                                      int64_t bytes);
std::optional<std::string> writeGlobal(Warp &warp, const Instruction &in,
                                       uint64_t address, const void *source,
                                       int64_t bytes);
std::optional<std::string> storeGlobal(Warp &warp, const Instruction &in,
                                       uint64_t address, const void *source,
                                       int64_t bytes);
/// As `storeGlobal`, adding to f32 words (Additions.h).
std::optional<std::string> addGlobal(Warp &warp, const Instruction &in,
                                     uint64_t address,
                                     llvm::ArrayRef<float> summands);
/// The same, storing what sums of f32 begin with.
std::optional<std::string> beginGlobal(Warp &warp, const Instruction &in,
                                       uint64_t address,
                                       llvm::ArrayRef<float> words);

} // namespace attn::interpreter

#endif
