//===- Interpreter.h - Executes a kernel without a GPU ----------*- C++ -*-===//
//
// Runs a `tile.kernel` over a grid on the CPU, one tile at a time, and watches
// it.  Three things come out: what the kernel computes (in global memory), the
// bytes it moves at each level, and every breach of the execution model that
// its ops state (TileDialect.td).
//
// **Warps.** Each warp has its own frame stack and runs until it must wait at a
// barrier; then another continues.  The order is an option, because a wrong
// kernel may be right in one order.  So is when bytes that TMA loads land: at
// once (forward), when nothing else can go on (reverse), or any time
// (shuffled).
//
// **Blocks** run one after another, unless they wait for each other: those of a
// cluster run at once, and all of a cooperative kernel.  Then what one writes
// to global memory is in sight of another only where a publish and an await, or
// the meeting of a cluster, put it there (lib/Interpreter/Memory/Visibility.h).
//
// **Values.** A fragment is a dense matrix of floats, rounded to nearest even
// whenever it becomes bf16 or f16.  A partial row keeps the four parts of its
// lanes apart.  Undefined shared memory and data in flight read as NaN.
//
// **Protocol.** Errors do not hang on a lucky interleaving: each warp carries a
// vector clock, which a barrier joins, and every 16 bytes of shared memory
// remember their last writer and their readers.  An access that is not
// *ordered* behind the accesses it depends on is an error in every warp order.
// An asynchronous copy counts as done for others when *all* warps of the block
// have waited for their share and a barrier has told them so.  What TMA loads
// is there for who knows that its mbarrier's phase has ended; what TMA stores
// or a product reads must stay until its warp has waited.
//
// Example.  Two warps, one stage, and a kernel that forgets the last barrier:
//
//   copy_async K; commit_group; wait_group 0; barrier; load_matrix K; <again>
//
// In the second round warp 0 starts to overwrite K while warp 1 may still read
// it.  Reported at the access that comes second, here at warp 1's load_matrix:
// "expects a barrier between this op and the copy to rows 0 to 63 of buffer 'K'
// by warp 0, but got none (warp 1 of block 0, 0, 0)".
//
// **What is reported**, each at the op that does it, naming block and warp:
//   access outside an allocation, broken alignment, uninitialised global read;
//   stage, row or column outside a buffer; uninitialised shared read;
//   read of a copy in flight, read or overwrite without a barrier between;
//   copy that not all warps share or on which they disagree;
//   barrier that some warps never reach, or at which others wait elsewhere;
//   copies, products or stores in flight at the end; integer division by zero;
//   warps that wait for each other, also those of different blocks, with what
//   each waits for;
//   access to what another block wrote or reads, without publish and await;
//   flags: no order between publishes, lowered before all awaits, not 0 at the
//   ends of the kernel;
//   mbarriers: an arrival too many or not behind the phase before, a phase that
//   may end twice before a waiter looks;
//   named barriers: unknown ids, different counts, no order between openings;
//   queues: a message or reader out of turn; counters that do not return to 0;
//   arrays that TMA cannot address;
//   asynchronous reads of stores that no fence made visible;
//   products that the warps of a warpgroup do not start together.
//
// Deliberately absent: time, bank conflicts, and the lanes of a warp.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERPRETER_INTERPRETER_H
#define ATTN_INTERPRETER_INTERPRETER_H

#include "attn/Host/KernelArgument.h"
#include "attn/Interpreter/GlobalMemory.h"
#include "attn/Interpreter/Trace.h"
#include "attn/Tile/Tile.h"

#include "llvm/ADT/DenseSet.h"

#include <array>
#include <cstdint>

namespace attn {

/// Which warp of a block goes on when one must wait.
enum class WarpOrder {
  forward,
  reverse,
  /// Seeded; also changes the warp at random between ops.
  shuffled,
};

/// Which block goes on, where several run at once.
enum class BlockOrder {
  /// As the warps: each in turn, newest first, or shuffled.
  sameAsWarps,
  /// Each goes on until none of its warps can, and then the next.
  inTurn,
  /// The first that can go on does, for as long as it can.
  oldestFirst,
  /// The last that can go on does, for as long as it can.
  newestFirst,
  /// One block, which the seed picks, goes on only when no other can.
  oneStarved,
  /// Seeded.
  shuffled,
};

struct InterpreterOptions {
  WarpOrder order = WarpOrder::forward;
  BlockOrder blocks = BlockOrder::sameAsWarps;
  uint64_t seed = 0;
  /// Execution goes on behind errors that allow it until so many are reported.
  /// One op reports one kind of error once.
  int64_t maxErrors = 1;
  /// Where the ops go that some warp has executed, if anybody wants to know.
  llvm::DenseSet<mlir::Operation *> *executed = nullptr;
  /// Where it goes what the warps of the first block of each launch do, in
  /// order, if anybody wants to know.
  Trace *trace = nullptr;
};

/// Runs the kernel.  Returns the bytes moved as executed, or fails when any
/// error was reported; errors are diagnostics at the kernel's ops.
mlir::FailureOr<tile::Traffic>
interpret(tile::KernelOp kernel, std::array<int64_t, 3> grid,
          llvm::ArrayRef<KernelArgument> arguments, GlobalMemory &memory,
          const InterpreterOptions &options = {});

} // namespace attn

#endif
