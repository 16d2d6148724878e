//===- Draws.h - Random whole numbers for tests -----------------*- C++ -*-===//
//
// Uniform from the least to the most, both included.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_DRAWS_H
#define ATTN_TEST_UNIT_INTERPRETER_DRAWS_H

#include <cstdint>
#include <random>

namespace attn {

class Draws {
public:
  explicit Draws(uint64_t seed) : random(seed) {}

  int64_t operator()(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  }

private:
  std::mt19937_64 random;
};

} // namespace attn

#endif
