//===- Kernels.h - From a plan to the kernel it names -----------*- C++ -*-===//
//
// A kernel builder writes the `tile.kernel` of one schedule for one family of
// tensor-core instructions.  It decides nothing: tile sizes come with the
// request.  What it promises is that the kernel moves exactly the bytes that
// the schedule's folds predict; passes check that on the IR.
//
// Builders are found by name, `<schedule>_<family>`, which is also the name of
// the file in lib/Kernels and of the function.
//
// **Arguments.**  A kernel says in the attribute `tile.role` of each argument
// what it wants passed (a `Role` by name), and who launches it reads that: new
// schedules need no second list.  Extents, strides and the mask are run-time
// arguments, so one kernel serves every batch and row count.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_KERNELS_KERNELS_H
#define ATTN_KERNELS_KERNELS_H

#include "attn/Schedule/Problem.h"
#include "attn/Schedule/Tiles.h"
#include "attn/Tile/Tile.h"

#include "mlir/IR/Builders.h"

#include <array>
#include <map>
#include <string>

namespace attn {

/// What is asked of a builder.
struct KernelRequest {
  std::string name;   ///< symbol of the kernel
  Problem problem;    ///< type, head dimensions, mask kind, lse and its low
                      ///< word, weights kept; extents are not read, the
                      ///< kernel takes them as arguments
  Tiles tiles;        ///< of the schedule, `check`ed by its plan
  int64_t launch = 0; ///< which of the schedule's launches the kernel is for
  int64_t minBlocksPerSm = 1; ///< from the plan's footprint
  double scale = 1;    ///< of the scores; only its sign matters to the code
  int64_t sms = 1;     ///< multiprocessors, that work on tiles at once
  int64_t l2Bytes = 0; ///< of L2, for what is read again
  /// Bytes that divide every row's address, by array ("q", "dk"), from those of
  /// an element to kMaxAlignment, which is that of arrays left out.
  std::map<std::string, int64_t> alignments;

  int64_t alignmentOf(llvm::StringRef array) const {
    auto found = alignments.find(array.str());
    return found == alignments.end() ? kMaxAlignment : found->second;
  }
};

/// Name of the argument attribute that holds a role.
inline constexpr llvm::StringLiteral kRoleAttr = "tile.role";
/// Name of the argument attribute that holds how many elements of a launch's
/// own memory a block of the grid has.
inline constexpr llvm::StringLiteral kPerBlockAttr = "tile.per_block";
/// And beyond how many keys it has them; with so many or less it has none.
inline constexpr llvm::StringLiteral kBeyondKeysAttr = "tile.beyond_keys";
/// The same of all blocks together.
inline constexpr llvm::StringLiteral kPerLaunchAttr = "tile.per_launch";
/// The same of memory that launches share: how many elements it has for every
/// strip of queries, of each query head.
inline constexpr llvm::StringLiteral kPerStripAttr = "tile.per_strip";

/// Roles of kernel arguments: `<operand>` is the role of an array of the op, q,
/// k, v, o, lse, lse_low, weights or block_rows, or backward the gradient of
/// one, dq.
///   `<operand>`                       !tile.ptr, aligned base of the memref
///   `<operand>_offset`                i64, elements from it to element 0
///   `<operand>_stride_<batch|head|row>` i64, elements
///   `<operand>_map`                   !tile.tensor_map of the memref
///   `counter`                         !tile.ptr<i32>, a tile.counter
///   `strip_counter`                   the same, for strips beside tiles
///   `flags`                           the same, several
///   `scratch`, `scratch_<what>`       !tile.ptr, a tile.scratch each
///   `scratch_<what>_map`              !tile.tensor_map of scores that wait,
///                                     see RoundOrder; launches share them
///   `scratch_<what>`, of rounds       !tile.ptr, the same scores, or of every
///                                     block `kRowStatistics` for every row
///   `scratch_<q|k|v>`                 !tile.ptr, the parts of an input, which
///                                     launches share, see InputParts.h
///   `scratch_<q|k|v>_map`             !tile.tensor_map of them
///   `queries`, `keys`                 i32, rows of Q and of K
///   `heads`, `batch`                  i32, of Q
///   `group`                           i32, query heads that share a key head
///   `band_first`, `band_last`         i32, see Problem.h
///   `scale`                           f32, scale of the scores
///   `first_head`, `round_heads`, `first_key`, `first_query`  i32, see Round
std::string offsetRole(llvm::StringRef operand);
std::string strideRole(llvm::StringRef operand, llvm::StringRef axis);
std::string mapRole(llvm::StringRef operand);
inline constexpr llvm::StringLiteral kCounterRole = "counter",
                                     kStripCounterRole = "strip_counter",
                                     kFlagsRole = "flags",
                                     kScratchRole = "scratch";

/// What launches that go in rounds do at once: some key heads, numbered through
/// all batch entries, and a strip of their keys, or of the queries that they
/// have; of the others all.
struct Round {
  int64_t firstHead = 0, heads = 0, firstKey = 0, firstQuery = 0;
  int64_t rows = 0; ///< of a head in the arrays of scores that wait
};

/// Numbers of a row of a block of scores that wait: the maximum and the sum.
inline constexpr int64_t kRowStatistics = 2;

/// The value of an integer role for a problem, of a map the rows of its array,
/// or these and its columns (`tile::extentsOfMap`); strides and offsets, which
/// the problem does not tell, and pointers are 0.
int64_t roleValue(llvm::StringRef role, const Problem &problem,
                  const Round &round = {});

/// Whether an argument of that role is memory of the launch, with any contents.
bool isScratchRole(llvm::StringRef role);

/// The role of the array with an input's parts.
std::string partsRole(llvm::StringRef input);
/// The role of the array with the exponents of those.
std::string exponentsRole(llvm::StringRef input);
/// The input ("q") of which an argument of that role, or a map of it, has the
/// parts or their exponents; empty if of none.
llvm::StringRef inputOfParts(llvm::StringRef role);
/// Columns of each part of an input, zeros behind it included.
int64_t columnsOfPart(llvm::StringRef input, const Problem &problem,
                      const Tiles &tiles);

/// Name of the attribute of a kernel that tells which launch of its schedule it
/// is for, if it has several.
inline constexpr llvm::StringLiteral kLaunchAttr = "launch";
int64_t launchOf(tile::KernelOp kernel);

/// The grid of a kernel, of one dimension: one block per tile of all heads; or
/// of those only as many as multiprocessors, or as run at once; or as many
/// teams of blocks that share tiles as run at once.
enum class GridForm { tiles, persistent, resident, teams };

/// One launch of a schedule.
struct LaunchShape {
  /// What the kernel's name says about it; empty if there is nothing to tell.
  llvm::StringLiteral suffix;
  GridForm form;
  bool ownsKeys; ///< tiles are rows of keys, of key heads
  int64_t rows;  ///< of a tile: those of all its groups
  /// Tiles come in units of so many, even if those at the end have no rows.
  int64_t unit = 1;
  /// Columns of a tile of O or of a gradient, dQ or first dK and then dV; 0:
  /// all.
  int64_t columns = 0;
  /// Blocks of keys, each a tile of scores.
  int64_t keyBlocks = 1;
  /// Or blocks of so many of all keys, and one at least; 0: there are none.
  int64_t keyBlock = 0;
  /// Tiles of dK and dV too, of so many keys; 0: there are none.
  int64_t keyRows = 0;
  /// Whether it is launched again and again, see RoundOrder.
  bool isInRounds = false;
  /// Whether a block runs if there are no tiles, but queries.
  bool isNeverEmpty = false;

  /// Tiles of the same rows, of as many as there are blocks of all keys.
  int64_t tilesOfRows(const Problem &problem) const;
  /// The same of keys, where there are tiles of them too.
  int64_t tilesOfKeys(const Problem &problem) const;

private:
  int64_t tilesOfColumns(const Problem &problem, bool areOfKeys) const;
};
/// All launches of a schedule with these tiles, in order; those in rounds are
/// behind the others.
llvm::SmallVector<LaunchShape, 3> launchesOf(const Tiles &tiles);
/// Whether rounds are those of forward, for strips of queries.
bool hasStripsOfQueries(const Tiles &tiles);
/// Blocks of a team.
int64_t blocksOfTeam(const Tiles &tiles);

/// Rows of a strip of queries in scratch memory.  A head has those of whole
/// blocks of queries, and at least one block, in every batch entry.
inline constexpr int64_t kStripRows = 64;
int64_t stripsOfBlock(const Tiles &tiles);

/// The rounds of a problem: for `heads` key heads after the other, strip by
/// strip of so many keys or queries, in ascending order; in a round all
/// launches that go in rounds, in order.  Scores wait from launch to launch in
/// arrays
///
///   [heads, query heads that share one times blocks, rows, columns]
///
/// of whole tiles, which all rounds use, in the type of the inputs.  Of strips
/// of keys a row has all columns, and there is one block; of strips of queries
/// those of a block of keys.  There is a round without keys: gradients of
/// queries are 0 then.  For 2 x 3 key heads and 5000 keys in rounds of 4 heads
/// and 4096 keys:
///
///   head 0, 4 heads, key 0     head 0, 4 heads, key 4096
///   head 4, 2 heads, key 0     head 4, 2 heads, key 4096
///
/// Where nothing goes in rounds there is one, of everything.
class RoundOrder {
public:
  RoundOrder(const Tiles &tiles, const Problem &problem);

  int64_t count() const { return groups * strips; }
  Round at(int64_t number) const;

  int64_t heads, strip;          ///< of a round, if there are as many
  int64_t blocks, rows, columns; ///< of the arrays

private:
  bool cutsQueries;
  int64_t allHeads, groups, strips;
};

/// The extents of a launch's grid, in every round, for a problem on so many
/// multiprocessors, each of which runs so many blocks of a resident grid.
std::array<int64_t, 3> gridOf(const Tiles &tiles, const Problem &problem,
                              int64_t multiprocessors, int64_t blocksPerSm = 1,
                              int64_t launch = 0);

/// What a kernel was built for, as its attribute `problem` and back.
mlir::DictionaryAttr problemAttr(mlir::MLIRContext *context,
                                 const Problem &problem);
std::optional<Problem> problemFromAttr(mlir::DictionaryAttr attribute);

/// Name of that attribute of a kernel.
inline constexpr llvm::StringLiteral kProblemAttr = "problem";

using KernelBuilder = tile::KernelOp (*)(mlir::OpBuilder &, mlir::Location,
                                         const KernelRequest &);

/// The builder of that name, or null.
KernelBuilder findKernelBuilder(llvm::StringRef name);

} // namespace attn

#endif
