//===- PlacedKeys.h - Keys that lie where the device says -------*- C++ -*-===//
//
// How many keys each batch entry uses, drawn at random, or as many as each of
// ragged sequences, and K and V as they lie
// in memory: rows behind the used ones are NaN, and so is what lies between.
//
// In pages they lie in a pool in any order, with more pages than are used, by
// pages of rows of heads or of heads of rows.  Behind what an entry uses the
// table has numbers that are no pages.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_PLACEDKEYS_H
#define ATTN_TEST_UNIT_INTERPRETER_PLACEDKEYS_H

#include "Harness/CaseArrays.h"
#include "Harness/Draws.h"

namespace attn {

class PlacedKeys {
public:
  PlacedKeys(const Problem &problem, uint64_t seed, bool usesAll = false);

  /// Of every batch entry.
  std::vector<int64_t> used;

  /// The problem of a batch entry.
  Problem entry(int64_t batch) const;
  /// Writes K and V, row-major, the numbers of keys and the table; where they
  /// are, by role.
  void upload(GlobalMemory &memory, const std::vector<float> &k,
              const std::vector<float> &v,
              llvm::StringMap<uint64_t> &addresses) const;
  /// An argument that is of one of these.
  std::optional<KernelArgument>
  argumentOf(const ArgumentRole &role, mlir::Type type,
             const llvm::StringMap<uint64_t> &addresses) const;
  /// What an argument is as the traffic analysis wants it, and what an array
  /// has at an offset.
  std::optional<int64_t> integerOf(const ArgumentRole &role) const;
  std::optional<int64_t> numberAt(const ArgumentRole &role,
                                  int64_t offset) const;

private:
  bool isOfKeys(const ArgumentRole &role) const {
    return role.role == Role::k || role.role == Role::v;
  }
  ArrayShape shapeOf(Role role) const;
  /// Strides of pages or batch entries, heads and rows.
  std::array<int64_t, 4> stridesOf(Role role) const;
  std::vector<float> laidOut(Role role, const std::vector<float> &rows) const;

  const Problem problem;
  std::vector<int32_t> table;
  int64_t pages = 0;
  bool rowsHaveHeads; ///< or heads have rows
};

} // namespace attn

#endif
