//===- Recording.h - A host function as a list of steps ---------*- C++ -*-===//
//
// Running a host function op by op costs microseconds per op, and a kernel for
// short rows runs for ten.  So the function is run once per set of shapes, on
// a device that only takes notes; what remains is a short list of launches and
// copies that any thread can replay with other pointers on any stream.
//
// Addresses in a recording are symbolic: slot and byte offset.  The slots are
// the arguments in order, then the allocations of the function in order.
// Example: a function of (q, k, v) that allocates and returns o has slots 0 to
// 2 for the arguments and 3 for o.  A caller who brings memory for o puts its
// address in place of slot 3, and nothing is allocated.
//
// Counters (`tile.counter`) are no slots: nobody brings memory for them, and a
// launch needs others than the one before.  Their addresses are symbolic too.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOST_RECORDING_H
#define ATTN_HOST_RECORDING_H

#include "attn/Host/Host.h"

#include <vector>

namespace attn {

/// A slot or a counter, and an offset in bytes, packed as one number.  An
/// offset may be negative: an array of windows of rows begins in front of the
/// rows.
class SymbolicAddress {
public:
  static constexpr int kOffsetBits = 44;
  /// Offsets are no less than minus this.
  static constexpr uint64_t kMostBefore = uint64_t(1) << 40;

  static uint64_t ofSlot(int64_t slot) {
    return static_cast<uint64_t>(slot + 1) << kOffsetBits;
  }
  static uint64_t ofCounter(int64_t counter) {
    return kCounterBit | ofSlot(counter);
  }
  explicit SymbolicAddress(uint64_t bits) : bits(bits) {}
  bool isCounter() const { return bits & kCounterBit; }
  int64_t slot() const {
    assert(!isCounter() && "a counter has no slot");
    return number();
  }
  int64_t counter() const {
    assert(isCounter() && "a slot is no counter");
    return number();
  }
  int64_t offset() const {
    return static_cast<int64_t>(bits & ~kCounterBit) -
           static_cast<int64_t>(ofSlot(number()));
  }

private:
  static constexpr uint64_t kCounterBit = uint64_t(1) << 63;
  int64_t number() const {
    return static_cast<int64_t>(((bits & ~kCounterBit) + kMostBefore) >>
                                kOffsetBits) -
           1;
  }
  uint64_t bits;
};

/// A launch; pointers among the arguments, and those of maps, are symbolic.
struct RecordedLaunch {
  /// The kernel in the module of the recorded function; lives as long as that.
  tile::KernelOp kernel;
  std::array<int64_t, 3> grid;
  llvm::SmallVector<KernelArgument> arguments;
};

/// A copy; the bases of both arrays are symbolic.
struct RecordedCopy {
  HostArray source, target;
};

/// Steps; the bases of arrays among the values of loops are symbolic.
using RecordedStep = std::variant<RecordedLaunch, RecordedCopy, ElementLoops>;

struct Recording {
  int64_t argumentCount = 0;
  /// Bytes of each allocation; its slot is argumentCount plus its position.
  std::vector<int64_t> allocationBytes;
  /// How many words each set of counters has.
  std::vector<int64_t> counterWords;
  std::vector<RecordedStep> steps;
  /// What the function returned, with symbolic bases.
  std::vector<HostArray> results;

  int64_t slotCount() const {
    return argumentCount + static_cast<int64_t>(allocationBytes.size());
  }
};

/// Runs the function on arguments of these sizes and strides (their bases are
/// not looked at) and notes what it does.  Fails with a diagnostic.
mlir::FailureOr<Recording> record(mlir::func::FuncOp function,
                                  llvm::ArrayRef<HostArray> arguments);

/// Does the steps on a device; `slots` holds the address of every slot there.
mlir::LogicalResult replay(const Recording &recording, Device &device,
                           llvm::ArrayRef<uint64_t> slots,
                           mlir::Location location);

} // namespace attn

#endif
