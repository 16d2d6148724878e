//===- FlashBackwardFrame.h - What its roles share --------------*- C++ -*-===//
//
// The frame of flash_backward on wgmma (flash_backward_wgmma.cpp): sizes, the
// arguments of its three launches, and of the main one the buffers and the
// rings through which the roles hand them to each other.
//
// **Blocks of queries.**  A tile of keys walks blocks of queries.  Two arrays
// in scratch memory go from launch to launch, block by block: the statistics
// (GradientFrame.h) and dQ, sums in f32, as registers of accumulators hold
// them.
//
// **Beside.**  A launch behind the main one would read all sums again to round
// them.  With `beside` warps of the main one do: those that its first warpgroup
// has left, and in the end the consumers.  They draw 16 queries after the
// other, in the order of heads, and wait until all tiles of the key head are
// through, which the writers count in a flag for each, or for a few of many.
//
// With `beside = 2` the same warps also do what the launch before would: the
// list that they draw from begins with the queries of all heads, to prepare.
// Consumers prepare the heads whose tiles come first, and go to their tiles.
// The flags count what is prepared before tiles, and what is finished behind
// them, and are 0 again then; a tile waits until its head is prepared.
//
// Nobody waits for ever: who prepares waits for nobody, and is first in the
// list; a tile waits for that and for tiles drawn before it; who finishes waits
// for tiles of others, who do not wait for him.  So it does not matter how many
// blocks run.
//
// **Ordered.**  Sums of floating-point numbers depend on their order, and tiles
// come to a block of queries as chance has it.  With `ordered` they add to it
// in the order in which they are drawn, one behind the other: a flag for every
// block of queries says how many tiles have.  Those that see it follow each
// other without a gap, so who is next waits for the one before, which was drawn
// before; the last one sets the flag back.  Tiles that see nothing add zeros,
// and need no order.
//
// **The first stores.**  With `first_stores` sums do not begin as zeros: of the
// tiles that see a block of queries the first that is drawn stores its part of
// dQ, and sets a flag when that is in memory; the others wait for the flag
// before they add.  Tiles that see a block follow each other from lower keys to
// higher ones, in which order those of a key head are drawn (TileOrder.h), with
// a mask or without and for all query heads of the group: so the first is the
// one that does not find the block among those of the tile of keys before it.
// Nobody waits for ever.  All tiles are drawn from one counter, a block works
// off its own in the order in which it drew them, and a tile waits only for
// smaller numbers than its own.  So the smallest number that is not done is
// being worked on and waits for nobody, however few blocks run.  Flags stay
// set until who prepares the head sets them back.  Tiles that see nothing make
// no step, and strips that see nothing have no sums.  In order, the first is
// the one whose turn it is without waiting, and flags are those of turns.
//
// **dQ of a block** (queries x d) is made of *parts*, one for each warpgroup: a
// run of columns, or 64 queries each where a block has as many for all.  A part
// is made of the images of its four warps, 16 queries each.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_FLASHBACKWARD_FLASHBACKWARDFRAME_H
#define ATTN_LIB_KERNELS_FLASHBACKWARD_FLASHBACKWARDFRAME_H

#include "Gradients/GradientFrame.h"

#include <numeric>

namespace attn {

struct FlashBackwardFrame : GradientFrame {
  FlashBackwardFrame(TileBuilder &builder, const KernelRequest &request);

  /// Creates the kernel of the main launch, and reserves shared memory.
  tile::KernelOp declareMain();

  //===--------------------------------------------------------------------===//
  // Blocks of queries
  //===--------------------------------------------------------------------===//

  void declareSums();
  /// Images that 16 queries have.
  int64_t imagesOfWarp() const { return splitsColumns ? groups : 1; }
  /// The place of one of those of a warp's queries.
  Scalar imagePlace(const StripRows &at, int64_t image) const;
  /// Rounds the sums of a warp's queries and stores them, `columns` at a time.
  void storeSums(const StripRows &at, int64_t columns) const;
  tile::FragType imageType() const {
    return b.accType(kWarpRows, gradientColumns);
  }
  /// Elements of a part of dQ.
  int64_t partElements() const { return kGroupRows * gradientColumns; }

  //===--------------------------------------------------------------------===//
  // The main launch
  //===--------------------------------------------------------------------===//

  int64_t stages;
  bool overlap;
  /// A block of queries is weighed in two halves, with V in registers.
  bool inHalves;
  static constexpr int64_t kHalf = kGroupRows; ///< queries of a half
  bool finishesBeside;     ///< there is no launch behind the main one
  bool preparesBeside;     ///< nor one before
  bool ordered;            ///< dQ is added up in the order of tiles
  bool firstStores;        ///< of those the first stores its part
  int64_t dim, dimV;       ///< head dimensions, padded
  bool splitsColumns;      ///< how dQ is dealt out
  int64_t gradientColumns; ///< of a part of dQ

  mlir::Value bufferK, bufferV, bufferQ, bufferGradient;
  mlir::Value halvesOfQ, halvesOfGradient; ///< the same bytes, in 64 rows
  mlir::Value bufferScores;                ///< of dS, two that take turns
  mlir::Value staging;                     ///< a stage for each warpgroup
  /// `ringGradient` has dO and the statistics; `ringStaged` a slot for each
  /// warpgroup.
  Ring ringK, ringV, ringQ, ringGradient, ringStaged;

  //===--------------------------------------------------------------------===//
  // Ordered
  //===--------------------------------------------------------------------===//

  void declareTurns();
  /// A tile among those of its key head, in the order in which they are drawn.
  /// Of the blocks of queries that it sees, the tile below it sees those before
  /// `endBelow`, and the one above it those from `beginAbove` on.
  struct Turn {
    Scalar number, seesAny, endBelow, beginAbove;
  };
  Turn turnOf(const Tile &tile) const;
  /// Waits until the tile before has added to a block; its number in scratch.
  void awaitTurn(const Turn &turn, Scalar block, Scalar number) const;
  /// Tells the tile behind, when what this one adds is in memory.
  void passTurn(const Turn &turn, Scalar block, Scalar number) const;
  /// Whether the tile drawn before it, or behind it, sees a block too.
  Scalar seesToo(const Turn &turn, Scalar block, bool isBefore) const;
  /// Whether it is the first one that sees a block.
  Scalar isFirst(const Turn &turn, Scalar block) const;

  //===--------------------------------------------------------------------===//
  // The first stores
  //===--------------------------------------------------------------------===//

  /// Whether no tile drawn before it sees a block of queries that it sees.
  Scalar isFirst(const Tile &tile, Scalar block) const;
  /// Waits until the sums of a block can be added to; its number in scratch.
  void awaitFirst(Scalar number) const;
  /// Tells that they can be, when they are in memory.
  void tellFirst(Scalar number) const;
  /// What `load` gives of the sums of 16 queries of a strip, so many fragments
  /// of so many columns; or zeros, if the strip sees no key.
  llvm::SmallVector<mlir::Value> orZeros(Scalar strip, TileBuilder::Branch load,
                                         int64_t columns, int64_t count) const;
  /// The parity of the rings of K and V behind a tile, which brings none if it
  /// makes no step.
  Scalar parityBehind(Scalar parity, const Walk &walk) const;
  Scalar parityBehind(Scalar parity, const Tile &tile) const {
    return b.select(hasSteps(tile), parity ^ 1, parity);
  }

  //===--------------------------------------------------------------------===//
  // Beside (FlashBackwardBeside.cpp)
  //===--------------------------------------------------------------------===//

  void declareBeside();
  /// No key head.
  static constexpr int32_t kNoHead = -1;
  /// The tile's key head, numbered through all batch entries.
  Scalar keyHeadOf(const Tile &tile) const;
  /// Waits until the tile's key head is prepared: who draws it, for all.
  void awaitPrepared(const Tile &tile) const;
  /// Counts one of its tiles, which has added all of its sums.
  void countTile(Scalar keyHead) const;
  /// A consumer's share of what tiles that come first wait for.  What it has
  /// drawn besides, or `kNothing`.
  Scalar prepareFirst() const;
  static constexpr int32_t kNothing = -1;
  Scalar drawPart() const;
  /// Prepares and finishes the part that is drawn, and others until there is
  /// nothing left, so many columns at a time.
  void workBeside(Scalar drawn, int64_t columns) const;
  /// As many as registers of the first warpgroup hold.
  int64_t fewColumns() const { return std::gcd<int64_t>(gradientColumns, 32); }

private:
  /// The flag of a key head, and how many share it: more than one where there
  /// are more than flags.
  struct Flag {
    Scalar index, keyHeads;
  };
  Flag flagOf(Scalar keyHead) const;
  /// Waits until so much is counted, of every key head of the flag.
  tile::AwaitOp await(Scalar keyHead, Scalar least) const;
  /// A part, 16 queries, of those of all heads.
  struct Part {
    Scalar batch, head, number, keyHead;
  };
  Part partOf(Scalar number) const;
  void preparePart(Scalar number) const;
  /// Draws are in order: heads up to `seen` are through.  The part's own one.
  Scalar finishPart(Scalar number, Scalar seen, int64_t columns) const;
  void count(Scalar keyHead) const;
  Scalar tilesOfKeyHead() const { return b.ceilDiv(ownRows, own); }
  /// In whole blocks.
  Scalar partsOfHead() const {
    return b.ceilDiv(streamedRows, block) * (block / kWarpRows);
  }
  Scalar partsOfKeyHead() const { return partsOfHead() * sharers; }
  Scalar allParts() const {
    return partsOfHead() * arguments.get(b, "heads") *
           arguments.get(b, "batch");
  }
  /// Of so many parts those in the list that are prepared.
  Scalar prepared(Scalar parts) const {
    return preparesBeside ? parts : b.i32(0);
  }
  /// That draw parts, in a block.
  int64_t drawers() const { return kFinishers + kWarpsPerGroup * groups; }

  void reserve();
};

/// The producer (FlashBackwardProducer.cpp): draws tiles, tells the other
/// roles, starts every load.
void produceGradientTiles(const FlashBackwardFrame &frame);

/// The writer (FlashBackwardWriter.cpp): starts everything that leaves.
void writeGradients(const FlashBackwardFrame &frame);

/// The launches around the main one (FlashBackwardStrips.cpp).
tile::KernelOp prepareSums(FlashBackwardFrame &frame);
tile::KernelOp finishStrips(FlashBackwardFrame &frame);

/// Sums of a warp's queries begin, as do the flags of their block.
void beginSums(const FlashBackwardFrame &frame, const StripRows &at);

} // namespace attn

#endif
