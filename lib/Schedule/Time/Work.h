//===- Work.h - What a grid has multiprocessors do --------------*- C++ -*-===//
//
// The time model has two halves.  This one reads a schedule and its census, and
// says in clocks, bytes and counts what the blocks of a grid do.  It alone
// knows what a grid's nodes look like, and it has no constant that was fitted:
// those at the head of Work.cpp count instructions of compiled kernels.
//
// The other half (Step.h) turns work into time, and knows no schedule.
//
// Example: one H100, d = 128, two warpgroups, 128 keys.  A step of a block has
// 2048 clocks of products, 1024 of exponentials and 876 of instructions; it is
// handed over once, and fills one slot of each ring.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TIME_WORK_H
#define ATTN_LIB_SCHEDULE_TIME_WORK_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Calibration.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Traffic.h"
#include <vector>

namespace attn {

/// How the workers of a multiprocessor keep out of each other's way.
enum class Order {
  Alike,      ///< barriers of the block keep them together
  Free,       ///< nothing does, nor keeps them apart
  Overlapped, ///< each has the next product waiting beside its softmax
  Turns,      ///< one multiplies at a time
  Together    ///< all do the same at the same time
};

/// Rows that copies bring, of one line of 128 bytes or less.
struct Copies {
  double rows = 0, bytes = 0;
  double reaching = 0; ///< of them, those that end in the line behind
  double cut = 0;      ///< of them, those that begin within a sector

  void add(const Use &use, const Problem &problem);
};

/// Equal launches, and the tiles of each: how many, how many steps they have.
struct RoundTiles {
  double times = 1, tiles = 0;
  double average = 0, longest = 0, least = 0;
  double empty = 0; ///< tiles that are drawn for nothing, by one that is not
};

/// One tile: its steps, and the workers that have something to do; 0: those of
/// an average step.
struct TileLength {
  double steps, active;
};

/// Sums in slow memory that tiles of a grid add to, and grids that its launch
/// does for them besides.
struct Sums {
  bool isOrdered = false, takesShortFirst = false, firstStores = false;
  bool isWindow = false;
  bool areInStep = false; ///< tiles walk along the same rows at the same time
  bool hasBefore = false, hasBeside = false;
  Bytes before, beside;   ///< of those grids
  double headsAtOnce = 1; ///< whose tiles are worked on
  double parts = 0;       ///< of 16 queries, that a warp prepares at a time
};

/// What all blocks of a head do.  A *step* is what a block does with one tile
/// of what streams; in a grid of products a slice, or all of a tile of scores.
/// A *worker* has a warp on each scheduler and rows of its own.
struct Work {
  double heads = 1, tiles = 1, steps = 1;
  double together = 1; ///< blocks that work on one tile, or on neighbours
  bool sharesTiles = false;
  double workers = 1;
  double blocksPerSm = 1; ///< or tiles of the only block at once
  Order order = Order::Alike;
  bool overlaps = false;   ///< a product waits beside the softmax, in any order
  bool isInHalves = false; ///< scores have products of others beside them
  bool isListed = false;   ///< lists name what streams
  bool isMerge = false;    ///< of parts that the launch before leaves
  bool isPersistent = false;
  bool takesNext = false; ///< inputs of the next tile are there when one ends
  bool isWgmma = false, isOfProducts = false, isMadeOfScores = false;

  // Clocks of a multiprocessor; `output` is that part of `tensor`, `smem` is
  // also what products read.
  double tensor = 0, output = 0, smem = 0, exp = 0, issue = 0;
  double helpers = 0;   ///< of a step, of warps that transpose or split
  double helped = 0;    ///< of a tile, likewise
  bool isSplit = false; ///< products of parts
  double handovers = 1; ///< of a step: all workers meet at a barrier
  double exchanges = 0; ///< of a step: blocks or warpgroups wait for results
  double units = 1;     ///< of a step: slots of the ring that are filled
  double slots = 1;     ///< of the ring
  double slotsRead = 0; ///< of one ring for all streams, at the same time
  double epilogue = 0;  ///< issue slots' clocks of a tile of results
  double leaves = 1;    ///< of a tile: results that leave one after the other
  double returns = 0;   ///< of a tile: sums that come back first
  double returnBytes = 0, residentBytes = 0; ///< of a tile
  double waitingBytes = 0; ///< of a tile: sums that go and come by memory
  double lost = 0;         ///< of sums that come back, what L2 has no room for
  /// Shares of steps in which one worker alone has something to do.
  double lonely = 0;
  Copies copies;
  double streamedBytes = 0;
  std::vector<RoundTiles> rounds;
  std::vector<TileLength> lengths; ///< of a head, if tiles differ and are few
  bool takesLongestFirst = false;
  Bytes bytes; ///< of all heads
  Sums sums;
};

Work workOf(const Census &census, const Grid &node, size_t number,
            const Problem &problem, const Machine &machine,
            TensorCoreFamily family);

/// What one leaf adds to the clocks of its grid's work; of helpers, by step.
struct LeafClocks {
  const Use *use;
  double tensor = 0, smem = 0, exp = 0, issue = 0, helpers = 0, epilogue = 0;
};
std::vector<LeafClocks> leafClocks(const Census &census, const Grid &node,
                                   size_t number, const Problem &problem,
                                   const Machine &machine,
                                   TensorCoreFamily family);

// Of it, the tiles (Rounds.cpp): of a grid without rounds; in rounds, of tiles
// that walk along so many rows at a time, or have a number for each row; and
// one by one, where they are few and differ.
RoundTiles allTiles(const GridCensus &grid, const Grid &node);
std::vector<RoundTiles>
roundsOfProducts(const Work &work, const GridCensus &grid, const Grid &node,
                 const Problem &problem, int64_t stepRows, bool isOfRows);
void followTiles(Work &work, const Grid &node, const Problem &problem,
                 const Machine &machine, int64_t keys);
/// Of it, what tiles add to and their launch does besides (Sums.cpp).
Sums sumsOf(const Census &census, size_t number, const Grid &node,
            const Problem &problem, const Machine &machine);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_TIME_WORK_H
