//===- RaggedArguments.h - Arrays of sequences, as kernels get them -*- C++
//-*-===//
//
// Rows of sequences lie one behind the other, [rows, heads, columns], numbers
// of them as [heads, rows]: what a kernel is told of such arrays, and of the
// offsets of sequences, or of keys in a cache.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_RAGGEDARGUMENTS_H
#define ATTN_TEST_UNIT_INTERPRETER_RAGGEDARGUMENTS_H

#include "Harness/CaseArrays.h"
#include "Harness/PlacedKeys.h"

namespace attn {

/// An array of rows as [one entry, heads, rows, columns].
struct RaggedRowsOf {
  int64_t heads, rows, columns;
  int64_t pitch() const { return heads * columns; }
};

class RaggedArguments {
public:
  explicit RaggedArguments(const Problem &problem);

  /// Rows behind all others, of outputs and of statistics.
  static constexpr int64_t kBehind = 3;
  RaggedRowsOf rowsOf(Role role) const;
  /// Numbers from one head of a statistic to the next.
  int64_t statisticPitch() const { return problem.queries + kBehind; }

  /// An argument of a kernel; `addresses` are those of arrays.
  KernelArgument of(const ArgumentRole &role, mlir::Type type, double scale,
                    const llvm::StringMap<uint64_t> &addresses) const;
  void uploadOffsets(GlobalMemory &memory,
                     llvm::StringMap<uint64_t> &addresses) const;
  /// What the kernel's IR moves.
  mlir::FailureOr<tile::Traffic> count(tile::KernelOp kernel,
                                       std::array<int64_t, 3> grid) const;

  /// Offsets of sequences.
  std::vector<int64_t> firstQuery, firstKey;
  const Problem problem;
  /// Keys in a cache, which have none.
  std::optional<PlacedKeys> placed;
};

} // namespace attn

#endif
