//===- Driver.cpp - Opening libcuda ---------------------------------------===//

#include "Driver.h"

#include <dlfcn.h>

using namespace attn::runtime;

/// Opens the library and finds every entry point.
static Expected<Driver> openDriver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return Status::failure(std::string("cannot open the CUDA driver: ") +
                           (why ? why : "no reason given"));
  }
  Driver driver;
#define ATTN_ENTRY(symbol, member, ...)                                        \
  driver.member =                                                              \
      reinterpret_cast<decltype(driver.member)>(dlsym(library, #symbol));      \
  if (!driver.member)                                                          \
    return Status::failure("the CUDA driver is too old: it has no " #symbol);
  ATTN_DRIVER_ENTRIES(ATTN_ENTRY)
#undef ATTN_ENTRY
#define ATTN_ENTRY(symbol, member, ...)                                        \
  driver.member =                                                              \
      reinterpret_cast<decltype(driver.member)>(dlsym(library, #symbol));
  ATTN_OPTIONAL_DRIVER_ENTRIES(ATTN_ENTRY)
#undef ATTN_ENTRY
  Result result = driver.init(0);
  if (result == kNoDevice)
    return Status::failure("there is no GPU: " + driver.text(result));
  if (Status status = driver.check(result, "starting the CUDA driver");
      !status.ok())
    return status;
  return driver;
}

Expected<const Driver *> Driver::get() {
  // The library stays open: closing it under a running context is not safe.
  static const Expected<Driver> *driver = new Expected<Driver>(openDriver());
  if (!*driver)
    return driver->status();
  return &**driver;
}

std::string Driver::text(Result result) const {
  const char *name = nullptr;
  const char *sentence = nullptr;
  errorName(result, &name);
  errorString(result, &sentence);
  if (!name || !sentence)
    return "CUDA error " + std::to_string(result);
  return std::string(name) + ": " + sentence;
}

Status Driver::check(Result result, const char *during) const {
  if (result == 0)
    return Status::success();
  return Status::failure(text(result)).during(during);
}
