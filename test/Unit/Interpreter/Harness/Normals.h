//===- Normals.h - Random numbers for tests ---------------------*- C++ -*-===//
//
// Normally distributed, the same on every machine with one seed.  Those of the
// standard library took a tenth of the time of tests that interpret kernels.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_NORMALS_H
#define ATTN_TEST_UNIT_INTERPRETER_NORMALS_H

#include <cmath>
#include <cstdint>
#include <random>

namespace attn {

class Normals {
public:
  explicit Normals(uint64_t seed) : random(seed) {}

  /// Box and Muller's, of 24 bits each for how far and in what direction.
  float operator()() {
    uint64_t bits = random();
    constexpr float unit = 0x1p-24F, turn = 6.2831853F;
    float distance = float((bits >> 40) + 1) * unit;
    float angle = float(bits & 0xffffff) * unit * turn;
    return std::sqrt(-2 * std::log(distance)) * std::cos(angle);
  }

private:
  std::mt19937_64 random;
};

} // namespace attn

#endif
