//===- TokenProblem.h - Problems of the benchmark's size --------*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_SCHEDULE_TOKENPROBLEM_H
#define ATTN_TEST_UNIT_SCHEDULE_TOKENPROBLEM_H

#include "attn/Schedule/Problem.h"
#include <algorithm>

namespace attn {

/// 16384 tokens in sequences of `rows`, and 2048 columns in all heads together;
/// of longer sequences and wider heads one.
inline Problem tokenProblem(int64_t headDim, int64_t rows,
                            bool isCausal = false) {
  Problem p;
  p.batch = std::max<int64_t>(1, 16384 / rows);
  p.heads = p.kvHeads = std::max<int64_t>(1, 2048 / headDim);
  p.queries = p.keys = rows;
  p.headDim = p.headDimV = headDim;
  if (isCausal)
    p.mask = {MaskKind::causal};
  return p;
}

inline Problem tokenGradients(int64_t headDim, int64_t rows,
                              bool isCausal = false) {
  Problem p = tokenProblem(headDim, rows, isCausal);
  p.direction = Direction::backward;
  return p;
}

} // namespace attn

#endif
