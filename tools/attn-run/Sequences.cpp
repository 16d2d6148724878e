//===- Sequences.cpp - Ragged sequences, each beside its reference --------===//
//
// A sequence is dense attention of some rows of the arrays, or of the keys that
// an entry of a cache uses.  Its reference sees
// copies of these; what a kernel has not written, or should not have, is told
// of the whole outputs.
//
//===----------------------------------------------------------------------===//

#include "Comparer.h"
#include "Pages.h"

#include "attn/Schedule/RaggedQueries.h"

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

/// The rows of a sequence, back to where they were cut out.
static void putBack(const HostBytes &rows, HostBytes &array, int64_t first) {
  bool isStatistic = array.shape.sizes.size() == 2;
  forEachIndex(rows.shape.sizes, [&](llvm::ArrayRef<int64_t> at) {
    int64_t row = first + at[2];
    if (isStatistic)
      array.set({at[1], row}, rows.get(at));
    else
      array.set({row, at[1], at[3]}, rows.get(at));
  });
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

namespace {

/// A sequence as an attention of its own, and its arrays, which are copies.
struct Sequence {
  int64_t number;
  const std::vector<HostBytes> &whole;
  int64_t firstQuery, firstKey;
  Attention attention;
  std::vector<HostBytes> arrays;

  bool isEmpty() const {
    const Problem &p = attention.problem;
    return p.queries == 0 && (p.keys == 0 || !attention.isBackward());
  }
  void cut(size_t slot, bool isOfKeys) {
    const Problem &p = attention.problem;
    arrays[slot] = sequenceOf(whole[slot], isOfKeys ? firstKey : firstQuery,
                              isOfKeys ? p.keys : p.queries);
  }
};

} // namespace

static bool isOfKeys(llvm::StringRef role) {
  return shapeOf(role)[2] == Extent::keys;
}

/// Where queries or keys of a sequence begin.
static int64_t offsetOf(const Attention &attention,
                        const std::vector<HostBytes> &arrays, unsigned which,
                        int64_t number) {
  return arrays[attention.clauseInput(ClauseGroup::offsets, which).position]
      .getWhole({number});
}

Lengths run::lengthsOf(const Attention &attention,
                       const std::vector<HostBytes> &arrays, int64_t number) {
  auto rows = [&](unsigned which) {
    return offsetOf(attention, arrays, which, number + 1) -
           offsetOf(attention, arrays, which, number);
  };
  if (areKeysRagged(attention.problem))
    return {rows(0), rows(1)};
  size_t used = attention.clauseInput(ClauseGroup::usedKeys, 0).position;
  return {rows(0), std::clamp<int64_t>(arrays[used].getWhole({number}), 0,
                                       attention.problem.keys)};
}

/// A sequence, with what is read of it cut out.
static Sequence cutOut(const Attention &attention,
                       const std::vector<HostBytes> &arrays, int64_t number) {
  const Problem &p = attention.problem;
  int64_t query = offsetOf(attention, arrays, 0, number);
  int64_t key = areKeysRagged(p) ? offsetOf(attention, arrays, 1, number) : 0;
  Lengths lengths = run::lengthsOf(attention, arrays, number);
  Sequence one{number, arrays, query, key, attention, arrays};
  one.attention.problem = denseOf(p, lengths);
  one.attention.problem.place = {};
  for (const auto &[role, slot] : attention.inputs)
    if (isOfKeys(role) && !areKeysRagged(p))
      one.arrays[slot] =
          keysInOrder(attention, arrays, role, number, 1, lengths.keys);
    else
      one.cut(slot, isOfKeys(role));
  return one;
}

void run::fillRagged(const Function &function, const Attention &attention,
                     std::vector<HostBytes> &arrays, double budget,
                     unsigned threads) {
  for (int64_t n = 0; n < attention.problem.batch; ++n) {
    Sequence one = cutOut(attention, arrays, n);
    fillForwardResults(function, one.attention, one.arrays, budget, threads, n);
    for (const char *role : {"o", "lse", "lse_low"}) {
      auto found = attention.inputs.find(role);
      if (found != attention.inputs.end())
        putBack(one.arrays[found->second], arrays[found->second],
                one.firstQuery);
    }
  }
}

/// O and LSE of a sequence, all rows.
static std::vector<Comparison>
compareForward(const Function &function, size_t number, const Sequence &one,
               const std::vector<size_t> &outputs, Inputs inputs,
               unsigned threads) {
  const Problem &p = one.attention.problem;
  AttentionOracle oracle(function, one.attention, one.arrays, threads,
                         one.number);
  ScoreSizes scores(one.attention, oracle.q, oracle.k);
  std::vector<Comparer> comparers = comparersOf(
      function, number, one.arrays, outputs, oracle, scores, inputs);
  double size = addRows(comparers, oracle, {0, p.queries});
  std::vector<Comparison> all;
  for (Comparer &comparer : comparers)
    all.push_back(comparer.finish(p.queries, p.queries,
                                  comparer.isLse()
                                      ? lseToleranceOf(p, scores.largest())
                                      : toleranceOf(p, scores.largest()),
                                  size));
  return all;
}

std::vector<Comparison> run::compareRagged(const Function &function,
                                           size_t number,
                                           const std::vector<HostBytes> &arrays,
                                           const std::vector<size_t> &outputs,
                                           Inputs inputs, double budget,
                                           unsigned threads) {
  const Attention &attention = function.attentions[number];
  std::vector<Comparison> all;
  for (int64_t n = 0; n < attention.problem.batch; ++n) {
    Sequence one = cutOut(attention, arrays, n);
    if (all.empty()) {
      AttentionOracle oracle(function, one.attention, one.arrays, threads, n);
      ScoreSizes scores(one.attention, oracle.q, oracle.k);
      all = beginningOf(comparersOf(function, number, arrays, outputs, oracle,
                                    scores, inputs));
    }
    if (one.isEmpty())
      continue;
    for (auto [output, slot] : llvm::zip_equal(function.outputs, outputs))
      if (output.of == Output::Of::attention && output.attention == number)
        one.cut(slot, isOfKeys(output.role));
    std::vector<Comparison> alone =
        attention.isBackward()
            ? compareGradients(function, one.attention, number, one.arrays,
                               outputs, inputs, budget, threads, n)
            : compareForward(function, number, one, outputs, inputs, threads);
    for (auto [sum, comparison] : llvm::zip_equal(all, alone))
      addTo(sum, comparison);
  }
  return all;
}
