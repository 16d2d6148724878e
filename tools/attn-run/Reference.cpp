//===- Reference.cpp - The oracle and the distance from it ----------------===//

#include "Reference.h"

#include "attn/Interpreter/Oracle.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace attn;
using namespace attn::run;

double run::toleranceOf(const Problem &problem) {
  switch (problem.dtype) {
  case DataType::f8e4m3:
    return 0x1p-4 + 0x1p-9 + double(problem.keys) * 0x1p-19;
  case DataType::bf16:
    return 4e-3;
  case DataType::f16:
    return 6e-4;
  case DataType::f32:
    // Against exact numbers; those of tf32 have a relative error of 2^-11.
    return problem.precision == Precision::tf32 ? 2e-3 : 1e-5;
  }
  return 0;
}

double run::lseToleranceOf(const Problem &problem) {
  if (problem.dtype == DataType::f32 && problem.precision == Precision::tf32)
    return 2e-3;
  if (problem.dtype != DataType::f8e4m3)
    return 1e-4;
  double steps = std::ceil(double(problem.headDim) / 32);
  return 0x1p-8 * std::max(1.0, steps / 2);
}

bool Comparison::ok() const {
  double error = isLse() ? lseError : relativeError;
  // A NaN compares false and is not ok.
  return error <= tolerance && unwritten == 0 && damaged == 0 &&
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

namespace {

/// An input as floats, row-major.
struct Floats {
  explicit Floats(const HostBytes &array) {
    values.reserve(array.shape.count());
    forEachIndex(array.shape.sizes, [&](llvm::ArrayRef<int64_t> index) {
      values.push_back(static_cast<float>(array.get(index)));
    });
    const auto &sizes = array.shape.sizes;
    view = {values.data(),
            {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1}};
  }
  std::vector<float> values;
  oracle::Array view;
};

/// Norms of the rows of Q, and of the largest row of K of each head: how large
/// scores can be.  Rows that are not finite do not count; what sees them is not
/// compared.
class ScoreSizes {
public:
  ScoreSizes(const Attention &attention, const Floats &q, const Floats &k)
      : problem(attention.problem), scale(std::abs(attention.scale)),
        queries(norms(q, problem.headDim)) {
    std::vector<double> keys = norms(k, problem.headDim);
    largestKeys.assign(problem.batch * problem.kvHeads, 0);
    for (size_t row = 0; row < keys.size(); ++row) {
      double &largest = largestKeys[row / problem.keys];
      largest = std::max(largest, keys[row]);
    }
  }

  /// |scale| |q| max |k| of a batch entry, head and row.
  double at(int64_t batch, int64_t head, int64_t row) const {
    int64_t keyHead = head / (problem.heads / problem.kvHeads);
    return scale *
           queries[(batch * problem.heads + head) * problem.queries + row] *
           largestKeys[batch * problem.kvHeads + keyHead];
  }

private:
  static std::vector<double> norms(const Floats &array, int64_t columns) {
    std::vector<double> result;
    for (size_t begin = 0; begin < array.values.size(); begin += columns) {
      double sum = 0;
      for (int64_t column = 0; column < columns; ++column)
        sum +=
            double(array.values[begin + column]) * array.values[begin + column];
      result.push_back(std::isfinite(sum) ? std::sqrt(sum) : 0);
    }
    return result;
  }

  const Problem &problem;
  double scale;
  std::vector<double> queries, largestKeys;
};

/// Sums up one output.
class Comparer {
public:
  Comparer(const HostBytes &array, const Output &output,
           const Attention &attention, const ScoreSizes &scores, Inputs inputs)
      : array(array), attention(attention), scores(scores),
        undefinedIsFree(inputs == Inputs::infinity) {
    result.name = output.name();
    llvm::raw_string_ostream stream(result.type);
    llvm::interleave(output.sizes, stream, "x");
    stream << 'x' << output.elementType;
    const Problem &problem = attention.problem;
    result.tolerance =
        output.isLse ? lseToleranceOf(problem) : toleranceOf(problem);
    result.unwritten = array.unwritten();
    result.damaged = array.damaged();
    result.rows = attention.problem.queries;
  }

  /// One element of row `row`; `index` is its place in the output.
  void add(llvm::ArrayRef<int64_t> index, int64_t row, double reference) {
    double got = array.get(index);
    if (!seesAKey(row)) {
      double exact =
          result.isLse() ? -std::numeric_limits<double>::infinity() : 0;
      result.wrongMasked += got != exact;
      return;
    }
    if (!std::isfinite(reference)) {
      if (!undefinedIsFree)
        result.wrongNan +=
            std::isnan(reference) ? !std::isnan(got) : got != reference;
      return;
    }
    if (!std::isfinite(got)) {
      ++result.wrongNan;
      return;
    }
    double error = std::abs(got - reference);
    result.maxError = std::max(result.maxError, error);
    double size = scores.at(index[0], index[1], row);
    result.lseError =
        std::max(result.lseError, error / std::max(1.0, size / 32));
    squaredError += error * error;
    squaredNorm += reference * reference;
  }

  Comparison finish(int64_t checkedRows) {
    result.checkedRows = checkedRows;
    if (squaredError > 0)
      result.relativeError = std::sqrt(squaredError / squaredNorm);
    return result;
  }

private:
  bool seesAKey(int64_t row) const {
    Band visible = band(attention.problem);
    int64_t first = std::max<int64_t>(0, row + visible.first);
    int64_t last =
        std::min<int64_t>(attention.problem.keys - 1, row + visible.last);
    return first <= last;
  }

  const HostBytes &array;
  const Attention &attention;
  const ScoreSizes &scores;
  bool undefinedIsFree;
  Comparison result;
  double squaredError = 0, squaredNorm = 0;
};

} // namespace

std::vector<Comparison> run::compareAll(const Function &function,
                                        const std::vector<HostBytes> &arrays,
                                        const std::vector<size_t> &outputs,
                                        Inputs inputs, double budget,
                                        unsigned threads) {
  std::vector<Comparison> comparisons;
  for (auto [number, attention] : llvm::enumerate(function.attentions)) {
    const Problem &problem = attention.problem;
    Floats q(arrays[attention.q]), k(arrays[attention.k]),
        v(arrays[attention.v]);
    ScoreSizes scores(attention, q, k);
    std::vector<Comparer> comparers;
    std::vector<bool> isLse;
    for (auto [output, slot] : llvm::zip_equal(function.outputs, outputs)) {
      if (output.attention != number)
        continue;
      comparers.emplace_back(arrays[slot], output, attention, scores, inputs);
      isLse.push_back(output.isLse);
    }
    Band visible = band(problem);
    int64_t checked = 0;
    for (RowRun rows : chooseRows(problem, budget)) {
      int64_t count = rows.end - rows.begin;
      checked += count;
      // Row i of the run is row begin + i of the problem: the band moves.
      oracle::Problem part = {problem.batch,
                              problem.heads,
                              problem.kvHeads,
                              count,
                              problem.keys,
                              problem.headDim,
                              problem.headDimV,
                              visible.first + rows.begin,
                              visible.last + rows.begin,
                              attention.scale};
      oracle::Array qPart = q.view;
      qPart.data += rows.begin * problem.headDim;
      int64_t total = problem.batch * problem.heads * count;
      std::vector<double> o(total * problem.headDimV), lse(total);
      oracle::attention(part, qPart, k.view, v.view, o.data(), lse.data(),
                        threads);
      for (size_t i = 0; i < comparers.size(); ++i) {
        const double *reference = isLse[i] ? lse.data() : o.data();
        llvm::SmallVector<int64_t> sizes = {problem.batch, problem.heads,
                                            count};
        if (!isLse[i])
          sizes.push_back(problem.headDimV);
        forEachIndex(sizes, [&](llvm::ArrayRef<int64_t> index) {
          llvm::SmallVector<int64_t> place = llvm::to_vector(index);
          place[2] += rows.begin;
          comparers[i].add(place, place[2], *reference++);
        });
      }
    }
    for (Comparer &comparer : comparers)
      comparisons.push_back(comparer.finish(checked));
  }
  return comparisons;
}
