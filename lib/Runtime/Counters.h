//===- Counters.h - Words of 0 that launches share --------------*- C++ -*-===//
//
// Memory that is zeroed once and handed out in lines of Gpu::kCounters words:
// one for each stream, and one for each launch that a graph captures.  A line
// is never taken back, since nobody says when a stream or a graph is gone; so
// a process holds 32 bytes for each stream that it ever launched on.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_COUNTERS_H
#define ATTN_LIB_RUNTIME_COUNTERS_H

#include "attn/Runtime/Cuda.h"

#include <mutex>
#include <unordered_map>
#include <vector>

namespace attn::runtime {

class Counters {
public:
  /// The line of the stream with that id.
  Expected<DeviceAddress> ofStream(const GpuState &gpu, uint64_t id);
  /// A line that nobody had and nobody will get.
  Expected<DeviceAddress> unique(const GpuState &gpu);
  /// A line that nobody may write to.
  Expected<DeviceAddress> zeros(const GpuState &gpu);

  /// Frees the memory; the context is current.
  void release(const Driver &driver);

private:
  Expected<DeviceAddress> next(const GpuState &gpu);
  Status grow(const GpuState &gpu);

  std::mutex mutex;
  std::unordered_map<uint64_t, DeviceAddress> lines;
  DeviceAddress zeroLine = 0;
  /// The last slab: where its next line is, how many lines are left, and how
  /// many the next slab will have.
  DeviceAddress place = 0;
  int64_t left = 0, nextLines = 128;
  std::vector<DeviceAddress> slabs;
};

} // namespace attn::runtime

#endif
