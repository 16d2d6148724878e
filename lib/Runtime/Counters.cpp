//===- Counters.cpp - Words of 0 that launches share ----------------------===//

#include "State.h"

#include <algorithm>

using namespace attn::runtime;

static constexpr int64_t kMaxSlabBytes = int64_t(1) << 20;

static Status zero(const GpuState &gpu, DeviceAddress address, int64_t bytes) {
  const Driver &driver = *gpu.driver;
  Result result = onOwnStream(driver, [&](Stream stream) {
    return driver.fill(address, 0, static_cast<size_t>(bytes), stream);
  });
  return driver.check(result, "zeroing memory for counters");
}

Status Counters::grow(const GpuState &gpu) {
  Current current(gpu);
  RelaxedCapture relaxed(*gpu.driver);
  int64_t bytes = std::max(nextBytes, lineBytes);
  DeviceAddress slab = 0;
  Status status = current.check(
      gpu.driver->allocate(&slab, static_cast<size_t>(bytes)), "on the GPU");
  if (!status.ok())
    return status.during("allocating memory for counters");
  if (status = zero(gpu, slab, bytes); !status.ok()) {
    gpu.driver->free(slab);
    return status;
  }
  slabs.push_back(slab);
  place = slab;
  left = bytes / lineBytes;
  nextBytes = std::min(2 * bytes, kMaxSlabBytes);
  return status;
}

Expected<DeviceAddress> Counters::next(const GpuState &gpu) {
  if (left == 0)
    if (Status status = grow(gpu); !status.ok())
      return status;
  DeviceAddress line = place;
  place += lineBytes;
  --left;
  return line;
}

Expected<DeviceAddress> Counters::ofStream(const GpuState &gpu, uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex);
  if (auto known = lines.find(id); known != lines.end())
    return known->second;
  Expected<DeviceAddress> line = next(gpu);
  if (line)
    lines[id] = *line;
  return line;
}

Expected<DeviceAddress> Counters::unique(const GpuState &gpu) {
  std::lock_guard<std::mutex> lock(mutex);
  return next(gpu);
}

Expected<DeviceAddress> Counters::zeros(const GpuState &gpu) {
  std::lock_guard<std::mutex> lock(mutex);
  if (zeroLine != 0)
    return zeroLine;
  Expected<DeviceAddress> line = next(gpu);
  if (line)
    zeroLine = *line;
  return line;
}

void Counters::release(const Driver &driver) {
  for (DeviceAddress slab : slabs)
    driver.free(slab);
}

Expected<DeviceAddress> Gpu::counters(Stream stream, int64_t words) const {
  const Driver &driver = *state->driver;
  Counters &counters = words <= state->few.words() ? state->few : state->many;
  Expected<bool> capturing = isCapturing(stream);
  if (!capturing)
    return capturing.status();
  if (*capturing)
    return counters.unique(*state);
  // A handle may come back for another stream, and one handle stands for the
  // default streams of all threads; an id does neither.  To ask a stream that
  // captures for it would end the capture.
  Current current(*state);
  unsigned long long id = reinterpret_cast<uintptr_t>(stream);
  if (driver.streamId)
    if (Status status = current.check(driver.streamId(stream, &id),
                                      "asking for the id of a stream");
        !status.ok())
      return status;
  return counters.ofStream(*state, id);
}
