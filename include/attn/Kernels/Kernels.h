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

#include "attn/Schedule/Launches.h"
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
  Launches launches;  ///< what these tiles mean
  int64_t launch = 0; ///< which of them the kernel is for
  int64_t minBlocksPerSm = 1; ///< from the plan's footprint
  double scale = 1;      ///< of the scores; only its sign matters to the code
  int64_t sms = 1;       ///< multiprocessors, that work on tiles at once
  int64_t l2Bytes = 0;   ///< of L2, for what is read again
  int64_t smemBytes = 0; ///< of shared memory that a block may have
  /// Bytes that divide every row's address, by array ("q", "dk"), from those of
  /// an element to kMaxAlignment, which is that of arrays left out.
  std::map<std::string, int64_t> alignments;

  const LaunchShape &shape() const { return launches.shapes[size_t(launch)]; }
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
///                                     see Rounds.h; launches share them
///   `scratch_<what>`, of rounds       !tile.ptr, the same scores, or of every
///                                     block `kRowStatistics` for every row
///   `scratch_<q|k|v>`                 !tile.ptr, the parts of an input, which
///                                     launches share, see InputParts.h
///   `scratch_<q|k|v>_map`             !tile.tensor_map of them
///   `queries`, `keys`                 i32, rows of Q and of K
///   `heads`, `batch`                  i32, of Q
///   `group`                           i32, query heads that share a key head
///   `band_first`, `band_last`, `open_keys`
///                                     i32, see `Visible` in Problem.h
///   `scale`                           f32, scale of the scores
///   `first_head`, `round_heads`, `first_key`, `first_query`  i32, see Round
std::string offsetRole(llvm::StringRef operand);
std::string strideRole(llvm::StringRef operand, llvm::StringRef axis);
std::string mapRole(llvm::StringRef operand);
inline constexpr llvm::StringLiteral kCounterRole = "counter",
                                     kStripCounterRole = "strip_counter",
                                     kFlagsRole = "flags",
                                     kScratchRole = "scratch";

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
