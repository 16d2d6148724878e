//===- ProblemTextTest.cpp - Is the text of a problem the problem? --------===//

#include "attn/CAPI/ProblemText.h"
#include "attn/IR/Attn.h"
#include "attn/InitAll.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace attn;
using namespace mlir;

namespace {

class ProblemText : public ::testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
  }

  static KernelClass any(Direction direction) {
    KernelClass result;
    Problem &p = result.problem;
    p.direction = direction;
    p.heads = 8, p.kvHeads = 2;
    p.headDim = 64, p.headDimV = 96;
    p.batch = p.queries = p.keys = -1;
    p.lse = true;
    return result;
  }

  /// The op of the text, which is legal.
  AttentionOpInterface opOf(const KernelClass &kernelClass) {
    std::string text = textOf(kernelClass);
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module && succeeded(verify(*module))) << text;
    AttentionOpInterface found;
    if (module)
      module->walk([&](AttentionOpInterface op) { found = op; });
    return found;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
};

} // namespace

/// An op's arrays are rows of the table, which says which way they go.
TEST_F(ProblemText, PlacesAreRolesOfTheTable) {
  for (Direction direction : {Direction::forward, Direction::backward}) {
    ArrayPlaces places = arraysOf(direction);
    EXPECT_FALSE(places.empty());
    for (const ArrayPlace &place : places) {
      std::optional<Role> role = findArray(std::string_view(place.role));
      ASSERT_TRUE(role) << place.role.str();
      EXPECT_EQ(factsOf(*role).flow(direction),
                place.isOutput ? Flow::out : Flow::in)
          << place.role.str();
    }
    for (Role role : allRoles()) {
      const RoleFacts &facts = factsOf(role);
      // The parts of a merge have names of single arrays, and what clauses take
      // comes with them.
      if (facts.isMany || role == Role::sinks || role == Role::offsetsQ ||
          role == Role::offsetsK || role == Role::scaleQ ||
          role == Role::scaleK || role == Role::scaleV)
        continue;
      bool isCallers = facts.isArray() && (facts.flow(direction) == Flow::in ||
                                           facts.flow(direction) == Flow::out);
      EXPECT_EQ(llvm::any_of(places,
                             [&](const ArrayPlace &place) {
                               return std::string_view(place.role) ==
                                      facts.name;
                             }),
                isCallers)
          << facts.name;
    }
  }
}

TEST_F(ProblemText, HasTheProblem) {
  for (Direction direction : {Direction::forward, Direction::backward}) {
    KernelClass plain = any(direction);
    plain.problem.mask = {MaskKind::window, 7, 0};
    AttentionOpInterface op = opOf(plain);
    ASSERT_TRUE(op);
    EXPECT_EQ(op.direction(), direction);
    EXPECT_EQ(op.maskOrNone(), plain.problem.mask);
    EXPECT_EQ(problemOf(op).headDimV, 96);
    EXPECT_FALSE(op.hasClauses());
  }
}

TEST_F(ProblemText, HasListsOfBlocks) {
  for (auto [hasPartial, hasFull] :
       {std::pair(true, false), {false, true}, {true, true}}) {
    KernelClass lists = any(Direction::forward);
    lists.problem.pattern = attn::Pattern({128, 192}, kAssumedDensity);
    lists.hasPartial = hasPartial;
    lists.hasFull = hasFull;
    AttentionOpInterface op = opOf(lists);
    ASSERT_TRUE(op);
    ASSERT_TRUE(op.blockSize());
    EXPECT_EQ(op.blockSize()->queries, 128);
    EXPECT_EQ(op.blockSize()->keys, 192);
    EXPECT_EQ(op.clauseOperands(ClauseGroup::partial).size(),
              hasPartial ? 2u : 0u);
    EXPECT_EQ(op.clauseOperands(ClauseGroup::full).size(), hasFull ? 2u : 0u);
    // They are the last arguments, in this order.
    size_t next = op->getParentOfType<func::FuncOp>().getNumArguments() -
                  2 * (hasPartial + hasFull);
    for (const AttentionArray &array : op.clauseArrays())
      EXPECT_EQ(cast<BlockArgument>(array.value).getArgNumber(), next++)
          << array.role.str();
  }
}
