//===- Oracle.cpp - What attention is, in fp64 ----------------------------===//

#include "attn/Interpreter/Oracle.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

using namespace attn::oracle;

namespace {

constexpr int64_t kRows = 32;  // queries of a task
constexpr int64_t kKeys = 128; // keys of a chunk, small enough for a cache

//===----------------------------------------------------------------------===//
// C += A * B for row-major doubles
//===----------------------------------------------------------------------===//

struct Product {
  const double *a, *b;
  double *c;
  int64_t strideA, strideB, strideC;
  int64_t rows, inner, columns;
};

/// A register's worth of C at (i, j).
template <int64_t Rows, int64_t Columns>
inline __attribute__((always_inline)) void multiplyTile(const Product &p,
                                                        int64_t i, int64_t j) {
  double sum[Rows][Columns] = {};
  for (int64_t k = 0; k < p.inner; ++k)
    for (int64_t r = 0; r < Rows; ++r)
      for (int64_t s = 0; s < Columns; ++s)
        sum[r][s] += p.a[(i + r) * p.strideA + k] * p.b[k * p.strideB + j + s];
  for (int64_t r = 0; r < Rows; ++r)
    for (int64_t s = 0; s < Columns; ++s)
      p.c[(i + r) * p.strideC + j + s] += sum[r][s];
}

inline __attribute__((always_inline)) void multiplyAll(const Product &p) {
  int64_t i = 0;
  for (; i + 4 <= p.rows; i += 4) {
    int64_t j = 0;
    for (; j + 8 <= p.columns; j += 8)
      multiplyTile<4, 8>(p, i, j);
    for (; j < p.columns; ++j)
      multiplyTile<4, 1>(p, i, j);
  }
  for (; i < p.rows; ++i) {
    int64_t j = 0;
    for (; j + 8 <= p.columns; j += 8)
      multiplyTile<1, 8>(p, i, j);
    for (; j < p.columns; ++j)
      multiplyTile<1, 1>(p, i, j);
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiplyAvx2(const Product &p) {
  multiplyAll(p);
}
#endif

void multiply(const Product &p) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return multiplyAvx2(p);
#endif
  multiplyAll(p);
}

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
        end(std::clamp<int64_t>(row + rows + p.last, begin, p.keys)) {}

  void run(double *o, double *lse) {
    std::fill_n(o, rows * p.headDimV, 0.0);
    scores.assign(rows * (end - begin), 0.0);
    for (int64_t key = begin; key < end; key += kKeys)
      score(key, std::min(key + kKeys, end));
    for (int64_t i = 0; i < rows; ++i) {
      double value = normalise(i);
      if (lse)
        lse[i] = value;
    }
    for (int64_t key = begin; key < end; key += kKeys)
      accumulate(key, std::min(key + kKeys, end), o);
  }

private:
  int64_t span() const { return end - begin; }
  /// Visible keys of row i of the task.
  int64_t firstKey(int64_t i) const {
    return std::clamp<int64_t>(row + i + p.first, begin, end);
  }
  int64_t endKey(int64_t i) const {
    return std::clamp<int64_t>(row + i + p.last + 1, firstKey(i), end);
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
    for (int64_t j = first; j < last; ++j)
      max = std::max(max, s[j]);
    for (int64_t j = first; j < last; ++j)
      sum += s[j] = std::exp(s[j] - max);
    for (int64_t j = first; j < last; ++j)
      s[j] /= sum;
    return max + std::log(sum);
  }

  /// Adds the weighted values of keys `from .. to - 1`.
  void accumulate(int64_t from, int64_t to, double *o) {
    int64_t e = p.headDimV, count = to - from;
    right.resize(count * e);
    bool finite = true;
    for (int64_t j = 0; j < count; ++j)
      for (int64_t c = 0; c < e; ++c) {
        right[j * e + c] = at(v, batch, kvHead, from + j, c);
        finite &= std::isfinite(right[j * e + c]);
      }
    const double *weights = scores.data() + (from - begin);
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
};

} // namespace

void attn::oracle::attention(const Problem &p, const Array &q, const Array &k,
                             const Array &v, double *o, double *lse,
                             unsigned threads) {
  int64_t strips = (p.queries + kRows - 1) / kRows;
  int64_t tasks = p.batch * p.heads * strips;
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t task = next++; task < tasks; task = next++) {
      int64_t row = task % strips * kRows, batchHead = task / strips;
      int64_t line = batchHead * p.queries + row;
      Task(p, q, k, v, batchHead / p.heads, batchHead % p.heads, row)
          .run(o + line * p.headDimV, lse ? lse + line : nullptr);
    }
  };
  if (threads == 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (int64_t i = 1; i < std::min<int64_t>(threads, tasks); ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
}
