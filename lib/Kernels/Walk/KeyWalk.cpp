//===- KeyWalk.cpp - The blocks that a tile walks, step by step -----------===//

#include "Walk/KeyWalk.h"

using namespace mlir;
using namespace attn;

ValueRange KeyWalk::forEach(TileBuilder &b, int64_t fromStep, ValueRange init,
                            Body body) const {
  if (goesUp) {
    Scalar from = fromStep == 0 ? run.begin : run.begin + fromStep;
    return b.loop(from, run.end, init, body);
  }
  return b.loop(b.i32(fromStep), steps(), init,
                [&](Scalar step, ValueRange carried) {
                  return body(block(step), carried);
                });
}

Place KeyWalk::forEach(TileBuilder &b, Place place,
                       Place::LoopBody body) const {
  ValueRange last =
      forEach(b, 0, {place.slot, place.parity},
              [&](Scalar block, ValueRange p) -> SmallVector<Value> {
                Place next = body(block, {b.wrap(p[0]), b.wrap(p[1])});
                return {next.slot, next.parity};
              });
  return {b.wrap(last[0]), b.wrap(last[1])};
}

KeyWalk KeyWalk::inGroups(TileBuilder &b, int64_t size) const {
  return KeyWalk({run.begin / size, b.ceilDiv(run.end, size)}, goesUp);
}

Run KeyWalk::ofGroup(TileBuilder &b, Scalar group, int64_t size) const {
  Scalar first = group * size;
  return {b.max(run.begin - first, b.i32(0)),
          b.min(run.end - first, b.i32(size))};
}
