//===- ForkGate.h - A fork waits for who is inside --------------*- C++ -*-===//
//
// A child of a fork has one thread and a copy of every lock.  What another
// thread of the parent held stays locked there for good: our mutexes, the
// guards of LLVM's static variables, half of a first compilation.  So a fork
// waits until no thread is inside of the library, and who would enter while it
// waits, waits too.
//
//   forkgate::Inside inside;     // in every call of the C interface
//   {
//     forkgate::Outside outside; // while another program runs
//     ...
//   }
//
// Launches do not enter: they take no lock of ours, and CUDA does not work in a
// child.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_FORKGATE_H
#define ATTN_LIB_CAPI_FORKGATE_H

namespace attn::forkgate {

/// This thread is inside; inner ones of the same thread change nothing.
class Inside {
public:
  Inside();
  ~Inside();
  Inside(const Inside &) = delete;
  Inside &operator=(const Inside &) = delete;

private:
  bool isOutermost;
};

/// This thread waits for something that takes long, and touches nothing that a
/// child could need.  It may hold locks, but only of what a child replaces.
class Outside {
public:
  Outside();
  ~Outside();
  Outside(const Outside &) = delete;
  Outside &operator=(const Outside &) = delete;

private:
  bool wasInside;
};

} // namespace attn::forkgate

#endif
