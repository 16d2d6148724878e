//===- KeyWalk.h - The blocks that a tile walks, step by step ---*- C++ -*-===//
//
// A tile goes through blocks of what streams past it: one block a step, the
// same for every role of its kernel.  Who walks asks which block a step has,
// and not where it lies.
//
// Here the blocks are one run, walked down from its last block, or up.
// Example: the run 2 .. 4, down: steps 0 to 2 have blocks 4, 3 and 2.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_KEYWALK_H
#define ATTN_LIB_KERNELS_WALK_KEYWALK_H

#include "Build/TileBuilder.h"

namespace attn {

/// A run of blocks, `begin .. end - 1`.
struct Run {
  Scalar begin, end;
};

class KeyWalk {
public:
  KeyWalk() = default;
  explicit KeyWalk(const Run &run, bool goesUp = false)
      : run(run), goesUp(goesUp) {}

  /// All blocks, for who needs them in order of number.
  const Run &all() const { return run; }
  Scalar steps() const { return run.end - run.begin; }
  /// The block of a step.
  Scalar block(Scalar step) const {
    return goesUp ? run.begin + step : run.end - 1 - step;
  }
  /// The blocks of the first step and of the last.
  Scalar first() const { return goesUp ? run.begin : run.end - 1; }
  Scalar last() const { return goesUp ? run.end - 1 : run.begin; }
  /// The blocks of the steps before and behind that of a block.
  Scalar before(Scalar block) const { return block + (goesUp ? -1 : 1); }
  Scalar behind(Scalar block) const { return block + (goesUp ? 1 : -1); }

private:
  Run run;
  bool goesUp = false;
};

} // namespace attn

#endif
