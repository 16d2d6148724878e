//===- ProblemAttr.cpp - What a kernel was built for, there and back ------===//

#include "attn/Kernels/Kernels.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

TEST(ProblemAttr, RoundTrips) {
  mlir::MLIRContext context;
  Problem p;
  p.dtype = DataType::f32;
  p.precision = Precision::tf32;
  p.batch = 2, p.heads = 6, p.kvHeads = 3;
  p.queries = 10, p.keys = 20, p.headDim = 30, p.headDimV = 40;
  p.mask = {MaskKind::window, 1, 2};
  p.lse = false;
  mlir::DictionaryAttr forward = problemAttr(&context, p);
  EXPECT_FALSE(forward.contains("direction"));
  EXPECT_EQ(problemFromAttr(forward)->direction, Direction::forward);
  EXPECT_EQ(problemAttr(&context, *problemFromAttr(forward)), forward);

  p.direction = Direction::backward;
  for (bool deterministic : {false, true}) {
    p.deterministic = deterministic, p.dlse = !deterministic;
    p.lseLow = deterministic;
    mlir::DictionaryAttr backward = problemAttr(&context, p);
    std::optional<Problem> read = problemFromAttr(backward);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->direction, Direction::backward);
    EXPECT_EQ(read->deterministic, deterministic);
    EXPECT_EQ(read->dlse, !deterministic);
    EXPECT_EQ(read->lseLow, deterministic);
    EXPECT_EQ(problemAttr(&context, *read), backward);
  }
}

/// A kernel is built for the sizes of blocks, and not for lists.
TEST(ProblemAttr, Blocks) {
  mlir::MLIRContext context;
  Problem p;
  p.heads = p.kvHeads = 2;
  p.queries = 100, p.keys = 200, p.headDim = p.headDimV = 64;
  for (bool isShared : {false, true}) {
    p.pattern = attn::Pattern({64, 128}, /*density=*/0.25, isShared);
    mlir::DictionaryAttr attribute = problemAttr(&context, p);
    std::optional<Problem> read = problemFromAttr(attribute);
    ASSERT_TRUE(read && read->pattern);
    EXPECT_TRUE(*read->pattern == *p.pattern);
    EXPECT_EQ(problemAttr(&context, *read), attribute);
  }
}

TEST(ProblemAttr, Clauses) {
  mlir::MLIRContext context;
  Problem p;
  p.queries = p.keys = 100, p.headDim = p.headDimV = 64;
  for (const ScoreClauses &clauses : {ScoreClauses{true, false, false},
                                      {false, true, false},
                                      {false, false, true},
                                      {true, true, true}}) {
    p.clauses = clauses;
    std::optional<Problem> read = problemFromAttr(problemAttr(&context, p));
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->clauses == clauses) << str(clauses);
  }
  EXPECT_EQ(str(p.clauses), "sees, score, sinks");
}

TEST(ProblemAttr, Scales) {
  mlir::MLIRContext context;
  Problem p;
  p.queries = 1, p.keys = 128, p.headDim = p.headDimV = 64;
  EXPECT_FALSE(problemAttr(&context, p).contains("k_scale"));
  for (const OperandScales &scales : {OperandScales{true, false, false},
                                      {false, true, false},
                                      {false, false, true},
                                      {true, true, true}}) {
    p.scales = scales;
    std::optional<Problem> read = problemFromAttr(problemAttr(&context, p));
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->scales == scales) << str(scales);
  }
  EXPECT_EQ(str(p.scales), "scales(q, k, v)");
}

TEST(ProblemAttr, NarrowKeys) {
  mlir::MLIRContext context;
  Problem p;
  p.queries = 1, p.keys = 128, p.headDim = p.headDimV = 64;
  EXPECT_FALSE(problemAttr(&context, p).contains("kv_dtype"));
  p.kvDtype = DataType::f8e4m3;
  std::optional<Problem> read = problemFromAttr(problemAttr(&context, p));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kvDtype, p.kvDtype);
  EXPECT_EQ(read->dtype, DataType::bf16);
}

TEST(ProblemAttr, Placement) {
  mlir::MLIRContext context;
  Problem p;
  p.queries = 1, p.keys = 128, p.headDim = p.headDimV = 64;
  EXPECT_FALSE(problemAttr(&context, p).contains("used_keys_bits"));
  for (const Placement &place :
       {Placement{32, 0}, Placement{64, 0}, Placement{32, 16}}) {
    p.place = place;
    std::optional<Problem> read = problemFromAttr(problemAttr(&context, p));
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->place == place) << str(place);
  }
  EXPECT_EQ(str(p.place), "pages of 16 keys with lengths(k)");
}

} // namespace
