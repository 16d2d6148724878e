//===- ChildProcessTest.cpp - Other programs, and forks meanwhile ---------===//

#include "ChildProcess.h"

#include "ForkGate.h"

#include <atomic>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace attn;
using namespace std::chrono_literals;

static runtime::Expected<ProgramOutput>
shell(const std::string &script, const std::string &input = "",
      std::chrono::milliseconds limit = 60s) {
  return runProgram("/bin/sh", {"-c", script}, input, {limit, "the test"});
}

TEST(ChildProcess, IsGivenBytesAndGivesBytes) {
  std::string bytes(1 << 20, 'x');
  bytes[5] = '\0';
  auto done = shell("cat " + kInput.str() + " > " + kOutput.str() +
                        "; echo said; echo wrong >&2",
                    bytes);
  ASSERT_TRUE(done) << done.message();
  EXPECT_EQ(done->bytes, bytes);
  EXPECT_EQ(done->text, "said\nwrong\n");
}

TEST(ChildProcess, SaysHowItFailed) {
  EXPECT_EQ(shell("echo words; exit 3").message(),
            "/bin/sh failed with status 3: words");
  EXPECT_EQ(shell("exit 4").message(), "/bin/sh failed with status 4");
  EXPECT_EQ(shell("kill -9 $$").message(),
            "/bin/sh was ended by signal 9 (Killed)");
  auto none = runProgram("/no/program", {}, "", {1s, "the test"});
  EXPECT_EQ(none.message(),
            "/no/program cannot be run: No such file or directory");
}

TEST(ChildProcess, OneThatHangsIsKilledWithItsChildren) {
  auto start = std::chrono::steady_clock::now();
  auto hung = shell("sleep 1000 & sleep 1000", "", 200ms);
  ASSERT_FALSE(hung);
  EXPECT_EQ(
      hung.message(),
      "'/bin/sh -c sleep 1000 & sleep 1000' did not end within 0.2 s (the "
      "test) and was killed");
  // And one that has closed what it prints to.
  EXPECT_FALSE(shell("exec >&- 2>&-; sleep 1000", "", 200ms));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
}

TEST(ChildProcess, WhatItPrintsIsReadToTheEnd) {
  auto done = shell("head -c 3000000 /dev/zero; echo ok > " + kOutput.str());
  ASSERT_TRUE(done) << done.message();
  EXPECT_EQ(done->text.size(), 1u << 20); // of 3000000
  EXPECT_EQ(done->bytes, "ok\n");
}

TEST(ChildProcess, ManyAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 5; ++i) {
        std::string text = std::to_string(t * 100 + i);
        auto done = shell("cat " + kInput.str() + " > " + kOutput.str(), text);
        ASSERT_TRUE(done) << done.message();
        EXPECT_EQ(done->bytes, text);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// Forks; the child does the work.  Its status, or -1 if it hangs.
static int statusOfChild(llvm::function_ref<void()> work) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkGate, AForkWaitsForWhoIsInside) {
  std::atomic<bool> isIn = false, isOut = false;
  std::mutex mutex;
  std::thread other([&] {
    forkgate::Inside inside;
    forkgate::Inside inner; // changes nothing
    std::lock_guard<std::mutex> lock(mutex);
    isIn = true;
    std::this_thread::sleep_for(100ms);
    isOut = true;
  });
  while (!isIn)
    std::this_thread::yield();
  EXPECT_EQ(statusOfChild([&] {
              forkgate::Inside inside;
              std::lock_guard<std::mutex> lock(mutex); // nobody's
              _exit(isOut ? 7 : 8);
            }),
            7);
  other.join();
}

TEST(ForkGate, AForkDoesNotWaitForAnotherProgram) {
  std::atomic<bool> isIn = false, isOut = false;
  std::thread other([&] {
    forkgate::Inside inside;
    isIn = true;
    EXPECT_FALSE(shell("sleep 1000", "", 1s));
    isOut = true;
  });
  while (!isIn)
    std::this_thread::yield();
  EXPECT_EQ(statusOfChild([&] {
              forkgate::Inside inside;
              _exit(isOut ? 7 : 8);
            }),
            8);
  other.join();
}

// Whatever the order, nobody waits for good.
TEST(ForkGate, ForksAndCallsOfManyThreads) {
  std::atomic<bool> isDone = false;
  std::vector<std::thread> callers, forkers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      while (!isDone) {
        forkgate::Inside inside;
        std::this_thread::sleep_for(50us);
        forkgate::Outside outside;
        std::this_thread::sleep_for(50us);
      }
    });
  for (int t = 0; t < 2; ++t)
    forkers.emplace_back([&] {
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(statusOfChild([] {
                    forkgate::Inside inside;
                    forkgate::Outside outside;
                    _exit(7);
                  }),
                  7);
    });
  for (std::thread &thread : forkers)
    thread.join();
  isDone = true;
  for (std::thread &thread : callers)
    thread.join();
}
