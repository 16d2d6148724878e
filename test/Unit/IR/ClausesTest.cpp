//===- ClausesTest.cpp - Attention with regions, blocks and sinks ---------===//
//
// The oracle by the regions of an op: gradients are derivatives of a loss that
// is linear in O and LSE, and clauses that change nothing change nothing.
//
//===----------------------------------------------------------------------===//

#include "../Interpreter/Harness/Normals.h"
#include "../Seed.h"
#include "ParsedOp.h"
#include "attn/IR/RegionEvaluator.h"
#include "attn/Interpreter/OracleClauses.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace attn;

static constexpr int64_t kFar = 1 << 30;

namespace {

/// A problem with row-major arrays, and the clauses of an op.
struct Case {
  oracle::Problem p = {/*batch=*/2,    /*heads=*/4, /*kvHeads=*/2,
                       /*queries=*/5,  /*keys=*/6,  /*headDim=*/3,
                       /*headDimV=*/2, -kFar,       kFar,
                       /*scale=*/0.7};
  std::vector<float> q, k, v, dO, dlse;
  std::vector<CapturedArray> captures;
  std::vector<double> sinks;
  /// Of captures, as the oracle pulls them.
  std::vector<std::vector<double>> dCaptures;
  std::unique_ptr<ParsedOp> op;
  std::unique_ptr<RegionEvaluator> sees, score;
  oracle::Clauses clauses;

  explicit Case(const std::string &text,
                const std::vector<std::string> &types = {})
      : q(p.batch * p.heads * p.queries * p.headDim),
        k(p.batch * p.kvHeads * p.keys * p.headDim),
        v(p.batch * p.kvHeads * p.keys * p.headDimV),
        dO(p.batch * p.heads * p.queries * p.headDimV),
        dlse(p.batch * p.heads * p.queries) {
    Normals normal(7);
    for (std::vector<float> *array : {&q, &k, &v, &dO, &dlse})
      for (float &value : *array)
        value = std::round(normal() * 64) / 64;
    if (!text.empty())
      read(text, types);
  }

  void read(const std::string &text, const std::vector<std::string> &types) {
    op = std::make_unique<ParsedOp>(forwardText(text, types));
    if (mlir::Region *region = (*op)->sees()) {
      sees = std::make_unique<RegionEvaluator>(*region);
      clauses.sees = [this](const oracle::Pair &pair) {
        return sees->sees(rowsOf(pair), captures);
      };
    }
    mlir::Region *region = (*op)->score();
    if (!region)
      return;
    score = std::make_unique<RegionEvaluator>(*region);
    clauses.score = [this](double z, const oracle::Pair &pair) {
      return score->score(z, rowsOf(pair), captures);
    };
    clauses.pull = [this](double z, const oracle::Pair &pair, double gradient) {
      RegionEvaluator::Slope slope = score->slope(z, rowsOf(pair), captures);
      for (const RegionEvaluator::OfElement &of : slope.ofElements)
        dCaptures[of.capture][of.offset] += gradient * of.derivative;
      return gradient * slope.ofScore;
    };
  }

  PairOfRows rowsOf(const oracle::Pair &pair) const {
    return {pair.batch, pair.head, pair.query, pair.key, p.queries, p.keys};
  }

  void capture(std::vector<int64_t> sizes, std::vector<double> reals) {
    captures.push_back({std::move(sizes), std::move(reals), {}});
  }

  static oracle::Array array(const std::vector<float> &data, int64_t heads,
                             int64_t rows, int64_t columns) {
    return {data.data(), {heads * rows * columns, rows * columns, columns, 1}};
  }
  oracle::Array qArray() const {
    return array(q, p.heads, p.queries, p.headDim);
  }
  oracle::Array kArray() const {
    return array(k, p.kvHeads, p.keys, p.headDim);
  }
  oracle::Array vArray() const {
    return array(v, p.kvHeads, p.keys, p.headDimV);
  }

  struct Outputs {
    std::vector<double> o, lse;
  };
  Outputs run() {
    clauses.sinks = sinks.empty() ? nullptr : sinks.data();
    Outputs outputs = {std::vector<double>(dO.size()),
                       std::vector<double>(dlse.size())};
    oracle::attention(p, clauses, qArray(), kArray(), vArray(),
                      outputs.o.data(), outputs.lse.data());
    return outputs;
  }

  /// The sum of dO * O and of dLSE * LSE.
  double loss() {
    Outputs outputs = run();
    double sum = 0;
    for (size_t i = 0; i < dO.size(); ++i)
      sum += dO[i] * outputs.o[i];
    for (size_t i = 0; i < dlse.size(); ++i)
      if (std::isfinite(outputs.lse[i]))
        sum += dlse[i] * outputs.lse[i];
    return sum;
  }

  struct Gradients {
    std::vector<double> dq, dk, dv, dsinks;
  };
  Gradients gradients() {
    clauses.sinks = sinks.empty() ? nullptr : sinks.data();
    dCaptures.clear();
    for (const CapturedArray &capture : captures)
      dCaptures.emplace_back(capture.reals.size());
    Gradients g = {std::vector<double>(q.size()), std::vector<double>(k.size()),
                   std::vector<double>(v.size()),
                   std::vector<double>(sinks.size())};
    oracle::gradients(p, clauses, qArray(), kArray(), vArray(),
                      array(dO, p.heads, p.queries, p.headDimV), dlse.data(),
                      g.dq.data(), g.dk.data(), g.dv.data(),
                      sinks.empty() ? nullptr : g.dsinks.data());
    return g;
  }

  /// The derivative of the loss in a number, by a central difference.
  template <typename Number> double difference(Number &number) {
    constexpr Number step = Number(0x1p-10);
    Number at = number;
    number = at + step;
    double above = loss();
    number = at - step;
    double below = loss();
    number = at;
    return (above - below) / (2 * double(step));
  }

  template <typename Number>
  void expectDerivatives(std::vector<Number> &array,
                         const std::vector<double> &gradient) {
    ASSERT_EQ(array.size(), gradient.size());
    for (size_t i = 0; i < array.size(); ++i)
      EXPECT_NEAR(gradient[i], difference(array[i]), 2e-5) << "element " << i;
  }

  void expectGradients() {
    Gradients g = gradients();
    expectDerivatives(q, g.dq);
    expectDerivatives(k, g.dk);
    expectDerivatives(v, g.dv);
    expectDerivatives(sinks, g.dsinks);
    std::vector<std::vector<double>> pulled = dCaptures;
    for (size_t i = 0; i < captures.size(); ++i)
      expectDerivatives(captures[i].reals, pulled[i]);
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

TEST(Clauses, GradientsOfSoftcap) {
  Case c("softcap(1.5)");
  c.expectGradients();
}

TEST(Clauses, GradientsOfSlopesBiasAndSinks) {
  Case c("alibi(%x0 : tensor<4xf32>) bias(%x1 : tensor<1x4x5x6xf32>)",
         {"tensor<4xf32>", "tensor<1x4x5x6xf32>"});
  c.capture({4}, {0.1, -0.2, 0.3, 0.05});
  std::vector<double> bias(4 * 5 * 6);
  Normals normal(3);
  for (double &value : bias)
    value = normal();
  c.capture({1, 4, 5, 6}, bias);
  c.sinks = {0.3, -1, 2, 0};
  c.expectGradients();
}

/// A temperature that is read twice, under a mask that hides rows.
TEST(Clauses, GradientsUnderAMask) {
  Case c("captures(%x0 : tensor<2xf32>) "
         "sees (%b, %h, %i, %j, %nq, %nk, %x) {\n"
         "  %c = arith.constant 3 : index\n"
         "  %r = arith.cmpi eq, %i, %c : index\n"
         "  %s = arith.cmpi sgt, %j, %i : index\n"
         "  %t = arith.xori %r, %s : i1\n"
         "  %u = arith.andi %t, %s : i1\n"
         "  attn.yield %u : i1\n}"
         "score (%z : f32, %b, %h, %i, %j, %nq, %nk, %x) {\n"
         "  %a = attn.read %x[%b] : tensor<2xf32>\n"
         "  %m = arith.mulf %a, %z : f32\n"
         "  %e = math.exp %a : f32\n"
         "  %n = arith.addf %m, %e : f32\n"
         "  %o = math.sin %n : f32\n"
         "  attn.yield %o : f32\n}",
         {"tensor<2xf32>"});
  c.capture({2}, {0.5, -0.25});
  c.expectGradients();
}

//===----------------------------------------------------------------------===//
// What is the same
//===----------------------------------------------------------------------===//

/// Without clauses, and with the band of causal as a region, it is the other
/// oracle's.
TEST(Clauses, AreTheOracle) {
  for (bool isRegion : {false, true}) {
    Case c(isRegion ? "sees (%b, %h, %i, %j, %nq, %nk) {\n"
                      "  %r = arith.cmpi sle, %j, %i : index\n"
                      "  attn.yield %r : i1\n}"
                    : "");
    oracle::Problem causal = c.p;
    causal.last = 0;
    if (!isRegion)
      c.p = causal;
    Case::Outputs outputs = c.run();
    Case::Gradients g = c.gradients();
    std::vector<double> o(c.dO.size()), lse(c.dlse.size()), dq(c.q.size()),
        dk(c.k.size()), dv(c.v.size());
    double size = oracle::attention(causal, c.qArray(), c.kArray(), c.vArray(),
                                    o.data(), lse.data());
    EXPECT_GT(size, 0);
    std::vector<int64_t> lines(causal.batch * causal.kvHeads);
    std::iota(lines.begin(), lines.end(), 0);
    oracle::gradients(
        causal, c.qArray(), c.kArray(), c.vArray(),
        Case::array(c.dO, c.p.heads, c.p.queries, c.p.headDimV), c.dlse.data(),
        {dq.data(), dk.data(), dv.data(), lines.data(), int64_t(lines.size())});
    auto same = [](const std::vector<double> &a, const std::vector<double> &b) {
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_NEAR(a[i], b[i], 1e-12) << i;
    };
    same(outputs.o, o);
    same(outputs.lse, lse);
    same(g.dq, dq);
    same(g.dk, dk);
    same(g.dv, dv);
  }
}

/// Rows that see nothing, with a sink and without.
TEST(Clauses, NothingSeen) {
  const char *text = "sees (%b, %h, %i, %j, %nq, %nk) {\n"
                     "  %r = arith.constant false\n  attn.yield %r : i1\n}";
  for (bool hasSink : {false, true}) {
    Case c(text);
    if (hasSink)
      c.sinks = {0.5, 1.5, -2, 0};
    Case::Outputs outputs = c.run();
    for (double o : outputs.o)
      EXPECT_EQ(o, 0);
    for (size_t line = 0; line < outputs.lse.size(); ++line) {
      double lse = outputs.lse[line];
      if (hasSink)
        EXPECT_EQ(lse, c.sinks[line / c.p.queries % c.p.heads]);
      else
        EXPECT_EQ(lse, -std::numeric_limits<double>::infinity());
    }
    for (double dq : c.gradients().dq)
      EXPECT_EQ(dq, 0);
  }
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Random lists are what they say, and full blocks do not ask the region.
TEST(Clauses, ListsOfBlocks) {
  Seed seed;
  std::mt19937 random(seed);
  Case c("sees (%b, %h, %i, %j, %nq, %nk) {\n"
         "  %r = arith.cmpi sle, %j, %i : index\n  attn.yield %r : i1\n}");
  constexpr int64_t queries = 2, keys = 2, rows = 3, columns = 3;
  // Batch entries share their lists, heads have their own.
  const int64_t lines = c.p.heads * rows;
  std::vector<int32_t> counts[2], indices[2];
  for (int list : {0, 1}) {
    counts[list].assign(lines, 0);
    indices[list].assign(lines * columns, -1);
  }
  std::vector<oracle::Visit> wanted(lines * columns, oracle::Visit::hidden);
  for (int64_t line = 0; line < lines; ++line) {
    std::vector<int32_t> order = {0, 1, 2};
    std::shuffle(order.begin(), order.end(), random);
    for (int32_t column : order) {
      unsigned kind = random() % 3;
      wanted[line * columns + column] = oracle::Visit(kind);
      if (kind != 0)
        indices[kind - 1][line * columns + counts[kind - 1][line]++] = column;
    }
  }
  oracle::BlockLists lists = {
      {counts[0].data(), indices[0].data(), 1, c.p.heads, columns},
      {counts[1].data(), indices[1].data(), 1, c.p.heads, columns},
      queries,
      keys};
  c.clauses.blocks = &lists;
  c.expectGradients();
  Case::Outputs outputs = c.run();

  // The same as one function.
  Case other("");
  other.clauses.sees = [&](const oracle::Pair &pair) {
    int64_t line = pair.head * rows + pair.query / queries;
    oracle::Visit visit = wanted[line * columns + pair.key / keys];
    return visit == oracle::Visit::full ||
           (visit == oracle::Visit::partial && pair.key <= pair.query);
  };
  EXPECT_EQ(outputs.o, other.run().o);
  EXPECT_EQ(outputs.lse, other.run().lse);
}
