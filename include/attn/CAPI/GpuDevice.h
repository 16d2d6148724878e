//===- GpuDevice.h - The device that is a GPU -------------------*- C++ -*-===//
//
// Host.h runs a program against a device; this one is a GPU, over the runtime.
// Kernels are compiled and loaded before: a launch finds its kernel by name.
// Everything is queued on one stream and nothing waits, so results are there
// when the stream has been synchronised.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CAPI_GPUDEVICE_H
#define ATTN_CAPI_GPUDEVICE_H

#include "attn/CAPI/Compile.h"
#include "attn/Interpreter/Host.h"
#include "attn/Runtime/Cuda.h"

#include "llvm/ADT/StringMap.h"

#include <map>

namespace attn {

/// The kernels of a program on a GPU.
class LoadedKernels {
public:
  static runtime::Expected<LoadedKernels> load(const runtime::Gpu &gpu,
                                               const Program &program);

  struct Entry {
    runtime::Kernel kernel;
    int64_t threads = 0;
    int64_t smemBytes = 0;
  };
  /// The entry of that qualified name, or null.
  const Entry *find(llvm::StringRef name) const;

private:
  llvm::StringMap<Entry> entries;
};

class GpuDevice : public Device {
public:
  GpuDevice(runtime::Gpu gpu, const LoadedKernels &kernels,
            runtime::Stream stream = nullptr)
      : gpu(std::move(gpu)), kernels(kernels), stream(stream) {}

  mlir::FailureOr<uint64_t> allocate(int64_t bytes,
                                     mlir::Location location) override;
  mlir::LogicalResult free(uint64_t address, mlir::Location location) override;
  mlir::LogicalResult launch(tile::KernelOp kernel, std::array<int64_t, 3> grid,
                             llvm::ArrayRef<KernelArgument> arguments,
                             mlir::Location location) override;
  mlir::LogicalResult copy(const HostArray &source, const HostArray &target,
                           mlir::Location location) override;

private:
  runtime::Gpu gpu;
  const LoadedKernels &kernels;
  runtime::Stream stream;
  std::map<uint64_t, runtime::Memory> memory;
};

} // namespace attn

#endif
