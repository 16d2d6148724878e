//===- AttentionOracle.h - The fp64 reference of one attention --*- C++ -*-===//
//
// Chooses between both oracles: that of bands, which is fast, and that of
// clauses, which asks pair by pair.  Parts of a problem are rows of all heads,
// or all rows of the query heads that read one key head; clauses know a part's
// pairs by their places in the whole.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_ATTENTIONORACLE_H
#define ATTN_TOOLS_RUN_ATTENTIONORACLE_H

#include "Reference.h"

#include "attn/Interpreter/ClauseReference.h"

#include <memory>

namespace attn::run {

/// An input as floats, row-major.
struct Floats {
  explicit Floats(const HostBytes &array);

  std::vector<float> values;
  oracle::Array view;
};

/// The sizes and the band of an attention.
oracle::Problem oracleProblem(const Attention &attention);
/// Of some multiply-adds those that a reference that asks each pair can do.
double affordableByPairs(double budget);

class AttentionOracle {
public:
  /// Of the ragged sequence of that number, if it is one.
  AttentionOracle(const Function &function, const Attention &attention,
                  const std::vector<HostBytes> &arrays, unsigned threads,
                  int64_t sequence = 0);
  AttentionOracle(const AttentionOracle &) = delete;
  AttentionOracle &operator=(const AttentionOracle &) = delete;

  const Attention &attention;
  const Floats q, k, v;

  /// Of some multiply-adds those that the reference can do instead.
  double affordable(double budget) const;

  /// O and LSE of rows of all heads, or of the heads that read key head
  /// `batch * kvHeads + kvHead`; returns the size of O.
  double rows(RowRun rows, double *o, double *lse) const;
  double keyHead(int64_t line, double *o, double *lse) const;
  oracle::GradientSizes gradients(const Floats &dO, const float *dlse,
                                  const oracle::Gradients &result) const;

  /// Whether a query sees a key, or a key of a key head is seen.
  bool takesPart(bool isKey, int64_t batch, int64_t head, int64_t row) const;

private:
  /// A part of the whole: where it begins, and its sizes as a problem.
  struct Part {
    oracle::Pair first;
    oracle::Problem problem;
  };
  oracle::Problem whole() const { return oracleProblem(attention); }
  Part partOfKeyHead(int64_t line) const;
  double run(const Part &part, double *o, double *lse) const;
  /// The clauses of a part, whose pairs are counted from its own first one.
  oracle::Clauses clausesOf(const Part &part) const;

  unsigned threads;
  std::unique_ptr<ClauseReference> clauses; ///< null if there are none
  std::unique_ptr<oracle::Seen> seen;
};

} // namespace attn::run

#endif
