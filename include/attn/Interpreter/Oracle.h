//===- Oracle.h - What attention is, in fp64 --------------------*- C++ -*-===//
//
// The textbook formula, to compare everything else with:
//
//   S(i, j) = scale * sum_c Q(i, c) K(j, c)   for the keys j that i sees
//   O(i, :) = sum_j exp(S(i, j)) V(j, :) / sum_j exp(S(i, j))
//   LSE(i)  = log sum_j exp(S(i, j))
//
// Key j is visible to query i when i + first <= j <= i + last.  An invisible
// key takes no part at all, whatever NaN it holds; a query that sees no key
// has O = 0 and LSE = -infinity; NaN and infinity in visible keys do what IEEE
// arithmetic does with them.  Query head h reads key head h / (heads /
// kvHeads).
//
// Example.  One query (1), two keys (0) and (ln 3) with values 4 and 8 and
// scale 1: weights 1/4 and 3/4, O = 7, LSE = ln 4.
//
// This file shares no code with the compiler, on purpose: standard library
// only, plain pointers and numbers, doubles throughout, the whole row of
// scores at once (no running maximum).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERPRETER_ORACLE_H
#define ATTN_INTERPRETER_ORACLE_H

#include <array>
#include <cstdint>

namespace attn::oracle {

struct Problem {
  int64_t batch, heads, kvHeads, queries, keys, headDim, headDimV;
  /// The band of visible keys.
  int64_t first, last;
  double scale;
};

/// Element (b, h, i, c) is at data[b * strides[0] + h * strides[1] + ..].
struct Array {
  const float *data;
  std::array<int64_t, 4> strides;
};

/// Row-major [batch, heads, queries, headDimV] and, unless null, [batch, heads,
/// queries].  `threads` 0 means all processors.
void attention(const Problem &problem, const Array &q, const Array &k,
               const Array &v, double *o, double *lse, unsigned threads = 0);

} // namespace attn::oracle

#endif
