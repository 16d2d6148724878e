//===- RaggedCase.h - Sequences of any length, and the truth ----*- C++ -*-===//
//
// Random sequences that lie one behind the other, the kernel that a builder
// writes for them, and what the oracle says of each by itself.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_RAGGEDCASE_H
#define ATTN_TEST_UNIT_INTERPRETER_RAGGEDCASE_H

#include "Harness/Draws.h"
#include "Harness/RaggedArguments.h"

#include "attn/Schedule/Traffic.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace attn {

class RaggedCase : public RaggedArguments {
public:
  RaggedCase(const Problem &problem, const Tiles &tiles, uint64_t seed = 1);

  /// Builds the kernel, runs it and compares; `blocks` run at once.
  void check(mlir::MLIRContext &context, const InterpreterOptions &options,
             int64_t blocks);

  /// Rows [tokens, heads, columns], rounded to the type; of a cache k and v are
  /// [sequences, heads, keys, columns].
  std::vector<float> q, k, v;
  /// Sequences that nobody compares.
  std::vector<bool> isIgnored;

  const Tiles tiles;
  const double scale;

private:
  void compare(GlobalMemory &memory,
               const llvm::StringMap<uint64_t> &addresses) const;
  int64_t bytesBehindUsed() const;
  void compareTraffic(tile::KernelOp kernel, std::array<int64_t, 3> grid,
                      const tile::Traffic &interpreted,
                      const Bytes &promised) const;
};

} // namespace attn

#endif
