//===- NamedBarriers.h - Barriers 1 to 15 of a block ------------*- C++ -*-===//
//
// A named barrier opens when as many warps have come to it as its ops say;
// those that sync wait for the opening, those that arrive do not.  It may then
// be used again.  As with mbarriers, a warp may come to it again only if it
// knows of the opening before; otherwise it might be counted there.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_SYNC_NAMEDBARRIERS_H
#define ATTN_LIB_INTERPRETER_SYNC_NAMEDBARRIERS_H

#include "Memory/Clocks.h"

#include "llvm/ADT/SmallVector.h"

#include <array>
#include <optional>
#include <string>

namespace attn::interpreter {

class ThreadBlock;
class Warp;
enum class Step;
struct Instruction;

class NamedBarriers {
public:
  explicit NamedBarriers(ThreadBlock &block) : block(block) {}

  /// Counts the warp, which then waits if it syncs.
  Step come(Warp &warp, const Instruction &in, int64_t id, int64_t warps,
            bool syncs);
  /// What has yet to come: `4 of 8 warps`.
  std::string missing(unsigned id) const;

private:
  struct Barrier {
    /// Of the opening to come; 0 while no warp has come.
    unsigned expected = 0, arrived = 0;
    unsigned firstInstruction = 0;
    Clock clock;
    llvm::SmallVector<unsigned> syncing;
    unsigned openings = 0;
  };
  bool check(Warp &warp, const Instruction &in, int64_t id, int64_t warps);
  void open(unsigned id);

  ThreadBlock &block;
  std::array<Barrier, kNamedBarriers> all;
};

} // namespace attn::interpreter

#endif
