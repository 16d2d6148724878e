//===- FlashBackwardWriter.cpp - What leaves a flash_backward kernel ------===//
//
// One lane.  A consumer warpgroup leaves what is to go in its stage of the
// staging buffer: of every step its part of dQ, which is added to the sums in
// global memory, or stored there as the first, and at the end of a tile 64 rows
// of dV and then of dK.
//
// The fence between ordinary stores and the copy engine waits for hundreds of
// cycles while products read shared memory; here nobody waits with it.
//
//===----------------------------------------------------------------------===//

#include "FlashBackward/FlashBackwardFrame.h"
#include "Gradients/ListedSteps.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Writer {
public:
  explicit Writer(const FlashBackwardFrame &frame) : f(frame), b(frame.b) {}

  void write() {
    SmallVector<Value> init = {Place::reader(b).parity,
                               b.i32(FlashBackwardFrame::kNoHead)};
    if (f.lists)
      llvm::append_values(init, Place::reader(b).slot, Place::reader(b).parity);
    ValueRange last =
        forEachTile(b, f.queue, init,
                    [&](const Tile &tile, ValueRange s) -> SmallVector<Value> {
                      Scalar before = b.wrap(s[1]);
                      if (f.lists)
                        return writeListed(tile, before, s);
                      Scalar parity = f.ordered
                                          ? addInOrder(tile, b.wrap(s[0]))
                                          : addTile(tile, b.wrap(s[0]), before);
                      return {storeTile(tile, parity),
                              countsLate() ? f.keyHeadOf(tile) : before};
                    });
    if (countsLate())
      countTile(b.wrap(last[1]), /*inFlight=*/0);
  }

private:
  /// Tiles are counted when the first step of the next one is on its way, but
  /// where every step has waited for its sums.
  bool countsLate() const { return f.finishesBeside && !f.ordered; }

  /// Starts adding a warpgroup's part of a block of dQ.
  void add(Scalar block, int64_t group) {
    auto op = AddWordsOp::create(b, f.staging, b.i32(group),
                                 f.arguments.get(b, "scratch_dq"),
                                 block * f.groups + group, f.partElements());
    if (f.ordered)
      op->setAttr("in_order", b.getUnitAttr());
  }

  /// The part of a warpgroup, added to the sums of a block or, if it is the
  /// first one, stored.
  void addOrStore(Scalar block, int64_t group, Scalar isFirst) {
    b.when(isFirst, [&] {
      StoreWordsOp::create(b, f.staging, b.i32(group),
                           f.arguments.get(b, "scratch_dq"),
                           block * f.groups + group, f.partElements());
    });
    b.when(isFirst == b.boolean(false), [&] { add(block, group); });
  }

  /// A step's parts.  Whether there is something to add to is asked for while
  /// consumers are at the step.
  void addStep(Scalar parity, Scalar block, Scalar isFirst) {
    b.when(isFirst == b.boolean(false), [&] { f.awaitFirst(block); });
    forEachGroup(parity,
                 [&](int64_t group) { addOrStore(block, group, isFirst); });
    b.when(isFirst, [&] {
      TmaStoreWaitOp::create(b, 0u, /*complete=*/true);
      f.tellFirst(block);
    });
  }

  /// `parity` is that of the staging ring, which is gone round once a step;
  /// `before` is the key head of the tile before, which is not counted yet.
  Scalar addTile(const Tile &tile, Scalar parity, Scalar before) {
    Walk walk = f.walkOf(tile);
    GradientStep step = f.firstStep(walk);
    ValueRange last = b.loop(
        b.i32(0), walk.steps, {parity, step.head, step.block},
        [&](Scalar number, ValueRange p) -> SmallVector<Value> {
          Scalar parity = b.wrap(p[0]);
          GradientStep step{b.wrap(p[1]), b.wrap(p[2])};
          Scalar block = f.numberOf(tile, step.head, step.block);
          if (f.firstStores)
            addStep(parity, block, f.isFirst(tile, step.block));
          else
            forEachGroup(parity, [&](int64_t group) { add(block, group); });
          if (f.finishesBeside)
            b.when(number == b.i32(0), [&] { countTile(before, f.groups); });
          GradientStep after = f.nextStep(walk, step);
          return {parity ^ 1, after.head, after.block};
        });
    if (f.finishesBeside)
      b.when(walk.steps == b.i32(0), [&] { countTile(before, 0); });
    return b.wrap(last[0]);
  }

  /// The same of steps that it is told of, and what comes behind them.
  SmallVector<Value> writeListed(const Tile &tile, Scalar before,
                                 ValueRange s) {
    StepsEnd end = followSteps(
        f, tile, {b.wrap(s[2]), b.wrap(s[3])}, {s[0], b.i32(1)},
        [&](Hear hear, ValueRange p) -> SmallVector<Value> {
          Scalar parity = b.wrap(p[0]);
          GradientStep step = hear();
          Scalar block = f.numberOf(tile, step.head, step.block);
          forEachGroup(parity, [&](int64_t group) { add(block, group); });
          if (f.finishesBeside)
            b.when(b.i32(0) < b.wrap(p[1]),
                   [&] { countTile(before, f.groups); });
          return {parity ^ 1, b.i32(0)};
        });
    if (f.finishesBeside)
      b.when(b.i32(0) < b.wrap(end.carried[1]), [&] { countTile(before, 0); });
    return {storeTile(tile, b.wrap(end.carried[0])),
            countsLate() ? f.keyHeadOf(tile) : before, end.message.slot,
            end.message.parity};
  }

  /// The same, one tile behind the other.  Whose turn it is is asked for while
  /// consumers are at the step; it is passed on when the sums are in memory.
  ///
  /// Without a mask tiles run side by side, one step apart, and it is passed on
  /// under the next step, so that the writer keeps up: at d = 128 0.90 and 0.97
  /// of the speed in any order, 4096 and 16384 rows, and not 0.80 and 0.89.  So
  /// it is for steps of 64 queries under a mask, which take 2 us (d =
  /// 128, 16384 rows: 4.5 to 4.9 ms, not 5.2).  With 128 queries tiles follow
  /// at their heels, and it is passed on at once (d = 64, 1024 rows: 640 us,
  /// not 690).
  Scalar addInOrder(const Tile &tile, Scalar parity) {
    bool passesLate = f.problem.mask.isOpen() || f.block == kGroupRows;
    Walk walk = f.walkOf(tile);
    GradientStep step = f.firstStep(walk);
    FlashBackwardFrame::Turn turn = f.turnOf(tile);
    auto pass = [&](const GradientStep &step, int64_t inFlight) {
      TmaStoreWaitOp::create(b, uint32_t(inFlight), /*complete=*/true);
      f.passTurn(turn, step.block, f.numberOf(tile, step.head, step.block));
    };
    ValueRange last = b.loop(
        b.i32(0), walk.steps,
        {parity, step.head, step.block, step.head, step.block},
        [&](Scalar number, ValueRange p) -> SmallVector<Value> {
          Scalar parity = b.wrap(p[0]);
          GradientStep step{b.wrap(p[1]), b.wrap(p[2])};
          GradientStep before{b.wrap(p[3]), b.wrap(p[4])};
          Scalar block = f.numberOf(tile, step.head, step.block);
          Scalar isFirst = f.isFirst(turn, step.block);
          f.awaitTurn(turn, step.block, block);
          for (int64_t group = 0; group < f.groups; ++group)
            f.ringStaged.awaitFull(b, {b.i32(group), parity});
          FenceAsyncOp::create(b);
          for (int64_t group = 0; group < f.groups; ++group)
            if (f.firstStores)
              addOrStore(block, group, isFirst);
            else
              add(block, group);
          if (passesLate)
            b.when(b.i32(0) < number, [&] { pass(before, f.groups); });
          TmaStoreWaitOp::create(b, 0u);
          for (int64_t group = 0; group < f.groups; ++group)
            f.ringStaged.release(b, {b.i32(group), parity});
          if (!passesLate)
            pass(step, 0);
          GradientStep after = f.nextStep(walk, step);
          return {parity ^ 1, after.head, after.block, step.head, step.block};
        });
    if (passesLate)
      b.when(b.i32(0) < walk.steps,
             [&] { pass({b.wrap(last[3]), b.wrap(last[4])}, 0); });
    if (f.finishesBeside)
      f.countTile(f.keyHeadOf(tile));
    return b.wrap(last[0]);
  }

  /// dV and dK, when consumers leave them.
  Scalar storeTile(const Tile &tile, Scalar parity) {
    for (StringRef gradient : {"dv", "dk"}) {
      forEachGroup(parity, [&](int64_t group) {
        Corner at = Corner::ofKeys(b, f.map(gradient), tile,
                                   tile.row + group * kGroupRows);
        TmaStoreOp::create(b, f.staging, /*source_row=*/b.i32(0),
                           f.map(gradient), at.batch, tile.head, at.row,
                           /*column=*/b.i32(0),
                           /*stage=*/b.i32(group));
      });
      parity = parity ^ 1;
    }
    return parity;
  }

  /// Counts the tile before behind its sums, of which nobody waits for the
  /// last ones: the first step of the next one is on its way by then.
  void countTile(Scalar keyHead, int64_t inFlight) {
    b.when(b.i32(FlashBackwardFrame::kNoHead) < keyHead, [&] {
      TmaStoreWaitOp::create(b, uint32_t(inFlight), /*complete=*/true);
      f.countTile(keyHead);
    });
  }

  /// Hands each warpgroup's stage back when what `start` starts has read it.
  void forEachGroup(Scalar parity, function_ref<void(int64_t group)> start) {
    for (int64_t group = 0; group < f.groups; ++group) {
      f.ringStaged.storeFrom(b, {b.i32(group), parity}, [&] { start(group); });
    }
  }

  const FlashBackwardFrame &f;
  TileBuilder &b;
};

} // namespace

void attn::writeGradients(const FlashBackwardFrame &frame) {
  Writer(frame).write();
}
