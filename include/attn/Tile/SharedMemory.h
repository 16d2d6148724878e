//===- SharedMemory.h - Where the buffers of a kernel lie -------*- C++ -*-===//
//
// Buffers are laid one behind the other in the order of their `tile.alloc`,
// each at a multiple of 128 bytes.  Buffers that share bytes say so in the IR
// (`tile.alias`), so there is nothing to overlap here.
//
// Example: `!tile.smem<128x128xbf16>` and two `!tile.smem<64x128xbf16>` have
// rows of 272 bytes and lie at 0, 34816 and 52224; the kernel needs 69632
// bytes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_SHAREDMEMORY_H
#define ATTN_TILE_SHAREDMEMORY_H

#include "attn/Tile/Tile.h"

#include "llvm/ADT/DenseMap.h"

namespace attn::tile {

/// The layout of a kernel's shared memory.
class SharedMemory {
public:
  static constexpr int64_t kAlignment = 128;

  explicit SharedMemory(KernelOp kernel);

  /// Bytes from the start of the block's shared memory to the buffer.
  int64_t offset(AllocOp alloc) const;
  /// Bytes that a block needs.
  int64_t totalBytes() const { return bytes; }
  /// The buffers in the order of their addresses.
  mlir::ArrayRef<AllocOp> allocations() const { return buffers; }

private:
  llvm::DenseMap<mlir::Operation *, int64_t> offsets;
  mlir::SmallVector<AllocOp> buffers;
  int64_t bytes = 0;
};

} // namespace attn::tile

#endif
