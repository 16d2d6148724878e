//===- MergedSpillBackward.h - P, dS and sums in one launch -----*- C++ -*-===//
//
// The launches of spill_backward that go in rounds as one.  A block takes tiles
// of all kinds from one queue: scores of some heads ahead, then in turns scores
// of others, dQ, and dV and dK of heads ahead.  So there is one beginning and
// one end in a round, the last wave of scores is filled with sums, and P and dS
// are read while L2 has them.
//
// **D** of a tile of queries is made by a tile of its own, in the first round
// that needs it.  It reads all columns of O and dO and multiplies little, so it
// comes some tiles before its queries' scores: what it reads comes from device
// memory beside products of others.  In a launch before, 134 MB take 45 to 58
// us on an H100, with nothing beside them.
//
// **Flags.**  Each tile of queries has one, in scratch memory, which the launch
// before sets to 0.  All warps that leave D of its rows add 1, for which scores
// wait.  The writers of scores add 1, each behind what its warpgroup has made
// of a block of keys, when that is in memory.  A tile of dQ waits until all
// blocks that its queries see are done, and adds 1 as well.
// Each key head has one too: the first tile of dQ in a row that has not waited
// in vain adds 1, and so when all rows have, all scores are there; for that
// tiles of dV and dK wait, which read those of all queries.  They also add 1.
// With the last of those that wait a flag is 0 again, for the next round.  All
// that is waited for was drawn before, by blocks that run.
// Of lists a row may see nothing: its first tile of dQ adds 1 all the same.
//
// **Shared memory** is that of scores.  Tiles of sums take the same slots in
// the same order, and may fill less of them.  Boxes of tensor maps have the
// rows of a step of sums; factors of scores take several.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_SPILLBACKWARD_MERGEDSPILLBACKWARD_H
#define ATTN_LIB_KERNELS_SPILLBACKWARD_MERGEDSPILLBACKWARD_H

#include "Rounds/RoundsFrame.h"

namespace attn {

/// The launch before, which sets them to 0 and leaves the statistics but D.
tile::KernelOp prepareFlags(GradientFrame &frame);

class MergedSpillBackward {
public:
  /// The tiles of all kinds, of one kernel; decides how those of sums take
  /// turns.
  MergedSpillBackward(const RoundsFrame &scores, const RoundsFrame &deltas,
                      RoundsFrame &keySums, RoundsFrame &querySums);

  void produce() const;
  void write(int64_t group) const;
  /// A consumer's warp has left D of its rows of a tile.
  void countDelta(const Tile &tile) const;
  /// Waits until D of all rows of a tile of scores is there.
  void awaitDelta(const Tile &tile) const;

  /// What is to be done with a tile of the queue, by the frame of its kind.
  using Values = llvm::SmallVector<mlir::Value>;
  mlir::ValueRange choose(
      const Tile &queued,
      llvm::function_ref<Values(const RoundsFrame &, const Tile &)> how) const;

private:
  /// From a tile's own form to the queue's, where parts of all but scores are
  /// negative: first those of keys' sums, then those of queries', then D.
  Tile queued(const RoundsFrame &frame, const Tile &tile) const;

  /// Numbers of tiles, as they are drawn.
  struct Order {
    explicit Order(const MergedSpillBackward &tiles);
    Tile at(Scalar number) const;

    const MergedSpillBackward &tiles;
    Scalar rows;                  ///< of tiles of scores, in all heads
    Scalar ofRow;                 ///< tiles of scores and one of D
    Scalar lead;                  ///< rows by which D is before scores
    Scalar ahead;                 ///< scores and D before the first sums
    Scalar scoresInTurn, inTurns; ///< of each turn, and how many there are
    Scalar sumsInTurn;
    Scalar count;

  private:
    Tile scoreAt(Scalar number) const;
    Tile sumAt(Scalar turn, Scalar number) const;
  };

  Tile drawNext(const Order &order) const;
  /// The next tile that is ready behind one; of lists, the next entry of those
  /// that were drawn with it, if there is one.
  Tile nextOf(const Order &order, const Tile &before) const;
  /// The tile, or the next one for which there is something to do, when what
  /// it reads is there.
  Tile ready(const Order &order, const Tile &queued) const;
  Place load(const Tile &queued, Place place) const;
  void produceLists() const;

  /// A flag, the value at which it is ready, and how many wait for it.
  struct Flag {
    Scalar index, isReady, waiting;
  };
  Flag flagOfRow(const Tile &tile) const;
  /// How often D of a row is counted in this round.
  Scalar countsOfDelta(const Tile &tile) const;
  Flag flagOfHead(const Tile &tile) const;
  void await(const Flag &flag) const;
  void awaitRow(const Tile &tile) const;
  void count(const Flag &flag) const;

  const RoundsFrame &scores, &deltas, &keySums, &querySums;
  TileBuilder &b;
  Scalar headsInTurn; ///< key heads
};

} // namespace attn

#endif
