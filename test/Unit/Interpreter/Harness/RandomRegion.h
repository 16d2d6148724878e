//===- RandomRegion.h - Random regions of clauses as text -------*- C++ -*-===//
//
// Regions of `sees` and `score` of ops drawn at random, that read some arrays
// of every shape and type.  What they read is within the arrays, of all pairs
// that exist; what they give is no larger than the score by a few units, so
// that weights stay comparable.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_RANDOMREGION_H
#define ATTN_TEST_UNIT_INTERPRETER_RANDOMREGION_H

#include "Harness/Draws.h"

#include "attn/Schedule/Problem.h"

#include <string>
#include <vector>

namespace attn {

class RandomRegion {
public:
  RandomRegion(const Problem &problem, uint64_t seed)
      : problem(problem), draw(seed) {}

  /// The captures that all regions read, and their types.
  std::string captures() const;
  std::vector<std::string> types() const;
  std::string score();
  std::string sees();

private:
  std::string begin(const std::string &keyword, const std::string &first);
  /// The name of a new value, which this gives.
  std::string add(const std::string &operation);
  std::string real(int depth);
  std::string index(int depth);
  std::string truth(int depth);
  /// An element of some capture of reals, or of numbers.
  std::string readReal();
  std::string readWhole();

  Problem problem;
  Draws draw;
  std::string body;
  int count = 0;
  bool hasScore = false;
};

} // namespace attn

#endif
