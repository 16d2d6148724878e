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
// what it wants passed: a role of the table in Roles.h, as printed.  Extents,
// strides and the mask are run-time arguments, so one kernel serves every batch
// and row count.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_KERNELS_KERNELS_H
#define ATTN_KERNELS_KERNELS_H

#include "attn/Schedule/Launches.h"
#include "attn/Schedule/Roles.h"
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
  /// The regions of the problem's clauses, which live elsewhere; null if
  /// absent.
  mlir::Region *sees = nullptr, *score = nullptr;
  /// Captures and behind them sinks, by number, of which gradients are asked.
  std::vector<int64_t> gradients;
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

/// And how many for every row of queries, of each query head.
inline constexpr llvm::StringLiteral kPerRowAttr = "tile.per_row";

/// Numbers of a row of a block of scores that wait: the maximum and the sum.
inline constexpr int64_t kRowStatistics = 2;

/// The role of a kernel's argument (Roles.h); a located error if it has none,
/// or one that is not in the table.  And those of all arguments.
mlir::FailureOr<ArgumentRole> roleOf(tile::KernelOp kernel, unsigned argument);
mlir::FailureOr<llvm::SmallVector<ArgumentRole>> rolesOf(tile::KernelOp kernel);

/// A located error unless the arguments of a kernel for that problem are what
/// the table says of their roles: each once, in a direction that has it, with
/// its type of elements, and with a count where it is memory that is counted.
llvm::LogicalResult checkRoles(tile::KernelOp kernel, const Problem &problem);

/// The value of an integer for a problem, of a map the rows of its array, or
/// these and its columns (`tile::extentsOfMap`); strides and offsets, which the
/// problem does not tell, and pointers are 0.
int64_t roleValue(const ArgumentRole &role, const Problem &problem,
                  const Round &round = {});

/// Columns of each part of an input, zeros behind it included.
int64_t columnsOfPart(Role input, const Problem &problem, const Tiles &tiles);

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
