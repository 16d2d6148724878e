//===- ListedBlocks.h - Lists of blocks as a caller has them ----*- C++ -*-===//
//
// The four arrays of a pattern (BlockLists.h), drawn at random, and what they
// say: blocks in any order, rows without any, nonsense behind the counts and in
// front of the arrays.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_LISTEDBLOCKS_H
#define ATTN_TEST_UNIT_INTERPRETER_LISTEDBLOCKS_H

#include "Harness/CaseArrays.h"
#include "Harness/Draws.h"

#include "attn/Interpreter/OracleClauses.h"

namespace attn {

class ListedBlocks {
public:
  /// Whose lists there are: of every batch entry and of every query head, or of
  /// one for all.
  struct Owners {
    bool ofBatch = true, ofHeads = true;
  };
  /// How often a block is partial or full, in percent.
  struct Shares {
    int64_t partial = 30, full = 30;
  };
  ListedBlocks(const Problem &problem, const Owners &owners,
               const Shares &shares, uint64_t seed);

  enum class Kind { none, partial, full };
  Kind kindOf(int64_t batch, int64_t head, int64_t query, int64_t key) const;
  /// Keys in the blocks that a query's lists name.
  int64_t keysListed(int64_t batch, int64_t head, int64_t query) const;

  /// The lists as the oracle takes them, and what they show as a pattern, of
  /// which a problem has one for every batch entry.
  oracle::BlockLists forOracle() const;
  Pattern pattern() const;
  /// Whether batch entries have lists of their own, which no pattern has.
  bool areOfBatch() const { return batches > 1; }

  /// A block by its owners, its first query and its first key.
  struct Block {
    int64_t batch, head, query, key;
  };
  /// Takes a full block out of the transposed lists alone, which from then on
  /// do not match the others.
  Block leaveOutOfTransposed();

  /// Writes the arrays; where they are, by role.
  void upload(GlobalMemory &memory, llvm::StringMap<uint64_t> &addresses) const;
  /// What an argument of that role is, if it is of one of the arrays.
  std::optional<int64_t> integerOf(llvm::StringRef role) const;
  /// What such an array has at an offset.
  std::optional<int64_t> numberAt(llvm::StringRef role, int64_t offset) const;

private:
  struct Array {
    std::vector<int32_t> elements;
    int64_t strideBatch, strideHead, strideRow;
  };
  Array &add(const std::string &name, int64_t rows, int64_t ofRow);
  /// Lists of one kind; transposed ones are of columns.
  void fill(llvm::StringRef name, Kind kind, bool isTransposed, Draws &draw);
  size_t cell(int64_t batch, int64_t head, int64_t row, int64_t column) const;

  const Problem problem;
  BlockSize size;
  Owners owners;
  int64_t batches, heads, rows, columns;
  std::vector<Kind> kinds;
  llvm::StringMap<Array> arrays;
};

} // namespace attn

#endif
