//===- Counters.h - Words of 0 that launches share --------------*- C++ -*-===//
//
// Memory that is zeroed once and handed out in lines of so many words: one for
// each stream, and one for each launch that a graph captures.  A line is never
// taken back, since nobody says when a stream or a graph is gone; so a process
// holds 32 bytes for each stream that it ever launched on, and 8 KiB more for
// each on which it launched kernels whose blocks wait for one another.
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
  explicit Counters(int64_t words) : lineBytes(words * 4) {}
  int64_t words() const { return lineBytes / 4; }

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
  int64_t left = 0, nextBytes = 4096;
  const int64_t lineBytes;
  std::vector<DeviceAddress> slabs;
};

} // namespace attn::runtime

#endif
