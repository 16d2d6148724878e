//===- BoundaryTest.cpp - Nothing but a status crosses the interface ------===//

#include "Boundary.h"

#include "llvm/Support/ErrorHandling.h"

#include <gtest/gtest.h>
#include <new>
#include <stdexcept>

using namespace attn;

static std::string messageOf(attn_code expected,
                             llvm::function_ref<Outcome()> work) {
  attn_status status = {ATTN_OK, nullptr};
  EXPECT_EQ(guarded(&status, work), expected);
  EXPECT_EQ(status.code, expected);
  std::string message = status.message ? status.message : "";
  attn_status_clear(&status);
  return message;
}

TEST(Boundary, SuccessHasNoMessage) {
  EXPECT_EQ(messageOf(ATTN_OK, []() -> Outcome { return std::nullopt; }), "");
}

TEST(Boundary, AFaultIsReported) {
  EXPECT_EQ(messageOf(ATTN_UNSUPPORTED,
                      []() -> Outcome {
                        return Fault{ATTN_UNSUPPORTED, "no kernel\n"};
                      }),
            "no kernel");
}

TEST(Boundary, AnExceptionIsReported) {
  EXPECT_EQ(messageOf(ATTN_INTERNAL_ERROR,
                      []() -> Outcome { throw std::runtime_error("broken"); }),
            "broken");
  EXPECT_EQ(messageOf(ATTN_INTERNAL_ERROR,
                      []() -> Outcome { throw std::bad_alloc(); }),
            "out of memory");
  EXPECT_EQ(messageOf(ATTN_INTERNAL_ERROR, []() -> Outcome { throw 1; }),
            "unknown exception");
}

TEST(Boundary, AFatalErrorOfLlvmIsReported) {
  EXPECT_EQ(
      messageOf(ATTN_INTERNAL_ERROR,
                []() -> Outcome { llvm::report_fatal_error("cannot select"); }),
      "cannot select");
  // And the next call works.
  EXPECT_EQ(messageOf(ATTN_OK, []() -> Outcome { return std::nullopt; }), "");
}

TEST(Boundary, NoStatusIsNeeded) {
  EXPECT_EQ(guarded(nullptr, []() -> Outcome { return invalid("wrong"); }),
            ATTN_INVALID_ARGUMENT);
}
