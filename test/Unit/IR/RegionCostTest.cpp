//===- RegionCostTest.cpp - What kernels do for a region, per score -------===//
//
// Counts of instructions beside those in the machine code of flash, d = 128,
// 192 x 80 tiles, open blocks: plain has 529, softcap 596, ALiBi 574 and a
// table 647, of 40 scores a lane.
//
//===----------------------------------------------------------------------===//

#include "attn/IR/RegionCost.h"
#include "ParsedOp.h"

#include <gtest/gtest.h>

using namespace attn;

static ScoreClauses clausesOf(const std::string &text,
                              const std::vector<std::string> &captures = {}) {
  ParsedOp op(forwardText(text, captures));
  return problemOf(*op, DynamicSizes()).clauses;
}

static RegionCost scoreCost(const std::string &text,
                            const std::vector<std::string> &captures = {}) {
  return clausesOf(text, captures).scoreCost;
}

static const char *kPositionsText = "(%z : f32, %b, %h, %i, %j, %nq, %nk, %t)";

TEST(RegionCost, NothingOfNoRegion) {
  ScoreClauses clauses = clausesOf("");
  EXPECT_TRUE(clauses.scoreCost == RegionCost());
  EXPECT_TRUE(clauses.seesCost == RegionCost());
}

// A product, tanh, and the last factor is the softmax's.
TEST(RegionCost, Softcap) {
  ParsedOp op(forwardText("softcap(50.0)", {}));
  RegionCost cost = costOf(*op->score(), DataType::bf16);
  EXPECT_NEAR(cost.issue, (596 - 529) / 40.0, 0.5);
  EXPECT_EQ(cost.functions, 1);
  EXPECT_EQ(cost.reads, 0);
  EXPECT_EQ(cost.held, 0);
  EXPECT_GT(cost.slopes, 0);
}

// Of f32 tanh is exact, by two functions and a polynomial (Region/Tanh.h).
TEST(RegionCost, SoftcapOfSinglePrecision) {
  ParsedOp op(forwardText("softcap(50.0)", {}));
  RegionCost approximate = costOf(*op->score(), DataType::bf16),
             exact = costOf(*op->score(), DataType::f32);
  EXPECT_EQ(approximate.functions, 1);
  EXPECT_EQ(exact.functions, 2);
  EXPECT_EQ(exact.issue, approximate.issue + 13);
  EXPECT_EQ(exact.slopes, approximate.slopes);
}

// What is read by head is read once a tile; gradients pass as they are.
TEST(RegionCost, Alibi) {
  RegionCost cost = scoreCost("alibi(%x0 : tensor<4xf32>)", {"tensor<4xf32>"});
  EXPECT_NEAR(cost.issue, (574 - 529) / 40.0, 1);
  EXPECT_EQ(cost.functions, 0);
  EXPECT_EQ(cost.reads, 0);
  EXPECT_GE(cost.held, 1);
  EXPECT_EQ(cost.slopes, 0);
}

// One read for both scores of a diagonal; of other indices one for each.
TEST(RegionCost, Tables) {
  auto table = [&](const std::string &index) {
    return scoreCost("captures(%x0 : tensor<64xf32>) score " +
                         std::string(kPositionsText) + " {\n" + index +
                         "  %v = attn.read %t[%e] : tensor<64xf32>\n"
                         "  %r = arith.addf %z, %v : f32\n"
                         "  attn.yield %r : f32\n}",
                     {"tensor<64xf32>"});
  };
  RegionCost ofDiagonals = table("  %e = arith.subi %i, %j : index\n");
  EXPECT_NEAR(ofDiagonals.issue, (647 - 529) / 40.0, 0.5);
  EXPECT_LT(ofDiagonals.reads, 0.6);
  RegionCost ofPairs = table("  %e = arith.muli %i, %j : index\n");
  EXPECT_EQ(ofPairs.reads, 1);
  EXPECT_GT(ofPairs.issue, ofDiagonals.issue);
  RegionCost ofKeys = table("  %one = arith.constant 1 : index\n"
                            "  %e = arith.addi %j, %one : index\n");
  EXPECT_EQ(ofKeys.reads, 0.5);
  RegionCost ofQueries = table("  %one = arith.constant 1 : index\n"
                               "  %e = arith.addi %i, %one : index\n");
  EXPECT_EQ(ofQueries.reads, 0);
  EXPECT_EQ(ofQueries.held, 2);
  EXPECT_LE(ofQueries.issue, 1);
}

TEST(RegionCost, WhatSeesIsCountedByItself) {
  ScoreClauses clauses = clausesOf("document(%x0 : tensor<8xi32>) softcap(2.0)",
                                   {"tensor<8xi32>"});
  EXPECT_GT(clauses.seesCost.issue, 0);
  EXPECT_EQ(clauses.seesCost.slopes, 0);
  EXPECT_EQ(clauses.scoreCost.functions, 2); // tanh of f32
}
