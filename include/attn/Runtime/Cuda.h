//===- Cuda.h - Load, launch, time: the CUDA driver -------------*- C++ -*-===//
//
// A kernel that the compiler made is a cubin in memory.  This header runs it:
// it opens the driver (libcuda.so.1, at run time, so that the compiler needs
// no CUDA to build or to start), holds the GPU's primary context (the one that
// PyTorch and JAX use too, so pointers and streams may come from them), loads
// cubins, launches kernels, moves memory and measures time.
//
//   Expected<Gpu> gpu = Gpu::open();                  // primary context, GPU 0
//   Expected<Module> module = gpu->load(cubin, "sm_90a");
//   Expected<Kernel> kernel = module->kernel("flash");
//   kernel->allowDynamicSmem(98304);                  // above 48 KiB: opt in
//   Expected<Memory> out = gpu->allocate(1 << 20);
//   void *arguments[] = {&out->address, &rows};       // addresses of values
//   gpu->launch(*kernel, {32, 8, 1}, 128, 98304, arguments, stream);
//   gpu->synchronize(stream);
//
// Units: sizes in bytes, times in seconds, clocks in hertz.  A stream is the
// driver's handle; null is the default stream.  Calls may come from several
// threads: every one makes the context current for its own duration and puts
// back what was there.  A failed kernel shows at the next synchronisation, as
// in CUDA; then every later call of the process fails with the same text.
//
// A stream that captures a graph takes launches like any other.
//
// Absent on purpose: making graphs, managed memory, several contexts per GPU,
// texture and JIT options; PTX is accepted by `load`, and then the driver
// compiles it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_CUDA_H
#define ATTN_RUNTIME_CUDA_H

#include "attn/Runtime/Status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace attn::runtime {

struct Driver;
struct GpuState;
struct ModuleState;
class TensorMap;
struct TensorMapShape;

/// An address in the GPU's memory.
using DeviceAddress = uint64_t;
/// A CUstream.
using Stream = void *;

/// What the driver says about a GPU.
struct GpuFacts {
  std::string name;
  /// Compute capability, e.g. 90 for 9.0.
  int computeCapability = 0;
  int64_t multiprocessors = 0;
  /// The most a block can have after it opts in.
  int64_t smemBytesPerBlock = 0;
  int64_t smemBytesPerSm = 0;
  int64_t registersPerSm = 0;
  int64_t l2Bytes = 0;
  int64_t memoryBytes = 0;
  double clockHz = 0;
  /// The CUDA version that the driver supports, e.g. 13000 for 13.0.
  int driverVersion = 0;
};

/// How the blocks of a launch come to run.
enum class LaunchMode {
  plain,
  /// All of them run at once, or the launch fails.
  together,
  /// They may begin before the launch before has ended, for which they wait by
  /// themselves (griddepcontrol).  Plain where the GPU or the driver has it no
  /// other way.
  ahead,
};

/// What the driver says about a kernel.
struct KernelFacts {
  int64_t registersPerThread = 0;
  /// Spills and arrays that registers do not hold, per thread.
  int64_t localBytesPerThread = 0;
  int64_t staticSmemBytes = 0;
  int64_t maxThreadsPerBlock = 0;
};

/// A kernel of a loaded module; valid as long as the module is loaded.
class Kernel {
public:
  /// Lets a launch ask for so many bytes of dynamic shared memory.
  Status allowDynamicSmem(int64_t bytes) const;
  Expected<KernelFacts> facts() const;
  /// How many blocks of this kernel one multiprocessor holds at a time.
  Expected<int64_t> blocksPerSm(int64_t threads, int64_t smemBytes) const;
  /// How many blocks of this kernel, in clusters, the whole GPU holds at a
  /// time.
  Expected<int64_t> mostBlocks(int64_t threads, int64_t smemBytes,
                               int64_t cluster) const;
  const std::string &name() const { return kernelName; }

private:
  friend class Gpu;
  friend class Module;
  std::shared_ptr<ModuleState> module;
  void *handle = nullptr;
  std::string kernelName;
};

/// A loaded cubin; unloaded when the last copy and the last kernel are gone.
class Module {
public:
  Expected<Kernel> kernel(const std::string &name) const;

private:
  friend class Gpu;
  std::shared_ptr<ModuleState> state;
};

/// A piece of the GPU's memory; freed with the object.
class Memory {
public:
  Memory() = default;
  Memory(Memory &&other) noexcept { *this = std::move(other); }
  Memory &operator=(Memory &&other) noexcept;
  ~Memory();

  DeviceAddress address = 0;
  int64_t bytes = 0;

private:
  friend class Gpu;
  std::shared_ptr<GpuState> gpu;
};

/// A piece of memory that is there for work queued on a stream between its
/// making and its end.
class StreamMemory {
public:
  StreamMemory() = default;
  StreamMemory(StreamMemory &&other) noexcept { *this = std::move(other); }
  StreamMemory &operator=(StreamMemory &&other) noexcept;
  ~StreamMemory();

  DeviceAddress address = 0;

private:
  friend class Gpu;
  std::shared_ptr<GpuState> gpu;
  Stream stream = nullptr;
};

/// A point in a stream, for measuring time.
class Event {
public:
  Event() = default;
  Event(Event &&other) noexcept { *this = std::move(other); }
  Event &operator=(Event &&other) noexcept;
  ~Event();

private:
  friend class Gpu;
  std::shared_ptr<GpuState> gpu;
  void *handle = nullptr;
};

/// A GPU with its primary context held.  Copies share it.
class Gpu {
public:
  /// How many GPUs there are; a failure says why the driver cannot be used.
  static Expected<int> count();
  /// The number of the GPU whose memory an address lies in.
  static Expected<int> ordinalOf(DeviceAddress address);
  /// The number of the GPU whose context is current on this thread.
  static Expected<int> currentOrdinal();
  static Expected<Gpu> open(int ordinal = 0);

  const GpuFacts &facts() const;

  /// Loads a cubin (or PTX text) made for `chip`, e.g. "sm_90a"; the name is
  /// only for the message that says that it does not fit this GPU.
  Expected<Module> load(std::string_view image, std::string_view chip) const;

  /// `arguments` holds the address of each argument's value.
  Status launch(const Kernel &kernel, std::array<int64_t, 3> grid,
                int64_t threads, int64_t smemBytes, void **arguments,
                Stream stream = nullptr,
                LaunchMode mode = LaunchMode::plain) const;

  /// How TMA finds an array; see TensorMap.h.
  Expected<TensorMap> tensorMap(const TensorMapShape &shape) const;

  /// Whether the stream captures a graph.
  Expected<bool> isCapturing(Stream stream) const;

  /// So many words (u32) are the counters of most launches, and of any.
  static constexpr int64_t kCounters = 8, kMostCounters = 8192;
  /// Address of so many words of 0 for the launches that the caller queues on
  /// the stream next: no other stream has them.  Launches must leave them at 0,
  /// since those behind them on the stream, which run after them, get the same
  /// words.  Of a graph nobody knows when it runs and how often at once; while
  /// a stream captures one, every call gives words that no other will get.
  Expected<DeviceAddress> counters(Stream stream, int64_t words) const;

  Expected<Memory> allocate(int64_t bytes) const;
  /// From the driver's pool, in the order of the stream; nothing waits.
  Expected<StreamMemory> allocateInOrder(int64_t bytes, Stream stream) const;
  Status copyToDevice(DeviceAddress to, const void *from, int64_t bytes,
                      Stream stream = nullptr) const;
  Status copyToHost(void *to, DeviceAddress from, int64_t bytes,
                    Stream stream = nullptr) const;
  Status copyOnDevice(DeviceAddress to, DeviceAddress from, int64_t bytes,
                      Stream stream = nullptr) const;
  Status fill(DeviceAddress to, uint8_t value, int64_t bytes,
              Stream stream = nullptr) const;

  Expected<Event> event() const;
  Status record(const Event &event, Stream stream = nullptr) const;
  /// Waits for `last`; the time between the two, in seconds.
  Expected<double> secondsBetween(const Event &first, const Event &last) const;

  /// Waits for the stream; reports what failed in it.
  Status synchronize(Stream stream = nullptr) const;

private:
  std::shared_ptr<GpuState> state;
};

} // namespace attn::runtime

#endif
