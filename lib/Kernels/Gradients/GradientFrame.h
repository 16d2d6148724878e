//===- GradientFrame.h - What launches for gradients share ------*- C++ -*-===//
//
// What the launches of gradients on wgmma have in common: tiles that own some
// rows, the walk over blocks of others that stream past, the products of both,
// and the statistics of queries, which a launch before the others leaves in
// scratch memory.
//
// **Roles.**  A producer, one lane, starts every load; a writer, one lane,
// starts everything that leaves, or one for each warpgroup what that leaves;
// they share the first warpgroup, with warps for what is left to do where a
// launch has that.  Each consumer warpgroup has 64 rows of the tile.
//
// **Statistics** go from launch to launch in blocks of queries, those of a head
// behind each other, then heads, then batch entries.  A block is, for each of
// its queries, what is added to a score, -log2(e) LSE, and then for each of
// them D; and where LSE has a low word, that of what is added.  That launch has
// its blocks for *strips* of 64 queries (Kernels.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_GRADIENTS_GRADIENTFRAME_H
#define ATTN_LIB_KERNELS_GRADIENTS_GRADIENTFRAME_H

#include "Gradients/GradientScores.h"
#include "Region/CaptureSums.h"
#include "Region/Scoring.h"
#include "Walk/BandRuns.h"
#include "Walk/Mask.h"
#include "Walk/RaggedRows.h"
#include "Walk/TileBlocks.h"
#include "Walk/TileOrder.h"

#include <optional>

namespace attn {

/// What a tile walks: blocks of one head after the other.
struct Walk {
  KeyWalk blocks;
  Scalar firstHead; ///< of what streams past
  Scalar steps;     ///< in all heads; one at least, if anything streams, but
                    ///< where only what is seen is walked
};

/// Where a walk is, as two scalars that loops carry.
struct GradientStep {
  Scalar head, block;
  /// Of lists (ListedSteps.h).
  Scalar isCut = {}, isLast = {};
};

/// Queries of a slot: all, or so many from `first` on.
struct QueriesOfSlot {
  int64_t first = 0, count = 0;
};

/// What a launch's tiles are made of.
struct GradientRows {
  bool ownsKeys;         ///< or queries
  int64_t own, streamed; ///< rows of a tile, of a block
};

struct GradientFrame {
  GradientFrame(TileBuilder &builder, const KernelRequest &request);
  /// For a launch that has tiles and roles.
  GradientFrame(TileBuilder &builder, const KernelRequest &request,
                const GradientRows &rows);

  /// Creates the kernel of a launch with tiles, with the arguments that all of
  /// them have behind those declared so far.
  tile::KernelOp createKernel();
  /// Likewise of so many warps, without roles and what they share.
  tile::KernelOp createKernel(int64_t warps);
  /// Reads what belongs to the side that tiles own, of the kernel that has been
  /// created.
  void enterSide();
  mlir::Value map(llvm::StringRef operand) const {
    return arguments.get(b, mapRole(operand));
  }
  /// A buffer of operands of products.
  mlir::Value allocate(llvm::StringRef name, int64_t count, int64_t rows,
                       int64_t columns) const;

  /// The same bytes as such a buffer.
  mlir::Value alias(mlir::Value buffer, int64_t count, int64_t rows,
                    int64_t columns) const;

  //===--------------------------------------------------------------------===//
  // Roles
  //===--------------------------------------------------------------------===//

  /// `write` is for each of the writers, by number, `finish` for the warps that
  /// are left of the first warpgroup.
  void createRoles(llvm::function_ref<void()> produce,
                   llvm::function_ref<void(int64_t)> write,
                   llvm::function_ref<void()> consume,
                   llvm::function_ref<void()> finish = {}) const;
  static constexpr int64_t kFinishers = kWarpsPerGroup - 2;
  /// Tiles in the order of the launch.
  TileOrder order() const;
  Tile pop(Place message) const { return popTile(b, queue, message); }
  /// Added to a row in every step (`Arguments::opaqueZero`).
  Scalar opaqueZero() const { return arguments.opaqueZero(b); }

  //===--------------------------------------------------------------------===//
  // Products of a consumer's warp
  //===--------------------------------------------------------------------===//

  /// Starts own rows times the transpose of a slot of streamed ones.
  mlir::Value startScores(mlir::Value own, Scalar row, mlir::Value streamed,
                          Scalar slot) const;
  /// Starts sum += factor times a slot of streamed rows.
  mlir::Value startSum(mlir::Value sum, mlir::Value factor,
                       mlir::Value streamed, Scalar slot) const;
  /// An accumulator, rounded, as such a factor.
  mlir::Value factorOf(mlir::Value accumulator) const;

  //===--------------------------------------------------------------------===//
  // Statistics
  //===--------------------------------------------------------------------===//

  void declareStatistics();
  /// Words of a strip of queries, in launches that wait for each other's tiles:
  /// the flag of its tile, if it is the first of one, and that of its key head,
  /// if it is the first of all.
  static constexpr int64_t kFlagWords = 2;
  static constexpr llvm::StringLiteral kFlagsOfStrips = "scratch_flags";
  void declareFlagsOfStrips();
  /// The number of a block of queries in scratch memory; of sequences a head
  /// has one for each slot (Ragged.h).
  Scalar numberOf(Scalar batch, Scalar head, Scalar block) const;
  Scalar numberOf(const Tile &tile, Scalar head, Scalar block) const;
  /// What a block has for each of its queries, in order.
  enum class Statistic { shift, delta, low };
  int64_t statisticCount() const { return problem.lseLow ? 3 : 2; }
  /// Numbers of a block, and where those of a statistic begin.
  int64_t blockNumbers() const { return statisticCount() * block; }
  int64_t firstOf(Statistic which) const { return int64_t(which) * block; }
  /// Some of the numbers of a block, those from `first` on, as a vector.
  mlir::Value statistics(Scalar number, int64_t first, Scalar count) const;
  mlir::Value statistics(Scalar number) const {
    return statistics(number, /*first=*/0, b.i32(blockNumbers()));
  }
  /// One of some of the tile's own queries, all of one block, from `row` on.
  mlir::Value statisticOf(const Tile &tile, Scalar row, Statistic which,
                          int64_t rows = kWarpRows) const;
  /// Up to which shift one word is enough: beyond it is off by more than 2^-13,
  /// while weights are rounded by 2^-12 or more.  Those of f32 need both.
  double shiftIsEnough() const;
  Shift shiftOfRows(const Tile &tile, Scalar row,
                    int64_t rows = kWarpRows) const;
  struct RowStatistics {
    Shift shift;
    mlir::Value delta;
  };
  RowStatistics statisticsOf(const Tile &tile, Scalar row) const;
  /// Starts loading the numbers of a step's queries beside what else the slot
  /// of the ring gets.
  void loadStatistics(const Ring &ring, Place place, const Tile &tile,
                      const GradientStep &step) const;
  /// A buffer of them for so many blocks.
  void reserveStatistics(int64_t slots);
  /// One of a slot as a fragment of equal rows.
  mlir::Value columnsOf(Scalar slot, Statistic which,
                        QueriesOfSlot some = {}) const;
  Shift shiftColumns(Scalar slot, QueriesOfSlot some = {}) const;

  //===--------------------------------------------------------------------===//
  // Scores
  //===--------------------------------------------------------------------===//

  /// What is the same for a warp's own rows, from `row` on, in all blocks of a
  /// head of queries.
  Scoring::Rows scoredRows(const Tile &tile, Scalar head, Scalar row) const {
    return scoring.ofRows(b, {tile.batch, head, row, kWarpRows, ownsKeys,
                              tile.queries, tile.keys});
  }
  /// What is to be known of a step when its first products are under way.
  struct About {
    Scalar isLast;
    Scalar isOpen;      ///< nothing is hidden
    Scalar column;      ///< the first of its rows that stream past
    Scoring::Rows rows; ///< own ones, with its head of queries
    /// Sets to -inf the scores that the mask or a region hides.
    std::function<mlir::Value(mlir::Value scores)> hidden;
  };
  /// Of a step of a run, of which a band says to be open and `hide` hides what
  /// is not.
  About
  aboutRun(Scalar isLast, Scalar isOpen, Scalar column,
           const Scoring::Rows &rows,
           const std::function<mlir::Value(mlir::Value scores)> &hide) const;
  /// Of a listed step, for own rows from `row` on, and streamed ones from its
  /// `first` on.
  About aboutListed(const GradientStep &step, Scalar row,
                    const Scoring::Rows &rows, Scalar areWhole = {},
                    Scalar endOfRows = {}, int64_t first = 0) const;
  /// Of a step P and, if somebody wants slopes, what takes its place in dS.
  struct Weighed {
    mlir::Value weights, steep;
    mlir::Value slopes;   ///< where captures get their part before slopes do
    mlir::Value products; ///< as regions take them
  };
  Weighed weigh(const ScoreScale &scale, mlir::Value products,
                const Shift &shift, const About &about, bool wantsSlopes) const;
  /// And dS, from dP and D; what captures get of it goes to `sums`.
  mlir::Value differentiate(const Weighed &weighed, mlir::Value gradient,
                            mlir::Value delta, const About &about,
                            llvm::MutableArrayRef<mlir::Value> sums) const;
  /// Whether captures get something of what tiles have.
  bool pulls = false;

  //===--------------------------------------------------------------------===//
  // Walks
  //===--------------------------------------------------------------------===//

  /// What a tile's side has: of sequences that of its own.
  Scalar ownRowsOf(const Tile &tile) const;
  Scalar streamedRowsOf(const Tile &tile) const;
  KeyBand bandOf(const Tile &tile) const;

  Walk walkOf(const Tile &tile) const;

  Scalar firstBlock(const Walk &walk) const;
  GradientStep firstStep(const Walk &walk) const;
  GradientStep nextStep(const Walk &walk, const GradientStep &step) const;

  //===--------------------------------------------------------------------===//
  // Of lists
  //===--------------------------------------------------------------------===//

  /// What others are to hear of a tile that is drawn.
  Tile drawn(const Tile &tile) const;
  Scalar hasSteps(const Tile &tile) const {
    return b.i32(0) < tile.partialSteps + tile.fullSteps;
  }
  /// The queue of tiles, and that of steps if blocks are listed, for so many
  /// consuming warps and others that hear of tiles; of these, of steps.
  void reserveQueues(int64_t consumers, int64_t others, int64_t ofSteps);

  TileBuilder &b;
  const Problem &problem;
  const KernelRequest &request;
  mlir::Type element;
  int64_t block; ///< queries of a block of statistics
  Arguments arguments;
  Scoring scoring;
  CaptureSums captures;

  // Of a launch with tiles.
  bool ownsKeys = false;
  bool walksUp = false;       ///< from the first block of a run to the last
  bool walksOnlySeen = false; ///< a tile that sees nothing makes no step
  /// Who draws tiles and starts loads works out more than usual, and has the
  /// registers of one beside warps that transpose.
  bool hasBusyProducer = false;
  bool hasMergedTiles = false; ///< likewise, for tiles of two launches
  int64_t writers = 1;
  int64_t counters = 1; ///< that tiles are drawn from
  KeyOrder keyOrder;
  int64_t own = 0, streamed = 0; ///< rows of a tile, of a block
  int64_t groups = 0;            ///< consumer warpgroups
  Scalar ownRows, streamedRows;  ///< of a head
  Scalar sharers;                ///< query heads that share a key head
  std::optional<KeyBand> band;   ///< from the side of what is owned
  std::optional<TileBlocks> blocks;
  std::shared_ptr<TileLists> lists; ///< of a pattern, or runs of bands
  mlir::Value bufferStatistics;     ///< where queries stream
  TileQueue queue;
  mlir::Value steps; ///< the queue of those of lists

private:
  /// Whether somebody hides pairs of partial blocks.
  bool hidesInCut() const { return !problem.mask.isOpen() || scoring.hides(); }
  /// Of a block's streamed rows the one behind so many.
  Scalar columnOf(const GradientStep &step, int64_t first) const;
  /// Whether every pair of a listed step is seen, and all rows of the tile
  /// exist, if that is asked.
  Scalar isOpen(const GradientStep &step, Scalar areWhole) const;
  /// Sets to -inf the scores that a listed step hides, of rows from `row` on
  /// and of streamed ones from `column` on.
  mlir::Value hide(mlir::Value scores, Scalar row, const GradientStep &step,
                   Scalar column, const Scoring::Rows &rows,
                   Scalar endOfRows) const;
};

/// The queries of a warp, 16 of a strip: of the launches that have blocks for
/// strips, which `fromEnd` takes, heads and batch entries too, from the last to
/// the first; or given ones.
struct StripRows {
  explicit StripRows(const GradientFrame &frame, bool fromEnd = false);
  /// Those of a part of a head, 16 queries, by number.
  StripRows(const GradientFrame &frame, Scalar batch, Scalar head, Scalar part);

  Scalar tile, head, batch, warp, row;
  Scalar block, strip; ///< the number of the block, and which of its strips
  Tile sequence;       ///< the block as a tile, of sequences
  Scalar queries;      ///< that there are

  /// Does something for them, if their block has rows.
  void ifAny(TileBuilder &builder, llvm::function_ref<void()> body) const;

private:
  StripRows(const GradientFrame &frame, const BlockOfHead &at);
  void place(const GradientFrame &frame);
};

/// What statistics are made of (GradientStrips.cpp).
void declareOrigins(GradientFrame &frame);
/// Leaves the statistics of a warp's queries; or only what is added to scores,
/// where D is left by others.
void leaveStatistics(const GradientFrame &frame, const StripRows &at);
void leaveShift(const GradientFrame &frame, const StripRows &at);

/// The sizes by which a launch with a block for each strip finds it.
void declareStripSizes(GradientFrame &frame);

/// A launch before those that have tiles, with a block for each strip
/// (GradientStrips.cpp): does for a warp's queries what is to be done, with the
/// arguments that `declare` declares.
tile::KernelOp prepareStrips(GradientFrame &frame,
                             llvm::function_ref<void()> declare,
                             llvm::function_ref<void(const StripRows &)> leave);
/// The one that leaves statistics.
tile::KernelOp prepareStatistics(GradientFrame &frame);

/// The builder of a kernel whose first launch leaves statistics; `Kernel`
/// builds the others.
template <typename Kernel>
tile::KernelOp buildBehindStatistics(mlir::OpBuilder &builder,
                                     mlir::Location loc,
                                     const KernelRequest &request) {
  mlir::OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  if (request.launch > 0)
    return Kernel(b, request).build();
  GradientFrame frame(b, request);
  return prepareStatistics(frame);
}

} // namespace attn

#endif
