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
// arithmetic does with them.  A product of Q and K that f32 has no place for
// counts as the largest f32 or, where that is the lightest, as invisible.
// Query head h reads key head h / (heads / kvHeads).
//
// And its gradients, given those of O and LSE:
//
//   P(i, j)  = exp(S(i, j) - LSE(i))   for the keys j that i sees, else 0
//   dV(j, :) = sum_i P(i, j) dO(i, :)
//   dP(i, j) = sum_c dO(i, c) V(j, c)
//   dS(i, j) = P(i, j) (dP(i, j) - sum_j P(i, j) dP(i, j) + dLSE(i))
//   dQ(i, :) = scale * sum_j dS(i, j) K(j, :)
//   dK(j, :) = scale * sum_i dS(i, j) Q(i, :)
//
// where dK and dV of a key head are sums over the query heads that read it.
// What is not seen takes no part here either.
//
// All of them are sums, and a sum may cancel whereas the rounding errors of its
// terms do not.  So each comes with its size, the root of the sum of the
// squares of its terms; errors are judged beside the larger of its norm and
// that:
//
//   |O|^2  = sum_ij P^2 |V(j, :)|^2
//   |dV|^2 = sum_ij P^2 |dO(i, :)|^2
//   |dQ|^2 = scale^2 sum_ij P^2 (dP^2 + |D|^2) |K(j, :)|^2
//   |dK|^2 = scale^2 sum_ij P^2 (dP^2 + |D|^2) |Q(i, :)|^2
//
// where D = sum_c dO(i, c) O(i, c) - dLSE(i) is what dP is reduced by, a sum of
// its own, and |D|^2 = sum_c dO^2 O^2 + dLSE^2.  For independent terms sizes
// are what norms of the sums are on average.
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
#include <vector>

namespace attn::oracle {

struct Problem {
  int64_t batch, heads, kvHeads, queries, keys, headDim, headDimV;
  /// Query i sees key j if i + first <= j <= i + last, or j < prefix.
  int64_t first, last;
  double scale;
  int64_t prefix = 0;
};

/// Element (b, h, i, c) is at data[b * strides[0] + h * strides[1] + ..].
struct Array {
  const float *data;
  std::array<int64_t, 4> strides;
};

/// Row-major [batch, heads, queries, headDimV] and, unless null, [batch, heads,
/// queries].  `threads` 0 means all processors.  Returns the size of O; rows
/// that are not finite do not count in sizes.
double attention(const Problem &problem, const Array &q, const Array &k,
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

/// Of the gradients of the chosen heads together.
struct GradientSizes {
  double dq, dk, dv;
};

/// `dlse`, row-major [batch, heads, queries], is zero if null.
GradientSizes gradients(const Problem &problem, const Array &q, const Array &k,
                        const Array &v, const Array &dO, const float *dlse,
                        const Gradients &result, unsigned threads = 0);

/// Parts of an attention made whole (Schedule/Merge.h), and the gradients of
/// one: arrays of rows, and row-major numbers of rows.  A part whose LSE is
/// -infinity takes no part at all.
struct Rows {
  int64_t batch, heads, queries, columns;
};
struct Part {
  Array o;
  const float *lse;
};

/// Row-major O and, unless null, LSE.  Returns the size of O.
double merge(const Rows &rows, const std::vector<Part> &parts, double *o,
             double *lse);

struct PartGradientSizes {
  double o, lse;
};
/// `dlse` is zero if null.
PartGradientSizes mergeGradients(const Rows &rows, const Array &dO,
                                 const float *dlse, const Array &o,
                                 const float *lse, const Part &part,
                                 double *dPart, double *dPartLse);

} // namespace attn::oracle

#endif
