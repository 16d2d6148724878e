//===- Schedule.h - A schedule is a value -----------------------*- C++ -*-===//
///
/// A *schedule* says what stays on chip, what streams past, what is spilled and
/// what is reduced, and with which tile sizes.  It emits no code and knows no
/// machine and no problem: it is a small tree of verbs, which *folds*
/// interpret. Schedules are open (one file each in lib/Schedule/Schedules); the
/// verbs are closed, so that a new verb makes the compiler name every fold that
/// must learn it.  No fold knows a schedule by name.
///
/// FlashAttention with 128 queries and 64 keys per tile reads:
///
///   grid(Query, 128, warps = 4)
///     hold(O, Registers)               one strip of output stays
///     hold(Stats, Registers)           with its running max and sum
///     load(Q, Smem)
///     loop(Key, 64, stages = 1)        keys and values stream past
///       stream(K, Smem)  stream(V, Smem)
///       hold(S, Registers)
///       multiply(S, Q, K)  softmax(S)  rescale(O)  multiply(O, P, V)
///     store(O)  store(Lse)
///
/// Reading rules, which all folds share:
/// * A schedule is a sequence of grids; each is one launch, but for a grid that
///   a neighbour does beside its own tiles (`hasBefore`, `hasBeside`).  Batch
///   and head are always parallel and outermost, hence not written.  A grid
///   over keys has blocks for every key head, and its loop over queries goes
///   over those of all query heads that share it.
/// * A product whose result lies the other way round (S += K . Q in a grid over
///   keys) is that of the transposes: own rows are the rows of fragments.
/// * A product whose result is a number for each row (D += dO . O) is that of a
///   warpgroup's rows with as many of the same rows, of which the diagonal
///   counts.
/// * A loop over `Key` inside a loop over `Query` (or the reverse) visits only
///   the pairs of tiles in which the mask shows at least one pair.  A loop over
///   an axis that already has a loop around it cuts that loop's tile.
/// * What a verb inside a loop touches is the *current tile* of its tensor: the
///   tile's extent along every axis that has a loop around it, and the whole
///   extent along every other.  Ragged tiles are clipped where bytes leave the
///   multiprocessor, and padded inside it.
/// * Inputs are read only for tiles that see some pair; results are always
///   written.
/// * What goes through a block's own places in scratch memory (`slots`), or
///   lies there in tiles of `wholeRows`, is whole tiles, in the form in which
///   registers hold them; accumulators are f32.
/// * What is *kept* lies in arrays of the caller, row by row as results do; so
///   it takes no scratch, and leaves for device memory.
///
/// Worked example, the traffic of Q, K, V above between L2 and an SM, for 4096
/// queries and keys, d = 128, bf16, one head: Q once, 1 MiB; K and V once per
/// query tile, 32 × 2 MiB.
///
/// By default a block has no warp specialisation: all warps are alike, and each
/// loads, multiplies and takes a few rows of the tile.  A grid with a
/// `Pipeline` is warp-specialised: one warp loads for all, and *warpgroups*
/// multiply, 64 rows each.
/// * A tile is loaded whole or not at all.  Every loop takes at least one step,
///   even if no row sees it.  Each warpgroup multiplies the steps that its own
///   rows see, at least one.
/// * Buffers are those of the copy engine (TMA): panels of 128 bytes of
/// columns.
///
/// In a pipeline over keys all warpgroups multiply every tile that the block
/// streams, even if their own rows do not see it: they share the result.
///
/// The blocks of a pipeline may work together in step: every warpgroup then
/// multiplies every step that some row of any of them sees.
/// * The blocks of a *cluster* have neighbouring tiles.  Each loads a part of
///   the keys and values and multicasts it to all of them.
/// * The blocks of a *group* have one tile, and `share` gives each of them its
///   part of an axis.  One block computes a share of the keys.  It spills what
///   the others need, and they absorb it, in whole tiles, thread to thread.
///   All blocks take every share of a step, even one behind the last key.
///
/// A pipeline of *products* keeps nothing but accumulators: both factors of
/// every product stream, 64 deep at a time, in pairs through one ring.
/// * A tile that sees nothing makes no step.
/// * Inside a multiprocessor tiles are whole along the head dimensions too.
///   Tiles of `wholeRows` in scratch are whole along the keys, and along a head
///   dimension in the steps of the loop that cuts it.
///
/// A product grid without warp specialisation works the same way.  The depth of
/// its ring comes from the loops, and all pairs have one size.
///
/// A loop may be *parallel*: its steps are blocks of their own, so that a tile
/// of a result has rows and columns.
///
/// Launches may alternate in *rounds*, each for some key heads and a strip of
/// keys or of queries.  What one launch spills for the next then takes the room
/// of one round.  A loop over strips says what is done once in each round.  A
/// grid over the axis of strips needs no such loop: a round has its own tiles.
///
/// Deliberately absent: threads, layouts, barriers.  Those belong to the kernel
/// that is built from the schedule and that must move the very same bytes.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_SCHEDULE_H
#define ATTN_SCHEDULE_SCHEDULE_H

#include "attn/Schedule/Arithmetic.h"
#include "attn/Schedule/Problem.h"
#include "attn/Schedule/Rounds.h"
#include "attn/Schedule/Tiles.h"
#include <string>
#include <vector>

namespace attn {

/// Everything that has a place and a size.  `Stats` are the running max and sum
/// of a row, backward its LSE and D; an LSE may have a low word.  `TileMax` is
/// the max that a spilled tile of P was computed with. Gradients are named
/// after what they are the gradient of; `GradS` is that of the scaled scores.
/// `Delta` is D, the number that a row of dP is short of: the inner product of
/// the rows of O and dO, less the gradient of the LSE.
enum class Tensor {
  Q,
  K,
  V,
  O,
  Lse,
  S,
  P,
  Stats,
  TileMax,
  GradO,
  GradLse,
  GradQ,
  GradK,
  GradV,
  GradP,
  GradS,
  Delta
};

enum class Level { Registers, Smem };

enum class Verb {
  loop,   ///< in order over the tiles of an axis
  share,  ///< at once over the tiles of an axis: one for each block of a group
  hold,   ///< occupy fast memory; nothing moves
  load,   ///< read a tile that stays for the rest of the scope
  stream, ///< read a tile into a ring; the next step overwrites it
  absorb, ///< read a tile and fold it at once into what is held
  transpose, ///< rewrite a streamed tile by columns in a ring of its own, for
             ///< tensor cores that take it no other way (`needsTranspose`)
  split,     ///< rewrite a loaded or streamed tile as several of 16 bits, which
             ///< take its place, if wgmma has no better way (`needsSplit`)
  multiply,  ///< out += a · b, a matrix product
  softmax,   ///< S becomes P; the running max and sum of the rows follow
  weigh,     ///< S becomes P by the LSE, which is known
  differentiate, ///< dP becomes dS = P (dP - D)
  rescale,       ///< scale an accumulator after the max of its rows has moved
  spill,         ///< write a tile to scratch memory, to be read by a later grid
                 ///< or by the others of a group
  reduce,        ///< add a tile to one in slow memory, without reading it; or
                 ///< store it there, see `firstStores`
  store,         ///< write a result
};

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

/// Who works on a tile.
struct Workers {
  /// Its rows are dealt out to warps that are all alike; of a pipeline those of
  /// all warpgroups.
  int64_t warps = 1;
  /// Warp specialisation: one warp loads for all, and so many warpgroups
  /// multiply.  0: there is none.
  int64_t warpgroups = 0;
  /// Warps (in a pipeline warpgroups) with the same rows.  Each takes a part of
  /// the keys of S and of the columns of O.  All of them need P, which is held
  /// in shared memory.  Row maxima are exchanged there in every step, and sums
  /// when O is stored.
  int64_t across = 1;
  /// They keep nothing but accumulators: both factors of every product stream.
  bool isOfProducts = false;

  bool isPipeline() const { return warpgroups > 0; }
};

/// In which order tiles are taken, and the work on a tile is done.
struct WorkOrder {
  bool isPersistent = false; ///< a block takes tile after tile
  bool overlaps = false;   ///< S of a step is multiplied beside O of the last;
                           ///< over keys: dV of a step beside its dS
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

/// Who shares what: blocks a tile, warpgroups a step, streams a ring.
struct Sharing {
  int64_t group = 1;     ///< blocks that share a tile
  int64_t cluster = 1;   ///< blocks of neighbouring tiles that multicast
  bool isInStep = false; ///< warpgroups multiply all steps, as over keys
  /// Depth of one ring for all streams, in the order of use; 0: each stream has
  /// a ring of its own.
  int64_t units = 0;
  /// Rows of the right factor in a ring of pairs of factors.  A pair has 64
  /// columns of the contracted axis, with 128 rows of the left factor.  0:
  /// there is no such ring.
  int64_t width = 0;
  /// Results are staged in the place of a resident input, not in a buffer of
  /// their own: an input of the same shape, or else the first.
  bool reusesPlaces = false;

  /// Blocks that work on the same or on neighbouring tiles, all in step.
  int64_t blocks() const { return group * cluster; }
};

/// How a block of a grid works.
struct Crew {
  Workers workers;
  WorkOrder order;
  Sharing sharing;

  bool isPipeline() const { return workers.isPipeline(); }
};

struct Node {
  Verb verb;
  Tensor tensor = Tensor::Q;           ///< the tensor moved, held or written
  Tensor a = Tensor::Q, b = Tensor::K; ///< multiply: the two operands
  Level level = Level::Registers;
  Axis axis = Axis::Query; ///< grid, loop
  int64_t step = 0;        ///< grid, loop: extent of a tile, 0 is all of it;
                           ///< share: likewise, 0 is an equal part in panels;
                           ///< store: columns that leave at once, likewise
  int64_t stages = 1;      ///< loop: depth of the rings inside; load and hold:
                           ///< buffers
  /// load, stream: only the columns from `first` on, `columns` of them or, if
  /// that is 0, all that follow.
  int64_t first = 0, columns = 0;
  /// stream: buffers of its ring; 0: as many as the loop has stages.
  int64_t depth = 0;
  /// spill, absorb: places of a block that are used in turn; 0: one for every
  /// tile of the problem.
  int64_t slots = 0;
  /// spill, absorb, stream, reduce: the tensor lies in scratch in tiles of so
  /// many rows, all of them whole; 0: row by row, or in places of a block.
  int64_t wholeRows = 0;
  /// Pipeline over keys, result with streamed rows: warpgroups among which its
  /// columns are divided, in whole panels; 0: its rows are divided instead.
  int64_t columnGroups = 0;
  bool isDirect = false; ///< store: from registers, past shared memory
  /// spill, absorb: only between steps of a loop, neither before the first nor
  /// after the last.
  bool isBetween = false;
  /// An input is read, or something spilled, also for tiles that see nothing.
  bool isAlways = false;
  /// spill, stream, absorb: the tensor lies in an array of the caller, where
  /// one launch leaves it for others to come.
  bool isKept = false;
  /// loop: visits only the part of its tile that the mask shows.
  bool seeks = false;
  /// loop: its steps are blocks of their own.
  bool isParallel = false;
  /// loop: if the mask shows only one half of a tile, the other half is neither
  /// streamed nor multiplied.
  bool isHalved = false;
  /// spill, stream: the tensor lies in scratch in the parts that tensor cores
  /// take it in, side by side, each in whole tiles of so many columns; 0:
  /// whole.
  int64_t partColumns = 0;
  std::vector<Node> body = {};
};

/// Parallel over the tiles of an axis: one block for each.  Batch and head are
/// parallel too.
struct Grid : Crew {
  Axis axis;
  int64_t step; ///< extent of a tile; 0 is all of it
  std::vector<Node> body;
};

/// One kernel.  Blocks of `main` also do what is fused with it: the grids
/// `before`, which it depends on, and those `beside` it, which depend on it.
/// Helper warps, which load nothing for tiles, run them for a head: before its
/// tiles begin, and as soon as they are all done.  For the first tiles all
/// warps run what is before.  In a pipeline of products they are more tiles in
/// the same queue.
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

struct Schedule {
  std::string name;
  std::vector<Launch> launches;
  Rounds rounds = {};

  /// The grids of all launches, in order: folds number them so.
  std::vector<const Grid *> grids() const;
};

//===----------------------------------------------------------------------===//
// The vocabulary
//===----------------------------------------------------------------------===//

using Body = std::vector<Node>;

Grid grid(Axis axis, int64_t step, int64_t warps, Body body);
Grid grid(Axis axis, int64_t step, Crew crew, Body body);
Node loop(Axis axis, int64_t step, int64_t stages, Body body);
Node hold(Tensor tensor, Level level = Level::Registers, int64_t stages = 1);
Node load(Tensor tensor, Level level, int64_t stages = 1);
Node stream(Tensor tensor, Level level);
Node absorb(Tensor tensor, int64_t slots = 0);
Node transpose(Tensor tensor);
Node split(Tensor tensor);
Node multiply(Tensor out, Tensor a, Tensor b);
Node softmax(Tensor scores);
Node weigh(Tensor scores);
Node differentiate(Tensor gradient);
Node rescale(Tensor accumulator);
/// The same of what lies in shared memory, read there.
Node rescaleStaged(Tensor tensor);
Node spill(Tensor tensor, int64_t slots = 0);
/// A spill by the copy engine, from a buffer in shared memory.
Node spillStaged(Tensor tensor);
Node reduce(Tensor tensor, int64_t slots);
Node store(Tensor tensor, int64_t columns = 0);
Node storeDirectly(Tensor tensor);
Node share(Axis axis, int64_t step, Body body);
/// Of tiles that see nothing, too.
Node always(Node node);
/// A spill or an absorb between the steps of a loop.
Node between(Node node);
/// What lies in scratch in whole tiles of so many rows.
Node inTilesOf(int64_t rows, Node node);
/// A result whose columns are dealt out to so many warpgroups.
Node byColumns(int64_t warpgroups, Node node);
/// A loop over what the mask shows of the tile that it cuts.
Node seek(Axis axis, int64_t step, int64_t stages, Body body);
/// A loop whose steps are blocks of their own.
Node parallel(Axis axis, int64_t step, Body body);
/// A loop whose tiles may be halves.
Node halved(Node loop);
/// A stream through a ring of so many buffers.
Node deep(int64_t buffers, Node node);
/// A grid of products.
Grid ofProducts(Grid grid);
/// A load or a stream of some columns only.
Node columnsOf(Node node, int64_t first, int64_t columns);
/// What lies in scratch in parts, of whole tiles of so many columns.
Node inParts(int64_t columns, Node node);
/// What lies in an array of the caller.
Node kept(Node node);

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

//===----------------------------------------------------------------------===//
// What tensors are
//===----------------------------------------------------------------------===//

std::string_view name(Tensor tensor);
std::string_view name(Axis axis);
std::string_view name(Level level);

/// The axes of a tensor's rows and columns; a statistic has no columns.
struct Shape {
  Axis rows;
  std::optional<Axis> cols;
};
Shape shapeOf(Tensor tensor);
bool hasAxis(Tensor tensor, Axis axis);
int64_t extent(const Problem &problem, Axis axis);
/// Columns of the panels that the copy engine fills, of 16 bits each.
inline constexpr int64_t kPanelColumns = 64;
/// What one block of `group` has of an axis that is shared equally: whole
/// panels.
int64_t equalPart(const Problem &problem, Axis axis, int64_t group);
/// The columns that a load or a stream has of `whole`.
int64_t columnsOf(const Node &node, int64_t whole);

/// Words per element position: one, and two or three for what is several
/// numbers of a row.
int64_t wordsPerElement(Tensor tensor, const Problem &problem);
/// Bytes per element position in memory; accumulators and statistics are f32.
int64_t bytesPerElement(Tensor tensor, const Problem &problem);
/// Bytes per element position that a verb moves: O and dQ are accumulators
/// unless they are stored, and parts are several.
int64_t bytesMoved(const Node &node, const Problem &problem);
/// Columns of a tensor with so many as memory has them: of a part, whole tiles.
int64_t columnsMoved(const Node &node, int64_t columns);
/// Inputs that are matrices: Q, K, V; backward also O and dO.
bool isInput(Tensor tensor, const Problem &problem);
/// Results have the type of the inputs, or bf16 if that has 8 bits.
DataType resultType(const Problem &problem);
/// Whether the right operand of a product must lie by columns in shared memory.
/// wgmma takes 16-bit elements in either order, all others only in that of
/// what is contracted; where this is false, `transpose` does nothing.
bool needsTranspose(const Problem &problem);
/// Whether tensor cores of pipelines take factors only in parts: of f32 three
/// of bf16, of whose nine products the six largest are added up.
bool needsSplit(const Problem &problem);
inline constexpr int64_t kSplitParts = 3, kPartProducts = 6, kPartBytes = 2;
/// Where a launch before has split them it knows how large numbers are, and two
/// parts of f16 do: of four products the three largest.  So many rows are
/// brought to where f16 has room by one power of two.
inline constexpr int64_t kScaledParts = 2, kScaledProducts = 3,
                         kScaledRows = 128;
/// Sums of such products are f32 for as long as a step lasts: the tensor cores
/// cut sums off, so a result is added to outside of them, so many columns at a
/// time.
inline constexpr int64_t kSumColumns = 64;
/// Keys of a piece of V where no tile says how many: two steps of a product, or
/// of f32 four.
inline constexpr int64_t kKeysOfPiece = 32;

} // namespace attn

#endif // ATTN_SCHEDULE_SCHEDULE_H
