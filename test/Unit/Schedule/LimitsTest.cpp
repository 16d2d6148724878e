//===- LimitsTest.cpp - Are sizes and their products limited exactly? -----===//

#include "attn/Schedule/Limits.h"
#include "../Share.h"
#include "RandomProblem.h"
#include "attn/Machine/Machine.h"
#include "attn/Schedule/Bounds.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Schedule.h"
#include <gtest/gtest.h>
#include <limits>

using namespace attn;

namespace {

Problem problemOf(int64_t batch, int64_t heads, int64_t kvHeads,
                  int64_t queries, int64_t keys, int64_t dim) {
  Problem p;
  p.batch = batch, p.heads = heads, p.kvHeads = kvHeads;
  p.queries = queries, p.keys = keys, p.headDim = p.headDimV = dim;
  return p;
}

std::string checked(const Problem &p) { return check(p).value_or("fine"); }

TEST(Limits, ProductsAreNamed) {
  // One query each: a tile for every head.
  EXPECT_EQ(checked(problemOf(1 << 16, 1 << 14, 1 << 14, 1, 1, 8)), "fine");
  EXPECT_EQ(checked(problemOf(1 << 17, 1 << 14, 1 << 14, 1, 1, 8)),
            "expects at most 2^30 tiles of 16 queries (batch x heads x queries "
            "/ 16), but got 2147483648");
  EXPECT_EQ(checked(problemOf(1 << 17, 1 << 13, 1 << 13, 17, 1, 8)),
            "expects at most 2^30 tiles of 16 queries (batch x heads x queries "
            "/ 16), but got 2147483648");
  EXPECT_EQ(checked(problemOf(1 << 17, 1 << 13, 1 << 13, 1, 17, 8)),
            "expects at most 2^30 tiles of 16 keys (batch x kv heads x keys / "
            "16), but got 2147483648");
  EXPECT_EQ(checked(problemOf(1, 1 << 10, 1, 1 << 22, 1, 8)),
            "expects at most 2147483647 queries of all heads that share a kv "
            "head (heads / kv heads x queries), but got 4294967296");
  EXPECT_EQ(checked(problemOf(1, 1 << 10, 2, 1 << 21, 1, 8)), "fine");
  // A window of an image: 65536 batch entries of 49 rows.
  EXPECT_EQ(checked(problemOf(65536, 3, 3, 49, 49, 32)), "fine");
}

TEST(Limits, EmptyIsLegal) {
  for (int64_t Problem::*size :
       {&Problem::batch, &Problem::queries, &Problem::keys}) {
    Problem p = problemOf(2, 4, 2, 100, 100, 64);
    p.*size = 0;
    EXPECT_EQ(checked(p), "fine");
    EXPECT_TRUE(isEmpty(p));
    EXPECT_EQ(atLeastOne(p).*size, 1);
    p.*size = -1;
    EXPECT_NE(checked(p), "fine");
  }
  EXPECT_NE(checked(problemOf(1, 0, 1, 1, 1, 8)), "fine");
}

/// Every limit is a bound: it holds for itself and not for one more.
TEST(Limits, EveryOneBinds) {
  for (const Limit &limit : limits()) {
    if (limit.isProduct())
      continue;
    Problem p = problemOf(1, 1, 1, 1, 1, 8);
    Problem q = p;
    auto set = [&](Problem &problem, int64_t value) {
      switch (limit.factors.front().size) {
      case Size::batch:
        problem.batch = value;
        return;
      case Size::heads:
        problem.heads = value;
        return;
      case Size::kvHeads:
        problem.heads = problem.kvHeads = value;
        return;
      case Size::queries:
        problem.queries = value;
        return;
      case Size::keys:
        problem.keys = value;
        return;
      case Size::headDim:
        problem.headDim = value;
        return;
      case Size::headDimV:
        problem.headDimV = value;
        return;
      case Size::group:
        FAIL() << "a quotient is no size";
      }
    };
    set(p, limit.most);
    set(q, limit.most + 1);
    EXPECT_EQ(checked(p), "fine") << limit.what;
    EXPECT_NE(checked(q), "fine") << limit.what;
  }
}

/// Rows and sides of a band are added in 32 bits, one more for an end.
TEST(Limits, SumsOfRowsAndSidesFit) {
  Random random(5);
  auto rows = [&] { return kMaxRows - random.number(0, 3) * 357913941; };
  for (int i = 0; i < 1000; ++i) {
    Problem p = problemOf(1, 1, 1, rows(), rows(), 8);
    p.mask = {MaskKind::window, random.number(0, kUnbounded),
              random.number(0, kUnbounded)};
    Visible sides = visible(p);
    int64_t most = std::numeric_limits<int32_t>::max();
    EXPECT_LE(p.queries - 1 + sides.last + 1, most) << p;
    EXPECT_LE(p.keys - 1 - sides.first + 1, most) << p;
    EXPECT_GE(sides.first, -p.queries) << p;
    EXPECT_LE(sides.last, p.keys) << p;
  }
}

TEST(Limits, EmptyProblemsHavePlans) {
  ATTN_LONG_TEST();
  Random random(7);
  for (int i = 0; i < 40; ++i) {
    Problem p = random.problem(300);
    for (int64_t *size : {&p.batch, &p.queries, &p.keys})
      if (random.number(0, 1))
        *size = 0;
    if (!isEmpty(p))
      p.keys = 0;
    if (random.number(0, 1))
      p.direction = Direction::backward;
    const Machine &machine = *findMachine(i % 2 ? "h100_sxm" : "a100_80g");
    PlanReport report = plans(p, machine), of = plans(atLeastOne(p), machine);
    ASSERT_NE(report.best(), nullptr) << p;
    EXPECT_EQ(report.best()->tiles, of.best()->tiles) << p;
    EXPECT_EQ(report.problem.keys, p.keys) << p;
    std::string error;
    EXPECT_TRUE(planFor(p, machine, report.best()->schedule,
                        report.best()->tiles, error))
        << error;
    EXPECT_GE(bounds(p, 1000).words, 0) << p;
  }
}

/// What was chosen for sizes at hand compiles for sizes that are open, which a
/// representative stands for: it may have far more rows, and so more scratch.
TEST(Limits, WhatFitsIsBuiltForAnySizes) {
  ATTN_LONG_TEST();
  Random random(11);
  auto check = [](const Problem &p, const Machine &machine) {
    const PlanReport report = plans(p, machine);
    const Plan *best = report.best();
    if (!best)
      return;
    Problem open = p;
    open.batch = 8;
    open.queries = open.keys = 4096;
    std::string error;
    EXPECT_TRUE(planFor(open, withAnyMemory(machine), best->schedule,
                        best->tiles, error))
        << p << ": " << best->schedule << ' ' << best->tiles.str() << ": "
        << error;
  };
  Problem many = problemOf(1, 10000, 10000, 200, 200, 64);
  many.direction = Direction::backward;
  check(many, *findMachine("h100_sxm"));
  for (int i = 0; i < 60; ++i) {
    Problem p = random.problem(300);
    p.batch = 1;
    p.heads = p.kvHeads = random.number(1000, 20000);
    p.headDim = p.headDimV = 8 * random.number(1, 80);
    if (i % 2)
      p.direction = Direction::backward;
    check(p, *findMachine(i % 3 ? "h100_sxm" : "a100_80g"));
  }
}

} // namespace
