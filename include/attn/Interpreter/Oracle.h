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
// And its gradients, given those of O and LSE:
//
//   P(i, j)  = exp(S(i, j) - LSE(i))          for the keys j that i sees, else
//   0 dV(j, :) = sum_i P(i, j) dO(i, :) dP(i, j) = sum_c dO(i, c) V(j, c) dS(i,
//   j) = P(i, j) (dP(i, j) - sum_j P(i, j) dP(i, j) + dLSE(i)) dQ(i, :) = scale
//   * sum_j dS(i, j) K(j, :) dK(j, :) = scale * sum_i dS(i, j) Q(i, :)
//
// where dK and dV of a key head are sums over the query heads that read it.
// What is not seen takes no part here either.
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

/// The gradients of some key heads, and of the query heads that read them.
struct Gradients {
  /// Row-major, of the shapes of Q, K and V.
  double *dq, *dk, *dv;
  /// Batch entries and key heads, `batch * kvHeads + kvHead`; the rest of the
  /// arrays is left as it is.
  const int64_t *kvLines;
  int64_t count;
};

/// `dlse`, row-major [batch, heads, queries], is zero if null.  Returns what
/// the squares of dS sum up to where the two terms of its difference do not
/// cancel: their rounding errors do not either.
double gradients(const Problem &problem, const Array &q, const Array &k,
                 const Array &v, const Array &dO, const float *dlse,
                 const Gradients &result, unsigned threads = 0);

} // namespace attn::oracle

#endif
