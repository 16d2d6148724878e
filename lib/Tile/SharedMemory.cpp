//===- SharedMemory.cpp - Where the buffers of a kernel lie ---------------===//

#include "attn/Tile/SharedMemory.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::tile;

SharedMemory::SharedMemory(KernelOp kernel) {
  kernel.getBody().walk([&](AllocOp alloc) {
    bytes = llvm::alignTo(bytes, kAlignment);
    offsets[alloc] = bytes;
    buffers.push_back(alloc);
    bytes += alloc.getResult().getType().totalBytes();
  });
}

int64_t SharedMemory::offset(AllocOp alloc) const {
  return offsets.lookup(alloc);
}
