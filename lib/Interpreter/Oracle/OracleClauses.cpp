//===- OracleClauses.cpp - Attention with any mask and score, in fp64 -----===//

#include "attn/Interpreter/OracleClauses.h"

#include "Oracle/OracleProducts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace attn::oracle;

static constexpr double kNothing = -std::numeric_limits<double>::infinity();

static int64_t blocksFor(int64_t rows, int64_t size) {
  return (rows + size - 1) / size;
}

static double at(const Array &array, int64_t b, int64_t h, int64_t i,
                 int64_t c) {
  const std::array<int64_t, 4> &s = array.strides;
  return array.data[b * s[0] + h * s[1] + i * s[2] + c * s[3]];
}

/// Marks what a list has of one row of blocks.
static void mark(const BlockLists::List &list, int64_t b, int64_t h,
                 int64_t row, int64_t rows, int64_t columns, Visit visit,
                 Visit *of) {
  if (!list.counts)
    return;
  int64_t line =
      ((list.batch == 1 ? 0 : b) * list.heads + (list.heads == 1 ? 0 : h)) *
          rows +
      row;
  for (int32_t n = 0; n < list.counts[line] && n < list.columns; ++n) {
    int32_t column = list.indices[line * list.columns + n];
    if (column >= 0 && column < columns)
      of[column] = visit;
  }
}

std::vector<Visit> attn::oracle::visitsOf(const Problem &p,
                                          const BlockLists &lists) {
  int64_t rows = blocksFor(p.queries, lists.queriesOfBlock),
          columns = blocksFor(p.keys, lists.keysOfBlock);
  std::vector<Visit> visits(p.batch * p.heads * rows * columns, Visit::hidden);
  Visit *next = visits.data();
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t row = 0; row < rows; ++row, next += columns) {
        mark(lists.partial, b, h, row, rows, columns, Visit::partial, next);
        mark(lists.full, b, h, row, rows, columns, Visit::full, next);
      }
  return visits;
}

Seen::Seen(const Problem &problem, const Clauses &clauses)
    : p(problem), clauses(clauses) {
  if (clauses.blocks)
    visits = visitsOf(p, *clauses.blocks);
}

int64_t UsedKeys::of(int64_t batch, int64_t keys) const {
  return std::clamp<int64_t>(counts[size_t(batch)], 0, keys);
}

bool Seen::operator()(const Pair &pair) const {
  int64_t used = clauses.used ? clauses.used->of(pair.batch, p.keys) : p.keys;
  if (pair.key >= used)
    return false;
  bool moves = clauses.used && clauses.used->movesBand;
  int64_t corner = pair.query + (moves ? used - p.keys : 0);
  Visit visit = visitOf(pair);
  if (visit != Visit::partial)
    return visit == Visit::full;
  bool isInBand = pair.key < p.prefix ||
                  (pair.key >= corner + p.first && pair.key <= corner + p.last);
  return isInBand && (!clauses.sees || clauses.sees(pair));
}

Visit Seen::visitOf(const Pair &pair) const {
  if (!clauses.blocks)
    return Visit::partial;
  const BlockLists &lists = *clauses.blocks;
  int64_t rows = blocksFor(p.queries, lists.queriesOfBlock),
          columns = blocksFor(p.keys, lists.keysOfBlock);
  int64_t line = (pair.batch * p.heads + pair.head) * rows +
                 pair.query / lists.queriesOfBlock;
  return visits[line * columns + pair.key / lists.keysOfBlock];
}

namespace {

/// One row of a problem's pairs at a time.
class SeenRows {
public:
  SeenRows(const Problem &problem, const Clauses &clauses, const Array &q,
           const Array &k)
      : p(problem), clauses(clauses), q(q), k(k), isSeen(problem, clauses),
        group(problem.heads / problem.kvHeads) {}

  /// Calls `body` with the batch entry, head and query of each row.
  template <typename Body> void forEach(Body body) const {
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t h = 0; h < p.heads; ++h)
        for (int64_t i = 0; i < p.queries; ++i)
          body(b, h, i);
  }

  /// The keys that a row sees, their products and scores, and the row's LSE.
  struct Row {
    std::vector<int64_t> keys;
    std::vector<double> products, scores;
    double lse = kNothing;

    double weight(size_t n) const {
      return lse == kNothing ? 0 : std::exp(scores[n] - lse);
    }
  };

  Row row(int64_t b, int64_t h, int64_t i) const {
    Row row;
    double largest = clauses.sinks ? clauses.sinks[h] : kNothing;
    for (int64_t j = 0; j < p.keys; ++j) {
      Pair pair = {b, h, i, j};
      if (!isSeen(pair))
        continue;
      double z = product(pair);
      double s = clauses.score ? clauses.score(z, pair) : z;
      row.keys.push_back(j);
      row.products.push_back(z);
      row.scores.push_back(s);
      largest = std::max(largest, s);
    }
    double sum = 0, reference = largest == kNothing ? 0 : largest;
    if (clauses.sinks)
      sum += std::exp(clauses.sinks[h] - reference);
    for (double s : row.scores)
      sum += std::exp(s - reference);
    row.lse = sum == 0 ? kNothing : reference + std::log(sum);
    return row;
  }

  int64_t kvHead(int64_t head) const { return head / group; }

private:
  /// A scaled product, or what it counts as where f32 has no place for it.
  double product(const Pair &pair) const {
    double sum = 0;
    for (int64_t c = 0; c < p.headDim; ++c)
      sum += at(q, pair.batch, pair.head, pair.query, c) *
             at(k, pair.batch, kvHead(pair.head), pair.key, c);
    double scale = p.scale;
    if (clauses.scaleOfProducts)
      scale *= clauses.scaleOfProducts(pair.batch, kvHead(pair.head));
    double most = std::numeric_limits<float>::max() * std::abs(scale);
    double scaled = scale * sum;
    if (scaled > most)
      return most;
    return scaled < -most ? kNothing : scaled;
  }

  const Problem &p;
  const Clauses &clauses;
  const Array &q, &k;
  Seen isSeen;
  int64_t group;
};

} // namespace

double attn::oracle::attention(const Problem &p, const Clauses &clauses,
                               const Array &q, const Array &k, const Array &v,
                               double *o, double *lse, unsigned threads) {
  SeenRows rows(p, clauses, q, k);
  std::vector<double> squares(p.batch * p.heads * p.queries);
  forEachTask(squares.size(), threads, [&](int64_t number) {
    int64_t line = number / p.queries, b = line / p.heads, h = line % p.heads;
    SeenRows::Row row = rows.row(b, h, number % p.queries);
    double *target = o + number * p.headDimV, own = 0;
    std::fill_n(target, p.headDimV, 0.0);
    double ofValues =
        clauses.scaleOfValues ? clauses.scaleOfValues(b, rows.kvHead(h)) : 1;
    for (size_t n = 0; n < row.keys.size(); ++n) {
      double weight = row.weight(n);
      for (int64_t c = 0; c < p.headDimV; ++c) {
        double term =
            ofValues * weight * at(v, b, rows.kvHead(h), row.keys[n], c);
        target[c] += term;
        own += term * term;
      }
    }
    if (lse)
      lse[number] = row.lse;
    squares[number] = std::isfinite(own) ? own : 0;
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

namespace {

/// The gradients of one row go where they belong.
class Backward {
public:
  Backward(const Problem &problem, const Clauses &clauses, const Array &q,
           const Array &k, const Array &v, const Array &dO, const float *dlse,
           double *dq, double *dk, double *dv, double *dsinks)
      : p(problem), clauses(clauses), rows(problem, clauses, q, k), q(q), k(k),
        v(v), dO(dO), dlse(dlse), dq(dq), dk(dk), dv(dv), dsinks(dsinks) {}

  GradientSizes run() {
    std::fill_n(dq, p.batch * p.heads * p.queries * p.headDim, 0.0);
    std::fill_n(dk, p.batch * p.kvHeads * p.keys * p.headDim, 0.0);
    std::fill_n(dv, p.batch * p.kvHeads * p.keys * p.headDimV, 0.0);
    if (dsinks)
      std::fill_n(dsinks, p.heads, 0.0);
    rows.forEach([&](int64_t b, int64_t h, int64_t i) { add(b, h, i); });
    return {std::sqrt(squares.dq), std::sqrt(squares.dk),
            std::sqrt(squares.dv)};
  }

private:
  void add(int64_t b, int64_t h, int64_t i) {
    SeenRows::Row row = rows.row(b, h, i);
    if (row.lse == kNothing)
      return;
    int64_t line = (b * p.heads + h) * p.queries + i;
    std::vector<double> slopes(row.keys.size());
    double sum = 0, ofRow = ofOutput(row, b, h, i);
    for (size_t n = 0; n < row.keys.size(); ++n) {
      for (int64_t c = 0; c < p.headDimV; ++c)
        slopes[n] +=
            at(dO, b, h, i, c) * at(v, b, rows.kvHead(h), row.keys[n], c);
      sum += row.weight(n) * slopes[n];
    }
    double ofLse = dlse ? dlse[line] : 0;
    if (dsinks)
      dsinks[h] += std::exp(clauses.sinks[h] - row.lse) * (ofLse - sum);
    for (size_t n = 0; n < row.keys.size(); ++n) {
      Pair pair = {b, h, i, row.keys[n]};
      double weight = row.weight(n);
      double ofScore = weight * (slopes[n] - sum + ofLse);
      double z = row.products[n];
      PairSize sizes = {weight * slopes[n],
                        weight * std::sqrt(ofRow + ofLse * ofLse)};
      double ofProduct =
          clauses.pull ? clauses.pull(z, pair, ofScore, sizes) : ofScore;
      double share = ofScore == 0 ? 0 : ofProduct / ofScore;
      if (clauses.pull)
        share = std::hypot(share, kLeastSlope);
      double size = share * std::hypot(sizes.own, sizes.ofRow);
      addPair(pair, weight, p.scale * ofProduct, p.scale * size);
    }
  }

  /// The square of the size of D, as kernels sum it up: of dO O.
  double ofOutput(const SeenRows::Row &row, int64_t b, int64_t h, int64_t i) {
    double square = 0;
    for (int64_t c = 0; c < p.headDimV; ++c) {
      double output = 0;
      for (size_t n = 0; n < row.keys.size(); ++n)
        output += row.weight(n) * at(v, b, rows.kvHead(h), row.keys[n], c);
      double term = at(dO, b, h, i, c) * output;
      square += term * term;
    }
    return square;
  }

  void addPair(const Pair &pair, double weight, double slope, double size) {
    int64_t kvHead = rows.kvHead(pair.head);
    int64_t query = (pair.batch * p.heads + pair.head) * p.queries + pair.query;
    int64_t key = (pair.batch * p.kvHeads + kvHead) * p.keys + pair.key;
    double ofQuery = 0, ofKey = 0, ofOutput = 0;
    for (int64_t c = 0; c < p.headDim; ++c) {
      double x = at(q, pair.batch, pair.head, pair.query, c),
             y = at(k, pair.batch, kvHead, pair.key, c);
      dq[query * p.headDim + c] += slope * y;
      dk[key * p.headDim + c] += slope * x;
      ofQuery += x * x;
      ofKey += y * y;
    }
    for (int64_t c = 0; c < p.headDimV; ++c) {
      double gradient = at(dO, pair.batch, pair.head, pair.query, c);
      dv[key * p.headDimV + c] += weight * gradient;
      ofOutput += gradient * gradient;
    }
    addIfFinite(squares.dq, size * size * ofKey);
    addIfFinite(squares.dk, size * size * ofQuery);
    addIfFinite(squares.dv, weight * weight * ofOutput);
  }

  static void addIfFinite(double &sum, double square) {
    if (std::isfinite(square))
      sum += square;
  }

  const Problem &p;
  const Clauses &clauses;
  SeenRows rows;
  const Array &q, &k, &v, &dO;
  const float *dlse;
  double *dq, *dk, *dv, *dsinks;
  GradientSizes squares = {0, 0, 0};
};

} // namespace

GradientSizes attn::oracle::gradients(const Problem &problem,
                                      const Clauses &clauses, const Array &q,
                                      const Array &k, const Array &v,
                                      const Array &dO, const float *dlse,
                                      double *dq, double *dk, double *dv,
                                      double *dsinks) {
  return Backward(problem, clauses, q, k, v, dO, dlse, dq, dk, dv, dsinks)
      .run();
}
