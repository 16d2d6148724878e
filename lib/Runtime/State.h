//===- State.h - What handles share -----------------------------*- C++ -*-===//

#ifndef ATTN_LIB_RUNTIME_STATE_H
#define ATTN_LIB_RUNTIME_STATE_H

#include "Driver.h"

namespace attn::runtime {

/// A retained primary context.
struct GpuState {
  const Driver *driver = nullptr;
  int device = 0;
  void *context = nullptr;
  GpuFacts facts;

  ~GpuState();
};

/// A loaded module.
struct ModuleState {
  std::shared_ptr<GpuState> gpu;
  void *handle = nullptr;

  ~ModuleState();
};

/// Makes a GPU's context current on this thread for a scope.
class Current {
public:
  explicit Current(const GpuState &gpu)
      : gpu(gpu), pushed(gpu.driver->contextPush(gpu.context)) {}
  ~Current() {
    void *popped = nullptr;
    if (pushed == 0)
      gpu.driver->contextPop(&popped);
  }
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

  /// Success, or why the context could not be entered or `result`.
  Status check(Result result, const char *during) const {
    return gpu.driver->check(pushed != 0 ? pushed : result, during);
  }

private:
  const GpuState &gpu;
  Result pushed;
};

} // namespace attn::runtime

#endif
