//===- Share.h - A part of the long tests every day -------------*- C++ -*-===//
//
// Exhaustive orders and large replays take minutes.  ATTN_SHARE=K/N names the
// K-th of N parts of them; tools/dev/test names another one every day, and none
// with --all.  Without it all of them run.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_SHARE_H
#define ATTN_TEST_UNIT_SHARE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>

namespace attn {

struct Share {
  size_t part = 1, parts = 1;

  /// Of cases that are numbered from 0.
  bool has(size_t number) const { return number % parts == part - 1; }
};

/// What ATTN_SHARE names.
inline llvm::Expected<Share> shareAsked() {
  const char *value = std::getenv("ATTN_SHARE");
  Share share;
  if (!value || !*value)
    return share;
  auto [part, parts] = llvm::StringRef(value).split('/');
  if (part.getAsInteger(10, share.part) ||
      parts.getAsInteger(10, share.parts) || share.part < 1 ||
      share.part > share.parts)
    return llvm::createStringError(
        "ATTN_SHARE expects K/N with K from 1 to N, but got %s", value);
  return share;
}

/// Whether the share has the test that runs now: a test is numbered by the sum
/// of the characters of its name.
inline llvm::Expected<bool> isInShare() {
  auto share = shareAsked();
  if (!share)
    return share.takeError();
  const testing::TestInfo *test =
      testing::UnitTest::GetInstance()->current_test_info();
  const std::string name =
      std::string(test->test_suite_name()) + "." + test->name();
  return share->has(std::accumulate(name.begin(), name.end(), size_t(0)));
}

/// How many of the random cases of a test run now: a quarter where a share is
/// asked for, since every run draws others (Seed.h).
inline int drawsOf(int all) {
  auto share = shareAsked();
  if (!share) {
    ADD_FAILURE() << llvm::toString(share.takeError());
    return 0;
  }
  return share->parts == 1 ? all : (all + 3) / 4;
}

} // namespace attn

/// The first line of a long test: skips it on the days of the other parts.
#define ATTN_LONG_TEST()                                                       \
  do {                                                                         \
    auto isAsked = attn::isInShare();                                          \
    ASSERT_TRUE(bool(isAsked)) << llvm::toString(isAsked.takeError());         \
    if (!*isAsked)                                                             \
      GTEST_SKIP() << "a part of another day: tools/dev/test --all runs it";   \
  } while (false)

#endif
