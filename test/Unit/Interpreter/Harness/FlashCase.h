//===- FlashCase.h - A built kernel, its inputs and the truth ---*- C++ -*-===//
//
// A problem with random inputs, the kernel that a builder writes for it, and
// what the oracle says.  The kernel, or a mutant of it, can be run many times.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_FLASHCASE_H
#define ATTN_TEST_UNIT_INTERPRETER_FLASHCASE_H

#include "Harness/CaseArrays.h"
#include "Harness/ClauseCase.h"
#include "Harness/Draws.h"
#include "Harness/ListedBlocks.h"
#include "Harness/PlacedKeys.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace attn {

/// Of forward by mma.sync.
inline Tiles mmaSyncTiles(int64_t query, int64_t key, int64_t stages,
                          int64_t warps) {
  return {{"query", query}, {"key", key}, {"stages", stages}, {"warps", warps}};
}

/// The builder for tiles, and a module with the kernel that it writes:
/// `score_spill_mma_sync` if the tiles have strips, `column_split_wgmma` if
/// they have groups or warpgroups, `output_spill_wgmma` if they have parts,
/// else `output_spill_mma_sync` if they have columns, `flash_wgmma` if they say
/// whether the kernel is persistent, `streamed_query_mma_sync` if they have
/// slices, else
/// `flash_mma_sync`.
std::string kernelOf(const Tiles &tiles);
mlir::OwningOpRef<mlir::ModuleOp>
buildFlash(mlir::MLIRContext &context, const Problem &problem,
           const Tiles &tiles, double scale = 1, ClauseCase *clauses = nullptr);

/// A kernel of a schedule, and those that are launched behind it.
llvm::SmallVector<tile::KernelOp> launchedWith(tile::KernelOp kernel);

/// What a run gave.
struct Outcome {
  /// The first error that the interpreter reported, or empty.
  std::string error;
  tile::Traffic traffic;
  /// FlashCase::errorOf and the largest difference of an LSE; infinite where
  /// one is NaN and the other is not, or something was not written.
  double relativeError = 0, lseError = 0;
  /// FlashCase::largestErrorOf, and FlashCase::lowErrorOf if there are low
  /// words.
  double largestError = 0, lowError = 0;
  /// Empty where not all of it was written.
  std::vector<float> o, lse, lseLow;
};

class FlashCase {
public:
  FlashCase(const Problem &problem, const Tiles &tiles, uint64_t seed = 1);

  /// With what is launched behind it.
  Outcome run(tile::KernelOp kernel, const InterpreterOptions &options = {});
  /// The scalar arguments as the traffic analysis wants them.
  llvm::SmallVector<int64_t> scalars(tile::KernelOp kernel) const;
  std::array<int64_t, 3> grid(int64_t launch = 0) const;
  /// Blocks of a persistent kernel, if there are as many tiles.
  int64_t multiprocessors = 3;

  const Problem problem;
  const Tiles tiles;
  double scale;
  /// Row-major inputs, rounded to the problem's type.
  std::vector<float> q, k, v;
  /// Draws the lists of the problem's pattern, and works out the truth.
  void list(const ListedBlocks::Owners &owners,
            const ListedBlocks::Shares &shares, uint64_t seed);
  std::optional<ListedBlocks> lists;
  /// Places keys where a problem's device says, all or some of them, and works
  /// out the truth.
  void place(uint64_t seed, bool usesAll = false);
  std::optional<PlacedKeys> placed;
  /// What the IR of a launch moves, and what the schedule promises of each:
  /// lists say what moves, whatever a mask hides of it.
  mlir::FailureOr<tile::Traffic> count(tile::KernelOp kernel,
                                       std::array<int64_t, 3> grid,
                                       const Round &round = {}) const;
  std::vector<Bytes> promised(llvm::StringRef schedule) const;
  /// The same with clauses, which live elsewhere.
  void use(ClauseCase &clauses);
  ClauseCase *clauses = nullptr;
  /// Works out the truth again, after a change of the inputs.
  void consultOracle();
  /// Scores that grow, or shrink, every so many keys, and their truth: all of q
  /// is 1, and row j of k is growth * (j / every).
  void growScores(float growth, int64_t every);
  /// |o - truth|, beside |truth| or the size of what it is summed from;
  /// infinite where one is NaN and the other is not.
  double errorOf(llvm::ArrayRef<float> o) const;
  /// The largest |o - truth| of an element, beside the sum of its |p v| and
  /// what weights that a 16-bit type has no place for come to.  NaNs and
  /// infinities are what `errorOf` looks at.
  double largestErrorOf(llvm::ArrayRef<float> o) const;
  /// The largest difference of an LSE, likewise, beyond what f32 rounds scores
  /// and the scale by.
  double lseErrorOf(llvm::ArrayRef<float> lse) const;
  /// The same of LSEs in two words, beyond what two words round by; infinite
  /// where the first is not what both are as one.
  double lowErrorOf(llvm::ArrayRef<float> lse, llvm::ArrayRef<float> low) const;

private:
  /// V is the first columns of K.
  void takeValuesOfKeys();
  /// Memory that launches share is made once.
  std::vector<KernelArgument>
  argumentsOf(tile::KernelOp kernel, GlobalMemory &memory,
              llvm::StringMap<uint64_t> &addresses) const;
  /// O and LSE of some values; the size of O.
  double attend(const std::vector<float> &values, std::vector<double> &o,
                std::vector<double> &lse) const;
  /// The same of the keys that lists show, row by row.
  double attendListed(const std::vector<float> &values, std::vector<double> &o,
                      std::vector<double> &lse) const;
  /// The same of the keys that batch entries use.
  double attendPlaced(const std::vector<float> &values, std::vector<double> &o,
                      std::vector<double> &lse) const;
  /// The same with clauses.
  double attendClauses(const std::vector<float> &values, std::vector<double> &o,
                       std::vector<double> &lse) const;
  void compare(GlobalMemory &memory, const llvm::StringMap<uint64_t> &addresses,
               Outcome &outcome) const;

  std::vector<double> truth, truthLse;
  /// sum |p v| of every element of O.
  std::vector<double> magnitude;
  double size = 0;
};

/// Draws cases of blocks that go from tile to tile, where every warpgroup has
/// blocks of its own to pass over.  A block takes all tiles behind the first
/// ones, so that the number of multiprocessors says how far apart its first two
/// tiles are.
class BoundaryDraws : public Draws {
public:
  using Draws::Draws;

  /// One head or two of `like`, up to three tiles of queries, any mask.
  Problem problem(Problem like, int64_t tileRows, int64_t mostKeys);
  /// Draws the multiprocessors of a case, and the order of its warps: one,
  /// since whether they wait for each other forever depends on none.
  InterpreterOptions place(FlashCase &flash, uint64_t seed);
};

} // namespace attn

#endif
