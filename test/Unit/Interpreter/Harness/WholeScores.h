//===- WholeScores.h - Scores that f32 holds exactly ------------*- C++ -*-===//
//
// Rows of queries and keys of whole numbers, so that fp64 finds the same scores
// whatever they are multiplied by.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_WHOLESCORES_H
#define ATTN_TEST_UNIT_INTERPRETER_WHOLESCORES_H

#include "Harness/Draws.h"

#include <cmath>
#include <vector>

namespace attn {

/// Whole numbers up to so many.
inline void drawWhole(std::vector<float> &array, Draws &draw, int64_t most) {
  for (float &x : array)
    x = float(draw(-most, most));
}

/// The first column of an array.
inline void setColumn(std::vector<float> &array, int64_t columns, float value) {
  for (size_t i = 0; i < array.size(); i += columns)
    array[i] = value;
}

/// Scores of whole numbers near each other and about 2^(bits of both) from 0.
inline void drawFar(std::vector<float> &q, std::vector<float> &k,
                    int64_t columns, Draws &draw, int bitsOfQ, int bitsOfK) {
  drawWhole(q, draw, 1);
  drawWhole(k, draw, 1);
  setColumn(q, columns, std::ldexp(1.0F, bitsOfQ));
  setColumn(k, columns, std::ldexp(draw(0, 1) ? 1.0F : -1.0F, bitsOfK));
}

} // namespace attn

#endif
