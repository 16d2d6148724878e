//===- ListedSteps.h - Steps of gradients that lists name -------*- C++ -*-===//
//
// Where a pattern lists blocks, or they are runs of bands (BandRuns.h), the
// role that draws tiles alone walks the lists (BlockLists.h).  It tells the
// others of each step through a queue: head and block, whether a mask is to be
// asked, and whether it is the tile's last.  So nobody else reads lists or
// knows how many steps there are; that a tile has some is told with it.
//
// A tile of keys walks the lists of all query heads that share the keys, one
// after the other.  Blocks of the kernel behind the end of what streams, which
// a ragged block of the pattern names too, are left out.  A step is told when
// the one behind it is known: that is what makes it the last or not, and the
// number is read ahead of time.
//
// Example: blocks of 128 queries, 64 in the kernel, 200 queries.  Partial 1,
// full 0: block 2 (cut), then 0 and 1, which is the last.  Block 3 is left out.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_GRADIENTS_LISTEDSTEPS_H
#define ATTN_LIB_KERNELS_GRADIENTS_LISTEDSTEPS_H

#include "Gradients/GradientFrame.h"

namespace attn {

/// The queue of steps, that so many warps read.
mlir::Value stepQueue(TileBuilder &builder, int64_t readers);

/// What a role does in a step: from what it carries, what it carries on.
using StepBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    const GradientStep &step, mlir::ValueRange carried)>;
/// A place in the queue of steps, and what else is carried.
struct StepsEnd {
  Place message;
  mlir::ValueRange carried;
};

/// Goes through the steps of a tile, and tells the others of each before
/// `body`.
StepsEnd feedSteps(const GradientFrame &frame, const Tile &tile, Place message,
                   mlir::ValueRange init, StepBody body);

/// What a role that is told does in a step: calls `hear` once, when it wants to
/// know which step it is.
using Hear = llvm::function_ref<GradientStep()>;
using HeardBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    Hear hear, mlir::ValueRange carried)>;
/// The steps of a tile, for the others.
StepsEnd followSteps(const GradientFrame &frame, const Tile &tile,
                     Place message, mlir::ValueRange init, HeardBody body);

} // namespace attn

#endif
