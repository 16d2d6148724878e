//===- BuiltGradient.h - Are built gradients right, byte for byte? -*- C++ -*-//
//
// Runs the launches of a schedule for gradients one after the other on random
// arrays, in rounds where they go in rounds; gradients are compared with the
// oracle, bytes with what the traffic analysis counts in the IR and with what
// the schedule's folds promise.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_BUILTGRADIENT_H
#define ATTN_TEST_UNIT_INTERPRETER_BUILTGRADIENT_H

#include "Harness/ClauseCase.h"
#include "Harness/KernelTest.h"
#include "Harness/ListedBlocks.h"

#include <functional>

namespace attn {

/// Inputs with the statistics that belong to them, and true gradients.
struct GradientCase {
  GradientCase(const Problem &problem, uint64_t seed = 1,
               ClauseCase *clauses = nullptr);
  /// Works out everything that follows from q, k, v, gradient and dlse.
  void consultOracle();

  /// Draws the lists of the problem's pattern, which then has them, where all
  /// batch entries share them; and works out the truth.
  void list(const ListedBlocks::Owners &owners,
            const ListedBlocks::Shares &shares, uint64_t seed);

  Problem problem;
  ClauseCase *const clauses; ///< of the problem, if it has any
  std::optional<ListedBlocks> lists;
  double scale;
  /// Added to each score before its function, if it has one.
  double nudge = 0;
  std::vector<float> q, k, v, gradient, dlse; ///< gradient: of o
  std::vector<float> o, lse, lseLow;
  std::vector<double> dq, dk, dv;
  oracle::GradientSizes sizes;
  /// Of what clauses ask gradients of, in that order, and the size of each.
  std::vector<std::vector<double>> captured;
  std::vector<double> capturedSizes;

private:
  void noteCaptured(const std::vector<double> &dsinks);
};

class BuiltGradient : public ::testing::Test {
protected:
  /// Of a schedule and the family that its kernels are for.
  BuiltGradient(std::string schedule, const std::string &family)
      : schedule(schedule), builder(schedule + "_" + family) {
    loadDialects(context);
  }

  void check(const Problem &problem, const Tiles &tiles,
             InterpreterOptions options = {}) {
    check(GradientCase(problem), tiles, options);
  }
  void check(const GradientCase &truth, const Tiles &tiles,
             InterpreterOptions options = {});
  /// Scores that f32 holds, far apart with scales up to the largest and far
  /// from 0: right with both words of LSE, and not with one.
  void checkLargeScores(Problem problem, const Tiles &tiles,
                        float largestScale = 1e6F);
  /// What launches leave, by array; of scratch, sums of dQ in f32 if there are.
  std::map<std::string, std::vector<float>>
  run(const GradientCase &truth, const Tiles &tiles,
      const InterpreterOptions &options = {});

  static Problem problem(int64_t queries, int64_t keys, int64_t headDim,
                         int64_t headDimV, Mask mask = {},
                         DataType type = DataType::bf16);

  const std::string schedule, builder;
  /// That work on tiles at once.
  int64_t multiprocessors = 4;
  mlir::MLIRContext context;
  /// What is done to the kernels before they run, if anything.
  std::function<void(mlir::ModuleOp)> change;

private:
  mlir::OwningOpRef<mlir::ModuleOp> build(const GradientCase &truth,
                                          const Tiles &tiles);
  /// Runs all launches, and compares the bytes that each has moved in all.
  void launchAll(mlir::ModuleOp module, const GradientCase &truth,
                 const Tiles &tiles, llvm::StringMap<uint64_t> &addresses,
                 GlobalMemory &memory, const InterpreterOptions &options);
  /// Runs what gradients of captures have in front of launches, or behind.
  void launchCaptures(mlir::ModuleOp module, const GradientCase &truth,
                      const Tiles &tiles, bool areBehind,
                      llvm::StringMap<uint64_t> &addresses,
                      GlobalMemory &memory, const InterpreterOptions &options);
  /// Adds what it moves.
  void launch(tile::KernelOp kernel, const GradientCase &truth,
              const Tiles &tiles, const Round &round,
              llvm::StringMap<uint64_t> &addresses, GlobalMemory &memory,
              const InterpreterOptions &options, tile::Traffic &moved);
};

} // namespace attn

#endif
