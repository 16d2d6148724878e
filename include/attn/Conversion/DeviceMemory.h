//===- DeviceMemory.h - Memory of the GPU in host code ----------*- C++ -*-===//
//
// Upstream's gpu-to-llvm takes an allocation, a copy, a fill and a release of
// memory only in a stream: each names the token of the one before it.
//
//   StreamOps stream(b);
//   Value array = stream.allocate(type, sizes);   // %m, %u = gpu.alloc async
//   [%t] stream.copy(array, from);                     // %v = gpu.memcpy async
//   [%u] stream.wait();                                // gpu.wait [%v]
//
// The host waits before it launches a kernel: a plain gpu.launch_func has a
// stream of its own, and is over when the host goes on.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_DEVICEMEMORY_H
#define ATTN_CONVERSION_DEVICEMEMORY_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

class StreamOps {
public:
  explicit StreamOps(mlir::ImplicitLocOpBuilder &b);

  /// Rows one behind the other, whatever the layout of `type`.
  mlir::Value allocate(mlir::MemRefType type, mlir::ValueRange dynamicSizes);
  void fill(mlir::Value array, mlir::Value value);
  void copy(mlir::Value to, mlir::Value from);
  void free(mlir::Value array);
  /// Nothing may follow.
  void wait();

private:
  mlir::ImplicitLocOpBuilder &b;
  mlir::Value token;
};

/// The type with which upstream allocates and copies: no layout.
mlir::MemRefType contiguous(mlir::MemRefType type);

/// Sizes of the array's dimensions that its type does not say.
llvm::SmallVector<mlir::Value> dynamicSizes(mlir::ImplicitLocOpBuilder &b,
                                            mlir::Value array);

} // namespace attn

#endif
