//===- Turns.h - Warpgroups take turns at the tensor cores ------*- C++ -*-===//
//
// Ping-pong: while one warpgroup starts its products, the others work on their
// softmax.  Warpgroup g waits for its turn at named barrier g + 1, to which the
// one before comes when it has started its own.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_PIPE_TURNS_H
#define ATTN_LIB_KERNELS_PIPE_TURNS_H

#include "Walk/TileBlocks.h"

namespace attn {

class Turns {
public:
  /// Nobody waits.
  Turns() = default;
  /// For warpgroup number `group` out of so many; the first gets its turn.  Of
  /// several rounds of them in a block, the one whose first has that number.
  Turns(TileBuilder &b, Scalar group, int64_t groups, Scalar first = {})
      : isOn(true), ofFirst(b.i32(1)) {
    Scalar inBlock = group;
    if (mlir::Value(first)) {
      ofFirst = first + 1;
      inBlock = first + group;
    }
    mine = inBlock + 1;
    next = b.select(group == b.i32(groups - 1), ofFirst, inBlock + 2);
    b.when(group == b.i32(0), [&] { come(b, mine); });
  }

  void take(TileBuilder &b) const {
    if (isOn)
      tile::BarSyncOp::create(b, mine, kWarps);
  }
  void pass(TileBuilder &b) const {
    if (isOn)
      come(b, next);
  }

  /// Whether a warpgroup may hold a tile's last value block until the next
  /// tile's first scores are started.  Until then the ring gets at most as many
  /// values as it has slots, that block counted, and two things wait for them:
  ///
  ///   The warpgroup.  Before the keys of its first scores come this tile's
  ///   values from that block on, and those of all blocks that it passes over
  ///   in the next one but the last: `below + above` in all, or one more where
  ///   it passes over none, since the queries come behind this tile's values.
  ///   With turns, the warpgroups before it in the round.  They pass that turn
  ///   on when the value of the block before is there: `below + above + 1`.
  Scalar mayJoin(TileBuilder &b, const GroupWalk &group, const GroupWalk &next,
                 int64_t stages) const {
    Scalar above = next.above;
    if (isOn)
      above = above + b.select(mine == ofFirst, b.i32(0), b.i32(1));
    return group.below + b.max(above, b.i32(1)) < b.i32(stages + 1);
  }

private:
  /// Of the warpgroup that waits and of the one that comes.
  static constexpr uint32_t kWarps = 2 * kWarpsPerGroup;
  static void come(TileBuilder &b, Scalar barrier) {
    tile::BarArriveOp::create(b, barrier, kWarps);
  }

  bool isOn = false;
  Scalar ofFirst, mine, next; ///< barriers
};

} // namespace attn

#endif
