//===- State.h - What handles share -----------------------------*- C++ -*-===//

#ifndef ATTN_LIB_RUNTIME_STATE_H
#define ATTN_LIB_RUNTIME_STATE_H

#include "Counters.h"
#include "Driver.h"
#include "Sides.h"

namespace attn::runtime {

/// A retained primary context.
struct GpuState {
  const Driver *driver = nullptr;
  int device = 0;
  void *context = nullptr;
  GpuFacts facts;
  /// Lines of counters for most kernels, and for those that need many.
  Counters few = Counters(Gpu::kCounters), many = Counters(Gpu::kMostCounters);
  KnownSides sides;

  ~GpuState();
};

/// A loaded module.
struct ModuleState {
  std::shared_ptr<GpuState> gpu;
  void *handle = nullptr;

  ~ModuleState();
};

/// Makes a GPU's context current on this thread for a scope.  Mostly it is so
/// already, and asking takes a fraction of the time of changing it.
class Current {
public:
  explicit Current(const GpuState &gpu) : gpu(gpu) {
    void *before = nullptr;
    entered = gpu.driver->contextCurrent(&before);
    if (entered == 0 && before == gpu.context)
      return;
    entered = gpu.driver->contextPush(gpu.context);
    isPushed = entered == 0;
  }
  ~Current() {
    void *popped = nullptr;
    if (isPushed)
      gpu.driver->contextPop(&popped);
  }
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

  /// Success, or why the context could not be entered or `result`.
  Status check(Result result, const char *during) const {
    return gpu.driver->check(entered != 0 ? entered : result, during);
  }

private:
  const GpuState &gpu;
  Result entered = 0;
  bool isPushed = false;
};

/// Loading a module or allocating memory is no work on a stream, but while one
/// is captured a thread may only do it if it says that it knows what it does.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const Driver &driver) : driver(driver) {
    driver.exchangeCaptureMode(&mode);
  }
  ~RelaxedCapture() { driver.exchangeCaptureMode(&mode); }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  const Driver &driver;
  CaptureMode mode = CaptureMode::relaxed;
};

/// Does some work on a stream of its own and waits for it, also while a stream
/// captures: then the default stream cannot be used.
template <typename Work> Result onOwnStream(const Driver &driver, Work work) {
  Stream stream = nullptr;
  Result result = driver.streamCreate(&stream, kNonBlockingStream);
  if (result != 0)
    return result;
  result = work(stream);
  if (result == 0)
    result = driver.streamSynchronize(stream);
  driver.streamDestroy(stream);
  return result;
}

} // namespace attn::runtime

#endif
