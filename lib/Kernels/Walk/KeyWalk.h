//===- KeyWalk.h - The blocks that a tile walks, step by step ---*- C++ -*-===//
//
// A tile goes through blocks of what streams past it: one block a step, the
// same for every role of its kernel.  Who walks asks which block a step has,
// and not where it lies.
//
// What a mask shows is one run of blocks, walked down from its last one, or up.
// Example: the run 2 .. 4, down: steps 0 to 2 have blocks 4, 3 and 2.  Who
// holds several blocks at once walks groups of them.  What a pattern shows is
// listed (BlockLists.h), and then only steps can be asked for, one by one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_KEYWALK_H
#define ATTN_LIB_KERNELS_WALK_KEYWALK_H

#include "Walk/BlockLists.h"

#include <optional>

namespace attn {

class KeyWalk {
public:
  KeyWalk() = default;
  explicit KeyWalk(const Run &run, bool goesUp = false)
      : run(run), goesUp(goesUp) {}
  /// Of so many steps: one at least, with block 0 where nothing is listed.
  KeyWalk(const ListWalk &lists, Scalar steps)
      : lists(lists), stepsOfLists(steps) {}

  Scalar steps() const { return lists ? stepsOfLists : run.count(); }
  /// The block of a step, and that of the step before one and its block.
  Scalar block(Scalar step) const {
    if (lists)
      return lists->block(step);
    return goesUp ? run.begin + step : run.end - 1 - step;
  }
  Scalar blockBefore(Scalar step, Scalar block) const {
    return lists ? lists->block(step - 1) : before(block);
  }
  /// The blocks of the first step and of the last.
  Scalar first() const {
    if (lists)
      return lists->firstIfAny();
    return goesUp ? run.begin : run.end - 1;
  }
  Scalar last() const {
    if (lists)
      return lists->lastIfAny();
    return goesUp ? run.end - 1 : run.begin;
  }

  //===--------------------------------------------------------------------===//
  // Of a run
  //===--------------------------------------------------------------------===//

  /// All blocks, for who needs them in order of number.
  const Run &all() const { return run; }
  Scalar isFirst(Scalar block) const { return block == first(); }
  Scalar isLast(Scalar block) const {
    return goesUp ? block + 1 == run.end : block == run.begin;
  }
  Scalar isBehindFirst(Scalar block) const {
    return goesUp ? run.begin < block : block < run.end - 1;
  }
  Scalar hasSteps() const { return run.begin < run.end; }
  /// Whether there is a step for a block that is not before the first one's.
  Scalar reaches(Scalar block) const {
    return goesUp ? block < run.end : run.begin <= block;
  }
  /// The step of a block.
  Scalar stepOf(Scalar block) const {
    return goesUp ? block - run.begin : run.end - 1 - block;
  }
  /// The blocks of the steps before and behind that of a block.
  Scalar before(Scalar block) const { return block + (goesUp ? -1 : 1); }
  Scalar behind(Scalar block) const { return block + (goesUp ? 1 : -1); }

  /// Goes through the blocks from a step on, with what is carried from one to
  /// the next, or a place.
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      Scalar block, mlir::ValueRange carried)>;
  mlir::ValueRange forEach(TileBuilder &builder, int64_t fromStep,
                           mlir::ValueRange init, Body body) const;
  Place forEach(TileBuilder &builder, Place place, Place::LoopBody body) const;

  /// The groups of `size` neighbours with blocks of the walk in them, and of a
  /// group those that are, counted from its first one on.
  KeyWalk inGroups(TileBuilder &builder, int64_t size) const;
  Run ofGroup(TileBuilder &builder, Scalar group, int64_t size) const;

private:
  Run run;
  bool goesUp = false;
  std::optional<ListWalk> lists;
  Scalar stepsOfLists;
};

} // namespace attn

#endif
