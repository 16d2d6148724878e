//===- Subject.h - Kernels whose mutants are run ----------------*- C++ -*-===//
//
// The functions of a module, compiled and recorded, each of them a size of the
// same attention; their launches can be replayed with another kernel in the
// place of one.
//
// What kernels compute is compared with what they compute themselves: that this
// is attention, other tests say.  A mutant must give the same bits as the
// kernel in the same order of warps and blocks, but for sums in any order,
// which have a limit.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_MUTANTS_SUBJECT_H
#define ATTN_TEST_MUTANTS_SUBJECT_H

#include "attn/CAPI/Compile.h"
#include "attn/Host/Recording.h"
#include "attn/Interpreter/InterpreterDevice.h"

#include "llvm/ADT/DenseSet.h"

#include <map>
#include <string>
#include <vector>

namespace attn {

/// One function, with inputs and the results of the right kernels.
class SubjectCase {
public:
  /// Fails with a diagnostic.
  static mlir::FailureOr<SubjectCase> make(mlir::func::FuncOp function);

  /// Runs the right kernels in an order and keeps what comes out; fails with a
  /// diagnostic.  Adds the ops that ran to `executed`.
  mlir::LogicalResult runRight(const InterpreterOptions &order,
                               llvm::DenseSet<mlir::Operation *> &executed);
  /// What there is to say against a kernel in the place of another, in the
  /// order of that number among those that ran right; or nothing.
  std::string verdict(tile::KernelOp kernel, tile::KernelOp mutant,
                      size_t order) const;
  /// Whether some launch is of that kernel.
  bool has(tile::KernelOp kernel) const;
  bool waitsForBlocks() const { return isCooperative; }

private:
  /// The numbers of one result, bit by bit.
  using Numbers = std::vector<uint32_t>;
  struct Run {
    InterpreterOptions options;
    std::vector<Numbers> results;
    /// Memory before the first launch of every kernel.
    std::map<mlir::Operation *, GlobalMemory> before;
  };
  struct Result {
    int64_t slot;
    int64_t offset, count;
    mlir::Type type;
  };
  class Player;

  std::vector<Numbers> resultsOf(GlobalMemory &memory,
                                 llvm::ArrayRef<uint64_t> slots) const;
  std::string difference(const std::vector<Numbers> &numbers,
                         const std::vector<Numbers> &right) const;

  Recording recording;
  /// Of every slot; empty where the program writes first.
  std::vector<std::vector<uint8_t>> contents;
  std::vector<int64_t> slotBytes;
  std::vector<Result> results;
  std::vector<Run> runs;
  mlir::Location location;
  bool isCooperative = false;
  bool isReproducible = true;

  explicit SubjectCase(mlir::Location location) : location(location) {}
};

} // namespace attn

#endif
