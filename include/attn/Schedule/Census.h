//===- Census.h - How often, and over how much ------------------*- C++ -*-===//
///
/// Every fold that adds something up needs the same two numbers for a verb in
/// the tree: how often it runs, and how much of its tensor it sees in all.  The
/// census takes them once.  It flattens a schedule into a list of `Use`s, one
/// per leaf, with sums over *one head* that are exact for any mask and for
/// ragged tails, in closed form: a problem of a billion rows costs no more than
/// one of a hundred.  Heads with lists of blocks of their own count as one that
/// has the tiles of all of them.
///
/// What is visible enters through `Visits` alone, the pairs of (query tile, key
/// tile) in which at least one pair is visible, and who counts them is an
/// argument.  For 4 queries and 4 keys, causal, tiles
/// of 2 × 2: three of the four pairs are visited, so K is streamed three times
/// in tiles of 2 rows: count 3, keys 6.  The diagonal tile counts whole: bytes
/// move in tiles.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_CENSUS_H
#define ATTN_SCHEDULE_CENSUS_H

#include "attn/Schedule/Schedule.h"
#include <functional>
#include <vector>

namespace attn {

/// Sums over the visited pairs of an outer and an inner tiling.  `whole` and
/// `ragged` tell full inner tiles from the short one at the end.
///
/// They are those of one head; where heads have lists of blocks of their own,
/// of all `headsOfSum`.  Tiles of keys are those of a key head: of the query
/// heads that share it pairs add up, and a tile is seen if one of them does.
struct Visits {
  int64_t outerTiles = 0;   ///< all of them
  int64_t visitedTiles = 0; ///< outer tiles that see some pair
  int64_t visitedRows = 0;  ///< their rows, clipped
  int64_t wholePairs = 0, raggedPairs = 0;
  int64_t wholePairRows = 0, raggedPairRows = 0; ///< Σ outer rows over pairs
  int64_t innerSpan = 0; ///< inner rows that some visited pair touches; of a
                         ///< band they are one run
  int64_t mostPairs = 0; ///< of one outer tile, within one
};

/// `outer` is Query or Key; the inner axis is the other one.  A step of 0 means
/// one tile that spans the axis.
Visits visits(const Problem &problem, Axis outer, int64_t outerStep,
              int64_t innerStep);

/// A strip of keys or of queries, and all of the others.
struct StripRange {
  Axis axis;
  int64_t first, rows; ///< fewer, where the axis ends
};
/// The same of a strip.
Visits visitsOfStrip(const Problem &problem, Axis outer, int64_t outerStep,
                     int64_t innerStep, const StripRange &strip);

/// Of a problem with a pattern: inner tiles that each outer one visits are
/// taken so many at a time, wherever they lie.  Pairs are such steps, of which
/// the last of an outer tile may have fewer; none is ragged.
Visits gatheredVisits(const Problem &problem, Axis outer, int64_t outerStep,
                      int64_t innerStep, int64_t together);

/// The heads that visits are sums over: of `outer` rows, those that have tiles
/// of their own; of pairs, those with lists of their own.
int64_t headsOfSum(const Problem &problem, Axis outer);
int64_t listsOfSum(const Problem &problem);

/// The visited pairs of every outer tile, in order, of all heads of a sum.
std::vector<int64_t> pairsOfTiles(const Problem &problem, Axis outer,
                                  int64_t outerStep, int64_t innerStep);

/// The visits of a pipeline, in which each of `outerTiles` makes at least one:
/// those that see nothing visit the first inner tile.  `outerTiles` may count
/// tiles that lie behind the last row.
Visits atLeastOne(Visits visits, int64_t outerTiles, int64_t outerRows);

/// Extent of the current tile, not clipped: a matrix of rows × cols, for a
/// product rows × cols × depth.
struct TileExtent {
  int64_t rows = 1, cols = 1, depth = 1;
};

/// One leaf of the tree, with sums over one head.  What a warpgroup computes is
/// counted by warpgroup: a tile of 64 rows and one warp, since the four warps
/// of a warpgroup read an operand once.
struct Use {
  const Node *node;
  size_t grid;        ///< which one it belongs to
  int64_t warps;      ///< of that grid
  int64_t count;      ///< how often it runs, in all blocks
  int64_t halves = 0; ///< of these, with half of the keys of its tile
  int64_t elements;   ///< Σ clipped element positions; of a product, its terms;
                      ///< what a cluster loads for all of it, once
  int64_t moved;      ///< the same as memory sees it: places take whole tiles
  TileExtent tile;
  /// Warps that have the same rows: they read the same ones of a, each a part
  /// of b.
  int64_t across = 1;
  /// Each of these has its own part of P in registers, and only those of others
  /// from shared memory (`Workers::handsOver`).
  bool handsOver = false;
  /// multiply: operands that lie in shared memory, not in registers.  weigh,
  /// differentiate: likewise the LSE, and D, which every warp reads for itself.
  bool aInSmem = false, bInSmem = false;
  /// Shared memory is in panels, as the copy engine fills it.
  bool isPanelled = false;
  /// multiply: products of parts that make one.
  int64_t partProducts = 1;

  /// Of the keys of all these tiles, those that are not left out.
  double shareOfKeys() const {
    return count ? 1 - double(halves) / (2 * double(count)) : 1;
  }

  /// Equal parts of the columns of O.
  int64_t columnParts() const { return isPanelled ? 1 : across; }
};

/// One grid: its blocks and key steps in one head, and the most key steps of
/// one block, which tells how unequal blocks are.
struct GridCensus {
  /// Heads of all batch entries that have blocks of their own: those of the
  /// queries, or of the keys in a grid over keys.  Sums are over one of them,
  /// or, if heads have lists of blocks of their own, over `headsOfSum` that
  /// count as one.
  int64_t heads = 1, headsOfSum = 1;
  int64_t allHeads() const { return heads * headsOfSum; }
  int64_t blocksOfHead() const { return blocks / headsOfSum; }
  /// Of blocks that work together, sets of them: tiles of a cluster.  In rounds
  /// those of a whole strip; steps are those of all rounds.
  int64_t blocks = 1, steps = 1, mostSteps = 1;
  /// How much longer the longest block's walk is than the average one's, by the
  /// finest tiles that the mask decides about.
  double longest = 1;
  int64_t together = 1; ///< blocks of such a set
  int64_t warps = 1, stages = 1;
  /// Times that a ring hands over what it brought, in one head.
  int64_t handovers = 0;
  /// Whether a ring brings less at a time than a step needs.
  bool isSliced() const { return stages > 1 && handovers > steps; }
  int64_t span = 0; ///< key rows that its blocks read, of a key head
  /// Of a pipeline: key steps that its warpgroups multiply, in one head.
  int64_t groupSteps = 0;
  /// In rounds, the strips of a head, and the most heads at once, counted as
  /// `heads` is; 0: there are none.
  int64_t strips = 0;
  double headsAtOnce = 0;
  Axis stripAxis = Axis::Key;              ///< whose rows are cut into strips
  int64_t stripKeys = 0, stripQueries = 0; ///< of a whole strip
  Axis rows = Axis::Query;                 ///< of whose rows blocks have tiles
  /// Blocks of a tile of rows, one for every step of parallel loops.
  int64_t parts = 1;
  /// Sums begin with what its blocks store, not with what others spilled.
  bool firstStores = false;
  /// Done by the blocks of the grid behind it, or of the one before it.
  bool isBefore = false, isBeside = false;
};

struct Census {
  std::vector<Use> uses;
  std::vector<GridCensus> grids;

  /// Whether blocks of a grid also do the one before it, or the one behind it.
  bool hasBefore(size_t grid) const {
    return grid > 0 && grids[grid - 1].isBefore;
  }
  bool hasBeside(size_t grid) const {
    return grid + 1 < grids.size() && grids[grid + 1].isBeside;
  }
};

/// The schedule must outlive its census.
Census census(const Schedule &schedule, const Problem &problem);

/// Who counts the visits of two tilings, as `visits` does for the mask of a
/// problem.
using VisitCounter =
    std::function<Visits(Axis outer, int64_t outerStep, int64_t innerStep)>;
Census census(const Schedule &schedule, const Problem &problem,
              const VisitCounter &visits);

/// Head dimensions are padded in shared memory and fragments: to 16 columns,
/// and where they are contracted to a step of a product, 32 bytes.  Columns of
/// O and V that are dealt out to `parts` warps are padded for each of them.
int64_t padded(Tensor tensor, int64_t cols, const Problem &problem,
               int64_t parts = 1);
/// Columns of a result as its accumulators have them, all of it: padded, or in
/// whole panels where those are dealt out to warpgroups.
int64_t paddedColumns(const Node &node, int64_t cols, const Problem &problem);
/// A row of the panels that the copy engine fills, and a step of a product.
inline constexpr int64_t kPanelBytes = 128, kStepBytes = 32;
/// Of L2 and device memory.
inline constexpr int64_t kSectorBytes = 32, kLineBytes = 128;
/// Whether a row of the tensor is one of a head, and not of scores or a
/// statistic.
inline bool isOfHead(Tensor tensor) {
  std::optional<Axis> cols = shapeOf(tensor).cols;
  return cols == Axis::HeadDim || cols == Axis::HeadDimV;
}
/// Threads that hold the same row of an accumulator; each passes on its own
/// part of a statistic.
inline constexpr int64_t kThreadsPerRow = 4;

} // namespace attn

#endif // ATTN_SCHEDULE_CENSUS_H
