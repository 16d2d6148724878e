//===- AttentionOracle.cpp - The fp64 reference of one attention ----------===//

#include "AttentionOracle.h"

#include "Listings.h"
#include "Pages.h"

#include <cmath>

using namespace attn;
using namespace attn::run;

Floats::Floats(const HostBytes &array) {
  values.reserve(array.shape.count());
  forEachIndex(array.shape.sizes, [&](llvm::ArrayRef<int64_t> index) {
    values.push_back(static_cast<float>(array.get(index)));
  });
  view = {values.data(), {}};
  int64_t stride = 1;
  for (size_t dim = array.shape.sizes.size(); dim-- > 0;) {
    view.strides[dim] = stride;
    stride *= array.shape.sizes[dim];
  }
}

/// K or V as [batch, heads, keys, columns].
static Floats ofKeys(const Attention &attention,
                     const std::vector<HostBytes> &arrays,
                     llvm::StringRef role) {
  const Problem &p = attention.problem;
  if (!p.place.isPaged())
    return Floats(arrays[attention.input(role)]);
  return Floats(keysInOrder(attention, arrays, role, 0, p.batch, p.keys));
}

AttentionOracle::AttentionOracle(const Function &function,
                                 const Attention &attention,
                                 const std::vector<HostBytes> &arrays,
                                 unsigned threads, int64_t sequence)
    : attention(attention), q(arrays[attention.input("q")]),
      k(ofKeys(attention, arrays, "k")), v(ofKeys(attention, arrays, "v")),
      threads(threads) {
  AttentionOpInterface op = attention.op;
  if (!op.hasClauses())
    return;
  std::vector<CapturedArray> captured;
  for (const auto &[name, source] : attention.clauseInputs)
    captured.push_back(capturedArray(function, source, arrays));
  clauses = std::make_unique<ClauseReference>(op, std::move(captured),
                                              attention.problem.queries,
                                              attention.problem.keys, sequence);
  seen = std::make_unique<oracle::Seen>(whole(), clauses->clauses());
}

double run::affordableByPairs(double budget) {
  // A pair's functions are asked, and no product is in wide instructions.
  constexpr double slower = 16;
  return budget / slower;
}

double AttentionOracle::affordable(double budget) const {
  return clauses ? affordableByPairs(budget) : budget;
}

oracle::Problem run::oracleProblem(const Attention &attention) {
  const Problem &p = attention.problem;
  Visible band = visible(p);
  return {p.batch,   p.heads,         p.kvHeads,       p.queries,
          p.keys,    p.headDim,       p.headDimV,      band.first,
          band.last, attention.scale, band.openColumns};
}

AttentionOracle::Part AttentionOracle::partOfKeyHead(int64_t line) const {
  Part part = {{}, whole()};
  oracle::Problem &p = part.problem;
  int64_t group = p.heads / p.kvHeads;
  part.first = {line / p.kvHeads, line % p.kvHeads * group, 0, 0};
  p.batch = p.kvHeads = 1;
  p.heads = group;
  return part;
}

oracle::Clauses AttentionOracle::clausesOf(const Part &part) const {
  auto inWhole = [first = part.first](oracle::Pair pair) {
    return oracle::Pair{pair.batch + first.batch, pair.head + first.head,
                        pair.query + first.query, pair.key + first.key};
  };
  const oracle::Clauses &all = clauses->clauses();
  oracle::Clauses own;
  own.sees = [this, inWhole](const oracle::Pair &pair) {
    return (*seen)(inWhole(pair));
  };
  if (all.score)
    own.score = [&all, inWhole](double z, const oracle::Pair &pair) {
      return all.score(z, inWhole(pair));
    };
  if (all.pull)
    own.pull = [&all, inWhole](double z, const oracle::Pair &pair,
                               double gradient, const oracle::PairSize &size) {
      return all.pull(z, inWhole(pair), gradient, size);
    };
  if (all.sinks)
    own.sinks = all.sinks + part.first.head;
  int64_t ofBatch = part.first.batch,
          ofHead = part.first.head /
                   (attention.problem.heads / attention.problem.kvHeads);
  auto within = [ofBatch, ofHead](const auto &scale) {
    return [&scale, ofBatch, ofHead](int64_t batch, int64_t keyHead) {
      return scale(batch + ofBatch, keyHead + ofHead);
    };
  };
  own.scaleOfProducts = within(all.scaleOfProducts);
  own.scaleOfValues = within(all.scaleOfValues);
  return own;
}

/// From a batch entry, head and row of that array on.
static oracle::Array from(oracle::Array array, int64_t batch, int64_t head,
                          int64_t row) {
  array.data += batch * array.strides[0] + head * array.strides[1] +
                row * array.strides[2];
  return array;
}

/// All pairs of a part, for `sees` to say which are seen.
static oracle::Problem withoutBand(oracle::Problem problem) {
  problem.first = -problem.queries;
  problem.last = problem.keys;
  problem.prefix = 0;
  return problem;
}

double AttentionOracle::run(const Part &part, double *o, double *lse) const {
  const oracle::Pair &at = part.first;
  int64_t keyHead =
      at.head / (attention.problem.heads / attention.problem.kvHeads);
  oracle::Array ownQ = from(q.view, at.batch, at.head, at.query),
                ownK = from(k.view, at.batch, keyHead, 0),
                ownV = from(v.view, at.batch, keyHead, 0);
  if (!clauses)
    return oracle::attention(part.problem, ownQ, ownK, ownV, o, lse, threads);
  return oracle::attention(withoutBand(part.problem), clausesOf(part), ownQ,
                           ownK, ownV, o, lse, threads);
}

double AttentionOracle::rows(RowRun rows, double *o, double *lse) const {
  Part part = {{0, 0, rows.begin, 0}, whole()};
  // Row i of the run is row begin + i of the problem: the mask moves.
  Visible band = visible(attention.problem).from(rows.begin, 0);
  part.problem.queries = rows.end - rows.begin;
  part.problem.first = band.first;
  part.problem.last = band.last;
  part.problem.prefix = band.openColumns;
  return run(part, o, lse);
}

double AttentionOracle::keyHead(int64_t line, double *o, double *lse) const {
  return run(partOfKeyHead(line), o, lse);
}

oracle::GradientSizes
AttentionOracle::gradients(const Floats &dO, const float *dlse,
                           const oracle::Gradients &result) const {
  if (!clauses)
    return oracle::gradients(whole(), q.view, k.view, v.view, dO.view, dlse,
                             result, threads);
  clauses->clearGradients();
  double dq = 0, dk = 0, dv = 0;
  for (int64_t n = 0; n < result.count; ++n) {
    int64_t line = result.kvLines[n];
    Part part = partOfKeyHead(line);
    const oracle::Problem &p = part.problem;
    int64_t batch = part.first.batch, head = part.first.head,
            keyHead = head / p.heads;
    oracle::GradientSizes sizes = oracle::gradients(
        withoutBand(p), clausesOf(part), from(q.view, batch, head, 0),
        from(k.view, batch, keyHead, 0), from(v.view, batch, keyHead, 0),
        from(dO.view, batch, head, 0),
        dlse ? dlse + line * p.heads * p.queries : nullptr,
        result.dq + line * p.heads * p.queries * p.headDim,
        result.dk + line * p.keys * p.headDim,
        result.dv + line * p.keys * p.headDimV, /*dsinks=*/nullptr);
    dq += sizes.dq * sizes.dq;
    dk += sizes.dk * sizes.dk;
    dv += sizes.dv * sizes.dv;
  }
  return {std::sqrt(dq), std::sqrt(dk), std::sqrt(dv)};
}

bool AttentionOracle::takesPart(bool isKey, int64_t batch, int64_t head,
                                int64_t row) const {
  const Problem &p = attention.problem;
  if (!clauses) {
    Visible band = visible(p);
    Span others = isKey
                      ? band.transposed().seenBySome({row, row + 1}, p.queries)
                      : band.seenBySome({row, row + 1}, p.keys);
    return !others.isEmpty();
  }
  if (!isKey) {
    for (int64_t key = 0; key < p.keys; ++key)
      if ((*seen)({batch, head, row, key}))
        return true;
    return false;
  }
  int64_t group = p.heads / p.kvHeads;
  for (int64_t member = 0; member < group; ++member)
    for (int64_t query = 0; query < p.queries; ++query)
      if ((*seen)({batch, head * group + member, query, row}))
        return true;
  return false;
}
