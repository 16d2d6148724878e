//===- Status.h - Success or a sentence -------------------------*- C++ -*-===//
//
// The runtime reports failure as a value: a `Status` is success or a sentence,
// an `Expected<T>` is a T or a sentence.  Nothing throws, nothing exits, and
// nothing is printed; who called decides what a failure means.
//
//   Expected<Gpu> gpu = Gpu::open();
//   if (!gpu)
//     return gpu.status();          // "cannot open libcuda.so.1: ..."
//
// Sentences begin with a lower-case letter and have no final period, so that a
// caller can put words before and after them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_STATUS_H
#define ATTN_RUNTIME_STATUS_H

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace attn::runtime {

/// Success, or a sentence that says what failed.
class [[nodiscard]] Status {
public:
  static Status success() { return Status(); }
  static Status failure(std::string message) {
    Status status;
    status.text = std::move(message);
    return status;
  }

  bool ok() const { return !text; }
  /// The sentence; only of a failure.
  const std::string &message() const {
    assert(text && "success has no message");
    return *text;
  }
  /// Says what was being done: "copying 64 bytes: out of memory".
  Status during(const std::string &what) const {
    return ok() ? *this : failure(what + ": " + *text);
  }

private:
  Status() = default;
  std::optional<std::string> text;
};

/// A value, or why there is none.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : value(std::move(value)), state(Status::success()) {}
  Expected(Status failure) : state(std::move(failure)) {
    assert(!state.ok() && "success needs a value");
  }

  explicit operator bool() const { return value.has_value(); }
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }
  const Status &status() const { return state; }
  const std::string &message() const { return state.message(); }

private:
  std::optional<T> value;
  Status state;
};

} // namespace attn::runtime

#endif
