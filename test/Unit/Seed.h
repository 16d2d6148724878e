//===- Seed.h - The seed of what a test draws -------------------*- C++ -*-===//
//
// What a test draws is of another seed in every run, by the clock.  A failure
// tells the seed, and the report marks the test as one that draws:
// tools/dev/seeds.py runs those many times.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_SEED_H
#define ATTN_TEST_UNIT_SEED_H

#include <gtest/gtest.h>
#include <string>

namespace attn {

class Seed {
public:
  Seed()
      : value(testing::UnitTest::GetInstance()->random_seed()),
        trace(__FILE__, __LINE__,
              "--gtest_random_seed=" + std::to_string(value)) {
    testing::Test::RecordProperty("seed", value);
  }
  operator unsigned() const & { return value; }
  /// A failure behind its statement would not tell it.
  operator unsigned() && = delete;

private:
  const int value;
  const testing::ScopedTrace trace;
};

} // namespace attn

#endif
