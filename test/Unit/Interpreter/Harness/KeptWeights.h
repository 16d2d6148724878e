//===- KeptWeights.h - Weights that are kept, as they should be -*- C++ -*-===//
//
// What a forward call leaves for a backward one (`attn.forward`), worked out in
// double: as arrays for launches that read them, and to compare with what
// launches have written.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_KEPTWEIGHTS_H
#define ATTN_TEST_UNIT_INTERPRETER_KEPTWEIGHTS_H

#include "Harness/CaseArrays.h"

namespace attn {

class KeptWeights {
public:
  KeptWeights(const Problem &problem, double scale, const std::vector<float> &q,
              const std::vector<float> &k);

  /// Memory for both arrays, with nothing in it.
  static void allocate(const Problem &problem, GlobalMemory &memory,
                       llvm::StringMap<uint64_t> &addresses);
  /// Writes what there is; no launch may read anything else.
  void upload(GlobalMemory &memory,
              const llvm::StringMap<uint64_t> &addresses) const;
  /// Compares what launches have left: all that there is, and nothing else.
  void compare(GlobalMemory &memory,
               const llvm::StringMap<uint64_t> &addresses) const;

private:
  /// A row of a block of a head, of all batch entries.
  struct Row {
    int64_t head, query, block;
    int64_t keys; ///< that the array has of the block
    double max;   ///< of what is seen, in powers of two; -inf if there is none
    std::vector<double> exponents; ///< likewise, -inf where hidden
  };
  void compare(const Row &row, GlobalMemory &memory,
               const llvm::StringMap<uint64_t> &addresses) const;

  /// Where something of it is in the arrays.
  uint64_t weightsAt(uint64_t base, const Row &row) const;
  uint64_t numberAt(uint64_t base, const Row &row, int64_t which) const;

  const Problem problem;
  std::vector<Row> written, unwritten;
};

} // namespace attn

#endif
