//===- ClauseReference.h - An op's clauses for the oracle -------*- C++ -*-===//
//
// The oracle knows functions and plain arrays (OracleClauses.h).  This makes
// them of an op: its regions are evaluated on host copies of what its clauses
// take, its lists become visits, and gradients of captures are summed up.
//
// Example: of `softcap(30.0) alibi(%slopes : memref<8xf32>)` and {{8 slopes}}
// `clauses().score` is a function of a score and a pair, and behind
// `oracle::gradients` `captureGradients()[0]` has 8 numbers.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERPRETER_CLAUSEREFERENCE_H
#define ATTN_INTERPRETER_CLAUSEREFERENCE_H

#include "attn/IR/Attn.h"
#include "attn/IR/RegionEvaluator.h"
#include "attn/Interpreter/OracleClauses.h"

#include <array>
#include <map>
#include <memory>

namespace attn {

class ClauseReference {
public:
  /// `arrays` are those of `op.clauseInputs()`, in that order; queries and keys
  /// are what the types may leave open, or those of a ragged sequence, which
  /// has a number.
  ClauseReference(AttentionOpInterface op, std::vector<CapturedArray> arrays,
                  int64_t queries, int64_t keys, int64_t sequence = 0);
  ClauseReference(const ClauseReference &) = delete;
  ClauseReference &operator=(const ClauseReference &) = delete;

  const oracle::Clauses &clauses() const { return functions; }

  /// The numbers of a capture, or of the sinks; changed numbers are seen.
  std::vector<double> &capture(unsigned number) {
    return captures[number].reals;
  }
  std::vector<double> &sinks() { return sinkScores; }

  /// Sums of what `oracle::gradients` pulled since they were cleared.
  const std::vector<std::vector<double>> &captureGradients() const {
    return gradients;
  }
  /// And the sizes of them: roots of the sums of squares of their terms, of
  /// which those that have one error in a row count as one.
  std::vector<double> captureSizes() const;
  void clearGradients();

  /// The first read of a region outside of its array, of the pairs asked for.
  std::optional<OutsideRead> outsideRead() const;

private:
  void addFunctions(AttentionOpInterface op);
  void noteTerm(const oracle::Pair &pair, unsigned capture, size_t offset,
                double derivative, const oracle::PairSize &size);
  void addScales(AttentionOpInterface op,
                 const std::vector<CapturedArray> &arrays);
  void addLists(AttentionOpInterface op, std::vector<CapturedArray> &arrays);
  PairOfRows rowsOf(const oracle::Pair &pair) const {
    return {
        pair.batch + sequence, pair.head, pair.query, pair.key, queries, keys};
  }

  int64_t queries, keys, sequence;
  std::unique_ptr<RegionEvaluator> sees, score;
  std::vector<CapturedArray> captures;
  std::vector<double> sinkScores;
  std::vector<CapturedArray> scales; ///< of Q, K and V, or empty
  std::vector<std::vector<double>> gradients;
  std::vector<double> squares; ///< of the terms, by capture
  /// Of the row at hand, by capture and element: terms with its error.
  std::map<std::pair<unsigned, size_t>, double> ofRow;
  std::array<int64_t, 3> row = {-1, -1, -1};
  std::vector<std::vector<int32_t>> lists; ///< what `blocks` points to
  oracle::BlockLists blocks = {};
  oracle::UsedKeys used;
  oracle::Clauses functions;
};

} // namespace attn

#endif
