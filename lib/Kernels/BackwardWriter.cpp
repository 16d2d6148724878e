//===- BackwardWriter.cpp - What leaves a flash_backward kernel -----------===//
//
// One lane.  A consumer warpgroup leaves what is to go in its stage of the
// staging buffer: of every step its part of dQ, which is added to the sums in
// global memory, and at the end of a tile 64 rows of dV and then of dK.
//
// The fence between ordinary stores and the copy engine waits for hundreds of
// cycles while products read shared memory; here nobody waits with it.
//
//===----------------------------------------------------------------------===//

#include "BackwardFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Writer {
public:
  explicit Writer(const BackwardFrame &frame) : f(frame), b(frame.b) {}

  void write() {
    Place start = Place::reader(b);
    Tile first = f.pop(start);
    Place message = start.next(b, kTileMessages);
    b.repeat(
        {first.row, first.head, first.batch, message.slot, message.parity,
         start.parity},
        [&](ValueRange s) { return b.i32(-1) < b.wrap(s[0]); },
        [&](ValueRange s) { return writeTile(s); });
  }

private:
  SmallVector<Value> writeTile(ValueRange s) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Tile tile{at(0), at(1), at(2)};
    Place message{at(3), at(4)};
    Walk walk = f.walkOf(tile);
    Step step = f.firstStep(walk);
    ValueRange last = b.loop(
        b.i32(0), walk.steps, {at(5), step.head, step.block},
        [&](Scalar, ValueRange p) -> SmallVector<Value> {
          Scalar parity = b.wrap(p[0]);
          Step step{b.wrap(p[1]), b.wrap(p[2])};
          Scalar block = f.numberOf(tile.batch, step.head, step.block);
          forEachGroup(parity, [&](int64_t group) {
            AddWordsOp::create(b, f.staging, b.i32(group),
                               f.arguments.get(b, "scratch_dq"),
                               block * f.groups + group, f.partElements());
          });
          Step after = f.nextStep(walk, step);
          return {parity ^ 1, after.head, after.block};
        });
    Scalar parity = b.wrap(last[0]);
    for (StringRef gradient : {"dv", "dk"}) {
      forEachGroup(parity, [&](int64_t group) {
        TmaStoreOp::create(b, f.staging, /*source_row=*/b.i32(0),
                           f.map(gradient), tile.batch, tile.head,
                           tile.row + group * kGroupRows, /*column=*/0,
                           /*stage=*/b.i32(group));
      });
      parity = parity ^ 1;
    }
    Tile next = f.pop(message);
    message = message.next(b, kTileMessages);
    return {next.row,     next.head,      next.batch,
            message.slot, message.parity, parity};
  }

  /// Hands each warpgroup's stage back when what `start` starts has read it.
  void forEachGroup(Scalar parity, function_ref<void(int64_t group)> start) {
    for (int64_t group = 0; group < f.groups; ++group) {
      Place place{b.i32(group), parity};
      f.ringStaged.awaitFull(b, place);
      FenceAsyncOp::create(b);
      start(group);
      TmaStoreWaitOp::create(b, 0u);
      f.ringStaged.release(b, place);
    }
  }

  const BackwardFrame &f;
  TileBuilder &b;
};

} // namespace

void attn::writeGradients(const BackwardFrame &frame) { Writer(frame).write(); }
