//===- Gradients.cpp - The oracle's gradients, and what they need ---------===//

#include "Comparer.h"
#include "LongSums.h"

#include <algorithm>
#include <cmath>

using namespace attn;
using namespace attn::run;

/// Key heads, over all batch entries, that are compared with all that reads
/// them: all, or evenly spaced ones when there are more than `budget`
/// multiply-adds to do; a key's gradient needs every query.
static std::vector<int64_t> chooseKeyHeads(const Problem &problem,
                                           double budget) {
  int64_t heads = problem.batch * problem.kvHeads;
  if (budget <= 0 || heads == 0)
    return {};
  // O and LSE, then what the oracle does.
  double perHead = double(problem.heads) / problem.kvHeads * problem.queries *
                   problem.keys *
                   (5.0 * problem.headDim + 4.0 * problem.headDimV);
  double affordable =
      std::max(1.0, std::floor(budget / std::max(perHead, 1.0)));
  int64_t count = std::min<double>(heads, affordable);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i)
    chosen.push_back(count == 1 ? 0 : i * (heads - 1) / (count - 1));
  return chosen;
}

//===----------------------------------------------------------------------===//
// O and LSE as inputs
//===----------------------------------------------------------------------===//

/// Rows of one head of an array.
static void setHead(HostBytes &array, int64_t batch, int64_t head,
                    const double *values) {
  llvm::SmallVector<int64_t> sizes = array.shape.sizes;
  forEachIndex(llvm::ArrayRef(sizes).drop_front(2),
               [&](llvm::ArrayRef<int64_t> rest) {
                 llvm::SmallVector<int64_t> place = {batch, head};
                 llvm::append_range(place, rest);
                 array.set(place, *values++);
               });
}

void run::fillForwardResults(const Function &function,
                             const Attention &attention,
                             std::vector<HostBytes> &arrays, double budget,
                             unsigned threads, int64_t sequence) {
  auto find = [&](const char *role) -> HostBytes * {
    auto found = attention.inputs.find(role);
    return found == attention.inputs.end() ? nullptr : &arrays[found->second];
  };
  HostBytes *o = find("o"), *lse = find("lse"), *low = find("lse_low");
  if (!o && !lse && !low)
    return;
  const Problem &p = attention.problem;
  AttentionOracle oracle(function, attention, arrays, threads, sequence);
  ScoreSizes scores(attention, oracle.q, oracle.k);
  // Where nothing is compared: weights that do not overflow.
  if (o)
    forEachIndex(o->shape.sizes,
                 [&](llvm::ArrayRef<int64_t> place) { o->set(place, 0); });
  if (lse)
    forEachIndex(lse->shape.sizes, [&](llvm::ArrayRef<int64_t> place) {
      lse->set(place, scores.at(place[0], place[1], place[2]));
    });
  if (low)
    forEachIndex(low->shape.sizes,
                 [&](llvm::ArrayRef<int64_t> place) { low->set(place, 0); });
  int64_t group = p.heads / p.kvHeads;
  std::vector<double> outputs(group * p.queries * p.headDimV),
      sums(group * p.queries);
  for (int64_t line : chooseKeyHeads(p, oracle.affordable(budget))) {
    oracle.keyHead(line, outputs.data(), sums.data());
    for (int64_t member = 0; member < group; ++member) {
      int64_t batch = line / p.kvHeads;
      int64_t head = line % p.kvHeads * group + member;
      if (o)
        setHead(*o, batch, head,
                outputs.data() + member * p.queries * p.headDimV);
      double *own = sums.data() + member * p.queries; // or there are none
      if (lse)
        setHead(*lse, batch, head, own);
      if (!low)
        continue;
      for (int64_t row = 0; row < p.queries; ++row)
        own[row] = std::isfinite(own[row]) ? own[row] - float(own[row]) : 0;
      setHead(*low, batch, head, own);
    }
  }
}

void run::fillForwardResults(const Function &function,
                             std::vector<HostBytes> &arrays, double budget,
                             unsigned threads) {
  for (const Attention &attention : function.attentions)
    if (attention.isBackward() && attention.problem.ragged)
      fillRagged(function, attention, arrays, budget, threads);
    else if (attention.isBackward())
      fillForwardResults(function, attention, arrays, budget, threads,
                         /*sequence=*/0);
}

//===----------------------------------------------------------------------===//
// The comparison
//===----------------------------------------------------------------------===//

double run::gradientToleranceOf(const Problem &problem, double score) {
  // P is exp(S - LSE), of which S and LSE are rounded to f32.
  double weights = score * 0x1p-24;
  switch (problem.dtype) {
  case DataType::bf16:
    return 6e-3 + weights + lostInSums(problem);
  case DataType::f16:
    return 9e-4 + weights + lostInSums(problem);
  case DataType::f32:
    if (problem.precision == Precision::tf32x3)
      return 2e-5 + weights;
    return 3e-3 + score / std::sqrt(double(problem.headDim)) * 0x1p-11;
  case DataType::f8e4m3:
    return 0; // has no gradients
  }
  return 0;
}

std::vector<Comparison>
run::compareGradients(const Function &function, size_t number,
                      const std::vector<HostBytes> &arrays,
                      const std::vector<size_t> &outputs, Inputs inputs,
                      double budget, unsigned threads) {
  return compareGradients(function, function.attentions[number], number, arrays,
                          outputs, inputs, budget, threads, /*sequence=*/0);
}

std::vector<Comparison>
run::compareGradients(const Function &function, const Attention &attention,
                      size_t number, const std::vector<HostBytes> &arrays,
                      const std::vector<size_t> &outputs, Inputs inputs,
                      double budget, unsigned threads, int64_t sequence) {
  const Problem &p = attention.problem;
  Floats dO(arrays[attention.input("do")]);
  std::vector<float> dlse;
  if (p.dlse)
    dlse = Floats(arrays[attention.input("dlse")]).values;
  AttentionOracle oracle(function, attention, arrays, threads, sequence);
  ScoreSizes scores(attention, oracle.q, oracle.k);
  std::vector<Comparer> comparers =
      comparersOf(function, number, arrays, outputs, oracle, scores, inputs);

  std::vector<int64_t> heads = chooseKeyHeads(p, oracle.affordable(budget));
  std::vector<double> dq(oracle.q.values.size()), dk(oracle.k.values.size()),
      dv(oracle.v.values.size());
  oracle::GradientSizes norms = oracle.gradients(
      dO, p.dlse ? dlse.data() : nullptr,
      {dq.data(), dk.data(), dv.data(), heads.data(), int64_t(heads.size())});
  double tolerance = gradientToleranceOf(p, scores.largest());
  std::vector<Comparison> comparisons;
  for (Comparer &comparer : comparers) {
    bool isQuery = comparer.role() == "dq";
    bool isKey = comparer.role() == "dk";
    const std::vector<double> &reference = isQuery ? dq : isKey ? dk : dv;
    llvm::SmallVector<int64_t> sizes = attention.sizesOf(comparer.role());
    int64_t members = isQuery ? p.heads / p.kvHeads : 1;
    for (int64_t line : heads)
      for (int64_t member = 0; member < members; ++member) {
        int64_t head = line % p.kvHeads * members + member;
        const double *values =
            reference.data() + (line * members + member) * sizes[2] * sizes[3];
        forEachIndex(llvm::ArrayRef(sizes).drop_front(2),
                     [&](llvm::ArrayRef<int64_t> place) {
                       comparer.add(
                           {line / p.kvHeads, head, place[0], place[1]},
                           place[0], *values++);
                     });
      }
    comparisons.push_back(comparer.finish(heads.size() * members * sizes[2],
                                          sizes[0] * sizes[1] * sizes[2],
                                          tolerance,
                                          isQuery ? norms.dq
                                          : isKey ? norms.dk
                                                  : norms.dv));
  }
  return comparisons;
}
