/*===- fork.c - A fork that meets the first call --------------------------===*\
|* The last thing before each fork lets another thread make its first call of
|* the library, so that this call falls into the fork, which memory makes long.
|* A child must be able to call the library too.  Prints "N of N children".
\*===----------------------------------------------------------------------===*/

#define _DEFAULT_SOURCE /* madvise */

#include "attn-c/Attn.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { trials = 10, bytes = 128 << 20, page = 4096 };

static atomic_int isReady, isForking;

static void call(void) {
  attn_status status = {0, NULL};
  char *text = NULL;
  attn_cache_json(&text, &status);
  attn_free(text);
  attn_status_clear(&status);
}

static void prepare(void) { atomic_store(&isForking, 1); }

static void *work(void *spins) {
  atomic_store(&isReady, 1);
  while (!atomic_load(&isForking)) {
  }
  for (volatile long spin = 0; spin < *(long *)spins; ++spin) {
  }
  call();
  return NULL;
}

/* In a process that has not called the library. */
static int trial(long spins) {
  pthread_t thread;
  int status = 1;
  pthread_create(&thread, NULL, work, &spins);
  while (!atomic_load(&isReady)) {
  }
  pid_t child = fork();
  if (child == 0) {
    alarm(5); /* ends a child that hangs */
    call();
    _exit(0);
  }
  waitpid(child, &status, 0);
  pthread_join(thread, NULL);
  return status != 0;
}

int main(void) {
  int good = 0, status;
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return 1;
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  for (long at = 0; at < bytes; at += page)
    memory[at] = 1;
  for (int n = 0; n < trials; ++n) {
    pid_t process = fork();
    if (process == 0) {
      pthread_atfork(prepare, NULL, NULL);
      _exit(trial(n * 1000L));
    }
    waitpid(process, &status, 0);
    good += status == 0;
  }
  printf("%d of %d children\n", good, trials);
  return 0;
}
