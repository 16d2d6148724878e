//===- Comparer.h - The distance from a reference ---------------*- C++ -*-===//

#ifndef ATTN_TOOLS_RUN_COMPARER_H
#define ATTN_TOOLS_RUN_COMPARER_H

#include "AttentionOracle.h"

namespace attn::run {

/// Norms of the rows of Q, and of the largest row of K of each head: how large
/// scores can be.  Rows that are not finite do not count; what sees them is not
/// compared.
class ScoreSizes {
public:
  ScoreSizes(const Attention &attention, const Floats &q, const Floats &k);

  /// |scale| |q| max |k| of a batch entry, head and row.
  double at(int64_t batch, int64_t head, int64_t row) const;
  /// The largest.
  double largest() const;

private:
  const Problem &problem;
  double scale;
  std::vector<double> queries, largestKeys;
};

/// Sums up one output.
class Comparer {
public:
  Comparer(const HostBytes &array, const Output &output,
           const AttentionOracle &oracle, const ScoreSizes &scores,
           Inputs inputs);

  /// One element of row `row`; `index` is its place in the output.
  void add(llvm::ArrayRef<int64_t> index, int64_t row, double reference);

  /// The result, for so many rows of all, whose terms have that size and may
  /// leave errors of `tolerance`.
  Comparison finish(int64_t checkedRows, int64_t rows, double tolerance,
                    double size);

  llvm::StringRef role() const { return result.name; }
  bool isLse() const { return result.isLse(); }
  /// What the output has there.
  double at(llvm::ArrayRef<int64_t> index) const { return array.get(index); }

private:
  /// Whether a query sees a key, or a key is seen; asked row by row.
  bool takesPart(llvm::ArrayRef<int64_t> index, int64_t row);

  const HostBytes &array;
  const AttentionOracle &oracle;
  const ScoreSizes &scores;
  bool undefinedIsFree, hasSinks;
  std::array<int64_t, 3> lastRow = {-1, -1, -1};
  bool lastTakesPart = false;
  Comparison result;
  double squaredError = 0, squaredNorm = 0;
};

/// Adds some rows of all heads to the comparers of O and LSE; the size of O.
double addRows(std::vector<Comparer> &comparers, const AttentionOracle &oracle,
               RowRun rows);

/// O and LSE of an attention as what its gradients read, and those gradients:
/// of a dense one, or of the ragged sequence of that number as one.
void fillForwardResults(const Function &function, const Attention &attention,
                        std::vector<HostBytes> &arrays, double budget,
                        unsigned threads, int64_t sequence);
std::vector<Comparison>
compareGradients(const Function &function, const Attention &attention,
                 size_t number, const std::vector<HostBytes> &arrays,
                 const std::vector<size_t> &outputs, Inputs inputs,
                 double budget, unsigned threads, int64_t sequence);

/// Rows of the ragged sequence of that number; on a cache the keys that it
/// uses.
Lengths lengthsOf(const Attention &attention,
                  const std::vector<HostBytes> &arrays, int64_t number);

/// Ragged sequences are filled and compared one by one (Sequences.cpp).
void fillRagged(const Function &function, const Attention &attention,
                std::vector<HostBytes> &arrays, double budget,
                unsigned threads);
std::vector<Comparison> compareRagged(const Function &function, size_t number,
                                      const std::vector<HostBytes> &arrays,
                                      const std::vector<size_t> &outputs,
                                      Inputs inputs, double budget,
                                      unsigned threads);

/// Comparers of the outputs of the attention of that number.
std::vector<Comparer> comparersOf(const Function &function, size_t number,
                                  const std::vector<HostBytes> &arrays,
                                  const std::vector<size_t> &outputs,
                                  const AttentionOracle &oracle,
                                  const ScoreSizes &scores, Inputs inputs);

} // namespace attn::run

#endif
