//===- ClausesTest.cpp - Attention with regions, blocks and sinks ---------===//
//
// The oracle by the regions of an op: gradients are derivatives of a loss that
// is linear in O and LSE, and clauses that change nothing change nothing.
//
//===----------------------------------------------------------------------===//

#include "../Interpreter/Harness/Normals.h"
#include "../Seed.h"
#include "ParsedOp.h"
#include "attn/Interpreter/ClauseReference.h"

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
  std::unique_ptr<ParsedOp> op;
  std::unique_ptr<ClauseReference> reference;
  /// Of what has no op.
  oracle::Clauses others;

  /// `arrays` are what the clauses take; without text there are none.
  explicit Case(const std::string &text,
                const std::vector<std::string> &types = {},
                std::vector<CapturedArray> arrays = {})
      : q(p.batch * p.heads * p.queries * p.headDim),
        k(p.batch * p.kvHeads * p.keys * p.headDim),
        v(p.batch * p.kvHeads * p.keys * p.headDimV),
        dO(p.batch * p.heads * p.queries * p.headDimV),
        dlse(p.batch * p.heads * p.queries) {
    Normals normal(7);
    for (std::vector<float> *array : {&q, &k, &v, &dO, &dlse})
      for (float &value : *array)
        value = std::round(normal() * 64) / 64;
    if (text.empty())
      return;
    op = std::make_unique<ParsedOp>(forwardText(text, types));
    reference = std::make_unique<ClauseReference>(**op, std::move(arrays),
                                                  p.queries, p.keys);
  }

  const oracle::Clauses &clauses() const {
    return reference ? reference->clauses() : others;
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
    Outputs outputs = {std::vector<double>(dO.size()),
                       std::vector<double>(dlse.size())};
    oracle::attention(p, clauses(), qArray(), kArray(), vArray(),
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
    if (reference)
      reference->clearGradients();
    size_t sinks = clauses().sinks ? p.heads : 0;
    Gradients g = {std::vector<double>(q.size()), std::vector<double>(k.size()),
                   std::vector<double>(v.size()), std::vector<double>(sinks)};
    oracle::gradients(p, clauses(), qArray(), kArray(), vArray(),
                      array(dO, p.heads, p.queries, p.headDimV), dlse.data(),
                      g.dq.data(), g.dk.data(), g.dv.data(),
                      sinks ? g.dsinks.data() : nullptr);
    return g;
  }

  /// The derivative of the loss in a number, by a central difference.
  template <typename Number> double difference(Number &number) {
    // Floats are such that a step of theirs is exact.
    constexpr bool isDouble = std::is_same_v<Number, double>;
    constexpr Number step = Number(isDouble ? 0x1p-16 : 0x1p-10);
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
    expectDerivatives(reference->sinks(), g.dsinks);
    std::vector<std::vector<double>> pulled = reference->captureGradients();
    for (size_t i = 0; i < pulled.size(); ++i)
      if (!pulled[i].empty())
        expectDerivatives(reference->capture(i), pulled[i]);
  }
};

/// Floats, as many as the sizes say.
CapturedArray reals(std::vector<int64_t> sizes, unsigned seed) {
  Normals normal(seed);
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  std::vector<double> values(count);
  for (double &value : values)
    value = normal();
  return {std::move(sizes), std::move(values), {}};
}

CapturedArray wholes(std::vector<int64_t> sizes, std::vector<int32_t> values) {
  return {std::move(sizes), {}, {values.begin(), values.end()}};
}

} // namespace

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

TEST(Clauses, GradientsOfSoftcap) {
  Case c("softcap(1.5)");
  c.expectGradients();
}

TEST(Clauses, GradientsOfSlopesBiasAndSinks) {
  Case c("sinks(%x2 : tensor<4xf32>) alibi(%x0 : tensor<4xf32>) "
         "bias(%x1 : tensor<1x4x5x6xf32>)",
         {"tensor<4xf32>", "tensor<1x4x5x6xf32>", "tensor<4xf32>"},
         {reals({4}, 1), reals({1, 4, 5, 6}, 2), reals({4}, 3)});
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
         {"tensor<2xf32>"}, {reals({2}, 4)});
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
  const std::string text = "sees (%b, %h, %i, %j, %nq, %nk) {\n"
                           "  %r = arith.constant false\n"
                           "  attn.yield %r : i1\n} ";
  for (bool hasSink : {false, true}) {
    CapturedArray sinks = reals({4}, 5);
    Case c(text + (hasSink ? "sinks(%x0 : tensor<4xf32>)" : ""),
           {"tensor<4xf32>"},
           hasSink ? std::vector<CapturedArray>{sinks}
                   : std::vector<CapturedArray>());
    Case::Outputs outputs = c.run();
    for (double o : outputs.o)
      EXPECT_EQ(o, 0);
    for (size_t line = 0; line < outputs.lse.size(); ++line) {
      double lse = outputs.lse[line];
      if (hasSink)
        EXPECT_EQ(lse, sinks.reals[line / c.p.queries % c.p.heads]);
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

/// Random lists are what they say, and full blocks ask neither the region nor
/// the band.
TEST(Clauses, ListsOfBlocks) {
  Seed seed;
  std::mt19937 random(seed);
  // 70 queries and 150 keys are 2 x 3 blocks.  Batch entries share their lists,
  // heads have their own.
  constexpr int64_t heads = 4, rows = 2, columns = 3, queries = 70, keys = 150;
  constexpr int64_t lines = heads * rows;
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
  const std::string count = "tensor<1x4x2xi32>", index = "tensor<1x4x2x3xi32>";
  ParsedOp op(
      forwardText("blocks(partial %x0, %x1, full %x2, %x3, size 64 x 64 "
                  ": " +
                      count + ", " + index + ", " + count + ", " + index +
                      ")\n"
                      "sees (%b, %h, %i, %j, %nq, %nk) {\n"
                      "  %r = arith.cmpi sle, %j, %i : index\n"
                      "  attn.yield %r : i1\n}",
                  {count, index, count, index}));
  ClauseReference reference(*op,
                            {wholes({1, heads, rows}, counts[0]),
                             wholes({1, heads, rows, columns}, indices[0]),
                             wholes({1, heads, rows}, counts[1]),
                             wholes({1, heads, rows, columns}, indices[1])},
                            queries, keys);

  // The same as one function.
  oracle::Clauses other;
  other.sees = [&](const oracle::Pair &pair) {
    int64_t line = pair.head * rows + pair.query / 64;
    oracle::Visit visit = wanted[line * columns + pair.key / 64];
    return visit == oracle::Visit::full ||
           (visit == oracle::Visit::partial && pair.key <= pair.query &&
            pair.key >= pair.query - 20);
  };
  oracle::Problem p = {2, heads, 2, queries, keys, 2, 2, -kFar, kFar, 0.5};
  oracle::Problem window = p;
  window.first = -20;
  std::vector<float> q(p.batch * heads * queries * 2),
      k(p.batch * 2 * keys * 2);
  Normals normal(9);
  for (std::vector<float> *array : {&q, &k})
    for (float &value : *array)
      value = normal();
  auto run = [&](const oracle::Problem &p, const oracle::Clauses &clauses) {
    std::vector<double> o(q.size()), lse(q.size() / 2);
    oracle::Array keyRows = Case::array(k, 2, keys, 2);
    oracle::attention(p, clauses, Case::array(q, heads, queries, 2), keyRows,
                      keyRows, o.data(), lse.data());
    o.insert(o.end(), lse.begin(), lse.end());
    return o;
  };
  EXPECT_EQ(run(window, reference.clauses()), run(p, other));
}
