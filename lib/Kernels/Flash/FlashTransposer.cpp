//===- FlashTransposer.cpp - The role that turns 8-bit values -------------===//
//
// wgmma contracts 8-bit factors along their columns only, so O += P V needs the
// transpose of V.  Three warps beside the producer read each block where TMA
// has put it and write its transpose to a second ring, from which the consumers
// take it as they take blocks of 16-bit values.
//
// Example: blocks of 128 keys are four strips of 32; warp 0 turns strips 0 and
// 3, warp 1 strip 1, warp 2 strip 2.
//
//===----------------------------------------------------------------------===//

#include "Flash/FlashFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Transposer {
public:
  explicit Transposer(const FlashFrame &frame)
      : f(frame), b(frame.b), worker(b.warpId() - FlashFrame::kProducerWarps) {}

  void run() {
    Place start = Place::reader(b);
    forEachTile(b, f.queue, {start.slot, start.parity},
                [&](const Tile &tile, ValueRange s) -> SmallVector<Value> {
                  Place v = transpose(tile, {b.wrap(s[0]), b.wrap(s[1])});
                  return {v.slot, v.parity};
                });
  }

private:
  Place transpose(const Tile &tile, Place v) {
    Scalar steps = f.blocks->walkOf(b, tile).steps();
    return v.loop(b, b.i32(0), steps, [&](Scalar, Place v) {
      block(v);
      return f.ringV.next(b, v);
    });
  }

  /// The warp's strips of a block.  Both rings have as many slots, and who
  /// writes a slot for the n-th time waits for the phase before.
  void block(Place v) {
    constexpr int64_t rows = TransposeOp::kRows;
    f.ringLoadedV.awaitFull(b, v);
    f.ringV.awaitEmpty(b, {v.slot, v.parity ^ 1});
    Scalar strips =
        (b.i32(f.key / rows + f.helperWarps - 1) - worker) / f.helperWarps;
    b.loop(b.i32(0), strips, {},
           [&](Scalar i, ValueRange) -> SmallVector<Value> {
             Scalar strip = i * f.helperWarps + worker;
             TransposeOp::create(b, f.bufferLoadedV, v.slot, strip * rows,
                                 f.buffersV.front(), v.slot);
             return {};
           });
    FenceAsyncOp::create(b);
    f.ringV.handOver(b, v);
    f.ringLoadedV.release(b, v);
  }

  const FlashFrame &f;
  TileBuilder &b;
  Scalar worker; ///< number of the warp in the role
};

} // namespace

void attn::transposeValues(const FlashFrame &frame) { Transposer(frame).run(); }
