//===- HostBlocks.h - Lists of blocks, made on the host ---------*- C++ -*-===//
//
// What attn.block_lists and attn.transpose_blocks compute.  A block whose class
// arithmetic tells (RegionClasses.h) is not looked at pair by pair; of the
// others every pair is asked.
//
// Example: causal, 256 queries and keys, blocks of 128 x 128: the first block
// of queries has the partial block 0, and the second the full block 0 and the
// partial block 1.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_HOSTBLOCKS_H
#define ATTN_IR_HOSTBLOCKS_H

#include "attn/IR/Clauses.h"
#include "attn/IR/RegionEvaluator.h"

#include <cstdint>
#include <vector>

namespace attn {

/// Counts [batch, heads, rows] and indices [batch, heads, rows, columns],
/// row-major; indices behind as many as are counted are 0.
struct HostBlockList {
  std::vector<int32_t> counts, indices;
};

struct HostBlocks {
  int64_t batch, heads, rows, columns;
  HostBlockList partial, full;
  /// The first read of `sees` outside of its array.
  std::optional<OutsideRead> outsideRead = std::nullopt;
};

HostBlocks blockListsOf(mlir::Region &sees,
                        const std::vector<CapturedArray> &captures,
                        int64_t batch, int64_t heads, int64_t queries,
                        int64_t keys, BlockSize size);

HostBlocks transposed(const HostBlocks &lists);

} // namespace attn

#endif
