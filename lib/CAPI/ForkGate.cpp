//===- ForkGate.cpp - Counting the threads that are inside ----------------===//

#include "ForkGate.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <pthread.h>

using namespace attn;

namespace {
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  /// Threads that are inside, and forks that wait for them.
  int inside = 0, forks = 0;
};
} // namespace

/// Whether this thread counts as inside.
static thread_local bool isInside = false;

static void beforeFork();
static void inParent();
static void inChild();

/// Never destroyed: threads may outlive statics.
static Gate &gate() {
  alignas(Gate) static char place[sizeof(Gate)];
  static Gate *instance = [] {
    pthread_atfork(beforeFork, inParent, inChild);
    return new (place) Gate();
  }();
  return *instance;
}

static void enter(bool mayWait) {
  Gate &self = gate();
  std::unique_lock<std::mutex> lock(self.mutex);
  if (mayWait)
    self.changed.wait(lock, [&] { return self.forks == 0; });
  ++self.inside;
  isInside = true;
}

static void leave() {
  Gate &self = gate();
  std::lock_guard<std::mutex> lock(self.mutex);
  --self.inside;
  isInside = false;
  self.changed.notify_all();
}

/// Takes the lock, which inParent and inChild give back.
static void beforeFork() {
  Gate &self = gate();
  std::unique_lock<std::mutex> lock(self.mutex);
  ++self.forks;
  int mine = isInside ? 1 : 0;
  self.changed.wait(lock, [&] { return self.inside == mine; });
  lock.release();
}

static void inParent() {
  Gate &self = gate();
  --self.forks;
  self.mutex.unlock();
  self.changed.notify_all();
}

/// Those who waited at the gate are not there any more.
static void inChild() {
  Gate *self = new (&gate()) Gate();
  self->inside = isInside ? 1 : 0;
}

forkgate::Inside::Inside() : isOutermost(!isInside) {
  if (isOutermost)
    enter(/*mayWait=*/true);
}

// Not inside any more: an exception has passed an Outside by.
forkgate::Inside::~Inside() {
  if (isOutermost && isInside)
    leave();
}

forkgate::Outside::Outside() : wasInside(isInside) {
  if (wasInside)
    leave();
}

// Who comes back does not wait for a fork: it may hold a lock for which one
// waits who is inside.
forkgate::Outside::~Outside() {
  if (wasInside)
    enter(/*mayWait=*/false);
}
