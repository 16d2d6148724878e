//===- Reference.cpp - The oracle and the distance from it ----------------===//

#include "Comparer.h"
#include "Listings.h"
#include "LongSums.h"

#include <algorithm>
#include <cmath>

using namespace attn;
using namespace attn::run;

/// The error of scores whose products are in tf32, in the root mean square.
static double scoreError(const Problem &problem, double score) {
  return score / std::sqrt(double(problem.headDim)) * 0x1p-11;
}

double run::toleranceOf(const Problem &problem, double score) {
  switch (problem.dtype) {
  case DataType::f8e4m3:
    // The largest roundings, 2^-4 and 2^-9, are above what is accepted.
    return std::max(kLargestTolerance,
                    std::hypot(2.7e-2, double(problem.keys) * 0x1p-19));
  case DataType::bf16:
    return 4e-3 + lostInSums(problem);
  case DataType::f16:
    return 6e-4 + lostInSums(problem);
  case DataType::f32:
    // Against exact numbers; those of tf32 have a relative error of 2^-11.
    return problem.precision == Precision::tf32
               ? 2e-3 + scoreError(problem, score)
               : 1e-5;
  }
  return 0;
}

double run::lseToleranceOf(const Problem &problem, double score) {
  if (problem.dtype == DataType::f32 && problem.precision == Precision::tf32)
    // In units of s / 32 where that is above 1.
    return 1e-4 + 4 * scoreError(problem, std::min(score, 32.0));
  if (problem.dtype != DataType::f8e4m3)
    return 1e-4;
  double steps = std::ceil(double(problem.headDim) / 32);
  return 0x1p-8 * std::max(1.0, steps / 2);
}

bool Comparison::ok() const {
  double error = isLse() ? lseError : relativeError;
  // A NaN compares false and is not ok.
  return comparable && error <= tolerance && unwritten == 0 && damaged == 0 &&
         wrongNan == 0 && wrongMasked == 0;
}

std::vector<RowRun> run::chooseRows(const Problem &problem, double budget) {
  double perRow = double(problem.batch) * problem.heads * problem.keys *
                  (problem.headDim + problem.headDimV);
  int64_t rows = problem.queries;
  if (perRow * rows <= budget)
    return {{0, rows}};
  // Both ends are among them; runs are short, so that many tiles are touched.
  constexpr int64_t kRun = 8;
  int64_t runs = std::max<int64_t>(2, int64_t(budget / perRow) / kRun);
  std::vector<RowRun> chosen;
  for (int64_t i = 0; i < runs; ++i) {
    int64_t begin = i * (rows - kRun) / (runs - 1);
    if (chosen.empty() || begin >= chosen.back().end)
      chosen.push_back({begin, begin + kRun});
  }
  return chosen;
}

double run::addRows(std::vector<Comparer> &comparers,
                    const AttentionOracle &oracle, RowRun rows) {
  const Problem &problem = oracle.attention.problem;
  // The LSE that a low word belongs to; what it should be if nobody sees it.
  auto highWord = [&](llvm::ArrayRef<int64_t> place, double exact) {
    auto high = llvm::find_if(
        comparers, [](const Comparer &c) { return c.role() == "lse"; });
    return high == comparers.end() ? double(float(exact)) : high->at(place);
  };
  int64_t count = rows.end - rows.begin;
  int64_t total = problem.batch * problem.heads * count;
  std::vector<double> o(total * problem.headDimV), lse(total);
  double size = oracle.rows(rows, o.data(), lse.data());
  for (Comparer &comparer : comparers) {
    bool isLse = comparer.isLse();
    const double *reference = isLse ? lse.data() : o.data();
    llvm::SmallVector<int64_t> sizes = {problem.batch, problem.heads, count};
    if (!isLse)
      sizes.push_back(problem.headDimV);
    forEachIndex(sizes, [&](llvm::ArrayRef<int64_t> index) {
      llvm::SmallVector<int64_t> place = llvm::to_vector(index);
      place[2] += rows.begin;
      double exact = *reference++;
      if (comparer.role() == "lse_low")
        exact = std::isfinite(exact) ? exact - highWord(place, exact) : 0;
      comparer.add(place, place[2], exact);
    });
  }
  return size;
}

/// Compares O and LSE of one attention with the oracle's.
static std::vector<Comparison>
compareForward(const Function &function, size_t number,
               const std::vector<HostBytes> &arrays,
               const std::vector<size_t> &outputs, Inputs inputs, double budget,
               unsigned threads) {
  const Attention &attention = function.attentions[number];
  const Problem &problem = attention.problem;
  AttentionOracle oracle(function, attention, arrays, threads);
  ScoreSizes scores(attention, oracle.q, oracle.k);
  std::vector<Comparer> comparers =
      comparersOf(function, number, arrays, outputs, oracle, scores, inputs);
  int64_t checked = 0;
  double squares = 0;
  for (RowRun rows : chooseRows(problem, oracle.affordable(budget))) {
    checked += rows.end - rows.begin;
    double size = addRows(comparers, oracle, rows);
    squares += size * size;
  }
  double score = scores.largest();
  std::vector<Comparison> comparisons;
  for (Comparer &comparer : comparers) {
    bool isLse = comparer.isLse();
    comparisons.push_back(comparer.finish(checked, problem.queries,
                                          isLse ? lseToleranceOf(problem, score)
                                                : toleranceOf(problem, score),
                                          std::sqrt(squares)));
  }
  return comparisons;
}

std::vector<Comparison> run::compareAll(const Function &function,
                                        const std::vector<HostBytes> &arrays,
                                        const std::vector<size_t> &outputs,
                                        Inputs inputs, double budget,
                                        unsigned threads) {
  std::vector<Comparison> comparisons;
  for (auto [number, attention] : llvm::enumerate(function.attentions)) {
    auto compare = [&, number = number](auto how) {
      llvm::append_range(comparisons, how(function, number, arrays, outputs,
                                          inputs, budget, threads));
    };
    if (attention.problem.ragged)
      compare(compareRagged);
    else if (attention.isBackward())
      compare([](auto &&...all) { return compareGradients(all...); });
    else
      compare(compareForward);
  }
  for (size_t number = 0; number < function.merges.size(); ++number)
    llvm::append_range(comparisons,
                       compareMerge(function, number, arrays, outputs));
  for (size_t number = 0; number < function.listings.size(); ++number)
    llvm::append_range(comparisons,
                       compareListing(function, number, arrays, outputs));
  return comparisons;
}
