//===- Host.h - Runs the host function around the kernels -------*- C++ -*-===//
//
// After `-attn-to-tile` and bufferization a program is a `func.func` that
// computes sizes and strides, allocates outputs, and launches kernels.  This
// header runs such a function against a *device*: something that has memory
// and can launch a kernel.  There are two devices, the interpreter
// (attn/Interpreter/InterpreterDevice.h) and a GPU; the function and its
// results are the same for both, so the two can be compared.
//
// Values.  A host value is a scalar or an array.  An array is an address on
// the device with an offset, sizes and strides in *elements*: element (i, j)
// of an f32 array with base 0x1000, offset 2, strides (10, 1) lies at
// 0x1000 + (2 + 10 i + j) * 4.  Nothing here looks at the elements.
//
// Example.  `func @f(%q: memref<1x1x100x64xbf16>) -> memref<1x1x100x64xbf16>`:
//
//   InterpreterDevice device;
//   FailureOr<uint64_t> q = device.allocate(100 * 64 * 2, loc);
//   device.memory().write(*q, bits.data(), 100 * 64 * 2);
//   FailureOr<SmallVector<HostValue>> out =
//       runHost(f, {HostArray{*q, 0, {1, 1, 100, 64}, {6400, 6400, 64, 1},
//       bf16}},
//               device);
//   HostArray o = std::get<HostArray>(out->front());   // the caller frees it
//
// Errors are diagnostics at the op or location that caused them.
//
// The host function arranges launches.  It may also have loops over elements,
// that is with `memref.load` or `memref.store`, as linalg ops become: each nest
// is one step, which only a device whose memory is the host's runs: the
// interpreter.  Deliberately absent: other control flow, and calls.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOST_HOST_H
#define ATTN_HOST_HOST_H

#include "attn/Host/KernelArgument.h"
#include "attn/Tile/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include <array>
#include <cstdint>
#include <variant>

namespace attn {

/// A strided array in device memory.
struct HostArray {
  /// Where the allocation begins; what `Device::free` takes.
  uint64_t base = 0;
  /// The rest is in elements.
  int64_t offset = 0;
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<int64_t> strides;
  mlir::Type elementType;

  int64_t elementBytes() const {
    return (elementType.getIntOrFloatBitWidth() + 7) / 8; // i1 has one
  }
  /// Address of the element with index zero.
  uint64_t address() const { return base + offset * elementBytes(); }
  /// Number of elements.
  int64_t count() const;
  /// Elements from the base to behind the last one: what must be allocated.
  int64_t extent() const;
  /// The row-major array of these sizes.
  static HostArray contiguous(uint64_t base, llvm::ArrayRef<int64_t> sizes,
                              mlir::Type elementType);
};

/// A scalar: an index, an integer or a float of the function.
struct HostScalar {
  int64_t integer = 0;
  double real = 0;
};

using HostValue = std::variant<HostScalar, HostArray>;

/// A nest of loops over elements, and the values from outside that it uses.
struct ElementLoops {
  mlir::Operation *loop; ///< the outermost `scf.for`
  llvm::SmallVector<std::pair<mlir::Value, HostValue>> values;
};

/// Memory and launches.  Every function fails with a diagnostic at `location`.
class Device {
public:
  virtual ~Device() = default;

  /// Reserves memory; zero bytes give an address too.  Aligned to 256 bytes.
  virtual mlir::FailureOr<uint64_t> allocate(int64_t bytes,
                                             mlir::Location location) = 0;
  virtual mlir::LogicalResult free(uint64_t address,
                                   mlir::Location location) = 0;

  /// Runs a kernel over a grid that is not empty; later calls see its results.
  /// The kernel is the op in the module of the host function; a device that
  /// runs compiled code finds its own version by the op's symbol name.
  virtual mlir::LogicalResult launch(tile::KernelOp kernel,
                                     std::array<int64_t, 3> grid,
                                     llvm::ArrayRef<KernelArgument> arguments,
                                     mlir::Location location) = 0;

  /// Address of so many i32 that are 0 and that no other launch in flight uses.
  /// They stay the device's; the kernels they are given to leave them at 0.
  virtual mlir::FailureOr<uint64_t> counters(int64_t count,
                                             mlir::Location location) = 0;

  /// Copies elements between arrays of equal sizes and element type that do
  /// not overlap (`memref.copy`).
  virtual mlir::LogicalResult copy(const HostArray &source,
                                   const HostArray &target,
                                   mlir::Location location) = 0;

  /// Runs loops over elements; refused where memory is not the host's.
  virtual mlir::LogicalResult runLoops(const ElementLoops &loops);

  /// Reads or writes one element, for loops that such a device runs.
  virtual mlir::FailureOr<HostScalar> load(mlir::Type type, uint64_t address,
                                           mlir::Location location);
  virtual mlir::LogicalResult store(const HostScalar &value, mlir::Type type,
                                    uint64_t address, mlir::Location location);
};

/// Why a device does not run loops over elements.
extern const char *const kNoElementLoops;

/// Runs the function.  Arrays given as arguments stay the caller's.  Arrays
/// allocated by the function and returned become the caller's, who frees their
/// `base`; all others are freed.
mlir::FailureOr<llvm::SmallVector<HostValue>>
runHost(mlir::func::FuncOp function, llvm::ArrayRef<HostValue> arguments,
        Device &device);

/// Runs loops over elements with the device's `load` and `store`.
mlir::LogicalResult runElementLoops(const ElementLoops &loops, Device &device);

} // namespace attn

#endif
