//===- SharedMemory.h - Where the buffers of a kernel lie -------*- C++ -*-===//
//
// Buffers, barriers and queues are laid one behind the other in the order in
// which the kernel reserves them (`tile.alloc`, `tile.mbarrier`, `tile.queue`),
// each at a multiple of what its type asks for: 128 bytes, 1024 for sw128, 16
// for barriers and queues.  Buffers that share bytes say so in the IR
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
  /// Something that a kernel reserves.
  struct Reservation {
    mlir::Operation *op;
    mlir::StringRef name;
    int64_t bytes, alignment;
  };

  explicit SharedMemory(KernelOp kernel);

  /// Bytes from the start of the block's shared memory to what the op reserves.
  int64_t offset(mlir::Operation *op) const;
  /// Bytes that a block needs.
  int64_t totalBytes() const { return bytes; }
  /// What divides the address at which the block's shared memory must begin.
  int64_t alignment() const { return mostAlignment; }
  /// What is reserved, in the order of the addresses.
  mlir::ArrayRef<Reservation> reservations() const { return all; }

private:
  llvm::DenseMap<mlir::Operation *, int64_t> offsets;
  mlir::SmallVector<Reservation> all;
  int64_t bytes = 0, mostAlignment = 128;
};

} // namespace attn::tile

#endif
