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

/// Never destroyed: threads may outlive statics.
alignas(Gate) static char place[sizeof(Gate)];

static Gate &gate() { return *std::launder(reinterpret_cast<Gate *>(place)); }

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
  Gate *self = new (place) Gate();
  self->inside = isInside ? 1 : 0;
}

/// When the library is loaded, not at the first call: pthread_atfork waits for
/// a fork that is under way, so a child would find that call half begun.
__attribute__((constructor)) static void build() {
  new (place) Gate();
  pthread_atfork(beforeFork, inParent, inChild);
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
