//===- OracleGradients.cpp - Gradients of attention, in fp64 --------------===//
//
// Two passes over all pairs, each with rows of its own: strips of queries, for
// which whole rows of P are at hand, give LSE, the sums of P dP, sizes, and dQ;
// strips of keys, which compute P from LSE again, give dK and dV.
//
//===----------------------------------------------------------------------===//

#include "Oracle/OracleProducts.h"

#include "attn/Interpreter/Oracle.h"

#include <cmath>
#include <limits>

using namespace attn::oracle;

namespace {

constexpr int64_t kRows = 32;   // of a task
constexpr int64_t kOther = 128; // of a chunk of what it meets

using Matrix = std::vector<double>;

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

/// Rows of a head of an array, row-major.
Matrix rowsOf(const Array &array, int64_t b, int64_t h, Range rows,
              int64_t columns, double scale = 1) {
  const std::array<int64_t, 4> &s = array.strides;
  const float *head = array.data + b * s[0] + h * s[1];
  Matrix result(rows.size() * columns);
  double *to = result.data();
  for (int64_t i = rows.begin; i < rows.end; ++i)
    for (int64_t c = 0; c < columns; ++c)
      *to++ = scale * head[i * s[2] + c * s[3]];
  return result;
}

Matrix transposed(const Matrix &matrix, int64_t columns) {
  int64_t rows = matrix.size() / columns;
  Matrix result(matrix.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < columns; ++c)
      result[c * rows + i] = matrix[i * columns + c];
  return result;
}

/// C += A B, where A is 0 outside of what `seen` gives for each of its rows.
/// There it must not meet a NaN or an infinity of B.
template <typename Seen> void multiplySeen(const Product &p, Seen seen) {
  if (std::all_of(p.b, p.b + p.inner * p.strideB,
                  [](double value) { return std::isfinite(value); }))
    return multiply(p);
  for (int64_t i = 0; i < p.rows; ++i) {
    Range range = seen(i);
    for (int64_t k = range.begin; k < range.end; ++k)
      for (int64_t j = 0; j < p.columns; ++j)
        p.c[i * p.strideC + j] +=
            p.a[i * p.strideA + k] * p.b[k * p.strideB + j];
  }
}

/// What is known of a query once its row of P was.
struct Row {
  double lse;
  double sum; // of P dP, less dLSE
  /// What it adds to the squares of sizes, that of dQ without the scale; 0
  /// if that is not finite.
  double dq = 0, dk = 0, dv = 0;
};

/// The sum of squares of each row.
Matrix squaresOf(const Matrix &matrix, int64_t columns) {
  Matrix result(matrix.size() / columns);
  for (size_t i = 0; i < matrix.size(); ++i)
    result[i / columns] += matrix[i] * matrix[i];
  return result;
}

class Backward {
public:
  Backward(const Problem &problem, const Array &q, const Array &k,
           const Array &v, const Array &dO, const float *dlse,
           const Gradients &result)
      : p(problem), q(q), k(k), v(v), dO(dO), dlse(dlse), result(result),
        group(p.heads / p.kvHeads), rows(result.count * group * p.queries) {}

  GradientSizes run(unsigned threads) {
    int64_t strips = (p.queries + kRows - 1) / kRows;
    forEachTask(result.count * group * strips, threads, [&](int64_t task) {
      queryStrip(task / strips / group, task / strips % group,
                 strip(task % strips, p.queries));
    });
    strips = (p.keys + kRows - 1) / kRows;
    forEachTask(result.count * strips, threads, [&](int64_t task) {
      keyStrip(task / strips, strip(task % strips, p.keys));
    });
    double dq = 0, dk = 0, dv = 0;
    for (const Row &row : rows) {
      dq += row.dq;
      dk += row.dk;
      dv += row.dv;
    }
    // Queries come with the scale, keys do not.
    return {std::abs(p.scale) * std::sqrt(dq), std::sqrt(dk), std::sqrt(dv)};
  }

private:
  static Range strip(int64_t number, int64_t count) {
    return {number * kRows, std::min((number + 1) * kRows, count)};
  }
  /// Keys that a query sees, and queries that see a key, within a range.
  Range keysOf(int64_t i, Range in) const {
    return clamp(i + p.first, std::max(i + p.last, p.prefix - 1), in);
  }
  Range queriesOf(int64_t j, Range in) const {
    return clamp(j < p.prefix ? in.begin : j - p.last, j - p.first, in);
  }
  static Range clamp(int64_t first, int64_t last, Range in) {
    int64_t begin = std::clamp(first, in.begin, in.end);
    return {begin, std::clamp(last + 1, begin, in.end)};
  }

  void queryStrip(int64_t line, int64_t member, Range strip);
  void weigh(Row &row, Range seen, const double *weights, const double *slopes,
             const double *keySquares, const double *scaledQuery,
             const double *gradient, const double *output, double dlse) const;
  void keyStrip(int64_t line, Range strip);
  void addQueries(int64_t line, int64_t member, Range strip, Range chunk,
                  const Matrix &keys, const Matrix &values, double *dk,
                  double *dv);

  const Problem &p;
  const Array &q, &k, &v, &dO;
  const float *dlse;
  const Gradients &result;
  int64_t group;
  /// By (chosen key head, query head of its group, query).
  std::vector<Row> rows;
};

} // namespace

//===----------------------------------------------------------------------===//
// Queries: LSE, sums, dQ
//===----------------------------------------------------------------------===//

/// Calls `body` with the chunks of a range.
template <typename Body> static void forEachChunk(Range range, Body body) {
  for (int64_t at = range.begin; at < range.end; at += kOther)
    body(Range{at, std::min(at + kOther, range.end)});
}

/// What a query, whose row of P and of dP is given, adds to the squares of
/// sizes.
void Backward::weigh(Row &row, Range seen, const double *weights,
                     const double *slopes, const double *keySquares,
                     const double *scaledQuery, const double *gradient,
                     const double *output, double dlse) const {
  double query = 0, norm = 0, delta = dlse * dlse;
  for (int64_t c = 0; c < p.headDim; ++c)
    query += scaledQuery[c] * scaledQuery[c];
  for (int64_t c = 0; c < p.headDimV; ++c) {
    norm += gradient[c] * gradient[c];
    delta += gradient[c] * gradient[c] * output[c] * output[c];
  }
  double dq = 0, dk = 0, dv = 0;
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    double weight = weights[j] * weights[j];
    double slope = weight * (slopes[j] * slopes[j] + delta);
    dq += slope * keySquares[j];
    dk += slope * query;
    dv += weight * norm;
  }
  if (!std::isfinite(dq + dk + dv))
    return;
  row.dq = dq;
  row.dk = dk;
  row.dv = dv;
}

void Backward::queryStrip(int64_t line, int64_t member, Range strip) {
  int64_t b = result.kvLines[line] / p.kvHeads;
  int64_t kvHead = result.kvLines[line] % p.kvHeads;
  int64_t head = kvHead * group + member, d = p.headDim, e = p.headDimV;
  Range all = {0, p.keys};
  Range seen = {keysOf(strip.begin, all).begin, 0};
  seen.end = std::max(seen.begin, keysOf(strip.end - 1, all).end);
  int64_t span = seen.size(), count = strip.size();
  Matrix left = rowsOf(q, b, head, strip, d, p.scale);
  Matrix leftOut = rowsOf(dO, b, head, strip, e);
  Matrix scores(count * span), slopes(count * span), keySquares;
  forEachChunk(seen, [&](Range chunk) {
    int64_t at = chunk.begin - seen.begin, n = chunk.size();
    Matrix keys = rowsOf(k, b, kvHead, chunk, d);
    Matrix squares = squaresOf(keys, d);
    keySquares.insert(keySquares.end(), squares.begin(), squares.end());
    keys = transposed(keys, d);
    Matrix values = transposed(rowsOf(v, b, kvHead, chunk, e), e);
    multiply({left.data(), keys.data(), &scores[at], d, n, span, count, d, n});
    multiply(
        {leftOut.data(), values.data(), &slopes[at], e, n, span, count, e, n});
  });

  /// Keys of row i of the strip, from the first that the strip sees.
  auto keysIn = [&](int64_t i, Range chunk) {
    Range mine = keysOf(strip.begin + i, chunk);
    return Range{mine.begin - chunk.begin, mine.end - chunk.begin};
  };
  int64_t query = (b * p.heads + head) * p.queries + strip.begin;
  Row *row = &rows[(line * group + member) * p.queries + strip.begin];
  for (int64_t i = 0; i < count; ++i) {
    const double infinity = std::numeric_limits<double>::infinity();
    double *s = scores.data() + i * span, *slope = slopes.data() + i * span;
    Range mine = keysIn(i, seen);
    double max = -infinity, total = 0, sum = 0;
    for (int64_t j = mine.begin; j < mine.end; ++j)
      max = std::max(max, s[j]);
    for (int64_t j = mine.begin; j < mine.end; ++j)
      total += s[j] = std::exp(s[j] - max);
    for (int64_t j = mine.begin; j < mine.end; ++j)
      sum += (s[j] /= total) * slope[j];
    std::fill(s, s + mine.begin, 0.0);
    std::fill(s + mine.end, s + span, 0.0);
    row[i] = {max + std::log(total), sum - (dlse ? dlse[query + i] : 0)};
  }

  Matrix outputs(count * e);
  forEachChunk(seen, [&](Range chunk) {
    Matrix values = rowsOf(v, b, kvHead, chunk, e);
    multiplySeen({&scores[chunk.begin - seen.begin], values.data(),
                  outputs.data(), span, e, e, count, chunk.size(), e},
                 [&](int64_t i) { return keysIn(i, chunk); });
  });
  for (int64_t i = 0; i < count; ++i) {
    Range mine = keysIn(i, seen);
    double *s = scores.data() + i * span, *slope = slopes.data() + i * span;
    weigh(row[i], mine, s, slope, keySquares.data(), &left[i * d],
          &leftOut[i * e], &outputs[i * e], dlse ? dlse[query + i] : 0);
    // dS takes the place of P.
    for (int64_t j = mine.begin; j < mine.end; ++j)
      s[j] *= slope[j] - row[i].sum;
  }

  double *dq = result.dq + ((b * p.heads + head) * p.queries + strip.begin) * d;
  std::fill_n(dq, count * d, 0.0);
  forEachChunk(seen, [&](Range chunk) {
    Matrix keys = rowsOf(k, b, kvHead, chunk, d, p.scale);
    multiplySeen({&scores[chunk.begin - seen.begin], keys.data(), dq, span, d,
                  d, count, chunk.size(), d},
                 [&](int64_t i) { return keysIn(i, chunk); });
  });
}

//===----------------------------------------------------------------------===//
// Keys: dK, dV
//===----------------------------------------------------------------------===//

void Backward::keyStrip(int64_t line, Range strip) {
  int64_t kvLine = result.kvLines[line];
  int64_t b = kvLine / p.kvHeads, kvHead = kvLine % p.kvHeads;
  Matrix keys = rowsOf(k, b, kvHead, strip, p.headDim);
  Matrix values = rowsOf(v, b, kvHead, strip, p.headDimV);
  double *dk = result.dk + (kvLine * p.keys + strip.begin) * p.headDim;
  double *dv = result.dv + (kvLine * p.keys + strip.begin) * p.headDimV;
  std::fill_n(dk, strip.size() * p.headDim, 0.0);
  std::fill_n(dv, strip.size() * p.headDimV, 0.0);
  Range all = {0, p.queries};
  Range seeing = {queriesOf(strip.begin, all).begin, 0};
  seeing.end = std::max(seeing.begin, queriesOf(strip.end - 1, all).end);
  for (int64_t member = 0; member < group; ++member)
    forEachChunk(seeing, [&](Range chunk) {
      addQueries(line, member, strip, chunk, keys, values, dk, dv);
    });
}

/// What some queries add to dK and dV of a strip of keys.
void Backward::addQueries(int64_t line, int64_t member, Range strip,
                          Range chunk, const Matrix &keys, const Matrix &values,
                          double *dk, double *dv) {
  int64_t b = result.kvLines[line] / p.kvHeads;
  int64_t head = result.kvLines[line] % p.kvHeads * group + member;
  int64_t d = p.headDim, e = p.headDimV;
  int64_t count = strip.size(), n = chunk.size();
  Matrix queries = rowsOf(q, b, head, chunk, d, p.scale);
  Matrix outputs = rowsOf(dO, b, head, chunk, e);
  Matrix queriesT = transposed(queries, d), outputsT = transposed(outputs, e);
  Matrix weights(count * n), slopes(count * n);
  multiply(
      {keys.data(), queriesT.data(), weights.data(), d, n, n, count, d, n});
  multiply(
      {values.data(), outputsT.data(), slopes.data(), e, n, n, count, e, n});
  auto seen = [&](int64_t j) {
    Range mine = queriesOf(strip.begin + j, chunk);
    return Range{mine.begin - chunk.begin, mine.end - chunk.begin};
  };
  const Row *row = &rows[(line * group + member) * p.queries + chunk.begin];
  for (int64_t j = 0; j < count; ++j) {
    Range mine = seen(j);
    for (int64_t i = 0; i < n; ++i) {
      double &weight = weights[j * n + i], &slope = slopes[j * n + i];
      bool isSeen = i >= mine.begin && i < mine.end;
      weight = isSeen ? std::exp(weight - row[i].lse) : 0;
      slope = isSeen ? weight * (slope - row[i].sum) : 0;
    }
  }
  multiplySeen({weights.data(), outputs.data(), dv, n, e, e, count, n, e},
               seen);
  multiplySeen({slopes.data(), queries.data(), dk, n, d, d, count, n, d}, seen);
}

GradientSizes attn::oracle::gradients(const Problem &problem, const Array &q,
                                      const Array &k, const Array &v,
                                      const Array &dO, const float *dlse,
                                      const Gradients &result,
                                      unsigned threads) {
  return Backward(problem, q, k, v, dO, dlse, result).run(threads);
}
