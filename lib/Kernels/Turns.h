//===- Turns.h - Warpgroups take turns at the tensor cores ------*- C++ -*-===//
//
// Ping-pong: while one warpgroup starts its products, the others work on their
// softmax.  Warpgroup g waits for its turn at named barrier g + 1, to which the
// one before comes when it has started its own.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_TURNS_H
#define ATTN_LIB_KERNELS_TURNS_H

#include "TileBlocks.h"

namespace attn {

class Turns {
public:
  /// Nobody waits.
  Turns() = default;
  /// For warpgroup number `group` out of so many; the first gets its turn.
  Turns(TileBuilder &b, Scalar group, int64_t groups)
      : isOn(true), mine(group + 1) {
    next = b.select(group == b.i32(groups - 1), b.i32(1), group + 2);
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

private:
  /// Of the warpgroup that waits and of the one that comes.
  static constexpr uint32_t kWarps = 2 * kWarpsPerGroup;
  static void come(TileBuilder &b, Scalar barrier) {
    tile::BarArriveOp::create(b, barrier, kWarps);
  }

  bool isOn = false;
  Scalar mine, next;
};

} // namespace attn

#endif
