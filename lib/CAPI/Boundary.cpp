//===- Boundary.cpp - Faults, exceptions and LLVM's exits as a status -----===//

#include "Boundary.h"

#include "ForkGate.h"

#include "llvm/Support/ErrorHandling.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>

using namespace attn;

/// A copy that `free` may free; null when there is no memory for it.
static char *copyText(llvm::StringRef text) {
  char *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (!copy)
    return nullptr;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

static int32_t report(attn_status *status, attn_code code,
                      llvm::StringRef message) {
  if (status) {
    status->code = code;
    status->message = code == ATTN_OK ? nullptr : copyText(message.rtrim());
  }
  return code;
}

int32_t attn::finish(attn_status *status, const Outcome &outcome) {
  return outcome ? report(status, outcome->code, outcome->message)
                 : report(status, ATTN_OK, "");
}

Outcome attn::give(llvm::StringRef text, char **place) {
  *place = copyText(text);
  if (!*place)
    return Fault{ATTN_INTERNAL_ERROR, "out of memory"};
  return std::nullopt;
}

/// How many of our calls this thread is inside of.
static thread_local int depth = 0;

namespace {
struct Inside {
  Inside() { ++depth; }
  ~Inside() { --depth; }
};
} // namespace

/// LLVM would exit when this returns.  Outside our calls it may: then it is
/// not for us to say.
static void onFatalError(void *, const char *reason, bool) {
  if (depth > 0)
    throw std::runtime_error(reason);
}

static void onOutOfMemory(void *, const char *, bool) {
  if (depth > 0)
    throw std::bad_alloc();
}

int32_t attn::guarded(attn_status *status, llvm::function_ref<Outcome()> work) {
  forkgate::Inside inside;
  return guardedLaunch(status, work);
}

int32_t attn::guardedLaunch(attn_status *status,
                            llvm::function_ref<Outcome()> work) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(onFatalError);
    llvm::install_bad_alloc_error_handler(onOutOfMemory);
  });
  // The message must not need memory that is not there.
  try {
    Inside inside;
    return finish(status, work());
  } catch (const std::bad_alloc &) {
    return report(status, ATTN_INTERNAL_ERROR, "out of memory");
  } catch (const std::exception &error) {
    return report(status, ATTN_INTERNAL_ERROR, error.what());
  } catch (...) {
    return report(status, ATTN_INTERNAL_ERROR, "unknown exception");
  }
}
