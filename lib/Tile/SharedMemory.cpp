//===- SharedMemory.cpp - Where the buffers of a kernel lie ---------------===//

#include "attn/Tile/SharedMemory.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::tile;

using Reservation = SharedMemory::Reservation;

/// What an op reserves, if it does.
static std::optional<Reservation> reservationOf(Operation *op) {
  using Result = std::optional<Reservation>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](AllocOp alloc) -> Result {
        SmemType type = alloc.getResult().getType();
        return Reservation{alloc, alloc.getName(), type.totalBytes(),
                           type.alignment()};
      })
      .Case([](MbarrierOp barrier) -> Result {
        return Reservation{barrier, barrier.getName(),
                           8 * barrier.getResult().getType().getSlots(), 16};
      })
      .Case([](QueueOp queue) -> Result {
        return Reservation{queue, queue.getName(),
                           queue.getResult().getType().slotBytes() *
                               queue.getResult().getType().getSlots(),
                           16};
      })
      .Default([](Operation *) { return Result(); });
}

SharedMemory::SharedMemory(KernelOp kernel) {
  kernel.getBody().walk([&](Operation *op) {
    std::optional<Reservation> reserved = reservationOf(op);
    if (!reserved)
      return;
    bytes = llvm::alignTo(bytes, reserved->alignment);
    mostAlignment = std::max(mostAlignment, reserved->alignment);
    offsets[op] = bytes;
    bytes += reserved->bytes;
    all.push_back(*reserved);
  });
}

int64_t SharedMemory::offset(Operation *op) const { return offsets.lookup(op); }
