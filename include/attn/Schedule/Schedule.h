//===- Schedule.h - A schedule is a value -----------------------*- C++ -*-===//
///
/// A *schedule* says what stays on chip, what streams past, what is spilled and
/// what is reduced, and with which tile sizes.  It emits no code and knows no
/// machine and no problem: it is a small tree of *verbs*.  Each verb touches
/// the *current tile* of its tensor, whose extent the loops around it decide.
/// What that costs, *folds* read off the tree.
///
/// FlashAttention with 128 queries and 64 keys per tile, and what folds say of
/// 4096 queries and keys, d = 128, bf16, one head:
///
///                                  times  bytes from L2   room of a block
///   grid(Query, 128, warps = 8)       32
///     hold(O, Registers)              32                   64 registers
///     hold(Stats, Registers)          32                    4 registers
///     load(Q, Smem)                   32          1 MiB    36 KiB
///     loop(Key, 64, stages = 1)
///       stream(K, Smem)             2048         32 MiB    18 KiB
///       stream(V, Smem)             2048         32 MiB    18 KiB
///       hold(S, Registers)          2048                   32 registers
///       multiply(S, Q, K)           2048
///       softmax(S)                  2048                   16 registers, of P
///       rescale(O)                  2048
///       multiply(O, P, V)           2048
///     store(O)                        32          1 MiB    where Q was
///     store(Lse)                      32         16 KiB
///
/// `Census` counts the times, `Traffic` the bytes, `Footprint` the room, `Time`
/// prices all of them, and `pseudocode` reads the tree aloud.
///
/// The extent of a tile along an axis is the step of the innermost loop over
/// it, or all of it where there is none.  Ragged tiles are clipped where bytes
/// leave the multiprocessor, and padded inside it.  Inputs are read only for
/// tiles that see some pair; results are always written.
///
/// Schedules are open (one file each in lib/Schedule/Schedules); verbs are
/// closed (Verbs.h), each with its own fields and rules.  No fold knows a
/// schedule by name.
///
/// Deliberately absent: threads, layouts, barriers.  Those belong to the kernel
/// that is built from the schedule and that must move the very same bytes.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_SCHEDULE_H
#define ATTN_SCHEDULE_SCHEDULE_H

#include "attn/Schedule/Arithmetic.h"
#include "attn/Schedule/Tiles.h"
#include "attn/Schedule/Verbs.h"
#include <string>
#include <vector>

namespace attn {

/// Rows of a warpgroup: four warps that issue one product together.
inline constexpr int64_t kWarpgroupRows = 64;
/// Rows of a left factor in a pipeline of products: those of two warpgroups.
inline constexpr int64_t kProductRows = 2 * kWarpgroupRows;
/// Keys of a forward block of scores that may be halved.  A half is still as
/// wide as a left factor is high, so copies keep up with its products.
inline constexpr int64_t kHalvedKeys = 2 * kProductRows;
/// Row tiles that use one block of keys before the next one comes, for scores
/// of split f32.
inline constexpr int64_t kBandTiles = 8;
/// The most tiles of one head in flight whose additions are ordered, if heads
/// have no lanes (TileOrder.h): a late tile delays all behind it.  Causal, d =
/// 128, 16384 rows took 5.2 ms with 44 of them, and 4.5 to 4.9 with 16.
inline constexpr int64_t kMostInTurn = 16;
/// Warps of a score tile in the backward pass, without warp specialisation.
/// With 32 rows per warp S and dP together would not fit in registers.
inline constexpr int64_t kScoreWarps = 8;

//===----------------------------------------------------------------------===//
// Grids
//===----------------------------------------------------------------------===//

/// Who works on a tile.
struct Workers {
  /// All are alike: each loads, multiplies and takes a few rows of the tile. Of
  /// a pipeline, the warps of all warpgroups.
  int64_t warps = 1;
  /// A *pipeline* is warp-specialised: one warp loads for all, and so many
  /// warpgroups multiply, 64 rows each; 0: there is none.
  /// * A tile is loaded whole or not at all.  Every loop takes at least one
  ///   step, even if no row sees it.  Each warpgroup multiplies the steps that
  ///   its own rows see, at least one.
  /// * Buffers are those of the copy engine (TMA): panels of 128 bytes of
  ///   columns.
  int64_t warpgroups = 0;
  /// Pairs of warpgroups of a block, each with a tile and with buffers of its
  /// own.
  int64_t pairs = 1;
  /// Warps (in a pipeline warpgroups) with the same rows.  Each takes a part of
  /// the keys of S and of the columns of O.  All of them need P, which is held
  /// in shared memory.  Row maxima are exchanged there in every step, and sums
  /// when O is stored.
  int64_t across = 1;
  /// Of a pipeline with several on the same rows: each multiplies its own part
  /// of P as it has it in registers, and while it waits another one multiplies.
  /// Others take that part, with maxima and sums of its rows, from one place in
  /// shared memory.  Keys come by the pieces in which they are handed back: the
  /// columns of V of each, and those behind, for each part of the keys.
  bool handsOver = false;
  /// They keep nothing but accumulators: both factors of every product stream,
  /// in pairs through one ring.  A tile that sees nothing makes no step. Inside
  /// a multiprocessor tiles are whole along the head dimensions too.
  bool isOfProducts = false;

  bool isPipeline() const { return warpgroups > 0; }
};

/// In which order tiles are taken, and the work on a tile is done.
struct WorkOrder {
  bool isPersistent = false; ///< a block takes tile after tile
  bool overlaps = false; ///< S of a step is multiplied beside O of the last;
                         ///< over keys: dV of a step beside its dS
  /// Over keys: scores of one half of a block become weights while products of
  /// the other are multiplied.
  bool isInHalves = false;
  bool takesTurns = false; ///< ping-pong: warpgroups take turns at products
  /// Additions to sums in slow memory have the order in which tiles are drawn.
  /// Tiles of several heads alternate.
  bool isOrdered = false;
  /// Under a mask shorter tiles are drawn before longer ones.
  bool takesShortFirst = false;
  /// Sums in slow memory need no zeros: the first tile that is drawn for a sum
  /// stores its part, and the others wait for it.  A tile that sees nothing
  /// makes no step.
  bool firstStores = false;
};

/// Who shares what: blocks a tile, warpgroups a step, streams a ring.  Blocks
/// that work together do so in step: every warpgroup multiplies every step that
/// some row of any of them sees.
struct Sharing {
  /// Blocks that have one tile.  `Share` gives each its part of an axis; it
  /// spills what the others need, and they absorb it, in whole tiles.
  int64_t group = 1;
  /// Blocks that have neighbouring tiles.  Each loads a part of the keys and
  /// values and multicasts it to all of them.
  int64_t cluster = 1;
  /// Warpgroups multiply all steps, even if their own rows do not see them.  In
  /// a pipeline over keys they always do: they share the result.
  bool isInStep = false;
  /// Depth of one ring for all streams, in the order of use; 0: each stream has
  /// a ring of its own.
  int64_t units = 0;
  /// Of products: rows of the right factor in the ring of pairs.  A pair has 64
  /// columns of the contracted axis, with 128 rows of the left factor.  Without
  /// warp specialisation its depth comes from the loops.
  int64_t width = 0;
  /// Results are staged in the place of a resident input, not in a buffer of
  /// their own: an input of the same shape, or else the first.
  bool reusesPlaces = false;
  /// Blocks that the walk of a tile over keys is dealt out to (KeyParts.h).
  /// Each has all rows of the tile, and leaves results of its own.
  int64_t keyParts = 1;
  /// Query heads of a group of which a tile has rows (SharedTiles.h).
  int64_t rowHeads = 1;

  int64_t blocks() const { return group * cluster; }
};

/// How a block of a grid works.
struct Crew {
  Workers workers;
  WorkOrder order;
  Sharing sharing;

  bool isPipeline() const { return workers.isPipeline(); }
};

/// Parallel over the tiles of an axis: one block for each.  Batch and head are
/// always parallel and outermost, hence not written.  A grid over keys has
/// blocks for every key head, and its loop over queries goes over those of all
/// query heads that share it.
struct Grid : Crew {
  Axis axis;
  int64_t step; ///< extent of a tile; 0 is all of it
  Body body;
};

/// Launches, one after the other.  In *rounds* they alternate, each for some
/// key heads and a strip of keys or of queries: what one spills for the next
/// takes the room of one round.  A loop over strips says what is done once in
/// each round; a grid over the axis of strips needs no such loop.
struct Schedule {
  /// One kernel.  Blocks of `main` also do what is fused with it: the grids
  /// `before`, which it depends on, and those `beside` it, which depend on it.
  /// Helper warps, which load nothing for tiles, run them for a head: before
  /// its tiles begin, and as soon as they are all done.  For the first tiles
  /// all warps run what is before.  In a pipeline of products they are more
  /// tiles in the same queue.
  struct Launch {
    std::vector<Grid> before;
    Grid main;
    std::vector<Grid> beside;

    // NOLINTNEXTLINE(google-explicit-constructor): most launches are one grid
    Launch(Grid main) : main(std::move(main)) {}
    Launch(std::vector<Grid> before, Grid main, std::vector<Grid> beside)
        : before(std::move(before)), main(std::move(main)),
          beside(std::move(beside)) {}

    size_t size() const { return before.size() + 1 + beside.size(); }
    /// All of them, in order.
    std::vector<const Grid *> grids() const;
    /// Whether tiles of several grids are in one queue.
    bool isMerged() const {
      return main.workers.isOfProducts && main.isPipeline() && !beside.empty();
    }
  };

  std::string name;
  std::vector<Launch> launches;
  Rounds rounds = {};

  /// The grids of all launches, in order: folds number them so.
  std::vector<const Grid *> grids() const;
};

//===----------------------------------------------------------------------===//
// The vocabulary
//===----------------------------------------------------------------------===//

Grid grid(Axis axis, int64_t step, int64_t warps, Body body);
Grid grid(Axis axis, int64_t step, Crew crew, Body body);
verb::Loop loop(Axis axis, int64_t step, int64_t stages, Body body);
verb::Hold hold(Tensor tensor, Level level = Level::Registers,
                int64_t buffers = 1);
verb::Load load(Tensor tensor, Level level, int64_t buffers = 1);
verb::Stream stream(Tensor tensor, Level level);
verb::Absorb absorb(Tensor tensor, int64_t slots = 0);
verb::Transpose transpose(Tensor tensor);
verb::Widen widen(Tensor tensor);
verb::Split split(Tensor tensor);
verb::Multiply multiply(Tensor out, Tensor a, Tensor b);
verb::Softmax softmax(Tensor scores);
verb::Weigh weigh(Tensor scores);
verb::Differentiate differentiate(Tensor gradient);
verb::Rescale rescale(Tensor accumulator);
verb::Rescale rescaleStaged(Tensor tensor);
verb::Spill spill(Tensor tensor, int64_t slots = 0);
verb::Spill spillStaged(Tensor tensor);
verb::Reduce reduce(Tensor tensor, int64_t slots);
verb::Store store(Tensor tensor, int64_t columns = 0);
verb::Store storeDirectly(Tensor tensor);
verb::Share share(Axis axis, int64_t step, Body body);

/// Of tiles that see nothing, too.
template <typename Verb> Verb always(Verb verb) {
  verb.isAlways = true;
  return verb;
}
/// A spill or an absorb between the steps of a loop.
template <typename Verb> Verb between(Verb verb) {
  verb.isBetween = true;
  return verb;
}
/// What lies in scratch in whole tiles of so many rows.
template <typename Verb> Verb inTilesOf(int64_t rows, Verb verb) {
  verb.scratch.wholeRows = rows;
  return verb;
}
/// What lies in scratch in parts, of whole tiles of so many columns.
template <typename Verb> Verb inParts(int64_t columns, Verb verb) {
  verb.scratch.partColumns = columns;
  return verb;
}
/// What lies in an array of the caller.
template <typename Verb> Verb kept(Verb verb) {
  verb.scratch.isKept = true;
  return verb;
}
/// What lies in scratch once for every part of the keys.
template <typename Verb> Verb ofKeyParts(int64_t parts, Verb verb) {
  verb.scratch.keyParts = parts;
  return verb;
}
/// A load or a stream of some columns only.
template <typename Verb>
Verb columnsOf(Verb verb, int64_t first, int64_t columns) {
  verb.columns = {first, columns};
  return verb;
}
/// A result whose columns are dealt out to so many warpgroups.
verb::Hold byColumns(int64_t warpgroups, verb::Hold result);
verb::Multiply byColumns(int64_t warpgroups, verb::Multiply result);
template <typename Verb> Verb byColumns(int64_t warpgroups, Verb verb) {
  verb.scratch.columnGroups = warpgroups;
  return verb;
}
/// A stream through a ring of so many buffers.
verb::Stream deep(int64_t buffers, verb::Stream stream);
/// A loop over what the mask shows of the tile that it cuts.
verb::Loop seek(Axis axis, int64_t step, int64_t stages, Body body);
/// A loop whose steps are blocks of their own.
verb::Loop parallel(Axis axis, int64_t step, Body body);
/// A loop whose tiles may be halves.
verb::Loop halved(verb::Loop loop);
/// A loop whose steps gather listed tiles of so many rows.
verb::Loop gathered(int64_t rows, verb::Loop loop);
/// A grid of products.
Grid ofProducts(Grid grid);

/// The body once per slice of `step` along an axis; the bare body if `step` is
/// 0, that is, if the axis is not cut.
Body slices(Axis axis, int64_t step, int64_t stages, Body body);
/// S of a block, of which Q and K come by slices of the head dimension.
Body scoresBySlices(int64_t slice, int64_t stages);

/// What launches behind need of the rows of queries: LSE and D, in strips of 64
/// rows, for blocks of so many; beside them what else is to be done.
Grid statisticsGrid(int64_t block, Body more = {});

/// Inputs with such rows, split in parts once for all launches behind: each
/// with the columns that its parts are whole tiles of.
Grid partsGrid(Axis rows, std::vector<std::pair<Tensor, int64_t>> inputs);

/// Concatenation, so that a tree can be written as one expression.
Body sequence(std::vector<Body> parts);

} // namespace attn

#endif // ATTN_SCHEDULE_SCHEDULE_H
