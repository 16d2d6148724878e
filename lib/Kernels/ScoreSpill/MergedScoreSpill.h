//===- MergedScoreSpill.h - Scores and outputs in one launch ----*- C++ -*-===//
//
// The two launches of score_spill as one.  A block takes tiles of either kind
// from one queue: scores of some heads ahead, then in turns scores of others
// and outputs of those ahead.  So the last wave of scores is filled with
// outputs, one kind's reads from device memory run under the other's products,
// and P is read soon after it was written.
//
// Of lists a block takes all entries that it has drawn, one after the other.
//
// Of lanes (RoundsFrame.h) each has a queue of its own, in this order.
//
// **Flags.**  Each tile of queries of a round has one.  The writers of scores
// add 1 to it, each behind what its warpgroup has made of a block of keys, when
// that is in memory.  A tile of outputs waits until all blocks that its queries
// see are done, and adds 1 as well; with the last of them the flag is 0 again.
// Who waits does so for tiles that were drawn before, from the same lane, by
// blocks that have begun them and that nothing keeps from ending them.
//
// **Shared memory** is that of scores.  Tiles of outputs take the same slots in
// the same order; their right factors and what they stage may fill less of
// them.  Left factors come in halves, since P has the map by which it leaves.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_SCORESPILL_MERGEDSCORESPILL_H
#define ATTN_LIB_KERNELS_SCORESPILL_MERGEDSCORESPILL_H

#include "Rounds/RoundsFrame.h"

namespace attn {

class MergedScoreSpill {
public:
  /// The tiles of both kinds, of one kernel.
  MergedScoreSpill(RoundsFrame &scores, RoundsFrame &outputs)
      : scores(scores), outputs(outputs), b(scores.b) {}

  void produce() const;
  void write(int64_t group) const;

  /// What is to be done with a tile of the queue, by its kind.
  using Values = llvm::SmallVector<mlir::Value>;
  mlir::ValueRange
  choose(const Tile &queued, llvm::function_ref<Values(const Tile &)> ofScores,
         llvm::function_ref<Values(const Tile &)> ofOutputs) const;

private:
  /// In the queue parts of outputs are negative.
  static Scalar isOutput(TileBuilder &b, const Tile &queued) {
    return queued.part < b.i32(0);
  }
  /// From the queue's form to the tile's own, and back.
  static Tile turned(const Tile &tile) {
    return {tile.row, tile.head, tile.batch, tile.part * -1 - 1};
  }

  /// Numbers of tiles, as they are drawn.
  struct Order {
    explicit Order(const MergedScoreSpill &tiles);
    Tile at(Scalar number) const;

    const MergedScoreSpill &tiles;
    Scalar scoresOfHead, ofHead; ///< and outputs as well
    Scalar ahead;                ///< scores before the first outputs
    Scalar mixed;                ///< heads of sections that scores come before
    Scalar count;
  };

  /// The next tile of a lane, or none.
  Tile drawFrom(Scalar lane) const;
  /// The next tile for which there is something to do, when what it reads is
  /// there: of the lane, or when nothing is left in it and it is the block's
  /// own, of the other one, which is the lane then.
  Tile ready(Scalar &lane, Scalar own) const;
  /// The same of lists: the next entry of those that were drawn with a tile, if
  /// there is one.
  Tile nextOf(const Tile &before) const;
  Place load(const Tile &queued, Place start) const;
  void produceLists() const;

  /// The flag of a tile of queries, and how often scores count it.
  struct Flag {
    mlir::Value flags;
    Scalar index, ofScores;
  };
  Flag flagOf(const Tile &tile) const;
  void count(const Flag &flag) const;

  RoundsFrame &scores, &outputs;
  TileBuilder &b;
};

} // namespace attn

#endif
