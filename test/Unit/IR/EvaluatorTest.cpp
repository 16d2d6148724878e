//===- EvaluatorTest.cpp - Are regions the functions that they say? -------===//

#include "../Interpreter/Harness/Normals.h"
#include "../Seed.h"
#include "ParsedOp.h"
#include "attn/IR/RegionEvaluator.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace attn;

namespace {

std::string scoreOf(const std::string &body, unsigned captures = 0) {
  std::string arguments = "score (%z : f32, %b, %h, %i, %j, %nq, %nk";
  for (unsigned i = 0; i < captures; ++i)
    arguments += ", %y" + std::to_string(i);
  return arguments + ") {\n" + body + "  attn.yield %r : f32\n}";
}

struct Real {
  const char *name, *text;
  double least, most; ///< where it is defined and smooth
  std::function<double(double)> function;
};

const PairOfRows kPair = {1, 2, 3, 5, 10, 20};

} // namespace

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static double mathTanh(double z) { return std::tanh(z); }

static std::vector<Real> reals() {
  auto one = [](const char *name, const char *op, double least, double most,
                double (*function)(double)) {
    return Real{name, op, least, most, function};
  };
  return {
      one("exp", "math.exp", -3, 3, std::exp),
      one("exp2", "math.exp2", -3, 3, std::exp2),
      one("expm1", "math.expm1", -3, 3, std::expm1),
      one("log", "math.log", 0.1, 5, std::log),
      one("log2", "math.log2", 0.1, 5, std::log2),
      one("log10", "math.log10", 0.1, 5, std::log10),
      one("log1p", "math.log1p", -0.5, 5, std::log1p),
      one("sqrt", "math.sqrt", 0.1, 5, std::sqrt),
      one("rsqrt", "math.rsqrt", 0.1, 5,
          [](double z) { return 1 / std::sqrt(z); }),
      one("cbrt", "math.cbrt", 0.1, 5, std::cbrt),
      one("tanh", "math.tanh", -3, 3, mathTanh),
      one("sinh", "math.sinh", -3, 3, std::sinh),
      one("cosh", "math.cosh", -3, 3, std::cosh),
      one("sin", "math.sin", -3, 3, std::sin),
      one("cos", "math.cos", -3, 3, std::cos),
      one("tan", "math.tan", -1, 1, std::tan),
      one("atan", "math.atan", -3, 3, std::atan),
      one("erf", "math.erf", -3, 3, std::erf),
      one("absf", "math.absf", 0.1, 5, std::fabs),
      one("absf of less than 0", "math.absf", -5, -0.1, std::fabs),
      one("negf", "arith.negf", -5, 5, [](double z) { return -z; }),
  };
}

static constexpr double kStep = 1e-5;

/// The derivative by a central difference, whose error is about 1e-9 here.
template <typename Function>
static double difference(const Function &function, double at) {
  return (function(at + kStep) - function(at - kStep)) / (2 * kStep);
}

TEST(Evaluator, FunctionsOfOneFloat) {
  Seed seed;
  std::mt19937 random(seed);
  for (const Real &real : reals()) {
    SCOPED_TRACE(real.name);
    ParsedOp op(forwardText(
        scoreOf("  %r = " + std::string(real.text) + " %z : f32\n")));
    RegionEvaluator evaluator(*op->score());
    std::uniform_real_distribution<double> draw(real.least, real.most);
    for (int i = 0; i < 20; ++i) {
      double z = draw(random);
      RegionEvaluator::Slope slope = evaluator.slope(z, kPair, {});
      EXPECT_DOUBLE_EQ(slope.value, real.function(z));
      EXPECT_DOUBLE_EQ(slope.value, evaluator.score(z, kPair, {}));
      double expected = difference(real.function, z);
      EXPECT_NEAR(slope.ofScore, expected, 1e-6 * (1 + std::fabs(expected)))
          << "at " << z;
    }
  }
}

/// Functions of the score and of an element that is read, whichever of both the
/// gradient is in.
TEST(Evaluator, FunctionsOfTwoFloats) {
  Seed seed;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> draw(0.5, 2);
  const char *texts[] = {
      "%r = arith.addf %z, %a : f32",
      "%r = arith.subf %z, %a : f32",
      "%r = arith.mulf %z, %a : f32",
      "%r = arith.divf %z, %a : f32",
      "%r = arith.maximumf %z, %a : f32",
      "%r = arith.minimumf %z, %a : f32",
      "%r = arith.maxnumf %a, %z : f32",
      "%r = arith.minnumf %a, %z : f32",
      "%r = math.powf %z, %a : f32",
      "%r = math.fma %z, %a, %z : f32",
      "%c = arith.cmpf ogt, %z, %a : f32\n"
      "%p = arith.mulf %z, %a : f32\n"
      "%r = arith.select %c, %p, %a : f32",
      "%t = math.tanh %z : f32\n"
      "%u = arith.mulf %t, %a : f32\n"
      "%r = arith.addf %u, %u : f32",
  };
  for (const char *text : texts) {
    SCOPED_TRACE(text);
    ParsedOp op(
        forwardText("captures(%x0 : tensor<4xf32>) " +
                        scoreOf("  %a = attn.read %y0[%h] : tensor<4xf32>\n" +
                                    std::string(text) + "\n",
                                1),
                    {"tensor<4xf32>"}));
    RegionEvaluator evaluator(*op->score());
    for (int i = 0; i < 20; ++i) {
      double z = draw(random), a = draw(random);
      while (std::fabs(z - a) < 2 * kStep) // a difference across a kink
        a = draw(random);
      auto value = [&](double z, double a) {
        return evaluator.score(z, kPair, {{{4}, {0, 0, a, 0}, {}}});
      };
      RegionEvaluator::Slope slope =
          evaluator.slope(z, kPair, {{{4}, {0, 0, a, 0}, {}}});
      EXPECT_NEAR(slope.ofScore,
                  difference([&](double z) { return value(z, a); }, z), 1e-6);
      ASSERT_EQ(slope.ofElements.size(), 1U);
      EXPECT_EQ(slope.ofElements[0].capture, 0U);
      EXPECT_EQ(slope.ofElements[0].offset, kPair.head);
      EXPECT_NEAR(slope.ofElements[0].derivative,
                  difference([&](double a) { return value(z, a); }, a), 1e-6);
    }
  }
}

/// Infinite derivatives of what does not depend on anything do not spread.
TEST(Evaluator, DerivativesOfConstants) {
  ParsedOp op(forwardText(scoreOf("  %c = arith.constant 0.0 : f32\n"
                                  "  %s = math.sqrt %c : f32\n"
                                  "  %r = arith.addf %z, %s : f32\n")));
  EXPECT_EQ(RegionEvaluator(*op->score()).slope(2, kPair, {}).ofScore, 1);
}

TEST(Evaluator, RoundsWhereTheRegionDoes) {
  ParsedOp op(forwardText(scoreOf("  %c = arith.truncf %z : f32 to bf16\n"
                                  "  %r = arith.extf %c : bf16 to f32\n")));
  RegionEvaluator evaluator(*op->score());
  RegionEvaluator::Slope slope = evaluator.slope(1.001953125, kPair, {});
  EXPECT_EQ(slope.value, 1);
  EXPECT_EQ(slope.ofScore, 1);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

static bool sees(const std::string &body) {
  ParsedOp op(forwardText(seesOf(body)));
  return RegionEvaluator(*op->sees()).sees(kPair, {});
}

/// Whether an op on constants gives a number.
static testing::AssertionResult gives(const std::string &op,
                                      const std::string &type, int64_t a,
                                      int64_t b, int64_t expected) {
  std::string at = " : " + type + "\n";
  bool isOne = op == "math.absi";
  if (sees("  %a = arith.constant " + std::to_string(a) + at +
           "  %c = arith.constant " + std::to_string(b) + at + "  %d = " + op +
           " %a" + (isOne ? "" : ", %c") + at + "  %e = arith.constant " +
           std::to_string(expected) + at + "  %r = arith.cmpi eq, %d, %e" + at))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << op << " of " << a << " and " << b;
}

TEST(Evaluator, Integers) {
  EXPECT_TRUE(gives("arith.addi", "i8", 100, 100, -56));
  EXPECT_TRUE(gives("arith.subi", "i8", -100, 100, 56));
  EXPECT_TRUE(gives("arith.muli", "i16", 300, 300, 24464));
  EXPECT_TRUE(gives("arith.divsi", "i32", -7, 2, -3));
  EXPECT_TRUE(gives("arith.divsi", "i32", -7, 0, 0));
  EXPECT_TRUE(gives("arith.remsi", "i32", -7, 2, -1));
  EXPECT_TRUE(gives("arith.divui", "i8", -2, 2, 127));
  EXPECT_TRUE(gives("arith.remui", "i8", -2, 4, 2));
  EXPECT_TRUE(gives("arith.floordivsi", "index", -7, 2, -4));
  EXPECT_TRUE(gives("arith.floordivsi", "index", 7, -2, -4));
  EXPECT_TRUE(gives("arith.floordivsi", "index", -8, 2, -4));
  EXPECT_TRUE(gives("arith.ceildivsi", "index", -7, 2, -3));
  EXPECT_TRUE(gives("arith.ceildivsi", "index", 7, 2, 4));
  EXPECT_TRUE(gives("arith.ceildivui", "i8", -1, 2, -128));
  EXPECT_TRUE(gives("arith.andi", "i32", 12, 10, 8));
  EXPECT_TRUE(gives("arith.ori", "i32", 12, 10, 14));
  EXPECT_TRUE(gives("arith.xori", "i32", 12, 10, 6));
  EXPECT_TRUE(gives("arith.shli", "i8", 3, 6, -64));
  EXPECT_TRUE(gives("arith.shrsi", "i8", -64, 6, -1));
  EXPECT_TRUE(gives("arith.shrui", "i8", -64, 6, 3));
  EXPECT_TRUE(gives("arith.shrui", "i8", -64, 8, 0));
  EXPECT_TRUE(gives("arith.maxsi", "i32", -1, 2, 2));
  EXPECT_TRUE(gives("arith.maxui", "i32", -1, 2, -1));
  EXPECT_TRUE(gives("arith.minsi", "i32", -1, 2, -1));
  EXPECT_TRUE(gives("arith.minui", "i32", -1, 2, 2));
  EXPECT_TRUE(gives("math.absi", "i32", -5, 0, 5));
}

TEST(Evaluator, ComparisonsAndCasts) {
  EXPECT_TRUE(sees("  %r = arith.cmpi slt, %i, %j : index\n"));
  EXPECT_FALSE(sees("  %r = arith.cmpi sge, %i, %j : index\n"));
  EXPECT_TRUE(sees("  %r = index.cmp slt(%i, %j)\n"));
  EXPECT_TRUE(sees("  %c = arith.constant -1 : i8\n"
                   "  %d = arith.extui %c : i8 to i32\n"
                   "  %e = arith.constant 255 : i32\n"
                   "  %r = arith.cmpi eq, %d, %e : i32\n"));
  EXPECT_TRUE(sees("  %c = arith.constant 300 : i32\n"
                   "  %d = arith.trunci %c : i32 to i8\n"
                   "  %e = arith.constant 44 : i8\n"
                   "  %r = arith.cmpi eq, %d, %e : i8\n"));
  EXPECT_TRUE(sees("  %c = arith.constant -1 : i8\n"
                   "  %d = arith.constant 1 : i8\n"
                   "  %r = arith.cmpi ugt, %c, %d : i8\n"));
  EXPECT_TRUE(sees("  %c = arith.constant -2.5 : f32\n"
                   "  %d = arith.fptosi %c : f32 to i32\n"
                   "  %e = arith.sitofp %d : i32 to f32\n"
                   "  %f = arith.constant -2.0 : f32\n"
                   "  %r = arith.cmpf oeq, %e, %f : f32\n"));
  EXPECT_TRUE(sees("  %c = arith.constant -1 : i8\n"
                   "  %e = arith.uitofp %c : i8 to f32\n"
                   "  %f = arith.constant 255.0 : f32\n"
                   "  %r = arith.cmpf oeq, %e, %f : f32\n"));
}

/// Arguments are where the op says they are.
TEST(Evaluator, Positions) {
  const char *names[] = {"b", "h", "i", "j", "nq", "nk"};
  const int64_t values[] = {kPair.batch, kPair.head,    kPair.query,
                            kPair.key,   kPair.queries, kPair.keys};
  for (unsigned n = 0; n < 6; ++n)
    EXPECT_TRUE(sees("  %c = arith.constant " + std::to_string(values[n]) +
                     " : index\n  %r = arith.cmpi eq, %" + names[n] +
                     ", %c : index\n"));
}

TEST(Evaluator, ReadsOutsideOfArrays) {
  ParsedOp op(
      forwardText("captures(%x0 : tensor<4xf32>) " +
                      scoreOf("  %r = attn.read %y0[%j] : tensor<4xf32>\n", 1),
                  {"tensor<4xf32>"}));
  RegionEvaluator evaluator(*op->score());
  RegionEvaluator::Slope slope =
      evaluator.slope(0, kPair, {{{4}, {1, 2, 3, 4}, {}}});
  EXPECT_TRUE(std::isnan(slope.value));
  EXPECT_TRUE(slope.ofElements.empty());
}
