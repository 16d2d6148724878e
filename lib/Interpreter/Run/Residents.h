//===- Residents.h - Blocks that run at once --------------------*- C++ -*-===//
//
// Most kernels' blocks know nothing of each other and run one after the other,
// each alone.  Blocks that wait for each other are resident together: here, and
// on the device.  Turn by turn one of them lets its warps go on; which one is
// an option, and some of the orders are as unkind as can be.
//
// The blocks of a kernel that wait for one another are all resident, those of
// others by clusters.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_RUN_RESIDENTS_H
#define ATTN_LIB_INTERPRETER_RUN_RESIDENTS_H

#include "Memory/Flags.h"
#include "Memory/Visibility.h"
#include "Run/Warp.h"

namespace attn::interpreter {

class Residents {
public:
  Residents(Launch &launch, llvm::ArrayRef<std::array<int64_t, 3>> positions,
            const InterpreterOptions &options);

  /// Whether there is more than one block to know of.
  const bool together;
  Visibility visibility;
  Flags flags;

  const ThreadBlock &block(unsigned number) const { return blocks[number]; }
  /// The blocks of a block's cluster, by rank.
  llvm::SmallVector<ThreadBlock *> clusterOf(const ThreadBlock &block);

  /// Runs all blocks to their ends.
  void run();
  /// Bytes moved by all.
  tile::Traffic traffic() const;

private:
  Turn round();
  bool meetCluster(ThreadBlock &block);
  bool land();
  void reportDeadlock();

  Reporter &reporter;
  std::deque<ThreadBlock> blocks;
  BlockOrder order;
  /// The block that starves, if one does.
  unsigned starved;
  std::mt19937_64 random;
  /// Of the blocks.
  std::vector<unsigned> turns;
};

} // namespace attn::interpreter

#endif
