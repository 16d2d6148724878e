//===- Sequences.cpp - Ragged sequences, each beside its reference --------===//
//
// A sequence is dense attention of some rows of the arrays.  Its reference sees
// copies of these; what a kernel has not written, or should not have, is told
// of the whole outputs.
//
//===----------------------------------------------------------------------===//

#include "Comparer.h"

#include <algorithm>

using namespace attn;
using namespace attn::run;

/// Rows of an array of [rows, heads, columns] as one of [1, heads, rows,
/// columns], or of [heads, rows] as one of [1, heads, rows].
static HostBytes sequenceOf(const HostBytes &array, int64_t first,
                            int64_t count) {
  llvm::ArrayRef<int64_t> sizes = array.shape.sizes;
  bool isStatistic = sizes.size() == 2;
  llvm::SmallVector<int64_t> own = {1, sizes[isStatistic ? 0 : 1], count};
  if (!isStatistic)
    own.push_back(sizes[2]);
  HostBytes rows(HostArray::contiguous(0, own, array.shape.elementType),
                 /*guardBytes=*/0);
  forEachIndex(own, [&](llvm::ArrayRef<int64_t> at) {
    int64_t row = first + at[2];
    if (isStatistic)
      rows.set(at, array.get({at[1], row}));
    else
      rows.set(at, array.get({row, at[1], at[3]}));
  });
  return rows;
}

/// What is worst, or adds up.
static void addTo(Comparison &all, const Comparison &one) {
  all.rows += one.rows;
  all.checkedRows += one.checkedRows;
  all.maxError = std::max(all.maxError, one.maxError);
  all.relativeError = std::max(all.relativeError, one.relativeError);
  all.lseError = std::max(all.lseError, one.lseError);
  all.tolerance = std::max(all.tolerance, one.tolerance);
  all.comparable &= one.comparable;
  all.wrongNan += one.wrongNan;
  all.wrongMasked += one.wrongMasked;
}

/// Of all outputs of an attention, before anything is compared.
static std::vector<Comparison>
beginningOf(const std::vector<Comparer> &comparers) {
  std::vector<Comparison> all;
  for (Comparer comparer : comparers)
    all.push_back(comparer.finish(0, 0, /*tolerance=*/0, /*size=*/0));
  return all;
}

std::vector<Comparison> run::compareRagged(const Function &function,
                                           size_t number,
                                           const std::vector<HostBytes> &arrays,
                                           const std::vector<size_t> &outputs,
                                           Inputs inputs, double,
                                           unsigned threads) {
  const Attention &attention = function.attentions[number];
  auto offsetsOf = [&](unsigned which) -> const HostBytes & {
    return arrays[attention.clauseInput(ClauseGroup::offsets, which).position];
  };
  const HostBytes &ofQueries = offsetsOf(0), &ofKeys = offsetsOf(1);
  std::vector<Comparison> all;
  for (int64_t n = 0; n < attention.problem.batch; ++n) {
    int64_t query = ofQueries.getWhole({n}), key = ofKeys.getWhole({n});
    Lengths lengths{ofQueries.getWhole({n + 1}) - query,
                    ofKeys.getWhole({n + 1}) - key};
    Attention one = attention;
    one.problem = denseOf(attention.problem, lengths);
    std::vector<HostBytes> own = arrays;
    auto cut = [&](size_t slot, bool isOfKeys) {
      own[slot] = sequenceOf(arrays[slot], isOfKeys ? key : query,
                             isOfKeys ? lengths.keys : lengths.queries);
    };
    for (const char *role : {"q", "k", "v"})
      cut(attention.input(role), role[0] != 'q');
    for (auto [output, slot] : llvm::zip_equal(function.outputs, outputs))
      if (output.of == Output::Of::attention && output.attention == number)
        cut(slot, /*isOfKeys=*/false);
    AttentionOracle oracle(function, one, own, threads, n);
    ScoreSizes scores(one, oracle.q, oracle.k);
    std::vector<Comparer> comparers =
        comparersOf(function, number, own, outputs, oracle, scores, inputs);
    if (all.empty())
      all = beginningOf(comparersOf(function, number, arrays, outputs, oracle,
                                    scores, inputs));
    if (lengths.queries == 0)
      continue;
    double size = addRows(comparers, oracle, {0, lengths.queries});
    for (auto [comparer, sum] : llvm::zip_equal(comparers, all))
      addTo(sum,
            comparer.finish(lengths.queries, lengths.queries,
                            comparer.isLse()
                                ? lseToleranceOf(one.problem, scores.largest())
                                : toleranceOf(one.problem, scores.largest()),
                            size));
  }
  return all;
}
