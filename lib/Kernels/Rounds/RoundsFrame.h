//===- RoundsFrame.h - What launches of plain products share ----*- C++ -*-===//
//
// The frame of spill_backward, and of score_spill on wgmma: the round that a
// launch works on, its tiles and sizes; and on wgmma the buffers and the ring
// through which its roles hand them to each other.
//
// **Rounds.**  What a round has in scratch memory is for `round_heads` key
// heads, counted over all batch entries from `first_head` on.  Backward it is P
// and dS for a *strip* of keys, those from `first_key` on: arrays [key head of
// the round, query head of those that share it, query, key of the strip], in
// whole tiles.  Forward it is P for a strip of queries, those from
// `first_query` on, and of all keys: an array [key head of the round, block of
// keys of each query head, query of the strip, key of the block]; and for every
// row of a block two numbers, the maximum and the sum of its weights.  Where
// weights are *kept* these two are arrays of the caller instead, in which all
// rounds have places of their own; backward P comes from them, and its
// statistics with it.
//
// **Parts.**  Factors of f32 are three parts of bf16 each (InputParts.h), P
// too: a block of it has those of all its keys side by side.  Where one slot of
// the ring would have slices of two factors, three have, the small parts first.
//
// **Tiles** of a launch have 128 rows, of queries or of keys, and a *part*: of
// scores a block of keys, backward of the strip's; of dQ and O a run of
// columns; on the side of the keys first the runs of dV, then those of dK.
// Tiles that are worked off at once are neighbours in both directions, so that
// L2 holds what they read.
//
// **Lists.**  Forward, where blocks are listed (BlockLists.h), scores and
// outputs of a tile of queries walk its *entries* instead of blocks of keys,
// partial ones first: what waits of a block waits in the place of its entry.
// Backward it waits in the place of the block, since sums of keys read it too,
// and a strip has all keys.  These walk transposed lists.
// Of scores every so many entries are drawn at once (`entriesApart`), one and
// those that follow it so far apart: who draws behind the end of short lists
// has drawn little.  Example: apart by 4, a list of 9: part 1 is entries 1 and
// 5, part 0 entries 0, 4 and 8.
//
// **Lanes.**  Forward, merged, key heads stand in two lanes, every other one in
// each: one for each half of L2, whose blocks take the other's tiles when their
// own are done.  So what a head's tiles share stays on one side (Sides.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_ROUNDS_ROUNDSFRAME_H
#define ATTN_LIB_KERNELS_ROUNDS_ROUNDSFRAME_H

#include "Gradients/GradientFrame.h"

#include "attn/Schedule/Staging.h"
#include "llvm/Support/MathExtras.h"

namespace attn {

/// The launches in rounds.  Forward there are no sums on the side of the keys,
/// and those of queries are O.  D of queries is made in no launch of its own,
/// but merged with others.
enum class RoundsLaunch { scores, keySums, querySums, deltas };

struct RoundsFrame : GradientFrame {
  static constexpr int64_t kGroups = 2; ///< consumer warpgroups
  static constexpr int64_t kRows = kGroups * kGroupRows;
  static constexpr int64_t kStep = 64; ///< contracted at once

  RoundsFrame(TileBuilder &builder, const KernelRequest &request);
  /// The tiles of another launch in the kernel that has been declared for all
  /// (MergedScoreSpill.h, MergedSpillBackward.h).
  RoundsFrame(const RoundsFrame &other, RoundsLaunch launch);

  /// Creates the kernel, and reserves shared memory.
  tile::KernelOp declare();
  /// Declares what a launch is told of the round and of what waits in scratch
  /// memory, but for P and dS.
  void declareRound();
  /// Reads which round it is, of the kernel that has been created.
  void enterRound();
  /// Has tiles numbered in that lane from now on.
  void enterLane(Scalar lane);
  bool is(RoundsLaunch which) const { return launch == which; }

  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  /// The tile of that number.  Under a mask the longest are the first.
  Tile tileAt(Scalar number) const;
  Scalar tileCount() const { return tilesOfHead() * heads; }
  Scalar tilesOfHead() const { return rowTiles * partCount; }
  /// The heads that are scheduled together: neighbours, longest tiles first.
  /// Under a mask a section is just large enough to fill the GPU, so that its K
  /// and V stay in L2.  Sections have equally many heads, or one more: a small
  /// last one would leave most multiprocessors idle.
  struct Section {
    Scalar first, heads;
  };
  /// The section of a tile, by number, if heads have so many.
  Section sectionOf(Scalar number, Scalar ofHead) const;

  /// So many heads, of so many tiles each.  Merged with scores there are other
  /// tiles to fill gaps with, and sections have half as many: 1024 causal rows
  /// of 2048 columns took 143 us on an H100 with 66 tiles, 146 with 132, 153
  /// with 264; of 1024 columns 150, 155 and 164.  Fewer changed nothing.  Where
  /// factors are in parts 4096 rows took 8 to 13 % more so.
  Scalar headsInSection(Scalar tilesOfHead) const;
  /// Blocks that take tiles of the same heads.
  int64_t blocksAtOnce() const {
    return hasLanes ? std::max<int64_t>(1, request.sms / kLanes) : request.sms;
  }
  static constexpr int64_t kLanes = 2;

  /// Where the rows of a query head are in the arrays of the round.
  struct RoundHead {
    Scalar keyHead, sharer;
  };
  RoundHead inRound(Scalar batch, Scalar queryHead) const;
  /// Forward, the number of a block of keys among those of a key head.
  Scalar blockInRound(const RoundHead &head, Scalar block) const {
    return head.sharer * keyBlocks + block;
  }
  /// One of a block's numbers (`kRowStatistics`) for every row, as a vector;
  /// and where a row is in it.
  mlir::Value statisticsOfBlock(const Tile &tile, Scalar block,
                                int64_t which) const;
  Scalar rowOfStatistics(Scalar row) const {
    return keeps ? row : row - firstQuery;
  }
  /// Of `kRowStatistics`.
  static constexpr int64_t kMax = 0, kSum = 1;
  /// Forward, where a tile of P is.
  struct WeightsPlace {
    llvm::StringRef array;
    Scalar batch, head, row, column;
  };
  WeightsPlace weightsAt(const Tile &tile, Scalar block, Scalar column) const;

  /// What a tile walks: of scores its block of keys, if it is seen, of sums
  /// steps of 64 queries, of all heads that share the keys, or of the strip's
  /// keys.
  Walk walkInRound(const Tile &tile) const;
  /// Blocks of scores, or entries, that a tile of O walks along.
  KeyWalk blocksSeen(const Tile &tile) const;
  /// A tile with the numbers of its entries; the same, if blocks are not
  /// listed.
  Tile listed(const Tile &tile) const;
  Scalar entriesOf(const Tile &listed) const {
    return listed.partialSteps + listed.fullSteps;
  }
  /// The block of keys of an entry that a tile has; without lists, the same.
  Scalar blockAt(const Tile &listed, Scalar entry) const;
  /// What hides pairs of an entry.
  KeyBand bandAt(const Tile &listed, Scalar entry) const;
  /// Of scores, from one entry to the next that is drawn with it, and a part
  /// behind all.
  Scalar entriesApart() const { return partCount; }
  Scalar partBehindAll() const { return lists ? keyBlocks : partCount; }
  /// Of lists, backward: the steps of a sum.  Those of a ragged block that are
  /// behind the last row are left out.
  Scalar stepsOfLists(const Tile &listed) const;
  /// Goes through them, with the head of what streams.
  Place forEachStep(
      const Tile &tile, Place start,
      llvm::function_ref<Place(const GradientStep &, Place)> body) const;
  /// Whether the rows of a tile of scores see one half only of its block, and
  /// whether that is the upper one.
  struct Half {
    Scalar isAlone, isUpper;
  };
  Half halfOf(const Tile &tile) const;
  /// Columns of a part of an input.
  int64_t partColumns(const NamedRole &input) const {
    return columnsOfPart(input.role, problem, request.tiles);
  }
  /// Of inputs in parts, the power of two that those of a tile of scores were
  /// multiplied by; of v the same of its block.
  Scalar exponentOf(llvm::StringRef input, const Tile &tile) const;
  /// Whether there is nothing to do for a tile; none is told of such a one.
  Scalar isIdle(const Tile &tile) const;
  /// Whether all of some queries, from `row` on, see a whole block of scores.
  Scalar isOpen(Scalar row, int64_t rows, Scalar key) const {
    return isOpen(*band, row, rows, key);
  }
  Scalar isOpen(const KeyBand &seen, Scalar row, int64_t rows,
                Scalar key) const;
  /// dS with 0 for what is hidden, unless all is open: it has no gradient,
  /// whatever dP is there.  It is told by where it is: P beside dS, in f32,
  /// would be all registers.
  mlir::Value clearHidden(mlir::Value gradient, const KeyBand &seen,
                          Scalar isOpen, Scalar row, Scalar key) const;
  /// Of a tile of dQ, which part of it comes in this strip.  Sums wait in
  /// scratch memory for those behind.
  struct Turn {
    Scalar isFirst, isLast;
  };
  Turn turnOf(const Tile &tile) const;
  /// Whether the queries of a tile see something in this strip, and did not in
  /// those before.
  Scalar beginsHere(const Tile &tile) const;
  /// Whether the part is one of dV.
  Scalar isValuePart(const Tile &tile) const {
    return tile.part < b.i32(partsOf(problem.headDimV));
  }
  /// The first column of a part, of its array.
  Scalar columnOf(const Tile &tile) const;
  int64_t partsOf(int64_t columns) const {
    return (columns + column - 1) / column;
  }
  /// Where sums of a warp's rows wait, an image each, of so many warps with 64
  /// rows.
  Scalar placeOf(const Tile &tile, Scalar row, Scalar warp,
                 int64_t warps = kWarpsPerGroup) const;

  const bool isForward;
  const bool splits; ///< factors are in parts
  const bool keeps;  ///< weights are kept, or were
  const bool merged; ///< outputs, or both sums, are in the launch of scores
  const RoundsLaunch launch;
  int64_t keyBlock; ///< keys of a block of scores
  /// Blocks of scores may come by halves (`kHalvedKeys`): a slot of the ring
  /// takes its right factor in two loads.
  const bool halves;
  const bool hasLanes;
  int64_t column; ///< columns of a part
  int64_t strip;  ///< keys or queries of a strip
  int64_t step;   ///< contracted at once, of sums
  int64_t stages;
  int64_t parts; ///< of a row of tiles, of scores at most

  Scalar lane; ///< whose tiles are numbered
  Scalar queries, keys, keyHeads;
  Scalar firstHead, firstKey, endOfKeys; ///< of the round
  Scalar firstQuery, endOfQueries;       ///< forward
  Scalar keyBlocks, waitingRows;         ///< forward, of P as it waits
  Scalar firstTile, rowTiles;            ///< of a head
  Scalar foldedTiles; ///< of a head, if tiles of rows are folded (`unfold`)
  Scalar heads, partCount; ///< of the launch
  Scalar toldInTurn; ///< heads of a section, where others' tiles come between
  mlir::Value left, right, staged;
  mlir::Value leftHalves; ///< left factors as they come merged
  /// Right ones of blocks that may be halved; backward slices of 64 columns of
  /// weights that were kept, two in the place of a right factor.
  mlir::Value rightHalves;
  /// Of rows of O for D, as `right` has them, those of each warpgroup.
  mlir::Value rightGroups;
  /// The first stage of a slot of the ring where a right factor has fewer rows.
  Scalar stageOf(const Place &place, int64_t rows) const {
    return place.slot * (keyBlock / rows);
  }
  /// `ring` has left and right factors, `ringStaged` slots for each
  /// warpgroup's results.
  Ring ring, ringStaged;

  /// Columns of the launch's tiles.
  int64_t width() const { return is(RoundsLaunch::scores) ? keyBlock : column; }
  /// Pieces of own rows that a warpgroup stages one after the other, as many
  /// for each slot.  Those behind the last columns are empty.
  int64_t stagedPieces() const {
    return llvm::alignTo(llvm::divideCeil(width(), staging.columns),
                         staging.slots);
  }
  bool isEmptyPiece(int64_t piece) const {
    return piece * staging.columns >= width();
  }
  /// Where a piece comes when the buffer stands at `turn`, a parity, and where
  /// it stands behind the last one.
  Place stagedAt(Scalar group, int64_t piece, Scalar turn) const {
    int64_t rounds = piece / staging.slots;
    return {group * staging.slots + piece % staging.slots, turn ^ (rounds & 1)};
  }
  Scalar turnAfter(Scalar turn) const {
    return turn ^ (stagedPieces() / staging.slots & 1);
  }
  const Staging staging;

private:
  /// Of a row of tiles of such a launch.
  int64_t partsOf(RoundsLaunch launch) const;
  void declareMaps();
  void declareMap(llvm::StringRef role, int64_t rows, int64_t columns);
  void declareMapsOfScores();
  void declareMapsOfSums();
  void declareMapsOfOutput();
  void enterStripOfQueries();
  void enterLists();
  /// Of a list, parts of a row of tiles of scores.
  Scalar partsOfEntries() const;
  /// The lists of a tile, of so many heads, and what steps of an entry are.
  Tile listedOfAll(const Tile &tile) const;
  int64_t stepsOfEntry() const { return ownsKeys ? 1 : keyBlock / step; }
  Scalar firstStepOf(const ListWalk &walk, Scalar entry) const {
    return walk.block(entry) * stepsOfEntry();
  }
  /// Of those, how many there are.
  Scalar existingSteps(Scalar firstStep) const;
  ListWalk walkOfLists(const Tile &listed) const {
    return ListWalk(b, {lists->partialOf(listed), lists->fullOf(listed)});
  }
  /// Whether the tiles of the last queries come first, under a mask.
  bool startsAtEnd() const;
  /// Place and part of a tile of scores, of parts.
  void takeInBands(Scalar number, Scalar &place, Scalar &part) const;
  void foldTiles();
  /// The block that such a part is, and its tile of rows.
  void unfold(Scalar &tile, Scalar &part) const;
  /// Keys that some query of a tile of rows sees.
  Scalar keysSeen(Scalar tile) const;
  void reserve();
  /// Blocks of `size` of what the rows of a tile see from `first` on and before
  /// `end`; none if there is nothing.  There are so many rows.
  Run seenBy(const Tile &tile, Scalar rows, Scalar first, Scalar end,
             int64_t size) const;
};

/// The producer and the writers (RoundsCopies.cpp): who draws tiles and starts
/// every load, and for each warpgroup who starts what leaves.
void produceSpillTiles(const RoundsFrame &frame);
void writeSpills(const RoundsFrame &frame, int64_t group);
/// What they do with a tile: from a place in the ring to that behind it, and
/// from one parity of the staging buffer to the next.
Place loadSpillTile(const RoundsFrame &frame, const Tile &tile, Place start);
Scalar writeSpillTile(const RoundsFrame &frame, int64_t group, const Tile &tile,
                      Scalar turn);
/// The tile, or the next one for which there is something to do; or the end.
Tile skipIdle(TileBuilder &builder, const Tile &tile,
              llvm::function_ref<Scalar(const Tile &)> isIdle,
              llvm::function_ref<Tile()> drawNext);

} // namespace attn

#endif
