//===- OracleClauses.h - Attention with any mask and score ------*- C++ -*-===//
//
// The same formula as Oracle.h, where any function tells what a query sees and
// what becomes of a score, and a head may have a sink:
//
//   Z(i, j) = scale * sum_c Q(i, c) K(j, c)
//   S(i, j) = score(Z(i, j), b, h, i, j)     for the keys j that i sees
//   O(i, :) = sum_j exp(S(i, j)) V(j, :) / (sum_j exp(S(i, j)) + exp(sink(h)))
//   LSE(i)  = log (sum_j exp(S(i, j)) + exp(sink(h)))
//
// Query i sees key j where the band of the problem does and `sees` says so.
// With lists of blocks that holds in partial ones; in full ones it sees every
// key, and in others none.  A query that sees no key has O = 0, and LSE = the
// sink or -infinity.
//
// With scales of operands Z has a factor, and so has O, of a batch entry and a
// key head.
//
// Gradients go back through the score: with dS(i, j) as in Oracle.h,
//
//   dZ(i, j) = dS(i, j) d score / d Z        takes the place of dS in dQ and dK
//   dsink(h) = sum_bi exp(sink(h) - LSE(i)) (dLSE(i) - sum_j P(i, j) dP(i, j))
//
// and what the score read gets its own part of dS(i, j) by `pull`.
//
// Pair by pair: for small problems, or a few rows of large ones.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERPRETER_ORACLECLAUSES_H
#define ATTN_INTERPRETER_ORACLECLAUSES_H

#include "attn/Interpreter/Oracle.h"

#include <functional>
#include <vector>

namespace attn::oracle {

/// A query and a key.
struct Pair {
  int64_t batch, head, query, key;
};

/// What is looked at of blocks.
enum class Visit : uint8_t { hidden, partial, full };

/// Lists of blocks as arrays have them, row-major: counts [batch, heads,
/// blocks], indices [batch, heads, blocks, columns], batch and heads 1 or all.
struct BlockLists {
  struct List {
    const int32_t *counts, *indices;
    int64_t batch, heads, columns;
  };
  /// Null counts are of no list.
  List partial, full;
  int64_t queriesOfBlock, keysOfBlock;
};

/// Every visit of a problem's blocks, [batch, heads, blocks of queries, blocks
/// of keys].
std::vector<Visit> visitsOf(const Problem &problem, const BlockLists &lists);

/// How many of the keys each batch entry uses, and whether its band counts from
/// the last of them.
struct UsedKeys {
  std::vector<int64_t> counts;
  bool movesBand = true;

  int64_t of(int64_t batch, int64_t keys) const;
};

/// How large the terms of a score's gradient are of which errors are fractions:
/// its own P dP, and P D, whose error all pairs of a row share.
struct PairSize {
  double own, ofRow;
};
/// Slopes near 0 are differences of numbers near 1, 1 - tanh(x)^2, of which f32
/// has no more: terms are no smaller than those of such a slope.
inline constexpr double kLeastSlope = 0x1p-12;

/// Absent functions change nothing.
struct Clauses {
  std::function<bool(const Pair &)> sees;
  std::function<double(double z, const Pair &)> score;
  /// Of a score's gradient, that of z; that of what the score has read is the
  /// function's own to sum up.
  std::function<double(double z, const Pair &, double gradient,
                       const PairSize &size)>
      pull;
  const BlockLists *blocks = nullptr;
  const double *sinks = nullptr; ///< of each head
  const UsedKeys *used = nullptr;
  /// Of a batch entry and a key head: scales of Q times those of K, and of V.
  std::function<double(int64_t batch, int64_t keyHead)> scaleOfProducts,
      scaleOfValues;
};

/// Which keys a query of a problem sees, whatever says so.
class Seen {
public:
  Seen(const Problem &problem, const Clauses &clauses);

  bool operator()(const Pair &pair) const;

private:
  Visit visitOf(const Pair &pair) const;

  Problem p;
  const Clauses &clauses;
  std::vector<Visit> visits;
};

/// As `attention` and `gradients` of Oracle.h, of all heads.  `dsinks`, of each
/// head, is null where there are no sinks or nobody asks.  The functions of
/// clauses are called from so many threads at once, but `pull` from one.
double attention(const Problem &problem, const Clauses &clauses, const Array &q,
                 const Array &k, const Array &v, double *o, double *lse,
                 unsigned threads = 1);
GradientSizes gradients(const Problem &problem, const Clauses &clauses,
                        const Array &q, const Array &k, const Array &v,
                        const Array &dO, const float *dlse, double *dq,
                        double *dk, double *dv, double *dsinks);

} // namespace attn::oracle

#endif
