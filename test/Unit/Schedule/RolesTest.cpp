//===- RolesTest.cpp - Does the table of roles say what it prints? --------===//

#include "attn/Schedule/Roles.h"

#include <gtest/gtest.h>
#include <set>

using namespace attn;

namespace {

/// All arguments that a row may have, of the first parts.
std::vector<ArgumentRole> argumentsOf(Role role) {
  std::vector<ArgumentRole> all;
  for (Facet facet : kFacets)
    for (int part : {0, 1, 15})
      if (hasFacet(role, facet) && (part == 0 || factsOf(role).isMany))
        all.push_back({role, facet, part});
  return all;
}

Problem sized() {
  Problem p;
  p.batch = 2, p.heads = 12, p.kvHeads = 3;
  p.queries = 50, p.keys = 700, p.headDim = 96, p.headDimV = 64;
  p.mask = {MaskKind::window, 7, 12};
  return p;
}

} // namespace

TEST(Roles, PrintAndParse) {
  std::set<std::string> seen;
  for (Role role : allRoles())
    for (const ArgumentRole &argument : argumentsOf(role)) {
      std::string text = str(argument);
      EXPECT_TRUE(seen.insert(text).second) << text << " is two roles";
      std::optional<ArgumentRole> parsed = parseRole(text);
      ASSERT_TRUE(parsed) << text;
      EXPECT_TRUE(*parsed == argument) << text << " is " << str(*parsed);
    }
  EXPECT_EQ(str({Role::q, Facet::strideRow}), "q_stride_row");
  EXPECT_EQ(str({Role::oPart, Facet::strideHead, 12}), "o_12_stride_head");
  EXPECT_EQ(str({Role::partsOfQ, Facet::map}), "scratch_q_map");
}

TEST(Roles, OthersAreNone) {
  for (const char *text : {"",
                           "_",
                           "query",
                           "q_",
                           "q_stride",
                           "q_stride_column",
                           "q_map_map",
                           "q_0",
                           "queries_map",
                           "queries_offset",
                           "counter_offset",
                           "lse_map",
                           "scratch_dq_map",
                           "scratch_rows_map",
                           "scratch_q_offset",
                           "scratch_q_exponents_map",
                           "o_",
                           "o_01",
                           "o_-1",
                           "o_99999",
                           "o_x",
                           "lse_0_map",
                           "lse_low_0",
                           "scratch_p_exponents",
                           "Q",
                           " q",
                           "q "})
    EXPECT_FALSE(parseRole(text)) << text;
}

/// A gradient has the shape of what it is the gradient of, and goes the other
/// way; nothing else comes out of a direction.
TEST(Roles, GradientsAreLikeTheirArrays) {
  const std::pair<Role, Role> gradients[] = {{Role::dO, Role::o},
                                             {Role::dLse, Role::lse},
                                             {Role::dQ, Role::q},
                                             {Role::dK, Role::k},
                                             {Role::dV, Role::v},
                                             {Role::dOPart, Role::oPart},
                                             {Role::dLsePart, Role::lsePart}};
  for (auto [gradient, array] : gradients) {
    const RoleFacts &of = factsOf(array), &facts = factsOf(gradient);
    EXPECT_EQ(facts.name, "d" + std::string(of.name));
    EXPECT_EQ(facts.shape, of.shape) << facts.name;
    EXPECT_EQ(facts.element, of.element) << facts.name;
    EXPECT_EQ(facts.forward, Flow::none) << facts.name;
    EXPECT_EQ(of.backward, Flow::in) << of.name;
    EXPECT_EQ(facts.backward == Flow::out, of.forward == Flow::in)
        << facts.name;
  }
}

TEST(Roles, Numbers) {
  Problem p = sized();
  Round round{1, 2, 3, 4, 5};
  auto value = [&](Role role) { return factsOf(role).value(p, round); };
  EXPECT_EQ(value(Role::queries), 50);
  EXPECT_EQ(value(Role::keys), 700);
  EXPECT_EQ(value(Role::heads), 12);
  EXPECT_EQ(value(Role::batch), 2);
  EXPECT_EQ(value(Role::group), 4);
  EXPECT_EQ(value(Role::bandFirst), 643);
  EXPECT_EQ(value(Role::bandLast), 662);
  EXPECT_EQ(value(Role::openKeys), 0);
  EXPECT_EQ(value(Role::firstHead), 1);
  EXPECT_EQ(value(Role::roundHeads), 2);
  EXPECT_EQ(value(Role::firstKey), 3);
  EXPECT_EQ(value(Role::firstQuery), 4);
  p.mask = {MaskKind::prefix, 0, 0, 90};
  EXPECT_EQ(value(Role::openKeys), 90);
  for (Role role : allRoles())
    EXPECT_EQ(factsOf(role).isNumber(), factsOf(role).value != nullptr)
        << factsOf(role).name;
}

TEST(Roles, Sizes) {
  using Sizes = std::vector<int64_t>;
  Problem p = sized();
  EXPECT_EQ(sizesOf(Role::q, p), (Sizes{2, 12, 50, 96}));
  EXPECT_EQ(sizesOf(Role::k, p), (Sizes{2, 3, 700, 96}));
  EXPECT_EQ(sizesOf(Role::v, p), (Sizes{2, 3, 700, 64}));
  EXPECT_EQ(sizesOf(Role::o, p), (Sizes{2, 12, 50, 64}));
  EXPECT_EQ(sizesOf(Role::lse, p), (Sizes{2, 12, 50}));
  EXPECT_EQ(sizesOf(Role::weights, p), (Sizes{2, 12, 50, 700}));
  EXPECT_EQ(sizesOf(Role::blockRows, p), (Sizes{2, 12, 6, 50}));
  EXPECT_EQ(sizesOf(Role::delta, p), sizesOf(Role::lse, p));
  EXPECT_EQ(valueOf(Extent::queryBlocks, p), 0);
  p.pattern = Pattern({16, 64}, /*density=*/0.5);
  EXPECT_EQ(sizesOf(Role::partialCounts, p), (Sizes{2, 12, 4}));
  EXPECT_EQ(sizesOf(Role::fullBlocks, p), (Sizes{2, 12, 4, 11}));
  p.keys = -1; // any
  EXPECT_EQ(valueOf(Extent::keyBlocks, p), -1);
  EXPECT_EQ(valueOf(Extent::keptRows, p), -1);
}

TEST(Roles, Elements) {
  Problem p = sized();
  p.dtype = DataType::f8e4m3;
  EXPECT_EQ(elementOf(Role::q, p), DataType::f8e4m3);
  EXPECT_EQ(elementOf(Role::o, p), DataType::bf16);
  EXPECT_EQ(elementOf(Role::lse, p), DataType::f32);
  p.dtype = DataType::f16;
  EXPECT_EQ(elementOf(Role::dQ, p), DataType::f16);
}

TEST(Roles, ArraysByName) {
  EXPECT_EQ(findArray("lse_low"), Role::lseLow);
  EXPECT_EQ(findArray("do"), Role::dO);
  EXPECT_FALSE(findArray("o_0"));
  EXPECT_FALSE(findArray("queries"));
  EXPECT_FALSE(findArray("q_map"));
  for (Role input : {Role::q, Role::k, Role::v}) {
    EXPECT_EQ(factsOf(memoryOf(input, Memory::parts)).of, input);
    EXPECT_EQ(str(memoryOf(input, Memory::exponents)),
              str(memoryOf(input, Memory::parts)) + "_exponents");
  }
}
