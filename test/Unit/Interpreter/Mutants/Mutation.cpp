//===- Mutation.cpp - Does the interpreter see what is wrong? -------------===//
//
// Every mutant of a flash kernel is run on several problems in several warp
// orders.  It is killed when the interpreter reports an error or the numbers
// differ from the oracle's.
//
//===----------------------------------------------------------------------===//

#include "Harness/FlashCase.h"
#include "Harness/KernelTest.h"
#include "Mutants/Survivors.h"

#include <algorithm>

using namespace mlir;
using namespace attn;

namespace {
/// A kernel whose mutants are run.
struct Subject {
  const char *name;
  Tiles tiles;
  int64_t heads;
  /// What the kernel is run on.
  struct Size {
    int64_t queries, keys;
    Mask mask;
  };
  std::vector<Size> sizes;
  /// Whether ops are also moved.  Where many ops stand between a wait and what
  /// it waits for, most moves change nothing.
  bool moves;
};

class Mutation : public ::testing::TestWithParam<Subject> {
protected:
  Mutation() { loadDialects(context); }
  MLIRContext context;
};
} // namespace

/// What the interpreter has to say against the mutant, or nothing.
static std::string verdict(std::vector<FlashCase> &cases, ModuleOp module) {
  tile::KernelOp kernel = *module.getOps<tile::KernelOp>().begin();
  for (FlashCase &flash : cases)
    for (WarpOrder order :
         {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      Outcome outcome = flash.run(kernel, options);
      if (!outcome.error.empty())
        return outcome.error;
      if (outcome.relativeError > 4e-3 || outcome.lseError > 1e-4)
        return "wrong numbers";
    }
  return "";
}

TEST_P(Mutation, MutantsAreKilled) {
  const Subject &subject = GetParam();
  Problem problem;
  problem.heads = subject.heads;
  problem.headDim = 32;
  problem.headDimV = 64;
  std::vector<FlashCase> cases;
  for (const Subject::Size &size : subject.sizes) {
    problem.queries = size.queries;
    problem.keys = size.keys;
    problem.mask = size.mask;
    cases.emplace_back(problem, subject.tiles);
  }
  OwningOpRef<ModuleOp> module = buildFlash(context, problem, subject.tiles);
  ASSERT_EQ(verdict(cases, *module), "") << "the kernel itself";

  expectKilled(subject.name, *module, subject.moves, /*atLeast=*/20,
               [&](ModuleOp mutant) { return verdict(cases, mutant); });
}

/// O is wider than Q, whose place it takes, so that strips of two warps
/// overlap; four blocks are cut by the mask, more than there are stages.
static Subject stages(const char *name, int64_t count) {
  return {name,
          {{"query", 64}, {"key", 16}, {"stages", count}, {"warps", 2}},
          1,
          {{150, 140, {MaskKind::causal}},
           {70, 30, {MaskKind::causal}},
           {9, 5, {MaskKind::causal}}},
          /*moves=*/true};
}

/// Two warpgroups in turns, more tiles than blocks, and a window that lets each
/// pass over blocks of the other at both ends.
static Subject wgmma(const char *name, int64_t queryStages) {
  return {name,
          {{"query", 128},
           {"key", 48},
           {"stages", 2},
           {"query_stages", queryStages},
           {"staging", 64},
           {"ping_pong", 1},
           {"overlap", 1},
           {"persistent", 1}},
          5,
          {{300, 330, {MaskKind::window, 20, 10}},
           {384, 400, {MaskKind::window, 20, 10}},
           {384, 500, {MaskKind::window, 300, 90}},
           {384, 90, {MaskKind::window, 20, 10}}},
          /*moves=*/false};
}

INSTANTIATE_TEST_SUITE_P(Kernels, Mutation,
                         ::testing::Values(stages("stages 1", 1),
                                           stages("stages 2", 2),
                                           stages("stages 3", 3),
                                           wgmma("wgmma", 1),
                                           wgmma("wgmma 2", 2)),
                         [](const auto &info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });
