//===- RaggedGradients.h - Gradients of sequences, and the truth -*- C++
//-*-===//
//
// Random sequences that lie one behind the other, all launches of a schedule
// for their gradients, and what the oracle says of each by itself.  Rows behind
// the last sequence hold NaN, and those of results are not to be written.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_RAGGEDGRADIENTS_H
#define ATTN_TEST_UNIT_INTERPRETER_RAGGEDGRADIENTS_H

#include "Harness/RaggedArguments.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>

namespace attn {

class RaggedGradients : public RaggedArguments {
public:
  /// `problem` is of sequences; some rows more lie behind them.
  RaggedGradients(const Problem &problem, llvm::StringRef schedule,
                  const Tiles &tiles, uint64_t seed = 1);

  /// Builds the kernels, runs them and compares; `blocks` run at once.
  void check(mlir::MLIRContext &context, const InterpreterOptions &options,
             int64_t blocks);

  /// Fills the rows of a sequence with NaN, and compares it no more.
  void spoil(size_t sequence);

private:
  struct Results {
    std::vector<double> truth;
    std::vector<float> got;
    double squares = 0;
  };
  std::vector<float> &dataOf(Role role);
  /// O and LSE of a sequence, as a forward kernel leaves them.
  void attend(size_t sequence);
  void attendAll();
  oracle::Array arrayOf(Role role, size_t sequence);
  int64_t firstRowOf(Role role, size_t sequence) const;
  void upload(GlobalMemory &memory, llvm::StringMap<uint64_t> &addresses);
  void launch(tile::KernelOp kernel, const Launches &launches, int64_t number,
              std::array<int64_t, 3> grid, llvm::StringMap<uint64_t> &addresses,
              GlobalMemory &memory, const InterpreterOptions &options);
  void compare(GlobalMemory &memory,
               const llvm::StringMap<uint64_t> &addresses);
  /// Of the rows of a sequence, which must have been written.
  void take(GlobalMemory &memory, uint64_t address, Role role, size_t sequence,
            const std::vector<double> &exact, double size, Results &results);

  std::map<Role, std::vector<float>> arrays;
  std::vector<bool> isIgnored;
  const std::string schedule;
  const Tiles tiles;
  const double scale;
};

} // namespace attn

#endif
