//===- Oracle.cpp - What attention is, in fp64 ----------------------------===//

#include "Oracle/OracleProducts.h"

#include "attn/Interpreter/Oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

using namespace attn::oracle;

namespace {

constexpr int64_t kRows = 32;  // queries of a task
constexpr int64_t kKeys = 128; // keys of a chunk, small enough for a cache

//===----------------------------------------------------------------------===//
// One task: some queries of one head
//===----------------------------------------------------------------------===//

class Task {
public:
  Task(const Problem &problem, const Array &q, const Array &k, const Array &v,
       int64_t batch, int64_t head, int64_t row)
      : p(problem), q(q), k(k), v(v), batch(batch), head(head),
        kvHead(head / (p.heads / p.kvHeads)), row(row),
        rows(std::min(kRows, p.queries - row)),
        begin(std::clamp<int64_t>(row + p.first, 0, p.keys)),
        end(std::clamp<int64_t>(std::max(row + rows + p.last, p.prefix), begin,
                                p.keys)) {}

  /// Returns the sum of squares of what O is summed from, of finite rows.
  double run(double *o, double *lse) {
    std::fill_n(o, rows * p.headDimV, 0.0);
    scores.assign(rows * (end - begin), 0.0);
    for (int64_t key = begin; key < end; key += kKeys)
      score(key, std::min(key + kKeys, end));
    for (int64_t i = 0; i < rows; ++i) {
      double value = normalise(i);
      if (lse)
        lse[i] = value;
    }
    squares.assign(rows, 0.0);
    for (int64_t key = begin; key < end; key += kKeys)
      accumulate(key, std::min(key + kKeys, end), o);
    double sum = 0;
    for (double row : squares)
      sum += std::isfinite(row) ? row : 0;
    return sum;
  }

private:
  int64_t span() const { return end - begin; }
  /// Visible keys of row i of the task.
  int64_t firstKey(int64_t i) const {
    return std::clamp<int64_t>(row + i + p.first, begin, end);
  }
  int64_t endKey(int64_t i) const {
    return std::clamp<int64_t>(std::max(row + i + p.last + 1, p.prefix),
                               firstKey(i), end);
  }
  static double at(const Array &array, int64_t b, int64_t h, int64_t i,
                   int64_t c) {
    const std::array<int64_t, 4> &s = array.strides;
    return array.data[b * s[0] + h * s[1] + i * s[2] + c * s[3]];
  }

  /// Scaled products of all rows with keys `from .. to - 1`.
  void score(int64_t from, int64_t to) {
    int64_t d = p.headDim, count = to - from;
    if (left.empty()) {
      left.resize(rows * d);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t c = 0; c < d; ++c)
          left[i * d + c] = p.scale * at(q, batch, head, row + i, c);
    }
    right.resize(d * count);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t c = 0; c < d; ++c)
        right[c * count + j] = at(k, batch, kvHead, from + j, c);
    multiply({left.data(), right.data(), scores.data() + (from - begin), d,
              count, span(), rows, d, count});
  }

  /// Scores of a row become weights, 0 for invisible keys; returns its LSE.
  double normalise(int64_t i) {
    double *s = scores.data() + i * span();
    const double infinity = std::numeric_limits<double>::infinity();
    int64_t first = firstKey(i) - begin, last = endKey(i) - begin;
    std::fill(s, s + first, 0.0);
    std::fill(s + last, s + span(), 0.0);
    if (first == last)
      return -infinity;
    double max = -infinity, sum = 0;
    for (int64_t j = first; j < last; ++j) {
      s[j] = withinF32(s[j]);
      max = std::max(max, s[j]);
    }
    double reference = max == -infinity ? 0 : max; // nor is NaN above that
    for (int64_t j = first; j < last; ++j)
      sum += s[j] = std::exp(s[j] - reference);
    if (sum == 0)
      return -infinity;
    for (int64_t j = first; j < last; ++j)
      s[j] /= sum;
    return reference + std::log(sum);
  }

  /// A scaled score, or what it counts as where f32 has no place for the
  /// product of its query and key.
  double withinF32(double score) const {
    double most = std::numeric_limits<float>::max() * std::abs(p.scale);
    if (score > most)
      return most;
    return score < -most ? -std::numeric_limits<double>::infinity() : score;
  }

  /// Adds the weighted values of keys `from .. to - 1`.
  void accumulate(int64_t from, int64_t to, double *o) {
    int64_t e = p.headDimV, count = to - from;
    right.resize(count * e);
    bool finite = true;
    const double *weights = scores.data() + (from - begin);
    for (int64_t j = 0; j < count; ++j) {
      double norm = 0;
      for (int64_t c = 0; c < e; ++c) {
        double value = right[j * e + c] = at(v, batch, kvHead, from + j, c);
        norm += value * value;
      }
      finite &= std::isfinite(norm);
      for (int64_t i = 0; i < rows; ++i)
        if (from + j >= firstKey(i) && from + j < endKey(i))
          squares[i] +=
              weights[i * span() + j] * weights[i * span() + j] * norm;
    }
    if (finite) // else 0 times an invisible value would be NaN
      return multiply({weights, right.data(), o, span(), e, e, rows, count, e});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = std::max(firstKey(i), from); j < std::min(endKey(i), to);
           ++j)
        for (int64_t c = 0; c < e; ++c)
          o[i * e + c] +=
              weights[i * span() + j - from] * right[(j - from) * e + c];
  }

  const Problem &p;
  const Array &q, &k, &v;
  int64_t batch, head, kvHead, row, rows;
  /// Keys that some row of the task sees.
  int64_t begin, end;
  std::vector<double> scores, left, right;
  /// Of each row: the sum of squares of p v.
  std::vector<double> squares;
};

} // namespace

double attn::oracle::attention(const Problem &p, const Array &q, const Array &k,
                               const Array &v, double *o, double *lse,
                               unsigned threads) {
  int64_t strips = (p.queries + kRows - 1) / kRows;
  int64_t tasks = p.batch * p.heads * strips;
  std::vector<double> squares(tasks);
  forEachTask(tasks, threads, [&](int64_t task) {
    int64_t row = task % strips * kRows, batchHead = task / strips;
    int64_t line = batchHead * p.queries + row;
    squares[task] =
        Task(p, q, k, v, batchHead / p.heads, batchHead % p.heads, row)
            .run(o + line * p.headDimV, lse ? lse + line : nullptr);
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}
